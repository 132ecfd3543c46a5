"""Live figures of runs for a dashboard: samples over time, notable events, and decisions of the rate limiters.

    monitor = Monitor(clock)
    engine = Engine(..., listeners=[monitor])
    monitor.sample(engine.runs)     # on the engine's loop, for example every second

The other methods may be called from any thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from groundswell.engine.dispatch import LaneLoad
from groundswell.engine.event_lines import EventLines
from groundswell.engine.events import (
    AskRetried,
    DriverReported,
    Event,
    RunEnded,
    RunOpened,
    TrialEnded,
    WaveEnded,
    WaveSent,
)
from groundswell.engine.lanes import Lane
from groundswell.engine.ports import Clock
from groundswell.engine.rate_limit import Pace
from groundswell.engine.run import Run
from groundswell.reporting.words import clipped

SAMPLES, EVENTS, WAVES, ENDED = 600, 200, 200, 50
"""Samples, events and waves that are kept of a run, and number of runs that are kept after their end."""
SHOWN = 200
"""Characters of the message of a fault that are shown."""


class LaneSample(NamedTuple):
    """One lane of a run.

    in_flight  requests of this run
    cap        how many requests of all runs may be in flight; None for batches
    latency    moving average of the seconds until a reply; None before the first, and for batches
    waits      why no request can be sent now; empty if one can
    """

    account: str
    model: str
    in_flight: int
    cap: int | None
    latency: float | None
    waits: str


class Sample(NamedTuple):
    """The figures of a run at a time, in seconds since 1970.

    `sent`, `cached` and `in_flight` are numbers of requests. `cap` is the sum of those of its lanes; None if all
    requests are sent in batches.
    """

    time: float
    sent: int
    cached: int
    in_flight: int
    cap: int | None
    usd: float
    lanes: tuple[LaneSample, ...]


class Noted(NamedTuple):
    """A notable event: its time in seconds since 1970, and its text."""

    at: float
    text: str


class WaveTimes(NamedTuple):
    """A wave that was sent as a whole: when, in seconds since 1970, and when its last request ended."""

    wave: int
    account: str
    transport: str
    size: int
    at: float
    ended_at: float | None = None


class LimiterDecision(NamedTuple):
    """A decision of a rate limiter: its time in seconds since 1970, and the reason."""

    at: float
    account: str
    model: str
    why: str


class Retries(NamedTuple):
    """The retries because of one kind of fault: the time of the last one, its message, and their number."""

    at: float
    message: str
    many: int


class _History:
    """What is kept of one run.

    stride    every so many samples, one is kept; it doubles when there are too many
    latest    the newest sample, whether it is kept or not
    run       the run, once it was sampled, while it is open
    paces     the rate limiters of the run, with their account and model
    started, ended
              when it was opened first and ended last, by the engine's clock
    """

    def __init__(self, now: float) -> None:
        self.kept: list[Sample] = []
        self.latest: Sample | None = None
        self.taken = 0
        self.stride = 1
        self.run: Run | None = None
        self.paces: dict[Pace, tuple[str, str]] = {}
        self.noted: deque[Noted] = deque(maxlen=EVENTS)
        self.retries: dict[str, Retries] = {}
        self.waves: dict[int, WaveTimes] = {}
        self.lines = EventLines()
        self.started = now
        self.ended: float | None = None

    def add(self, sample: Sample) -> None:
        if self.taken % self.stride == 0:
            self.kept.append(sample)
            if len(self.kept) == SAMPLES:
                del self.kept[1::2]
                self.stride *= 2
        self.taken += 1
        self.latest = sample

    def samples(self) -> tuple[Sample, ...]:
        if self.latest is None or (self.kept and self.kept[-1] is self.latest):
            return tuple(self.kept)
        return (*self.kept, self.latest)

    def hear(self, event: Event) -> None:
        if isinstance(event, AskRetried):
            before = self.retries.get(event.kind)
            self.retries[event.kind] = Retries(event.at, event.message, 1 if before is None else before.many + 1)
        elif isinstance(event, WaveSent):
            self.send(event)
        elif isinstance(event, WaveEnded):
            if (wave := self.waves.get(event.wave)) is not None:
                self.waves[event.wave] = wave._replace(ended_at=event.at)
        else:
            self.noted.extend(Noted(event.at, line) for line in self.lines.lines(event))

    def send(self, event: WaveSent) -> None:
        if not event.whole:
            return  # a request of a stream
        self.waves[event.wave] = WaveTimes(event.wave, event.account, event.transport, event.size, event.at)
        if len(self.waves) > WAVES:
            del self.waves[next(iter(self.waves))]

    def events(self) -> tuple[Noted, ...]:
        retried = [Noted(each.at, _retry_text(kind, each)) for kind, each in self.retries.items()]
        return tuple(sorted([*self.noted, *retried], key=lambda noted: noted.at)[-EVENTS:])


class Monitor:
    """Keeps figures of open runs, and of the last runs that ended. It is a listener of an engine."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: dict[str, _History] = {}

    def __call__(self, event: Event) -> None:
        """Take note of an event. Events without a run concern all open runs."""
        if isinstance(event, TrialEnded | DriverReported):
            return
        with self._lock:
            if event.run:
                histories = [self._history(event.run)]
            else:
                histories = [history for history in self._runs.values() if history.ended is None]
            for history in histories:
                history.hear(event)
            if isinstance(event, RunOpened):
                histories[0].ended = None
            elif isinstance(event, RunEnded):
                self._end(event.run)

    def sample(self, runs: Iterable[Run]) -> None:
        """Take a sample of each of these runs."""
        with self._lock:
            for run in runs:
                history = self._history(run.record.id)
                history.run = run
                self._add_sample(history, run)

    def samples(self, run_id: str) -> tuple[Sample, ...]:
        """Samples of a run at equal intervals, oldest first, and the newest one."""
        with self._lock:
            return () if (history := self._runs.get(run_id)) is None else history.samples()

    def events(self, run_id: str) -> tuple[Noted, ...]:
        """Notable events of a run, oldest first. Retries are one event for each kind of fault."""
        with self._lock:
            return () if (history := self._runs.get(run_id)) is None else history.events()

    def waves(self, run_id: str) -> tuple[WaveTimes, ...]:
        """The last waves of a run, oldest first. The requests of a stream are not waves."""
        with self._lock:
            return () if (history := self._runs.get(run_id)) is None else tuple(history.waves.values())

    def decisions(self, run_id: str) -> tuple[LimiterDecision, ...]:
        """Decisions of the rate limiters that a run uses, while it was open, oldest first.

        Runs share rate limiters, so another run may have caused a decision.
        """
        with self._lock:
            history = self._runs.get(run_id)
            if history is None:
                return ()
            began, ended, paces = history.started, history.ended, dict(history.paces)
        offset = self._clock.wall() - self._clock.now()
        found = [
            LimiterDecision(offset + decision.at, *lane, decision.why)
            for pace, lane in paces.items()
            for decision in pace.decisions
            if began <= decision.at and (ended is None or decision.at <= ended)
        ]
        return tuple(sorted(found, key=lambda decision: decision.at))

    def _history(self, run_id: str) -> _History:
        history = self._runs.get(run_id)
        if history is None:
            history = self._runs[run_id] = _History(self._clock.now())
        return history

    def _add_sample(self, history: _History, run: Run) -> None:
        loads = run.dispatch.lanes
        history.paces.update((load.lane.pace, (load.lane.account, load.lane.model)) for load in loads)
        history.add(sample_of(run, loads, self._clock))

    def _end(self, run_id: str) -> None:
        """A run has ended: take its last sample, and forget the run that ended first if there are too many."""
        history = self._runs.pop(run_id)
        self._runs[run_id] = history  # runs are forgotten in the order of their ends
        history.ended = self._clock.now()
        if history.run is not None:
            self._add_sample(history, history.run)
            history.run = None
        ended = [each for each, kept in self._runs.items() if kept.ended is not None]
        for each in ended[:-ENDED]:
            del self._runs[each]


