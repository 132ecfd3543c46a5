"""A provider that keeps limits, and a client that goes by a pace: simulated, without real time.

Requests travel for a while, are admitted or refused by the emulator's own meter, take a while, and come back
with what the provider said of its limits when it took them in. What is refused or fails is sent again as the engine
would.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import ceil, inf, isfinite
from random import Random
from typing import NamedTuple

from groundswell.emulator.limits import Meter
from groundswell.engine.rate_limit import Demand, Mark, Pace, PaceLimits
from groundswell.engine.retry import LOAD, RetryAt, RetryPolicy, Tried, decide
from groundswell.program.request import Fault, FaultKind, Standing

PATIENT = RetryPolicy(attempts=100, patience=1e9)
WIRE = 0.004
HEARS_EVERY = 0.02


class Job:
    """One ask: what the pace expects it to use, and what it really uses."""

    __slots__ = ("attempts", "demand", "mark", "refusals", "used")

    def __init__(self, demand: Demand, used: Demand) -> None:
        self.demand = demand
        self.used = used
        self.mark: Mark | None = None
        self.attempts = 0
        self.refusals = 0


class Terms(NamedTuple):
    """How a provider is set up; limits are per minute.

    reserved    output is charged as the request allows it; `corrected` gives back what was not used
    tells       whether replies say how the limits stand; `claims`: as if the buckets held so many seconds
    wire        how long a request may travel: one that is quick overtakes others
    """

    requests: float | None = None
    tokens: float | None = None
    output: float | None = None
    burst: float = 60.0
    latency: tuple[float, float] = (0.5, 1.5)
    corrected: bool = False
    tells: bool = True
    claims: float | None = None
    others: float = 0.0
    wire: float = WIRE
    mishap: Callable[[float, Random], Fault | None] = lambda now, chance: None

    def meter(self, burst: float, now: float = 0.0) -> Meter:
        """Its buckets, full."""
        tokens = "tokens" if self.output is None else "input_tokens"
        return Meter({"requests": self.requests, tokens: self.tokens, "output_tokens": self.output}, burst, now)


class Simulation:
    """Runs jobs against a provider, and writes down when what happened."""

    def __init__(self, terms: Terms, limits: PaceLimits | None = None, seed: int = 0) -> None:
        self.terms = terms
        self.pace = Pace.alone(limits or PaceLimits(max_concurrent=4096), 0.0)
        self.now = 0.0
        self.left: list[float] = []
        self.refused: list[float] = []
        self.done: list[float] = []
        self.most_in_flight = 0
        self.over_cap = 0
        self.queue: deque[Job] = deque()
        self._meter = terms.meter(terms.burst)
        self._claimed = self._meter if terms.claims is None else terms.meter(terms.claims)
        self._chance = Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._wanted = 0
        self._alarm = inf
        self._heard = -1.0
        if terms.others:
            self._at(0.0, self._other)

    def run(self, jobs: list[Job], until: float = inf) -> Simulation:
        """Send jobs until all are done, or for a time."""
        self.queue.extend(jobs)
        self._wanted += len(jobs)
        self._pump()
        while self._events and len(self.done) < self._wanted and self._events[0][0] <= until:
            self.now, _, event = heappop(self._events)
            event()
        return self

    def change(self, terms: Terms) -> None:
        """The provider keeps other limits from now on."""
        self.terms = terms
        self._meter = self._claimed = terms.meter(terms.burst, self.now)

    def rate(self, start: float, end: float) -> float:
        """Jobs done per second in a stretch of time."""
        return sum(start < at <= end for at in self.done) / (end - start)

    def _at(self, when: float, event: Callable[[], None]) -> None:
        heappush(self._events, (when, next(self._order), event))

    def _pump(self) -> None:
        while self.queue:
            job = self.queue[0]
            cap = self.pace.cap
            given = self.pace.leave(job.demand, self.now)
            if not isinstance(given, Mark):
                assert given > self.now
                self._ask_again(given)
                return
            self.queue.popleft()
            self.left.append(self.now)
            self.over_cap += self.pace.in_flight > cap
            self.most_in_flight = max(self.most_in_flight, self.pace.in_flight)
            job.mark = given
            job.attempts += 1
            arrives = self.now + self.terms.wire * self._chance.random()
            self._at(arrives, lambda job=job: self._arrive(job))  # type: ignore[misc]

    def _ask_again(self, when: float) -> None:
        if when < self._alarm:
            self._alarm = when
            self._at(when, self._ring)

    def _ring(self) -> None:
        if self.now >= self._alarm:
            self._alarm = inf
        self._pump()

    def _arrive(self, job: Job) -> None:
        """The provider takes a request in, or refuses it."""
        terms, chance = self.terms, self._chance
        mishap = terms.mishap(self.now, chance)
        charges = self._charges(job)
        over = self._meter.admit(charges, self.now) if mishap is None else None
        back = WIRE * chance.random()
        if over is not None:
            wait = float(max(1, ceil(over.wait))) if isfinite(over.wait) else None
            mishap = Fault(FaultKind.RATE_LIMITED, over.name, wait)
        elif mishap is None:
            if self._claimed is not self._meter:
                self._claimed.admit(charges, self.now)
            back += chance.uniform(*terms.latency)
            if terms.corrected:
                unused = job.used.output - job.demand.output
                self._at(self.now + back, lambda: self._meter.correct("output_tokens", unused, self.now))
        standings = self._standings()
        self._at(self.now + back, lambda: self._return(job, mishap, standings))

    def _charges(self, job: Job) -> dict[str, int]:
        if self.terms.output is not None:
            return {"requests": 1, "input_tokens": job.used.input, "output_tokens": job.demand.output}
        return {"requests": 1, "tokens": max(job.demand.output, job.used.input)}

    def _standings(self) -> list[Standing]:
        if not self.terms.tells:
            return []
        return [
            Standing(name, limit, left, reset)  # type: ignore[arg-type]
            for name, limit, left, reset in self._claimed.standings(self.now)
        ]

    def _return(self, job: Job, fault: Fault | None, standings: list[Standing]) -> None:
        """What came back reaches the client."""
        assert job.mark is not None
        limited = fault is not None and fault.kind is FaultKind.RATE_LIMITED
        if standings and (limited or self.now - self._heard >= HEARS_EVERY):
            self._heard = self.now
            self.pace.learn_limits(standings, job.mark, self.now)
        if fault is None:
            self.done.append(self.now)
            self.pace.done(job.mark, job.used, self.now)
        else:
            self._retry(job, fault)
        self._pump()

    def _retry(self, job: Job, fault: Fault) -> None:
        assert job.mark is not None
        self.pace.failed(job.mark, fault.kind, fault.retry_after, self.now)
        if fault.kind in LOAD:
            self.refused.append(self.now)
            job.refusals += 1
        tried = Tried(job.attempts - job.refusals, job.refusals)
        decision = decide(fault, tried, self.now, PATIENT, self._chance.random())
        assert isinstance(decision, RetryAt)

        def again() -> None:
            self.queue.appendleft(job)
            self._pump()

        self._at(decision.when, again)

    def _other(self) -> None:
        """Another client of the same account uses its share, evenly; it does not insist."""
        per_minute = self.terms.requests or 0.0
        self._meter.admit({"requests": 1, "tokens": 0}, self.now)
        self._at(self.now + 60 / (per_minute * self.terms.others), self._other)


def requests(number: int) -> list[Job]:
    """Jobs whose tokens nobody counts."""
    return [Job(Demand(100, 256), Demand(90, 120)) for _ in range(number)]
