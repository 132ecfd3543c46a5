"""/api/provider-batches: the batches that runs have at providers. Not to be confused with simulation batches."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from groundswell.batch_lookup import FoundBatch, Providers, described, look_at
from groundswell.errors import NotFound, RunError
from groundswell.store.waves import StoredWave
from groundswell.web.envelope import Confirmation, success
from groundswell.web.schema import answers, errors
from groundswell.web.services import Here, Services

router = APIRouter(prefix="/api/provider-batches", tags=["provider batches"])


class ProviderBatchShown(msgspec.Struct, frozen=True):
    """A batch at a provider. `state`, `done` and `failed` are what the provider said last. `usd` is an estimate."""

    run_id: str
    run: str | None
    wave: int
    account: str
    model: str | None
    requests: int
    batch: str | None
    state: str | None
    done: int | None
    failed: int | None
    created_at: float
    age_seconds: float
    expires_at: float | None
    usd: float | None
    problem: str | None


@router.get(
    "",
    summary="List provider batches",
    responses={**answers(list[ProviderBatchShown], "The batches in flight of all runs, oldest first."), **errors()},
)
async def list_all(
    here: Here, ask: Annotated[bool, Query(description="Ask the providers for the current states.")] = False
) -> Response:
    """List the batches in flight. Without `ask`, the states are the last ones that providers reported."""
    waves = here.store.waves.open()
    batches = await _ask(here, waves) if ask else [here.batch_states.batch_of(wave) for wave in waves]
    return success([shown(each, time.time()) for each in batches])


@router.post(
    "/{run_id}/{wave}/cancel",
    summary="Cancel a provider batch",
    responses={**answers(Confirmation, "The batch is being cancelled."), **errors(404, 409)},
)
async def cancel(here: Here, run_id: str, wave: int) -> Response:
    """Cancel a batch at its provider. Completed requests are kept, and you are billed for them."""
    stored = here.store.waves.find(here.run(run_id), wave)
    if stored is None:
        raise NotFound(f"run {run_id} has no batch {wave}; GET /api/provider-batches lists the batches in flight")
    async with Providers(overrides=here.settings.account) as providers:
        found = await providers.look(stored)
        if found.info is None:
            why = found.problem.message if found.problem else "its state is unknown"
            raise RunError(f"batch {stored.title} cannot be cancelled: {why}")
        if not found.info.open or found.info.state == "cancelling":
            raise RunError(f"batch {found.info.id} has already ended or is being cancelled: {found.info.state}")
        found = await providers.cancel(found)
    if found.info is not None:
        here.batch_states.record(found.info)
    return success(
        Confirmation("The batch is being cancelled. Completed requests are kept. Resume its run to send the rest.")
    )


def shown(found: FoundBatch, now: float) -> ProviderBatchShown:
    """A batch with the fields that clients see."""
    told = described(found, now)
    if told["created_at"] is None:
        told |= {"created_at": 0.0, "age_seconds": 0.0}
    return ProviderBatchShown(**{name: told[name] for name in ProviderBatchShown.__struct_fields__})


async def _ask(here: Services, waves: list[StoredWave]) -> list[FoundBatch]:
    async with Providers(overrides=here.settings.account) as providers:
        batches = await look_at(waves, providers)
    for each in batches:
        if each.info is not None:
            here.batch_states.record(each.info)
    return batches
