"""/api/runs: the runs of every experiment."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from groundswell.engine.driver import load_stored_driver
from groundswell.engine.records import RunRecord, Status
from groundswell.engine.stored import StoredRun
from groundswell.engine.summary import Asks, Paid, RunCost, Summary, Trials, summarise
from groundswell.errors import RunError, SettingsError
from groundswell.experiments.comparison import check_compared, compared_run, comparison
from groundswell.experiments.experiment import Command, command_of_run, results_of
from groundswell.experiments.fork import check_forkable, fork_settings
from groundswell.experiments.report import ReportFormat, rendered
from groundswell.experiments.simulations.reading import timestamp
from groundswell.program.request import Fault
from groundswell.reporting.blocks import plain
from groundswell.reporting.markdown import markdown_of
from groundswell.reporting.page import policy
from groundswell.store.results import Table, TrialResult
from groundswell.web import events
from groundswell.web.access import Signer
from groundswell.web.background import refuse_unloaded
from groundswell.web.downloads import MEDIA, download
from groundswell.web.envelope import ApiError, Confirmation, Started, page, success
from groundswell.web.experiments import check_limits, texts
from groundswell.web.requests import ForkBody, ResumeBody, ShareBody
from groundswell.web.schema import answers, errors, files
from groundswell.web.services import Here, Limit, Offset, Services

router = APIRouter(prefix="/api/runs", tags=["runs"])

Format = Literal["jsonl", "json", "csv", "parquet"]
ACTIVE: tuple[Status, ...] = ("pending", "running")
REPORT_TYPES = {"html": "text/html", "md": "text/markdown", "json": "application/json"}


class RunShown(msgspec.Struct, frozen=True):
    """A run in a list."""

    run_id: str
    name: str | None
    status: Status
    driver: str | None
    seed: int
    created_at: str
    updated_at: str
    trials: Trials
    asks: Asks
    cost: RunCost
    seconds: float
    error: str | None


class RunDetails(RunShown, frozen=True, kw_only=True):
    """A run with its cost by model and its analysis."""

    models: dict[str, Paid]
    analysis: Any


class ResultsShown(msgspec.Struct, frozen=True):
    """The results of a run: its analysis, and its findings as text."""

    run_id: str
    name: str | None
    analysis: Any
    findings: str


class TrialShown(msgspec.Struct, frozen=True):
    """A trial with its spec and its outcome."""

    key: str
    program: str
    status: Literal["usable", "missing", "unfinished"]
    fault: Fault | None
    spec: Any
    result: Any


class TranscriptShown(TrialShown, frozen=True, kw_only=True):
    """A trial with all requests and replies, and its transcript as text."""

    exchanges: list[dict[str, Any]]
    text: str


class ShareLink(msgspec.Struct, frozen=True):
    """A link that lets anyone read one run: its path on this server, and when it ends."""

    path: str
    expires_at: str


class ComparisonShown(msgspec.Struct, frozen=True):
    """The comparison of runs as blocks: findings, settings, tables of differences, and run details."""

    kind: str
    title: str
    blocks: list[dict[str, Any]]


class Forked(msgspec.Struct, frozen=True):
    """A new run that was forked from another one. Follow it under /api/runs."""

    run_id: str
    name: str
    message: str


class RunMoment(msgspec.Struct, frozen=True):
    """The state of a run in an event."""

    run_id: str
    status: Status
    trials: Trials
    asks: Asks
    cost: RunCost


@router.get(
    "", summary="List runs", responses={**answers(list[RunShown], "The runs, newest first.", paged=True), **errors()}
)
async def list_all(here: Here, limit: Limit = 100, offset: Offset = 0) -> Response:
    """List the runs of all experiments. The header X-Total-Count has their total number."""
    runs = here.store.runs
    return page([_shown(here, record) for record in runs.list(limit=limit, offset=offset)], runs.count())


@router.get(
    "/compare",
    summary="Compare runs",
    responses={**answers(ComparisonShown, "The comparison as blocks."), **errors(404)},
)
async def compare(
    here: Here, run: Annotated[list[str], Query(description="Id of a run. Repeat it: two to eight runs.")]
) -> Response:
    """Compare runs with the first of them: settings that differ, and the differences of all estimates in the same
    place of their reports, with intervals. Runs of different experiments have only settings, cost and time compared."""
    records = [here.run(each) for each in check_compared(run)]

    def compared() -> Response:
        report = comparison([compared_run(here.store, record) for record in records])
        return success(ComparisonShown(**plain(report)))

    return await here.heavy(compared)


@router.get("/{run_id}", summary="Get a run", responses={**answers(RunDetails, "The run."), **errors(404)})
async def get(here: Here, run_id: str) -> Response:
    """Return the status, the counters and the cost of a run, and its analysis once it has ended."""
    record = here.run(run_id)
    summary = summarise(record)
    shown = _fields(here, record, summary)
    return success(RunDetails(**shown, models=summary.models, analysis=summary.analysis))


@router.get(
    "/{run_id}/results",
    summary="Get the results of a run",
    responses={**answers(ResultsShown, "The analysis, and the findings as text."), **errors(404, 409)},
)
async def results(here: Here, run_id: str) -> Response:
    """Return the analysis of a run, and its findings as text. The run must have ended."""
    record = here.run(run_id)
    _refuse_unended(here, record)
    return await here.heavy(lambda: success(_results(here, record)))


@router.get(
    "/{run_id}/report",
    summary="Get the report of a run",
    responses={**files(*REPORT_TYPES.values()), **errors(404, 409)},
)
async def report(
    here: Here,
    run_id: str,
    format: Annotated[ReportFormat, Query(description="HTML page, Markdown or JSON.")] = "html",
) -> Response:
    """Return the report of a run, as `groundswell runs report` writes it. The run must have ended, except that an
    unfinished evolution has a report, too."""
    record = here.run(run_id)
    if not results_of(record, Path()).has_report(record):
        _refuse_unended(here, record)
    return await here.heavy(lambda: _report(here, record, format))


@router.get(
    "/{run_id}/trials",
    summary="List the trials of a run",
    responses={**answers(list[TrialShown], "The trials, in the order of their start.", paged=True), **errors(404)},
)
async def trials(here: Here, run_id: str, limit: Limit = 100, offset: Offset = 0) -> Response:
    """List trials with their specs and outcomes. The header X-Total-Count has their total number."""
    record = here.run(run_id)

    def read() -> Response:
        some = here.store.results(record).numbered(offset + 1, offset + limit)
        return page([TrialShown(**_trial(each)) for each in some], record.counters.planned)

    return await here.part(limit, read)


@router.get(
    "/{run_id}/trials/{key:path}",
    summary="Get the transcript of a trial",
    responses={**answers(TranscriptShown, "The trial with all requests and replies."), **errors(404)},
)
async def transcript(here: Here, run_id: str, key: str) -> Response:
    """Replay a trial on its journal and return all requests and replies. Nothing is sent. A unique prefix of the key
    is enough."""
    record = here.run(run_id)
    return await here.heavy(lambda: success(_transcript(here, record, key)))


@router.get(
    "/{run_id}/export",
    summary="Export a run",
    responses={**files(*(media.partition(";")[0] for media in MEDIA.values())), **errors(404)},
)
async def export(
    here: Here,
    run_id: str,
    format: Annotated[Format, Query(description="File format.")] = "jsonl",
    table: Annotated[Table, Query(description="One row per trial, or the rows that trials recorded.")] = "trials",
) -> Response:
    """Download the trials of a run, or the rows that they recorded, as a file."""
    record = here.run(run_id)
    name = f"run-{record.id}" if table == "trials" else f"run-{record.id}-rows"
    return await download(here, name, format, lambda out: here.store.results(record).write(out, format, table))


@router.get(
    "/{run_id}/rows",
    summary="List the rows of a run",
    responses={**answers(list[dict[str, Any]], "The rows, in the order of trials."), **errors(404)},
)
async def rows(here: Here, run_id: str, limit: Limit = 100, offset: Offset = 0) -> Response:
    """List the rows that trials recorded. Each has `trial`, `row` (its number within the trial) and, if known,
    `condition`, `model`, `replicate` and `seat`."""
    record = here.run(run_id)
    return await here.heavy(lambda: success(list(islice(here.store.results(record).rows(), offset, offset + limit))))


@router.post(
    "/{run_id}/cancel",
    summary="Cancel a run",
    responses={**answers(Started, "The run is being stopped."), **errors(404, 409)},
)
async def cancel(here: Here, run_id: str) -> Response:
    """Stop sending requests. Replies in flight are still recorded, and the run can be resumed."""
    record = here.run(run_id)
    if is_over(record, state_of(here, record)):
        raise ApiError(409, f"run {run_id} has already ended")
    await here.background.cancel(record)
    return success(Started(run_id, "Run cancelled"))


@router.post(
    "/{run_id}/resume",
    summary="Resume a run",
    responses={**answers(Started, "The run was resumed."), **errors(404, 409, body=True)},
)
async def resume(here: Here, run_id: str, body: ResumeBody | None = None) -> Response:
    """Continue a run that was cancelled or reached a limit. `retry_missing` also runs missing trials again."""
    record, body = here.run(run_id), body or ResumeBody()
    await here.background.resume(
        record, retry_missing=body.retry_missing, accept_changes=body.accept_changes, limits=body.limits
    )
    return success(Started(run_id, "Run resumed"))


@router.post(
    "/{run_id}/share",
    summary="Share a run",
    responses={**answers(ShareLink, "The link.", status=201), **errors(404, 409, body=True)},
    status_code=201,
)
async def share(here: Here, run_id: str, body: ShareBody | None = None) -> Response:
    """Make a link that lets anyone read this run, and nothing else, for some days. The server must have a token."""
    record, seconds = here.run(run_id), (body or ShareBody()).days * 86400
    if here.settings.token is None:
        raise ApiError(409, "only this machine can reach this server; start it with a token to share runs")
    signed = Signer(here.settings.token).share(record.id, seconds)
    return success(ShareLink(f"/share/{signed}", timestamp(time.time() + seconds)), 201)


@router.post(
    "/{run_id}/fork",
    status_code=201,
    summary="Fork a run",
    responses={**answers(Forked, "The new run was started.", status=201), **errors(404, 409, 429, body=True)},
)
async def fork(here: Here, run_id: str, body: ForkBody | None = None) -> Response:
    """Start a new run from an existing one, with changes. Replies to unchanged requests are reused at no cost, up to
    the position `at` in every trial."""
    parent, body = here.run(run_id), body or ForkBody()
    settings = await here.heavy(lambda: _fork_settings(here, parent, body))
    record = await here.background.fork(parent, settings, name=body.name, at=body.at)
    return success(Forked(record.id, record.title, "Run started"), 201)


@router.delete(
    "/{run_id}", summary="Delete a run", responses={**answers(Confirmation, "The run was deleted."), **errors(404, 409)}
)
async def delete(here: Here, run_id: str) -> Response:
    """Delete a run and everything it recorded. A run in progress is stopped first."""
    await here.background.delete(here.run(run_id))
    return success(Confirmation(f"Run {run_id} deleted successfully"))


@router.get(
    "/{run_id}/events",
    summary="Follow a run",
    responses={**events.DECLARED, **errors(404, 429)},
)
async def follow(here: Here, run_id: str) -> Response:
    """Stream server-sent events: `progress` on every change, then `end`, after which the stream closes."""

    def look() -> events.Moment:
        record = here.run(run_id)
        status, summary = state_of(here, record), summarise(record)
        moment = RunMoment(record.id, status, summary.trials, summary.asks, summary.cost)
        return events.Moment(moment, is_over(record, status) and not record.deleting)

    return events.stream(here, look)


def _fork_settings(here: Services, parent: RunRecord, body: ForkBody) -> Any:
    """The settings of a fork, within what a request may set."""
    check_forkable(parent)
    refuse_unloaded(parent)
    command = command_of_run(parent)
    if command is not None and not command.over_http:
        raise RunError(f"run {parent.title!r} cannot be forked over HTTP: use `groundswell runs fork`")
    driver = load_stored_driver(parent.driver or "", parent.location)
    settings = fork_settings(parent, driver, body.set.items())
    check_limits(settings, here.settings)
    before, after = (msgspec.to_builtins(each, enc_hook=str) for each in (fork_settings(parent, driver, ()), settings))
    for text in set(texts(after)) - set(texts(before)):
        here.check_name(text, "set")
    for name in _not_for_requests(command):
        if list(_named(name, after)) != list(_named(name, before)):
            raise SettingsError(f"{name}: cannot be set in a request; set it when you start the server", field=name)
    return settings


def _not_for_requests(command: Command | None) -> Iterator[str]:
    """The names of settings that requests cannot change."""
    for one in () if command is None else command.fields.values():
        if not one.flag.over_http:
            yield from (one.name, *one.flag.also)


def _named(name: str, value: Any) -> Iterator[Any]:
    """The values of all fields with a name, in nested data."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, each in inner:
        if key == name:
            yield each
        yield from _named(name, each)


