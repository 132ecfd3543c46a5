"""One run, live: progress, throughput, limits, waves and batches, faults and cost.

The figures of a run that is open in this server come from its engine, others from the store. Slow reads are repeated
only after 100 times their own duration, so viewers do not slow a run down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from groundswell.engine.monitor import Sample, WaveTimes
from groundswell.engine.records import NUMBER, RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.reporting.progress import Reading
from groundswell.reporting.words import cost, duration
from groundswell.store.results import Latencies, Spread
from groundswell.store.waves import StoredWave
from groundswell.web import events
from groundswell.web.access import ALL, access_of
from groundswell.web.dashboard.line_charts import Chart, Series, chart
from groundswell.web.dashboard.models import EndpointRow, endpoint_rows
from groundswell.web.dashboard.pages import page, part
from groundswell.web.dashboard.results import has_report
from groundswell.web.dashboard.runs import RunRow, run_row
from groundswell.web.dashboard.start import start_again
from groundswell.web.runs import is_over
from groundswell.web.services import Here, Services

router = APIRouter(include_in_schema=False)

SHOWN_WAVES, SHOWN_EVENTS, SHOWN_DECISIONS = 30, 30, 12
PARTS = ("heading", "actions", "overview", "charts", "limits", "waves", "faults", "events")
RAISED = {
    "usd": ("budget", "Most dollars in total"),
    "calls": ("max_calls", "Most requests in total"),
    "tokens": ("max_tokens", "Most tokens in total"),
}
"""Limits of a run, with the fields that replace them when it is resumed."""
STRAGGLES = 2.0
"""A wave has a straggler if its slowest reply took this many times the median."""
PAUSE = 100
"""Wait this many times the duration of a slow read before repeating it."""


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
    cap: str
    latency: str
    waits: str


class RunView(NamedTuple):
    """Everything that the page of a run shows. `here`: the run is open in this server. `shares`: it can be shared."""

    row: RunRow
    summary: Summary
    reading: Reading | None
    budget: Sequence[tuple[float, str, str]]
    charts: Sequence[Chart]
    limits: Sequence[LimitRow]
    decisions: Sequence[tuple[str, str]]
    waves: Sequence[WaveRow]
    waves_left_out: int
    latencies: Sequence[Latencies]
    faults: Mapping[str, int]
    events: Sequence[tuple[str, str]]
    endpoints: Sequence[EndpointRow]
    here: bool
    shares: bool
    over: bool
    has_report: bool
    parent: str | None
    settings: str
    start_again: str | None
    limits_to_raise: Sequence[tuple[str, str, str]]
    """The limits of the run: the field of a request to resume it, what the field says, and the limit."""


@router.get("/runs/{run_id}")
async def run(here: Here, request: Request, run_id: str) -> Response:
    """One run."""
    record = here.run(run_id)
    view = _view(here, record, access_of(request.scope))
    stream = "" if view.over else f"/runs/{run_id}/stream"
    return page(here, request, "run.html", title=record.title, active="runs", stream=stream, view=view)


@router.get("/runs/{run_id}/stream")
async def stream(here: Here, request: Request, run_id: str) -> Response:
    """The parts of the page, whenever they change."""
    access = access_of(request.scope)

    def look() -> events.Moment:
        record = here.run(run_id)
        view = _view(here, record, access)
        return events.Moment({name: part("run_view.html", name, view) for name in PARTS}, view.over)

    return events.part_stream(here, f"run {run_id} {access}", look)


def _view(here: Services, record: RunRecord, access: str) -> RunView:
    """What a viewer may see. Who has a share link sees nothing of accounts, their limits and other runs."""
    row, monitor, now = run_row(here, record), here.background.monitor, time.time()
    samples, over = monitor.samples(record.id), is_over(record, row.status)
    everything, reading = access == ALL, here.background.reading(record.id)
    if reading is not None and not everything:
        reading = reading._replace(waits=(), batches="")
    results, state = here.store.results(record), f"{record.id} {record.status} {record.updated_at if over else ''}"

    def read() -> tuple[tuple[list[Latencies], dict[int, Spread]], dict[str, int], list[StoredWave]]:
        faults = results.ask_fault_counts() if record.counters.failed else {}
        return results.latencies(), faults, here.store.waves.of(record)

    (latencies, spread), faults, stored = here.cached(state, read, times=PAUSE)
    accounts = {lane.account for lane in samples[-1].lanes} if samples and reading is not None else set()
    endpoints = {name: some for name, some in here.background.endpoints.items() if name in accounts and everything}
    noted = monitor.events(record.id)[-SHOWN_EVENTS:] if everything else ()
    decisions = monitor.decisions(record.id)[-SHOWN_DECISIONS:] if everything else ()
    waves = sorted_waves([*map(_wave_times, stored), *monitor.waves(record.id)])
    return RunView(
        row=row,
        summary=summarise(record),
        reading=reading,
        budget=_budget(record),
        charts=_charts(samples, record),
        limits=_limits(samples) if reading is not None and everything else [],
        decisions=[
            (_clock(each.at), f"{'/'.join(filter(None, (each.account, each.model)))}: {each.why}")
            for each in reversed(decisions)
        ],
        waves=timeline(waves[-SHOWN_WAVES:], spread, now, accounts=everything),
        waves_left_out=max(0, len(waves) - SHOWN_WAVES),
        latencies=latencies,
        faults=faults,
        events=[(_clock(each.at), each.text) for each in reversed(noted)],
        endpoints=endpoint_rows(endpoints),
        here=reading is not None,
        shares=here.settings.token is not None,
        over=over,
        has_report=has_report(here, record),
        parent=record.parent if everything else None,
        settings="" if record.settings is None else msgspec.json.format(record.settings, indent=2),
        start_again=start_again(record),
        limits_to_raise=[
            (field, words, f"{record.options['limits'][name]:g}")
            for name, (field, words) in RAISED.items()
            if record.options.get("limits", {}).get(name)
        ],
    )


def _clock(at: float) -> str:
    """The time of day on the server."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def _budget(record: RunRecord) -> list[tuple[float, str, str]]:
    """How much of each of its limits the run has used: the share, what was used, and the limit."""
    counters, limits = record.counters, record.options.get("limits", {})
    used: dict[str, tuple[float, Callable[[float], str]]] = {
        "usd": (counters.usd + counters.possible.usd, lambda value: cost(value, 0)),
        "calls": (counters.sent + counters.possible.calls, "{:,.0f} requests".format),
        "tokens": (counters.input_tokens + counters.output_tokens + counters.possible.tokens, "{:,.0f} tokens".format),
    }
    there = [(spent, shown, limits[name]) for name, (spent, shown) in used.items() if limits.get(name)]
    return [(spent / limit, shown(spent), shown(limit)) for spent, shown, limit in there]