def sample_of(run: Run, loads: Iterable[LaneLoad], clock: Clock) -> Sample:
    """The figures of a run now."""
    counters, now = run.counters, clock.now()
    lanes = tuple(_lane_sample(load, now) for load in loads)
    return Sample(
        clock.wall(),
        counters.sent,
        counters.cached,
        run.in_flight,
        sum(caps) if (caps := [lane.cap for lane in lanes if lane.cap is not None]) else None,
        counters.usd,
        lanes,
    )


def _lane_sample(load: LaneLoad, now: float) -> LaneSample:
    lane = load.lane
    cap, latency = (None, None) if lane.barrier else (lane.pace.cap, lane.pace.latency)
    return LaneSample(lane.account, lane.model, load.in_flight, cap, latency, _waits(lane, now))


def _waits(lane: Lane, now: float) -> str:
    """Why a lane sends nothing now."""
    pace = lane.pace
    if not lane.transport.ready:
        return "waits until the provider answers again"
    if lane.barrier:
        return ""
    if pace.not_before > now:
        return f"waits {pace.not_before - now:.1f} s: Retry-After"
    if pace.held_until > now:
        return f"waits {pace.held_until - now:.1f} s: rate limit"
    return f"all {pace.cap} slots are in use" if pace.in_flight >= pace.cap else ""


def _retry_text(kind: str, retries: Retries) -> str:
    times = "1 retry" if retries.many == 1 else f"{retries.many:,} retries, the last one"
    return f"{kind}: {times} because of: {clipped(retries.message, SHOWN)}"