def _refuse_unended(here: Services, record: RunRecord) -> None:
    if record.analysis is None:
        raise ApiError(409, f"run {record.id} has no results; its status is {state_of(here, record)}")


def _results(here: Services, record: RunRecord) -> ResultsShown:
    results = results_of(record, Path())
    report = results.report(here.store, [record])
    return ResultsShown(record.id, record.name, summarise(record).analysis, results.text(report))


def _report(here: Services, record: RunRecord, format: ReportFormat) -> Response:
    """The self-contained report, without the files beside it."""
    report = results_of(record, Path()).report(here.store, [record])
    own = {"Content-Security-Policy": f"{policy()}; frame-ancestors 'none'"} if format == "html" else None
    body = markdown_of(report, "").encode() if format == "md" else rendered(report, format)
    return Response(body, media_type=REPORT_TYPES[format], headers=own)


def state_of(here: Services, record: RunRecord) -> Status:
    """The status to show. A run counts as running until its follow-up work is done, such as storing entities."""
    status = here.store.runs.state(record)
    return "running" if status not in ACTIVE and here.background.works_on(record.id) else status


def is_active(here: Services, record: RunRecord) -> bool:
    """Whether a run is being worked on, or waits for its turn."""
    return state_of(here, record) in ACTIVE


def is_over(record: RunRecord, status: Status) -> bool:
    """Whether no server will resume a run by itself."""
    waits = status == "interrupted" and bool(record.options.get("unattended"))
    return status not in ACTIVE and not waits


