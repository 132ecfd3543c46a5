"""/api/batch-simulations: many simulations of one context, as the document on batch simulations has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from groundswell.engine.records import RunRecord
from groundswell.experiments.experiment import plain_name
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.driving import simulate
from groundswell.experiments.simulations.experiment import Contrasted, contrast_of
from groundswell.experiments.simulations.exporting import write_export
from groundswell.experiments.simulations.reading import BatchShown, BatchStatus, Progress, Readings
from groundswell.experiments.simulations.reading import batch_id as id_of
from groundswell.web import events
from groundswell.web.downloads import MEDIA, download, written
from groundswell.web.envelope import ApiError, Started, Told, page, success
from groundswell.web.estimating import Estimated, estimated
from groundswell.web.requests import BatchBody, ResumeBody
from groundswell.web.schema import answers, errors, files
from groundswell.web.services import Here, Limit, Offset, Services

router = APIRouter(prefix="/api/batch-simulations", tags=["batch simulations"])

GOING_ON: tuple[BatchStatus, ...] = ("pending", "in_progress")


class BatchMoment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A batch as its events tell of it."""

    id: str
    status: BatchStatus
    progress: Progress
    error: str | None = None


@router.post(
    "",
    status_code=201,
    summary="Create a batch simulation",
    responses={
        **answers(
            Started,
            "it was started",
            status=201,
            example={"id": "batch-12345", "message": "Batch simulation started"},
        ),
        **errors(404, 429, body=True),
    },
)
async def create(here: Here, body: BatchBody) -> Response:
    """It runs in the background; its status says how far it is."""
    batch = await _made(here, body)
    name = here.free_name(plain_name(body.name))
    record = await here.background.plan(simulate, batch, name=name, seed=body.seed, options=body.options)
    return success(Started(id_of(record), "Batch simulation started"), 201)


@router.post(
    "/estimate",
    summary="What a batch simulation would use and cost",
    responses={**answers(Estimated, "nothing was sent"), **errors(404, body=True)},
)
async def estimate(here: Here, body: BatchBody) -> Response:
    """Takes what creating a batch takes, and starts nothing. No key is needed."""
    batch = await _made(here, body, keys=False)
    return success(await here.heavy(lambda: estimated(batch, here.settings)))


@router.get(
    "",
    summary="Get all batch simulations",
    responses={**answers(list[BatchShown], "the newest first", paged=True), **errors()},
)
async def list_all(
    here: Here,
    include_simulations: Annotated[bool, Query(description="whether to include all simulations of each")] = False,
    limit: Limit = 100,
    offset: Offset = 0,
) -> Response:
    """A bare list; the header X-Total-Count says how many there are in all."""
    readings = here.readings
    records, total = readings.records(limit=limit, offset=offset), readings.count()
    if not include_simulations:
        return page([readings.batch(record) for record in records], total)
    response = await written(
        here, lambda out: _write(out, (_pieces(readings, record) for record in records), listed=True)
    )
    response.headers["X-Total-Count"] = str(total)
    return response


@router.get(
    "/{batch_id}",
    summary="Get a specific batch simulation",
    responses={**answers(BatchShown, "the batch with its simulations"), **errors(404)},
)
async def get(here: Here, batch_id: str) -> Response:
    """With all simulations that have begun."""
    readings, record = here.readings, here.readings.find(batch_id)
    return await written(here, lambda out: _write(out, [_pieces(readings, record)]))


@router.delete(
    "/{batch_id}",
    summary="Delete a batch simulation",
    responses={
        **answers(Told, "it is gone", example={"message": "Batch simulation batch-12345 deleted successfully"}),
        **errors(404, 409),
    },
)
async def delete(here: Here, batch_id: str) -> Response:
    """One that goes on is stopped first."""
    await here.background.delete(here.readings.find(batch_id))
    return success(Told(f"Batch simulation {batch_id} deleted successfully"))


@router.get(
    "/{batch_id}/export",
    summary="Export batch simulation data",
    responses={**files(*(media.partition(";")[0] for media in MEDIA.values())), **errors(404)},
)
async def export(
    here: Here,
    batch_id: str,
    format: Literal["json", "csv", "parquet"] = "json",
    table: Literal["simulations", "lines", "answers"] = "simulations",
) -> Response:
    """A file with a row for every simulation, for every line that was said, or for every answer."""
    readings, record = here.readings, here.readings.find(batch_id)
    name = f"{id_of(record)}-{table}"
    return await download(here, name, format, lambda out: write_export(readings, record, format, table, out))


