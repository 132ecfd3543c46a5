"""/api/batch-simulations: simulation batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from groundswell.engine.records import RunRecord
from groundswell.engine.spending import NOTHING, Range
from groundswell.estimate.bill import Bill
from groundswell.estimate.billing import billed
from groundswell.experiments.experiment import plain_name
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.driving import simulate
from groundswell.experiments.simulations.experiment import Contrasted, contrast_of
from groundswell.experiments.simulations.exporting import write_export
from groundswell.experiments.simulations.reading import BatchShown, BatchStatus, Progress, Readings, countable
from groundswell.experiments.simulations.reading import batch_id as id_of
from groundswell.web import events
from groundswell.web.downloads import MEDIA, download, written
from groundswell.web.envelope import ApiError, Confirmation, Started, page, success
from groundswell.web.requests import BatchBody, ResumeBody
from groundswell.web.schema import answers, errors, files
from groundswell.web.services import Here, Limit, Offset, Services
from groundswell.web.settings import ServerSettings

router = APIRouter(prefix="/api/batch-simulations", tags=["batch simulations"])

GOING_ON: tuple[BatchStatus, ...] = ("pending", "in_progress")


class Estimated(msgspec.Struct, frozen=True):
    """The estimate of a simulation batch. Ranges are lists of the lowest and the highest value."""

    combinations: int | str
    simulations: int
    asks: Range
    input_tokens: Range
    output_tokens: Range
    usd: Range | None
    seconds: Range
    bill: Bill


class BatchMoment(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a simulation batch in an event."""

    id: str
    status: BatchStatus
    progress: Progress
    error: str | None = None


@router.post(
    "",
    status_code=201,
    summary="Create a simulation batch",
    responses={
        **answers(
            Started,
            "The batch was started.",
            status=201,
            example={"id": "batch-12345", "message": "Batch simulation started"},
        ),
        **errors(404, 429, body=True),
    },
)
async def create(here: Here, body: BatchBody) -> Response:
    """Start a simulation batch in the background. Poll its status, or follow its events."""
    batch = await _made(here, body)
    name = here.free_name(plain_name(body.name))
    record = await here.background.plan(simulate, batch, name=name, seed=body.seed, options=body.options)
    return success(Started(id_of(record), "Batch simulation started"), 201)


@router.post(
    "/estimate",
    summary="Estimate a simulation batch",
    responses={**answers(Estimated, "The estimate. Nothing was sent."), **errors(404, body=True)},
)
async def estimate(here: Here, body: BatchBody) -> Response:
    """Predict requests, tokens, cost and time. Takes the same body as creating a batch, and needs no key."""
    batch = await _made(here, body, keys=False)
    return success(await here.heavy(lambda: _estimated(batch, here.settings)))


@router.get(
    "",
    summary="List simulation batches",
    responses={**answers(list[BatchShown], "The batches, newest first.", paged=True), **errors()},
)
async def list_all(
    here: Here,
    include_simulations: Annotated[bool, Query(description="Include all simulations of each batch.")] = False,
    limit: Limit = 100,
    offset: Offset = 0,
) -> Response:
    """List simulation batches. The header X-Total-Count has their total number."""
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
    summary="Get a simulation batch",
    responses={**answers(BatchShown, "The batch with its simulations."), **errors(404)},
)
async def get(here: Here, batch_id: str) -> Response:
    """Return a simulation batch with all simulations that have started."""
    readings, record = here.readings, here.readings.find(batch_id)
    return await written(here, lambda out: _write(out, [_pieces(readings, record)]))


@router.delete(
    "/{batch_id}",
    summary="Delete a simulation batch",
    responses={
        **answers(
            Confirmation,
            "The batch was deleted.",
            example={"message": "Batch simulation batch-12345 deleted successfully"},
        ),
        **errors(404, 409),
    },
)
async def delete(here: Here, batch_id: str) -> Response:
    """Delete a simulation batch and its simulations. A batch in progress is stopped first."""
    await here.background.delete(here.readings.find(batch_id))
    return success(Confirmation(f"Batch simulation {batch_id} deleted successfully"))


@router.get(
    "/{batch_id}/export",
    summary="Export a simulation batch",
    responses={**files(*(media.partition(";")[0] for media in MEDIA.values())), **errors(404)},
)
async def export(
    here: Here,
    batch_id: str,
    format: Annotated[Literal["json", "csv", "parquet"], Query(description="File format.")] = "json",
    table: Annotated[
        Literal["simulations", "lines", "answers", "scores"],
        Query(
            description="One row per simulation, per message (`lines`), per answer or per score of a judge. With the "
            "condition and the levels of its factors."
        ),
    ] = "simulations",
) -> Response:
    """Download a simulation batch as a file."""
    readings, record = here.readings, here.readings.find(batch_id)
    name = f"{id_of(record)}-{table}"
    return await download(here, name, format, lambda out: write_export(readings, record, format, table, out))