def _shown(here: Services, record: RunRecord) -> RunShown:
    return RunShown(**_fields(here, record, summarise(record)))


def _fields(here: Services, record: RunRecord, summary: Summary) -> dict[str, Any]:
    return {
        "run_id": record.id,
        "name": record.name,
        "status": state_of(here, record),
        "driver": shown_driver(record),
        "seed": record.seed,
        "created_at": timestamp(record.created_at),
        "updated_at": timestamp(record.updated_at),
        "trials": summary.trials,
        "asks": summary.asks,
        "cost": summary.cost,
        "seconds": summary.seconds,
        "error": summary.error,
    }


def shown_driver(record: RunRecord) -> str | None:
    """The name of a run's driver, without the folders of this machine."""
    name = record.driver
    return name.rpartition("/")[2] if name is not None and ":" in name else name


def _trial(result: TrialResult) -> dict[str, Any]:
    found = result.result_json
    return {
        "key": result.key,
        "program": result.program,
        "status": result.status,
        "fault": result.fault,
        "spec": msgspec.Raw(result.spec_json.encode()),
        "result": None if found is None else msgspec.Raw(found.encode()),
    }


def _transcript(here: Services, record: RunRecord, key: str) -> TranscriptShown:
    results = here.store.results(record)
    try:
        result = results.trial(key)
    except RunError as error:
        raise ApiError(404, str(error)) from error
    found = StoredRun(record, results).transcript(result.key)
    exchanges = [exchange._asdict() for exchange in found.exchanges]
    return TranscriptShown(**_trial(result), exchanges=exchanges, text=str(found))
