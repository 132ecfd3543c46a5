"""Whether a request may leave now: buckets for requests and tokens under a concurrency cap. Pure.

Time is passed in; nothing here waits. An account has one `Allowance`, what its settings let it do, and a `Pace` for
each of its models, since providers count by model. A pace learns:

- from what a provider says of its limits with a reply. The bucket then holds what the provider said was left, what
  has come in since, and less what was sent since: close to the limit, and not over it.
- from being refused. The cap doubles every round while every slot is used and nothing is refused, is cut once per
  episode, and grows again: fast up to where it was cut, then by one a round. After a server error it does not grow
  for a few replies, so that it stands still where many requests fail.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from groundswell.program.request import FaultKind, Standing

START = 32
SMOOTH = 0.1
SHY = 0.25
SPARE = 0.05
QUIET_AFTER_ERROR = 8
FAR = 1 << 30

LOAD = frozenset({FaultKind.RATE_LIMITED, FaultKind.OVERLOADED})
TROUBLE = frozenset({FaultKind.SERVER, FaultKind.TIMEOUT, FaultKind.CONNECTION})


class PaceLimits(msgspec.Struct, frozen=True):
    """What an account is allowed by its settings. None means unknown: then it is learnt."""

    max_concurrent: int = 256
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    start: int = START


class Demand(NamedTuple):
    """The tokens that a request may use."""

    input: int = 0
    output: int = 0


class Mark(NamedTuple):
    """When a request left, what it may use, and how much had left by then."""

    at: float
    demand: Demand
    requests: int
    input: int
    output: int


def _share(resource: str, requests: float, input_: float, output: float) -> float:
    """How much of a resource so many requests and tokens take."""
    if resource == "requests":
        return requests
    if resource == "input_tokens":
        return input_
    return output if resource == "output_tokens" else input_ + output


class Bucket:
    """Fills at a rate, up to a size. What is taken may bring it below zero, and then has to be waited for.

    `margin` is left in it, since the other side's clock and order of arrival are not ours.
    """

    __slots__ = ("_at", "_level", "_shy", "margin", "rate", "resource", "size")

    def __init__(self, resource: str, rate: float, size: float, now: float) -> None:
        self.resource = resource
        self.rate = rate
        self.size = max(1.0, size)
        self.margin = 0.0
        self._level = self.size
        self._at = now
        self._shy = False

    @classmethod
    def smooth(cls, resource: str, per_minute: float, now: float) -> Bucket:
        """A bucket for a limit that is all we know of: it holds so little that no minute sees more than the limit."""
        rate = 0.995 * per_minute / 60
        return cls(resource, rate, rate * SMOOTH, now)

    def level(self, now: float) -> float:
        """What is in it now."""
        if now > self._at:
            self._level = min(self.size, self._level + (now - self._at) * self.rate)
            self._at = now
        return self._level

    def take(self, amount: float, now: float) -> None:
        """Take some, or, below zero, put some back."""
        self._level = min(self.size, self.level(now) - amount)

    def ready_at(self, amount: float, now: float) -> float:
        """When `amount` and the margin, or a full bucket if that is less, will be there."""
        lacking = min(amount + self.margin, self.size) - self.level(now)
        return now if lacking <= 1e-9 else now + lacking / self.rate

    def learn(self, said: Standing, sent_since: float, elapsed: float, now: float) -> None:
        """Take over what the provider said `elapsed` seconds ago, when so much had not been sent yet."""
        self.rate = _rate(said)
        self.size = max(1.0, self.rate * SHY) if self._shy else min(said.limit, max(self.size, said.remaining, 1.0))
        self.margin = min(max(1.0, self.rate * SPARE, said.limit * 0.005), self.size / 4)
        self._level = min(self.size, said.remaining + elapsed * self.rate) - sent_since
        self._at = now

    def be_shy(self, now: float) -> None:
        """The provider refused what it said was left: it counts by shorter times than it says. Hold little."""
        self._shy = True
        self.size = max(1.0, self.rate * SHY)
        self._level = min(0.0, self.level(now))


def _rate(said: Standing) -> float:
    """Units per second. Limits are per minute, unless the time to a full bucket shows that they are per day."""
    rate = max(said.limit, 1.0) / 60
    used = said.limit - said.remaining
    if said.reset and used > 0:
        implied = used / said.reset
        return implied if implied < rate / 2 else rate
    return rate


class Allowance:
    """What the settings let an account do, whichever of its models is asked."""

    def __init__(self, limits: PaceLimits, now: float) -> None:
        self.lock = threading.Lock()
        self.in_flight = 0
        self.adopt(limits, now)

    def adopt(self, limits: PaceLimits, now: float) -> None:
        """Go by these settings from now on."""
        per_minute = {
            "requests": limits.requests_per_minute,
            "tokens" if limits.output_tokens_per_minute is None else "input_tokens": limits.tokens_per_minute,
            "output_tokens": limits.output_tokens_per_minute,
        }
        self.limits = limits
        self.buckets = [Bucket.smooth(name, rate, now) for name, rate in per_minute.items() if rate is not None]


class Pace:
    """The limiter of one model of an account. May be used by several threads.

    `counts_tokens` says whether it matters what a request may use.
    """

    def __init__(self, allowance: Allowance, now: float) -> None:
        self.allowance = allowance
        self.in_flight = 0
        self.not_before = now
        self.latency: float | None = None
        self.accepted_at = now
        self._cap: float = min(allowance.limits.start, allowance.limits.max_concurrent)
        self._steep_to = inf
        self._cut_at = now
        self._accepted_since_cut = True
        self._since_refusal = FAR
        self._quiet = 0
        self._learnt: dict[str, Bucket] = {}
        self._heard = now
        self._requests = self._input = self._output = 0
        self._gather()

    @classmethod
    def alone(cls, limits: PaceLimits, now: float) -> Pace:
        """The pace of an account's only model."""
        return cls(Allowance(limits, now), now)

    @property
    def cap(self) -> int:
        """How many requests may be in flight."""
        return min(int(self._cap), self.allowance.limits.max_concurrent)

    def leave(self, demand: Demand, now: float) -> Mark | float:
        """Let a request leave, or say when to ask again: at a time, or (infinity) when something has come back."""
        allowance = self.allowance
        with allowance.lock:
            if now < self.not_before:
                return self.not_before
            most = allowance.limits.max_concurrent
            if self.in_flight >= min(int(self._cap), most) or allowance.in_flight >= most:
                return inf
            if self._configured is not allowance.buckets:
                self._gather()
            for bucket in self._buckets:
                ready = bucket.ready_at(_share(bucket.resource, 1, demand.input, demand.output), now)
                if ready > now:
                    return ready
            for bucket in self._buckets:
                bucket.take(_share(bucket.resource, 1, demand.input, demand.output), now)
            self.in_flight += 1
            allowance.in_flight += 1
            self._requests += 1
            self._input += demand.input
            self._output += demand.output
            return Mark(now, demand, self._requests, self._input, self._output)

    def recall(self) -> None:
        """A request that had left is given up, or never really left."""
        with self.allowance.lock:
            self.in_flight -= 1
            self.allowance.in_flight -= 1

    def done(self, mark: Mark, used: Demand, now: float) -> None:
        """A request was answered: put right what it used, and grow if every slot was in use."""
        with self.allowance.lock:
            saturated = self.in_flight >= 0.85 * min(self._cap, self.allowance.limits.max_concurrent)
            self.in_flight -= 1
            self.allowance.in_flight -= 1
            self.accepted_at = now
            self._since_refusal += 1
            self._accepted_since_cut = self._accepted_since_cut or mark.at >= self._cut_at
            took = now - mark.at
            self.latency = took if self.latency is None else self.latency + 0.1 * (took - self.latency)
            if self._buckets and mark.demand != used:
                self._correct(used.input - mark.demand.input, used.output - mark.demand.output, now)
            if self._quiet:
                self._quiet -= 1
            elif saturated:
                self._cap += 1 if self._cap < self._steep_to else 1 / self._cap
                self._cap = min(self._cap, self.allowance.limits.max_concurrent)

    def failed(self, mark: Mark, kind: FaultKind, retry_after: float | None, now: float) -> None:
        """A request failed: back off if that was because there were too many."""
        with self.allowance.lock:
            self.in_flight -= 1
            self.allowance.in_flight -= 1
            if kind in LOAD:
                self._back_off(mark, kind, retry_after, now)
            elif kind in TROUBLE:
                self._quiet = QUIET_AFTER_ERROR

    def heard(self, standings: Sequence[Standing], mark: Mark, now: float) -> None:
        """Learn what the provider said of its limits when it took in a request that left then."""
        with self.allowance.lock:
            if mark.at < self._heard:
                return  # a later one has told already
            self._heard = mark.at
            sent = (self._requests - mark.requests, self._input - mark.input, self._output - mark.output)
            for said in standings:
                bucket = self._learnt.get(said.resource)
                if bucket is None:
                    bucket = self._learnt[said.resource] = Bucket(said.resource, _rate(said), 1.0, now)
                    self._gather()
                bucket.learn(said, _share(said.resource, *sent), now - mark.at, now)

    def _gather(self) -> None:
        """All buckets that a request takes from: those learnt, and those of the settings as they are now."""
        self._configured = self.allowance.buckets
        self._buckets = [*self._learnt.values(), *self._configured]
        self.counts_tokens = any(bucket.resource != "requests" for bucket in self._buckets)

    def _correct(self, input_: int, output: int, now: float) -> None:
        for bucket in self._buckets:
            bucket.take(_share(bucket.resource, 0, input_, output), now)

    def _back_off(self, mark: Mark, kind: FaultKind, retry_after: float | None, now: float) -> None:
        """One refusal among many replies is an accident, and waits by itself. Two are a limit: everyone waits."""
        alone = self._since_refusal > max(10, self._cap)
        self._since_refusal = 0
        if alone:
            return
        if retry_after is not None:
            self.not_before = max(self.not_before, now + retry_after)
        if mark.at < self._cut_at:
            return  # it left before the cap was cut: the same episode
        fresh = self._accepted_since_cut
        if fresh:
            self._steep_to = max(1.0, self._cap * 0.7)
        self._cap = max(1.0, self._cap * (0.7 if fresh else 0.5))
        self._cut_at = now
        self._accepted_since_cut = False
        if kind is FaultKind.RATE_LIMITED:
            self._doubt(mark, now)

    def _doubt(self, mark: Mark, now: float) -> None:
        """Refused although everything that we know of had room: then the provider counts by shorter times."""
        learnt = self._learnt.values()
        if learnt and all(b.level(now) >= _share(b.resource, 1, mark.demand.input, mark.demand.output) for b in learnt):
            for bucket in learnt:
                bucket.be_shy(now)


class Paces:
    """The paces of a process: one for each account and model, whichever engine asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allowances: dict[Hashable, Allowance] = {}
        self._paces: dict[tuple[Hashable, Hashable], Pace] = {}

    def of(self, account: Hashable, model: Hashable, limits: PaceLimits, now: float) -> Pace:
        """The pace of a model; the account's settings are these from now on."""
        with self._lock:
            allowance = self._allowances.get(account)
            if allowance is None:
                allowance = self._allowances[account] = Allowance(limits, now)
            elif allowance.limits != limits:
                allowance.adopt(limits, now)
            pace = self._paces.get((account, model))
            if pace is None:
                pace = self._paces[account, model] = Pace(allowance, now)
            return pace
