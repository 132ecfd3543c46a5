"""The results of a run: the blocks of its report as a page, and its figures and tables as files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from groundswell.engine.records import RunRecord
from groundswell.errors import GroundswellError
from groundswell.experiments.experiment import command_of_run, results_of
from groundswell.reporting.blocks import PARTS, Block, Figure, Part, Report, Table, cells_as_columns
from groundswell.reporting.figures import on_page, on_paper, svg_of
from groundswell.reporting.interactive import chart_of
from groundswell.store.tables import csv_text
from groundswell.web import events
from groundswell.web.dashboard.pages import page, part
from groundswell.web.downloads import MEDIA
from groundswell.web.envelope import ApiError
from groundswell.web.report_cache import ReadyReport
from groundswell.web.runs import ACTIVE, is_active, state_of
from groundswell.web.services import Here, Services

router = APIRouter(include_in_schema=False)
log = logging.getLogger("groundswell.web")

PREPARING = "Preparing the report…"


class ShownReport(NamedTuple):
    """A report for its template. `address` makes the addresses of charts and files from a kind and a name."""

    report: Report
    parts: Mapping[Part, Sequence[Block]]
    headings: Mapping[Part, str]
    drawings: Mapping[str, str]
    warnings: Sequence[str]
    address: Callable[[str, str], str]
    run: str
    """The id of the run whose trials can be read; empty for several runs."""
    trials: int


@router.get("/runs/{run_id}/results")
async def results(here: Here, request: Request, run_id: str) -> Response:
    """The report of a run, or what is missing until there is one."""
    record = here.run(run_id)
    status, name, version = state_of(here, record), report_name(record), report_version(record)
    ready = False
    if has_report(here, record):
        here.reports.want(name, version, partial(_built, here, record))
        ready = here.reports.version(name) == version and here.reports.outcome(name) is not None
    shown = "?shown=true" if ready else ""
    over = ready and status not in ACTIVE
    return page(
        here,
        request,
        "results.html",
        title=record.title,
        active="runs",
        run=record,
        state=status,
        parts=_parts(here, record),
        stream="" if over else f"/runs/{record.id}/results/stream{shown}",
    )


@router.get("/runs/{run_id}/results/stream")
async def stream(here: Here, run_id: str, shown: bool = False) -> Response:
    """The report as soon as it is ready, and then whether there are new results. `shown`: the page has the report."""

    def look() -> events.Moment:
        record = here.run(run_id)
        if has_report(here, record) and here.reports.version(report_name(record)) is None:
            here.reports.want(report_name(record), report_version(record), partial(_built, here, record))
        parts = _parts(here, record)
        if shown:
            del parts["report"]
        over = not is_active(here, record)
        return events.Moment(
            parts, over and (not has_report(here, record) or here.reports.outcome(report_name(record)) is not None)
        )

    return events.part_stream(here, f"results {run_id} {shown}", look)


@router.get("/runs/{run_id}/charts/{block}")
async def chart(here: Here, run_id: str, block: str) -> Response:
    """A figure as the data of an interactive chart. Status 204 says that it has none."""
    return await chart_response(here, await _report(here, run_id), block)


@router.get("/runs/{run_id}/figures/{file}")
async def figure(here: Here, run_id: str, file: str) -> Response:
    """A figure as SVG, or the data of a figure or table as CSV."""
    return file_response(await _report(here, run_id), file)


def has_report(here: Services, record: RunRecord) -> bool:
    """Whether there is a report now. A run that no known experiment analyses has the default report at its end."""
    if results_of(record, Path()).has_report(record):
        return True
    return command_of_run(record) is None and not is_active(here, record) and record.counters.settled > 0


def report_name(record: RunRecord) -> str:
    return f"run {record.id}"


def report_version(record: RunRecord) -> Hashable:
    return record.updated_at, record.status, record.counters.settled


async def _report(here: Services, run_id: str) -> ReadyReport:
    record = here.run(run_id)
    if not has_report(here, record):
        raise ApiError(409, f"run {run_id} has no results yet")
    return await here.reports.get(report_name(record), report_version(record), partial(_built, here, record))


def _parts(here: Services, record: RunRecord) -> dict[str, str]:
    """The parts of the page that change."""
    status = state_of(here, record)
    if not has_report(here, record):
        state = part("report_parts.html", "waiting", record, status, status in ACTIVE)
        return {"report": state, "fresh": ""}
    html = report_part(here, report_name(record))
    stale = here.reports.version(report_name(record)) not in (None, report_version(record))
    return {"report": html, "fresh": part("report_parts.html", "fresh", status in ACTIVE, stale)}


def report_part(here: Services, name: str) -> str:
    """A report of the cache, or that it is being prepared, or that it could not be built."""
    match here.reports.outcome(name):
        case ReadyReport(html=html):
            return html
        case None:
            return part("report_parts.html", "preparing", PREPARING)
        case GroundswellError() as error:
            return part("report_parts.html", "failed", str(error))
        case error:
            return part("report_parts.html", "failed", f"{type(error).__name__}; the server log has the reason")


def _built(here: Services, record: RunRecord) -> ReadyReport:
    results, warnings = results_of(record, Path()), list[str]()
    results.say = warnings.append
    report = results.report(here.store, [record])
    return ready_report(report, warnings, lambda kind, name: f"/runs/{record.id}/{kind}/{name}", record)


def ready_report(
    report: Report, warnings: list[str], address: Callable[[str, str], str], record: RunRecord | None = None
) -> ReadyReport:
    """A report with its figures and its HTML. A figure that cannot be drawn is shown as its table."""
    drawn = dict[str, str]()
    for block in report.figures:
        try:
            drawn[block.id] = svg_of(block)
        except Exception as error:  # the code of an experiment failed, but its data are there
            log.exception("figure %s cannot be drawn", block.id)
            warnings.append(f"warning: figure {block.id} cannot be drawn ({type(error).__name__}: {error})")
    parts = {each: [block for block in report.blocks if block.part == each] for each in PARTS}
    shown = ShownReport(
        report,
        {name: blocks for name, blocks in parts.items() if blocks},
        PARTS,
        {block.id: on_page(block, drawn[block.id]) for block in report.figures if block.id in drawn},
        warnings,
        address,
        "" if record is None else record.id,
        0 if record is None else record.counters.settled,
    )
    return ReadyReport(report, drawn, part("report_parts.html", "report", shown))


async def chart_response(here: Services, found: ReadyReport, name: str) -> Response:
    """The data of an interactive chart."""
    block = _block(found.report, name)
    if not isinstance(block, Figure) or name not in found.drawn:
        raise ApiError(404, f"there is no figure {name[:100]!r}")
    if name not in found.charts:
        found.charts[name] = await here.heavy(lambda: chart_of(block))
    data = found.charts[name]
    if data is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(data), media_type="application/json")


def file_response(found: ReadyReport, file: str) -> Response:
    """A figure or table as a file to download."""
    name, _, ending = file.rpartition(".")
    block = _block(found.report, name)
    if ending == "svg" and isinstance(block, Figure) and name in found.drawn:
        body, media = on_paper(block, found.drawn[name]), "image/svg+xml"
    elif ending == "csv" and isinstance(block, Table):
        body, media = csv_text(*cells_as_columns(block)).encode(), MEDIA["csv"]
    else:
        raise ApiError(404, f"there is no file {file[:100]!r}")
    return Response(
        body, media_type=media, headers={"Content-Disposition": f'attachment; filename="{block.id}.{ending}"'}
    )


def _block(report: Report, name: str) -> Block | None:
    return next((block for block in report.blocks if block.id == name), None)
