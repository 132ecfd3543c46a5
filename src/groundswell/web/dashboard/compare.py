"""The comparison of two or more runs, and a list to choose them from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from groundswell.engine.records import RunRecord
from groundswell.experiments.comparison import FEWEST, MOST, check_compared, compared_run, comparison
from groundswell.web import events
from groundswell.web.dashboard.pages import Text, page
from groundswell.web.dashboard.results import chart_response, file_response, ready_report, report_part, report_version
from groundswell.web.dashboard.runs import RunRow, run_row
from groundswell.web.report_cache import ReadyReport
from groundswell.web.services import Here, Services

router = APIRouter(include_in_schema=False)

OFFERED = 20
"""Number of runs that the list offers. A search finds the others."""

Runs = Annotated[Sequence[str], Query()]


@router.get("/compare")
async def compare(here: Here, request: Request, run: Runs = (), q: Text = "") -> Response:
    """The comparison of the chosen runs, or a list to choose them from."""
    records = [here.run(each) for each in dict.fromkeys(run)]
    ids, html, over = [record.id for record in records], "", True
    if len(ids) >= FEWEST:
        check_compared(ids)
        here.reports.want(_name(ids), _version(records), partial(_built, here, records))
        html, over = report_part(here, _name(ids)), here.reports.outcome(_name(ids)) is not None
    found, total = here.store.runs.search(q.strip(), limit=OFFERED + len(ids))
    offered = [record for record in found if record.id not in ids][:OFFERED] if len(ids) < MOST else []
    return page(
        here,
        request,
        "compare.html",
        title="Compare runs",
        active="compare",
        chosen=[_choice(here, each, [id_ for id_ in ids if id_ != each.id]) for each in records],
        offered=[_choice(here, each, [*ids, each.id]) for each in offered],
        total=total,
        most=MOST,
        fewest=FEWEST,
        q=q,
        html=html,
        query=_query(ids),
        stream="" if over else f"/compare/stream?{_query(ids)}",
    )


@router.get("/compare/stream")
async def stream(here: Here, run: Runs) -> Response:
    """The comparison as soon as it is ready."""
    ids = check_compared(run)

    def look() -> events.Moment:
        records = [here.run(each) for each in ids]
        here.reports.want(_name(ids), _version(records), partial(_built, here, records))
        return events.Moment({"report": report_part(here, _name(ids))}, here.reports.outcome(_name(ids)) is not None)

    return events.part_stream(here, _name(ids), look)


@router.get("/compare/charts/{block}")
async def chart(here: Here, block: str, run: Runs) -> Response:
    """A figure as the data of an interactive chart."""
    return await chart_response(here, await _report(here, run), block)


@router.get("/compare/figures/{file}")
async def figure(here: Here, file: str, run: Runs) -> Response:
    """A figure as SVG, or the data of a figure or table as CSV."""
    return file_response(await _report(here, run), file)


async def _report(here: Services, run: Sequence[str]) -> ReadyReport:
    records = [here.run(each) for each in check_compared(run)]
    ids = [record.id for record in records]
    return await here.reports.get(_name(ids), _version(records), partial(_built, here, records))


def _built(here: Services, records: Sequence[RunRecord]) -> ReadyReport:
    report = comparison([compared_run(here.store, record) for record in records])
    query = _query([record.id for record in records])
    return ready_report(report, [], lambda kind, name: f"/compare/{kind}/{name}?{query}")


def _name(ids: Sequence[str]) -> str:
    return f"compare {' '.join(ids)}"


def _version(records: Sequence[RunRecord]) -> Hashable:
    return tuple(map(report_version, records))


def _query(ids: Sequence[str]) -> str:
    return urlencode([("run", each) for each in ids])


def _choice(here: Services, record: RunRecord, then: Sequence[str]) -> tuple[RunRow, str]:
    """A run that is chosen or offered, and the address of the page with it removed or added."""
    return run_row(here, record), f"/compare?{_query(then)}"