@router.post(
    "/{batch_id}/cancel",
    summary="Cancel a simulation batch",
    responses={**answers(Started, "The batch is being stopped."), **errors(404, 409)},
)
async def cancel(here: Here, batch_id: str) -> Response:
    """Stop sending requests. Replies in flight are still recorded, and the batch can be resumed."""
    record = here.readings.find(batch_id)
    if here.readings.batch(record).status not in GOING_ON:
        raise ApiError(409, f"simulation batch {batch_id} has already ended")
    await here.background.cancel(record)
    return success(Started(batch_id, "Batch simulation cancelled"))


@router.post(
    "/{batch_id}/resume",
    summary="Resume a simulation batch",
    responses={**answers(Started, "The batch was resumed."), **errors(404, 409, body=True)},
)
async def resume(here: Here, batch_id: str, body: ResumeBody | None = None) -> Response:
    """Resume a batch that was cancelled or reached a limit. `retry_missing` also runs failed simulations again."""
    record, body = here.readings.find(batch_id), body or ResumeBody()
    await here.background.resume(
        record, retry_missing=body.retry_missing, accept_changes=body.accept_changes, limits=body.limits
    )
    return success(Started(batch_id, "Batch simulation resumed"))


@router.get(
    "/{batch_id}/events",
    summary="Follow a simulation batch",
    responses={**events.DECLARED, **errors(404, 429)},
)
async def follow(here: Here, batch_id: str) -> Response:
    """Stream server-sent events: `progress` on every change, then `end`, after which the stream closes."""
    readings = here.readings

    def look() -> events.Moment:
        record = readings.find(batch_id)
        shown = readings.batch(record)
        moment = BatchMoment(shown.id, shown.status, shown.progress, shown.error)
        busy = record.deleting or here.background.works_on(record.id)  # for example, its entities are being written
        return events.Moment(moment, shown.status not in GOING_ON and not busy)

    return events.stream(here, look)


@router.get(
    "/{batch_id}/analysis",
    summary="Get the analysis of a simulation batch",
    responses={**answers(dict[str, Any], "The analysis."), **errors(404, 409)},
)
async def analysis(here: Here, batch_id: str) -> Response:
    """Return all figures of a simulation batch. The batch must have ended."""
    record = here.readings.find(batch_id)
    if record.analysis is None:
        status = here.readings.batch(record).status
        why = "has not ended, so it has no analysis yet" if status in GOING_ON else f"is {status} and has no analysis"
        raise ApiError(409, f"simulation batch {batch_id} {why}")
    return success(msgspec.Raw(record.analysis.encode()))


contrasts = APIRouter(prefix="/api/contrast", tags=["batch simulations"])


@contrasts.get(
    "",
    summary="Compare two simulation batches",
    responses={**answers(Contrasted, "The differences: the first batch minus the second."), **errors(404)},
)
async def contrast(
    here: Here,
    run: Annotated[
        str,
        Query(
            max_length=500,
            description="Id of a batch, or name or id of its run. NAME:CONDITION is one condition of a study.",
        ),
    ],
    other: Annotated[str, Query(max_length=500, description="The batch or condition to compare it with.")],
    by: Annotated[
        list[str] | None, Query(description="Also compare for each value of these attributes. May be repeated.")
    ] = None,
) -> Response:
    """Return the differences between the answers of two batches, with confidence intervals."""
    return await here.heavy(lambda: success(contrast_of(here.store, run, other, by or [])))


async def _made(here: Services, body: BatchBody, *, keys: bool = True) -> Batch:
    batch = body.made(here.entities(body.entity_ids), here.settings)
    await here.check_models(batch.rules.model, batch.entities, keys=keys)
    return batch


def _estimated(batch: Batch, server: ServerSettings) -> Estimated:
    found = billed(simulate, batch, account=server.account, max_concurrent=server.max_concurrent)
    return Estimated(
        combinations=countable(batch.combinations),
        simulations=batch.num_simulations,
        asks=sum((model.calls for model in found.models), NOTHING),
        input_tokens=sum((model.input_tokens for model in found.models), NOTHING),
        output_tokens=sum((model.output_tokens for model in found.models), NOTHING),
        usd=found.ways.live.usd,
        seconds=found.ways.live.seconds,
        bill=found,
    )


def _write(out: IO[bytes], batches: Any, *, listed: bool = False) -> None:
    """Write batches with their simulations piece by piece, since they may exceed memory."""
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
