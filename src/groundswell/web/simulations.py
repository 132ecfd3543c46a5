"""/api/simulations: individual simulations, of batches and on their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from groundswell.engine.options import RunOptions
from groundswell.experiments.experiment import plain_name
from groundswell.experiments.simulations.batch import Single
from groundswell.experiments.simulations.driving import converse
from groundswell.experiments.simulations.reading import (
    BATCH,
    SINGLE,
    Found,
    Readings,
    SimulationShown,
    batch_id,
    simulation_id,
)
from groundswell.web.envelope import ApiError, Confirmation, page, success
from groundswell.web.requests import ContinueBody, SimulationBody
from groundswell.web.schema import answers, errors
from groundswell.web.services import Here, Limit, Offset, Services

router = APIRouter(prefix="/api/simulations", tags=["simulations"])


class StartedAlone(msgspec.Struct, frozen=True):
    """A started simulation. Follow or cancel its run under /api/runs."""

    id: str
    run_id: str
    message: str


@router.get(
    "",
    summary="List simulations",
    responses={**answers(list[SimulationShown], "The simulations, newest run first.", paged=True), **errors(404)},
)
async def list_all(
    here: Here,
    batch_id: Annotated[str | None, Query(max_length=100, description="Return only simulations of this batch.")] = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> Response:
    """List the simulations that have started. The header X-Total-Count has their total number."""
    return await here.part(limit, lambda: _listed(here, batch_id, limit, offset))


@router.post(
    "",
    status_code=201,
    summary="Create a single simulation",
    responses={**answers(StartedAlone, "The simulation was started.", status=201), **errors(429, body=True)},
)
async def create(here: Here, body: SimulationBody) -> Response:
    """Start a single simulation in the background. Its entities speak in the given order."""
    single = body.made(here.entities(body.entity_ids), here.settings)
    await here.check_models(single.simulation.rules.model, single.simulation.entities)
    return await _started(here, single, body.seed, body.options)


@router.get(
    "/{simulation_id}",
    summary="Get a simulation",
    responses={**answers(SimulationShown, "The simulation."), **errors(404)},
)
async def get(here: Here, simulation_id: str) -> Response:
    """Return a simulation. `content` is empty until the simulation is completed."""
    return success(here.readings.simulation(here.readings.find_simulation(simulation_id)))


@router.post(
    "/{simulation_id}/continue",
    status_code=201,
    summary="Continue a completed simulation",
    responses={
        **answers(StartedAlone, "The new simulation was started.", status=201),
        **errors(404, 409, 429, body=True),
    },
)
async def go_on(here: Here, simulation_id: str, body: ContinueBody) -> Response:
    """Start a new simulation that continues the conversation of a completed one. The field `continues` of its metadata
    has the id of the earlier simulation."""
    found = here.readings.find_simulation(simulation_id)
    shown = here.readings.simulation(found)
    if shown.status != "completed":
        raise ApiError(409, f"simulation {simulation_id} cannot be continued: it is {shown.status}, not completed")
    before, talked = here.readings.talk(found)
    single = body.made(simulation_id, before, talked, here.settings)
    await here.check_models(before.rules.model, before.entities)
    return await _started(here, single, body.seed, RunOptions(unattended=True))


@router.delete(
    "/{simulation_id}",
    summary="Delete a simulation",
    responses={**answers(Confirmation, "The simulation was deleted."), **errors(404, 409)},
)
async def delete(here: Here, simulation_id: str) -> Response:
    """Delete a single simulation. Simulations of a batch can only be deleted with their batch."""
    found = here.readings.find_simulation(simulation_id)
    here.readings.simulation(found)
    if found.record.driver == BATCH:
        name = batch_id(found.record)
        raise ApiError(409, f"simulation {simulation_id} belongs to {name}: delete the whole batch instead")
    await here.background.delete(found.record)
    return success(Confirmation(f"Simulation {simulation_id} deleted successfully"))


async def _started(here: Services, single: Single, seed: int, options: RunOptions) -> Response:
    name = here.free_name(plain_name(single.name or "simulation"))
    record = await here.background.plan(converse, single, name=name, seed=seed, options=options)
    return success(StartedAlone(simulation_id(record, 1), record.id, "Simulation started"), 201)


def _listed(here: Services, batch: str | None, limit: int, offset: int) -> Response:
    readings = here.readings
    if batch is not None:
        record = readings.find(batch)
        some = readings.simulations(record, offset + 1, offset + limit)
        return page(list(some), record.counters.planned)
    runs = here.store.runs.planned(drivers=(BATCH, SINGLE))
    sizes = [(id_, max(many, 1) if driver == SINGLE else many) for id_, driver, many in runs]
    some = (each for id_, first, last in _parts(sizes, limit, offset) for each in _of(here, readings, id_, first, last))
    return page(list(some), sum(many for _, many in sizes))


def _parts(sizes: list[tuple[str, int]], limit: int, offset: int) -> Iterator[tuple[str, int, int]]:
    """The simulations of a page, by run: its id, and the first and last number."""
    for id_, many in sizes:
        if offset >= many:
            offset -= many
            continue
        if limit <= 0:
            return
        taken = min(limit, many - offset)
        yield id_, offset + 1, offset + taken
        limit, offset = limit - taken, 0


def _of(here: Services, readings: Readings, id_: str, first: int, last: int) -> Iterator[SimulationShown]:
    record = here.store.runs.find(id_)
    if record is None:
        return
    if record.driver == SINGLE:
        yield readings.simulation(Found(record, 1))
    else:
        yield from readings.simulations(record, first, last)