def _charts(samples: Sequence[Sample], record: RunRecord) -> list[Chart]:
    """Throughput, requests in flight, latency and cost since the run was opened here."""
    if len(samples) < 2:
        return []
    start, end = samples[0].time, samples[-1].time
    pairs = list(pairwise(samples))

    def line(name: str, colour: str, value: Callable[[Sample], float | None], *, dashed: bool = False) -> Series:
        return Series(name, colour, [(each.time, value(each)) for each in samples], dashed)

    rates = [(late.time, (late.sent - early.sent) / max(late.time - early.time, 1e-9)) for early, late in pairs]
    cached = [(late.time, (late.cached - early.cached) / max(late.time - early.time, 1e-9)) for early, late in pairs]
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
            [
                line("in flight", "blue", lambda each: each.in_flight),
                line("limit", "faint", lambda each: each.cap, dashed=True),
            ],
            lambda value: f"{value:,.0f}",
            start=start,
            end=end,
        ),
        chart("Seconds per reply", [line("recent mean", "pink", _latency)], duration, start=start, end=end),
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
            "–" if lane.cap is None else f"{lane.cap:,}",
            "–" if lane.latency is None else duration(lane.latency),
            lane.waits,
        )
        for lane in samples[-1].lanes
    ]


def _latency(sample: Sample) -> float | None:
    """The mean latency of the models of a run, weighted by their requests in flight."""
    known = [(lane.latency, lane.in_flight or 1) for lane in sample.lanes if lane.latency is not None]
    return sum(seconds * many for seconds, many in known) / sum(many for _, many in known) if known else None


def _wave_times(wave: StoredWave) -> WaveTimes:
    return WaveTimes(wave.id, wave.account, wave.transport, wave.size, wave.at, wave.ended_at)


def sorted_waves(waves: Iterable[WaveTimes]) -> list[WaveTimes]:
    """Waves in the order of their sending. If one is given twice, the later version counts."""
    return sorted({wave.wave: wave for wave in waves}.values(), key=lambda wave: wave.at)


def timeline(
    waves: Sequence[WaveTimes], spread: Mapping[int, Spread], now: float, *, accounts: bool = True
) -> list[WaveRow]:
    """Waves and batches on one axis of time, which begins with the first of them. `accounts`: name their accounts."""
    if not waves:
        return []
    start = waves[0].at
    end = max(start + 1e-3, *(now if wave.ended_at is None else wave.ended_at for wave in waves))
    rows = []
    for wave in waves:
        until = now if wave.ended_at is None else wave.ended_at
        rows.append(
            WaveRow(
                title=f"{wave.wave & NUMBER}",
                transport=f"{wave.account if accounts else ''} {wave.transport.replace('_', ' ')}".strip(),
                size=wave.size,
                took=duration(until - wave.at),
                open=wave.ended_at is None,
                left=min(99.5, max(0.0, 100 * (wave.at - start) / (end - start))),
                width=max(0.5, 100 * (until - max(wave.at, start)) / (end - start)),
                note=_straggling(spread.get(wave.wave)),
            )
        )
    return rows


def _straggling(spread: Spread | None) -> str:
    """How long the last reply of a wave took, if that is much longer than usual in this wave."""
    if spread is None or spread.longest < STRAGGLES * spread.median:
        return ""
    return f"half took {duration(spread.median)}, the last {duration(spread.longest)}"
