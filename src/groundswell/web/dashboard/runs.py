"""The list of all runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from groundswell.engine.records import RunRecord, Status
from groundswell.engine.summary import summarise
from groundswell.reporting.progress import Reading
from groundswell.web import events
from groundswell.web.dashboard.pages import page, part
from groundswell.web.runs import shown_driver, state_of
from groundswell.web.services import Here, Offset, Services

router = APIRouter(include_in_schema=False)

AT_ONCE = 50
STATUSES: tuple[Status, ...] = ("pending", "running", "completed", "partial", "stopped", "interrupted", "failed")
STORED_AS: dict[Status, Sequence[Status]] = {"interrupted": ("interrupted", "running")}
"""How the store holds runs of a status. A killed run is stored as running."""


class RunRow(NamedTuple):
    """A run in the list. `total` is None if the number of trials is unknown."""

    id: str
    title: str
    what: str
    status: Status
    done: int
    missing: int
    total: int | None
    cost: str
    forecast: str
    rate: float | None
    cached: float | None
    age: float
    seconds: float
    error: str | None
    resumable: bool


@router.get("/runs")
async def runs(
    here: Here,
    request: Request,
    q: Annotated[str, Query(max_length=200)] = "",
    experiment: Annotated[str, Query(max_length=200)] = "",
    status: str = "",
    offset: Offset = 0,
) -> Response:
    """All runs, with a search and filters."""
    rows, total = _rows(here, q, experiment, status, offset)
    query = {"q": q, "experiment": experiment, "status": status}
    return page(
        here,
        request,
        "runs.html",
        title="Runs",
        active="runs",
        stream=f"/runs/stream?{urlencode({**query, 'offset': offset})}",
        rows=rows,
        total=total,
        offset=offset,
        at_once=AT_ONCE,
        query=query,
        address=lambda at: f"/runs?{urlencode({**query, 'offset': at})}",
        experiments=here.store.runs.experiments(),
        statuses=STATUSES,
    )


@router.get("/runs/stream")
async def stream(here: Here, q: str = "", experiment: str = "", status: str = "", offset: Offset = 0) -> Response:
    """The rows of the list, whenever they change."""

    def look() -> events.Moment:
        rows, _ = _rows(here, q, experiment, status, offset)
        return events.Moment({f"row-{row.id}": part("run_parts.html", "cells", row) for row in rows}, False)

    return events.part_stream(here, f"runs {q!r} {experiment!r} {status!r} {offset}", look)


def _rows(here: Services, text: str, experiment: str, status: str, offset: int) -> tuple[list[RunRow], int]:
    wanted = [each for each in STATUSES if each == status]
    stored = [each for one in wanted for each in STORED_AS.get(one, (one,))]
    records, total = here.store.runs.search(
        text.strip(), experiment=experiment, statuses=stored, limit=AT_ONCE, offset=offset
    )
    rows = [run_row(here, record) for record in records]
    return [row for row in rows if not wanted or row.status in wanted], total


def run_row(here: Services, record: RunRecord) -> RunRow:
    """A run in the list."""
    status, counters, summary = state_of(here, record), record.counters, summarise(record)
    reading: Reading | None = here.background.reading(record.id) if status == "running" else None
    answered = counters.sent + counters.cached
    return RunRow(
        id=record.id,
        title=record.title,
        what=shown_driver(record) or "script",
        status=status,
        done=counters.settled,
        missing=counters.missing,
        total=counters.planned if reading is None else reading.total,
        cost=summary.cost.words,
        forecast="" if reading is None else reading.in_the_end.removeprefix(", "),
        rate=None if reading is None else reading.rate,
        cached=counters.cached / answered if answered else None,
        age=time.time() - record.created_at,
        seconds=summary.seconds,
        error=summary.error,
        resumable=status in ("stopped", "interrupted", "partial", "failed") and record.driver is not None,
    )
