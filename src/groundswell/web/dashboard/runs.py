"""The list of all runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, get_args

from fastapi import APIRouter, Request
from starlette.responses import Response

from groundswell.engine.records import RunRecord, Status
from groundswell.engine.summary import summarise
from groundswell.reporting.progress import Reading
from groundswell.store.runs import UNFINISHED
from groundswell.web import events
from groundswell.web.dashboard.pages import AT_ONCE, Pager, Text, page, part, with_query
from groundswell.web.runs import shown_driver, state_of
from groundswell.web.services import Here, Offset, Services

router = APIRouter(include_in_schema=False)

STATUSES: tuple[Status, ...] = get_args(Status)
MOST_UNFINISHED = 1_000


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


class FoundRuns(NamedTuple):
    """A page of the runs that match a query."""

    rows: Sequence[RunRow]
    query: Mapping[str, str]
    pages: Pager


@router.get("/runs")
async def runs(
    here: Here,
    request: Request,
    q: Text = "",
    experiment: Text = "",
    status: Text = "",
    offset: Offset = 0,
) -> Response:
    """All runs, with a search and filters."""
    found = _found(here, q, experiment, status, offset)
    return page(
        here,
        request,
        "runs.html",
        title="Runs",
        active="runs",
        stream=with_query("/runs/stream", [*found.query.items(), ("offset", offset)]),
        found=found,
        experiments=here.store.runs.experiments(),
        statuses=STATUSES,
    )


@router.get("/runs/stream")
async def stream(here: Here, q: Text = "", experiment: Text = "", status: Text = "", offset: Offset = 0) -> Response:
    """The rows of the list, whenever they change."""

    def look() -> events.Moment:
        found = _found(here, q, experiment, status, offset)
        rows = {f"row-{row.id}": part("run_parts.html", "cells", row) for row in found.rows}
        version = ([row.id for row in found.rows], found.pages.total, found.pages.offset)
        listed = events.Versioned(part("run_parts.html", "listed", found), version)
        return events.Moment({"count": part("run_parts.html", "count", found), "list": listed, **rows}, False)

    return events.part_stream(here, f"runs {q!r} {experiment!r} {status!r} {offset}", look)


def _found(here: Services, text: str, experiment: str, status: str, offset: int) -> FoundRuns:
    """A page of the runs that match; the last page if there are not so many."""
    query = {"q": text, "experiment": experiment, "status": status}
    search = partial(here.store.runs.search, text.strip(), experiment=experiment)
    if status in (*UNFINISHED, "stopped"):  # their status depends on whether a process works on them
        stored: set[Status] = {*UNFINISHED, "stopped"} if status == "stopped" else {*UNFINISHED}
        records = [each for each in search(statuses=stored, limit=MOST_UNFINISHED)[0] if state_of(here, each) == status]
        some, total = records[offset : offset + AT_ONCE], len(records)
    else:
        wanted = [each for each in STATUSES if each == status]
        found, total = search(statuses=wanted, limit=AT_ONCE, offset=offset)
        some = list(found)
    if total and offset >= total:
        return _found(here, text, experiment, status, (total - 1) // AT_ONCE * AT_ONCE)
    pages = Pager(total, offset, lambda at: with_query("/runs", [*query.items(), ("offset", at)]))
    return FoundRuns([run_row(here, record) for record in some], query, pages)


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
