"""Whether a request may leave now: buckets for requests and tokens under a concurrency cap. Pure.

Time is passed in; nothing here waits. An account has one `Allowance`, what its settings let it do, and a `Pace` for
each of its models, since providers count by model. A pace learns:

- from what a provider says of its limits with a reply. The bucket then holds what the provider said was left, what
  has come in since, and less what was sent since: close to the limit, and not over it.
- from being refused. The cap doubles every round while every slot is used and nothing is refused. It is cut, once per
  episode, when several requests in a row are refused and no limit that the provider tells of explains it; then it
  grows again: fast up to where it was cut, then by one a round, or a second where a round takes longer. After a
  server error it does not grow for a few replies, so that it stands still where many requests fail.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from groundswell.engine.bucket import GIVEN_BACK, Bucket, Demand, News, Sent, rate_of, share_of
from groundswell.engine.retry import LONGEST_RETRY_AFTER
from groundswell.program.request import FaultKind, Standing

START = 32
GRACE = 0.05
QUIET_AFTER_ERROR = 8
STARVES_AFTER, FORGOTTEN_AFTER = 1.0, 0.5
"""Seconds after which who holds no slot gets the next one; and after which it has gone away, if it asks no more."""
CUT = 0.8
NEWEST, TOO_MANY = 0.1, 0.25
"""A refusal moves the share of refusals by a tenth up, and a request that leaves by a tenth down (its reply may take
long, and a refusal does not); from a quarter, after three or four in a row, there were too many."""

LOAD = frozenset({FaultKind.RATE_LIMITED, FaultKind.OVERLOADED})
TROUBLE = frozenset({FaultKind.SERVER, FaultKind.TIMEOUT, FaultKind.CONNECTION})


class PaceLimits(msgspec.Struct, frozen=True):
    """What an account is allowed by its settings. None means unknown: then it is learnt."""

    max_concurrent: int = 256
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    start: int = START


class Mark(NamedTuple):
    """When a request left, what it may use, and how much had left by then."""

    at: float
    demand: Demand
    sent: Sent = Sent()


class Starving(NamedTuple):
    """Who holds no slot and found none free: since when, and when it last looked."""

    who: object
    since: float
    seen: float


class Allowance:
    """What the settings let an account do, whichever of its models is asked."""

    def __init__(self, limits: PaceLimits, now: float) -> None:
        self.lock = threading.Lock()
        self.in_flight = 0
        self.starving: Starving | None = None
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

    def starves(self, who: object, now: float) -> None:
        """Somebody holds no slot and there is none: who has some fills each as it comes free, before others look."""
        first = self.starving
        if first is None or first.who is who or now - first.seen > FORGOTTEN_AFTER:
            since = first.since if first is not None and first.who is who else now
            self.starving = Starving(who, since, now)

    def kept_from(self, who: object, now: float) -> int:
        """How many slots are kept for somebody else."""
        first = self.starving
        if first is None or first.who is who:
            return 0
        return int(now - first.since >= STARVES_AFTER and now - first.seen <= FORGOTTEN_AFTER)

    def feed(self, who: object) -> None:
        """Somebody got a slot."""
        if self.starving is not None and self.starving.who is who:
            self.starving = None


class Pace:
    """The limiter of one model of an account. May be used by several threads.

    `counts_tokens` says whether it matters what a request may use.
    """

    def __init__(self, allowance: Allowance, now: float) -> None:
        self.allowance = allowance
        self.in_flight = 0
        self.not_before = now
        self.held_until = now
        self.latency: float | None = None
        self.accepted_at = now
        self._cap: float = min(allowance.limits.start, allowance.limits.max_concurrent)
        self._steep_to = inf
        self._cut_at = now
        self._accepted_since_cut = True
        self._refusals = 0.0
        self._quiet = 0
        self._learnt: dict[str, Bucket] = {}
        self._heard = 0
        self._sent = Sent()
        self._largest = 0
        self._its_turn = now
        self._gather()

    @classmethod
    def alone(cls, limits: PaceLimits, now: float) -> Pace:
        """The pace of an account's only model."""
        return cls(Allowance(limits, now), now)

    @property
    def cap(self) -> int:
        """How many requests may be in flight."""
        return min(int(self._cap), self.allowance.limits.max_concurrent)

    def leave(self, demand: Demand, now: float, who: object = None) -> Mark | float:
        """Let a request leave, or say when to ask again: at a time, or (infinity) when something has come back."""
        allowance = self.allowance
        with allowance.lock:
            if now < self.not_before:
                return self.not_before
            most, kept = allowance.limits.max_concurrent, allowance.kept_from(who, now)
            if self.in_flight + kept >= min(int(self._cap), most) or allowance.in_flight + kept >= most:
                return inf
            if self._configured is not allowance.buckets:
                self._gather()
            ready = self._ready_at(demand, now)
            self.held_until = ready
            if ready > now:
                return ready
            for bucket in self._buckets:
                bucket.take(share_of(bucket.resource, 1, demand.input, demand.output), now)
            self.in_flight += 1
            allowance.in_flight += 1
            allowance.feed(who)
            self._refusals -= NEWEST * self._refusals
            sent = self._sent
            self._sent = Sent(sent[0] + 1, sent[1] + demand[0], sent[2] + demand[1], sent[3], sent[4])
            return Mark(now, demand, self._sent)

    def _ready_at(self, demand: Demand, now: float) -> float:
        """When there will be room. What is small does not take it from under something large that waits for it."""
        amount = demand.input + demand.output
        if amount < self._largest and now < self._its_turn:
            return self._its_turn
        ready = now
        for bucket in self._buckets:
            ready = max(ready, bucket.ready_at(share_of(bucket.resource, 1, demand.input, demand.output), now))
        self._largest, self._its_turn = (amount, ready + GRACE) if ready > now else (0, now)
        return ready

    def starves(self, who: object, now: float) -> None:
        """Somebody holds no slot, and was told that there is none."""
        with self.allowance.lock:
            self.allowance.starves(who, now)

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
            self._accepted_since_cut = self._accepted_since_cut or mark.at >= self._cut_at
            took = now - mark.at
            self.latency = took if self.latency is None else self.latency + 0.1 * (took - self.latency)
            if self._buckets and mark.demand != used:
                self._correct(used.input - mark.demand.input, used.output - mark.demand.output, now)
            if self._quiet:
                self._quiet -= 1
            elif saturated:
                self._cap += 1 if self._cap < self._steep_to else max(1.0, self.latency) / self._cap
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
            if mark.sent.requests < self._heard:
                return  # a later one has told already
            self._heard = mark.sent.requests
            for said in standings:
                if said.limit < 1:
                    continue  # what is answered is not forbidden: this limit is not kept
                bucket = self._learnt.get(said.resource)
                if bucket is None:
                    bucket = self._learnt[said.resource] = Bucket(said.resource, rate_of(said), 1.0, now, full=False)
                    self._gather()
                news = News(mark.at, said.remaining, mark.sent.of(said.resource))
                bucket.learn(said, news, self._sent.of(said.resource), now)

    def _gather(self) -> None:
        """All buckets that a request takes from: those learnt, and those of the settings as they are now."""
        self._configured = self.allowance.buckets
        self._buckets = [*self._learnt.values(), *self._configured]
        self.counts_tokens = any(bucket.resource != "requests" for bucket in self._buckets)

    def _correct(self, input_: int, output: int, now: float) -> None:
        """A request used so much more than it was expected to."""
        sent = self._sent
        self._sent = sent._replace(unused_input=sent.unused_input - input_, unused_output=sent.unused_output - output)
        for bucket in self._buckets:
            if bucket.resource in GIVEN_BACK or bucket not in self._learnt.values():
                bucket.take(share_of(bucket.resource, 0, input_, output), now)

    def _back_off(self, mark: Mark, kind: FaultKind, retry_after: float | None, now: float) -> None:
        """A refusal among many replies is an accident, and waits by itself. Several are a limit: everyone waits."""
        self._refusals += NEWEST * (1 - self._refusals)
        for bucket in self._learnt.values():
            if bucket.lacks(mark.demand, now):
                bucket.be_careful()
        if self._refusals < TOO_MANY:
            return
        if retry_after is not None:
            self.not_before = max(self.not_before, now + min(retry_after, LONGEST_RETRY_AFTER))
        if mark.at < self._cut_at:
            return  # it left before the last cut: the same episode
        self._cut_at = now
        if kind is FaultKind.RATE_LIMITED and self._explained(mark, now):
            return
        fresh, self._accepted_since_cut = self._accepted_since_cut, False
        if fresh:
            self._steep_to = max(1.0, self._cap * CUT)
        self._cap = max(1.0, self._cap * (CUT if fresh else 0.5))

    def _explained(self, mark: Mark, now: float) -> bool:
        """Whether limits that we know of explain a refusal: then it is they that hold us back, and not the cap.

        Refused although they had room, the provider counts by shorter times than it says. That is held against it
        once; refused again, it must be something else, and is held against it no longer.
        """
        lacking = [bucket for bucket in self._learnt.values() if bucket.lacks(mark.demand, now)]
        trusted = [bucket for bucket in self._learnt.values() if not bucket.shy(now)]
        if lacking:
            return True
        for bucket in trusted:
            bucket.be_shy(now)
        for bucket in self._learnt.values() if not trusted else ():
            bucket.trust_again(now)
        return bool(trusted)


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
