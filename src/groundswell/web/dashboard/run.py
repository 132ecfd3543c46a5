"""One run, live: progress, throughput, limits, waves and batches, faults and cost.

The figures of a run that is open in this server come from its engine, others from the store. What takes long to read is
read again only after a pause that is many times as long, so viewers do not slow a run down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response


from groundswell.engine.records import EndpointFigures, RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.experiments.experiment import command_of_run, results_of
from groundswell.reporting.progress import Reading
from groundswell.reporting.words import age, cost, duration
from groundswell.store.results import Latencies
from groundswell.store.waves import StoredWave
from groundswell.web import events
from groundswell.web.dashboard.drawing import Chart, Series, chart
from groundswell.web.dashboard.pages import page, part
from groundswell.web.dashboard.runs import RunRow, run_row
from groundswell.web.runs import is_over
from groundswell.web.services import Here, Services

router = APIRouter(include_in_schema=False)

SHOWN_WAVES, SHOWN_EVENTS, SHOWN_DECISIONS = 30, 30, 12
PARTS = ("heading", "overview", "charts", "limits", "waves", "faults", "events")
PAUSE = 50
"""After a slow read, so many times its duration passes before the next one."""


class WaveRow(NamedTuple):
    """A wave or batch in the timeline. `left` and `width` are percentages of the time that the timeline covers."""

    title: str
    transport: str
    size: int
    took: str
    open: bool
    left: float
    width: float
    note: str


class LimitRow(NamedTuple):
    """A model of an account: requests in flight against the limit, and what the limiter waits for."""

    name: str
    in_flight: int
    cap: int
    latency: str
    waits: str


class RunView(NamedTuple):
    """Everything that the page of a run shows. `here`: the run is open in this server."""

    row: RunRow
    summary: Summary
    reading: Reading | None
    budget: Sequence[tuple[str, float, float]]
    charts: Sequence[Chart]
    limits: Sequence[LimitRow]
    decisions: Sequence[tuple[str, str]]
    waves: Sequence[WaveRow]
    waves_left_out: int
    latencies: Sequence[Latencies]
    faults: Mapping[str, int]
    events: Sequence[tuple[str, str]]
    endpoints: Sequence[tuple[str, EndpointFigures]]
    here: bool
    over: bool
    has_report: bool
    parent: str | None
    settings: str
    start_again: str


@router.get("/runs/{run_id}")
async def run(here: Here, request: Request, run_id: str) -> Response:
    """One run."""
    record = here.run(run_id)
    view = _view(here, record)
    stream = "" if view.over else f"/runs/{run_id}/stream"
    shares = here.settings.token is not None
    return page(here, request, "run.html", title=record.title, active="runs", stream=stream, view=view, shares=shares)


@router.get("/runs/{run_id}/stream")
async def stream(here: Here, run_id: str) -> Response:
    """The parts of the page, whenever they change."""

    def look() -> events.Moment:
        record = here.run(run_id)
        view = _view(here, record)
        return events.Moment({name: part("run_view.html", name, view) for name in PARTS}, view.over)

    return events.part_stream(here, f"run {run_id}", look)


def _view(here: Services, record: RunRecord) -> RunView:
    row, monitor, now = run_row(here, record), here.background.monitor, time.time()
    samples, over = monitor.samples(record.id), is_over(record, row.status)
    reading = here.background.reading(record.id)
    results, state = here.store.results(record), f"{record.id} {record.status} {record.updated_at if over else ''}"
    latencies, faults, stored = here.now_and_then(
        state, PAUSE, lambda: (results.latencies(), results.ask_fault_counts(), here.store.waves.of(record))
    )
    waves = _timeline(stored, monitor.waves(record.id), now)
    endpoints = here.background.engine.figures if reading is not None else {}
    command = command_of_run(record)
    return RunView(
        row=row,
        summary=summarise(record),
        reading=reading,
        budget=_budget(record),
        charts=_charts(samples, record),
        limits=_limits(samples) if reading is not None else [],
        decisions=[(_ago(now, at), words) for at, words in reversed(monitor.decisions(record.id)[-SHOWN_DECISIONS:])],
        waves=waves[-SHOWN_WAVES:],
        waves_left_out=max(0, len(waves) - SHOWN_WAVES),
        latencies=latencies,
        faults=faults,
        events=[(_ago(now, at), words) for at, words in reversed(monitor.events(record.id)[-SHOWN_EVENTS:])],
        endpoints=[(account, one) for account, some in endpoints.items() for one in some],
        here=reading is not None,
        over=over,
        has_report=results_of(record, Path()).has_report(record),
        parent=record.parent,
        settings=_indented(record.settings),
        start_again="" if command is None or not command.over_http else f"/start/{record.driver}?from={record.id}",
    )


def _ago(now: float, at: float) -> str:
    return f"{age(now - at)} ago"


def _indented(settings: str | None) -> str:
    return "" if settings is None else msgspec.json.format(settings.encode(), indent=2).decode()


def _budget(record: RunRecord) -> list[tuple[str, float, float]]:
    """What the run has used of each of its limits."""
    counters, limits = record.counters, record.options.get("limits", {})
    used = {
        "usd": ("US dollars", counters.usd + counters.possible.usd),
        "calls": ("requests", counters.sent + counters.possible.calls),
        "tokens": ("tokens", counters.input_tokens + counters.output_tokens + counters.possible.tokens),
    }
    return [(words, spent, float(limits[name])) for name, (words, spent) in used.items() if limits.get(name)]


def _charts(samples: Sequence[Sample], record: RunRecord) -> list[Chart]:
    """Throughput, requests in flight, latency and cost since the run was opened here."""
    if len(samples) < 2:
        return []
    start, end = samples[0].at, samples[-1].at
    pairs = list(zip(samples, samples[1:], strict=False))

    def line(name: str, colour: str, value: Callable[[Sample], float | None], *, dashed: bool = False) -> Series:
        return Series(name, colour, [(each.at, value(each)) for each in samples], dashed)

    rates = [(late.at, (late.sent - early.sent) / max(late.at - early.at, 1e-9)) for early, late in pairs]
    cached = [(late.at, (late.cached - early.cached) / max(late.at - early.at, 1e-9)) for early, late in pairs]
    limit = record.options.get("limits", {}).get("usd")
    made = [
        chart(
            "Requests per second",
            [Series("sent", "blue", rates), Series("from the cache", "green", cached)],
            lambda value: f"{value:,.0f}" if value >= 10 else f"{value:.2g}",
            start=start,
            end=end,
        ),
        chart(
            "Requests in flight",
            [line("in flight", "blue", lambda each: each.in_flight), line("limit", "faint", lambda each: each.cap, dashed=True)],
            lambda value: f"{value:,.0f}",
            start=start,
            end=end,
        ),
        chart("Seconds per reply", [line("recent mean", "pink", lambda each: each.latency)], duration, start=start, end=end),
    ]
    if samples[-1].usd or limit:
        lines = [line("spent", "red", lambda each: each.usd)]
        if limit:
            lines.append(line("budget", "faint", lambda each: float(limit), dashed=True))
        made.append(chart("Cost", lines, lambda value: cost(value, 0), start=start, end=end))
    return made


def _limits(samples: Sequence[Sample]) -> list[LimitRow]:
    """The limiters of the run's models now."""
    if not samples:
        return []
    return [
        LimitRow(
            f"{lane.account}/{lane.model}" if lane.model else lane.account,
            lane.in_flight,
            lane.cap,
            "–" if lane.latency is None else duration(lane.latency),
            lane.waits,
        )
        for lane in samples[-1].lanes
    ]


def _timeline(stored: Sequence[StoredWave], seen: Sequence[WaveSeen], now: float) -> list[WaveRow]:
    """Batches from the store and waves that were seen here, on one axis of time."""
    waves = [
        *((each.number, each.transport, each.size, each.at, each.ended_at, each.account, "") for each in stored),
        *((each.number, each.transport, each.size, each.at, each.ended_at, each.account, each.note) for each in seen),
    ]
    waves = sorted({(each[0], each[1]): each for each in waves}.values(), key=lambda each: each[3])[-2 * SHOWN_WAVES :]
    if not waves:
        return []
    start = waves[-SHOWN_WAVES:][0][3]
    end = max(max(ended or now for *_, ended, _, _ in waves), start + 1e-3)
    return [
        WaveRow(
            title=f"{number}",
            transport=f"{account} {transport.replace('_', ' ')}",
            size=size,
            took=duration((ended or now) - at),
            open=ended is None,
            left=max(0.0, 100 * (at - start) / (end - start)),
            width=max(0.5, 100 * ((ended or now) - max(at, start)) / (end - start)),
            note=note,
        )
        for number, transport, size, at, ended, account, note in waves
    ]