@router.post(
    "/{batch_id}/cancel",
    summary="Cancel a batch simulation",
    responses={**answers(Started, "it is being stopped"), **errors(404, 409)},
)
async def cancel(here: Here, batch_id: str) -> Response:
    """Nothing more is sent; what is under way is still recorded, and the batch can be resumed."""
    record = here.readings.find(batch_id)
    if here.readings.batch(record).status not in GOING_ON:
        raise ApiError(409, f"batch simulation {batch_id} has ended already")
    await here.background.cancel(record)
    return success(Started(batch_id, "Batch simulation cancelled"))


@router.post(
    "/{batch_id}/resume",
    summary="Go on with a batch simulation that has ended",
    responses={**answers(Started, "it goes on"), **errors(404, 409, body=True)},
)
async def resume(here: Here, batch_id: str, body: ResumeBody | None = None) -> Response:
    """Of one that was cancelled or ran out of its budget, say; `retry_missing` tries again what failed."""
    record, body = here.readings.find(batch_id), body or ResumeBody()
    await here.background.resume(
        record, retry_missing=body.retry_missing, accept_changes=body.accept_changes, limits=body.limits
    )
    return success(Started(batch_id, "Batch simulation resumed"))


@router.get(
    "/{batch_id}/events",
    summary="How far a batch simulation is, as server-sent events",
    responses={**events.DECLARED, **errors(404, 429)},
)
async def follow(here: Here, batch_id: str) -> Response:
    """`progress` whenever something changed; `end` when it has ended, and then the stream is closed."""
    readings = here.readings

    def look() -> events.Moment:
        record = readings.find(batch_id)
        shown = readings.batch(record)
        moment = BatchMoment(shown.id, shown.status, shown.progress, shown.error)
        busy = record.deleting or here.background.works_on(record.id)  # its entities are being written, for instance
        return events.Moment(moment, shown.status not in GOING_ON and not busy)

    return events.stream(here, look)


@router.get(
    "/{batch_id}/analysis",
    summary="The figures of a batch simulation",
    responses={**answers(dict[str, Any], "what came of it"), **errors(404, 409)},
)
async def analysis(here: Here, batch_id: str) -> Response:
    """There are none until it has ended."""
    record = here.readings.find(batch_id)
    if record.analysis is None:
        status = here.readings.batch(record).status
        why = "has not ended: there are no figures yet" if status in GOING_ON else f"is {status}, and has no figures"
        raise ApiError(409, f"batch simulation {batch_id} {why}")
    return success(msgspec.Raw(record.analysis.encode()))


contrasts = APIRouter(prefix="/api/contrast", tags=["batch simulations"])


@contrasts.get(
    "",
    summary="Compare two batch simulations",
    responses={**answers(Contrasted, "what the first has, less the second"), **errors(404)},
)
async def contrast(
    here: Here,
    run: Annotated[str, Query(max_length=300, description="a batch, or the name or id of its run")],
    other: Annotated[str, Query(max_length=300, description="the one that it is compared with")],
    by: Annotated[list[str] | None, Query(description="also for each value of these attributes")] = None,
) -> Response:
    """What was answered in one batch, less what was answered in the other, with intervals."""
    return await here.heavy(lambda: success(contrast_of(here.store, run, other, by or [])))


async def _made(here: Services, body: BatchBody, *, keys: bool = True) -> Batch:
    batch = body.made(here.entities(body.entity_ids), here.settings)
    await here.check_models(batch.rules.model, batch.entities, keys=keys)
    return batch


def _write(out: IO[bytes], batches: Any, *, listed: bool = False) -> None:
    """Batches with their simulations, a piece at a time: there may be more than memory holds."""
    out.write(b'{"status":"success","data":' + (b"[" if listed else b""))
    for number, pieces in enumerate(batches):
        out.write(b"," if number else b"")
        for piece in pieces:
            out.write(piece)
    out.write(b"]}" if listed else b"}")


def _pieces(readings: Readings, record: RunRecord) -> Iterator[bytes]:
    yield msgspec.json.encode(readings.batch(record))[:-1] + b',"simulations":['
    for number, simulation in enumerate(readings.simulations(record)):
        yield (b"," if number else b"") + msgspec.json.encode(simulation)
    yield b"]}"
