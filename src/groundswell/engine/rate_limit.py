"""The rate limiter of an account: request and token buckets, and an adaptive concurrency limit. Pure."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from groundswell.engine.retry import LONGEST_RETRY_AFTER
from groundswell.program.request import FaultKind, Standing

SMOOTH = 0.1
"""Size of a bucket, in seconds of its rate, if only the rate is known."""
SHY = 0.25
SHY_FOR = 600.0
"""Size of a bucket, in seconds, after its provider turned out to count in shorter intervals; and for how long."""
SHY_STILL = 5.0
"""Seconds until that ends, if the provider refuses even this, which must have another reason."""
SPARE = 0.05
"""Margin that is left in a bucket, in seconds."""
SLOWER = 0.995
"""Factor on the fill rate: clocks differ, and requests may arrive closer together than they were sent."""
CALMER = 0.999
"""Factor by which the caution after a refusal decays with each reply."""
BELIEVED_AFTER = 1.0
"""Seconds in which a bucket rises to what the provider reports as left. Requests that were sent earlier may not have
arrived at that time, so less may be left."""
LATEST = 10.0
"""Reports that are further apart, in seconds, are not compared."""
RESERVED = frozenset({"output_tokens"})
"""Resources that are reserved for a request until its reply shows what it used."""
GIVEN_BACK = frozenset({"input_tokens", "output_tokens"})
"""Resources whose unused reserve the provider gives back. A provider that counts `tokens` does not."""


class Demand(NamedTuple):
    """The tokens that a request may use."""

    input: int = 0
    output: int = 0


def share_of(resource: str, requests: float, input_: float, output: float) -> float:
    """How much of a resource these requests and tokens use."""
    if resource == "requests":
        return requests
    if resource == "input_tokens":
        return input_
    return output if resource == "output_tokens" else input_ + output


class News(NamedTuple):
    """What a provider reported as left, when the request was sent, and what had been taken by then."""

    at: float
    remaining: float
    taken: float


class Bucket:
    """Fills at a rate, up to a size. What is taken may bring it below zero, and then has to be waited for.

    `margin` is left in it, since the other side's clock and order of arrival are not ours. It is more after refusals.
    `limit` is the last limit that the provider reported.
    """

    __slots__ = (
        "_at",
        "_care",
        "_full_at",
        "_gain",
        "_learnt_at",
        "_level",
        "_news",
        "_shy_until",
        "limit",
        "margin",
        "rate",
        "resource",
        "size",
    )

    def __init__(self, resource: str, rate: float, size: float, now: float, *, full: bool = True) -> None:
        self.resource = resource
        self.rate = rate
        self.size = max(1.0, size)
        self.margin = 0.0
        self.limit: float | None = None
        self._level = self.size if full else 0.0
        self._at = now
        self._learnt_at = -inf
        self._full_at = -inf
        self._shy_until = -inf
        self._care = 1.0
        self._gain = 1.0
        self._news: News | None = None

    @classmethod
    def smooth(cls, resource: str, per_minute: float, now: float) -> Bucket:
        """A bucket for a known rate. It is so small that no minute exceeds the limit."""
        rate = SLOWER * per_minute / 60
        return cls(resource, rate, rate * SMOOTH, now)

    def smooth_to(self, per_minute: float, now: float) -> None:
        """The same with another rate."""
        rate = SLOWER * per_minute / 60
        self.resize(rate, rate * SMOOTH, now)

    def resize(self, rate: float, size: float, now: float) -> None:
        """Fill at another rate, up to another size, from now on."""
        level = self.level(now)
        self.rate = rate
        self.size = max(1.0, size)
        self._level = min(level, self.size)

    def level(self, now: float) -> float:
        """Its current level."""
        if now > self._at:
            self._level = min(self.size, self._level + (now - self._at) * self.rate)
            self._at = now
        if self._level >= self.size:
            self._full_at = now
        return self._level

    def take(self, amount: float, now: float) -> None:
        """Take an amount; a negative amount is put back."""
        self._level = min(self.size, self.level(now) - amount)

    def ready_at(self, amount: float, now: float) -> float:
        """When the level will be `amount` plus the margin, or full if that is less."""
        lacking = min(amount + self.margin, self.size) - self.level(now)
        return now if lacking <= 1e-9 else now + lacking / self.rate

    def lacks(self, demand: Demand, now: float) -> bool:
        """Whether the level is too low for a request."""
        return self.level(now) < share_of(self.resource, 1, demand.input, demand.output)

    def shy(self, now: float) -> bool:
        """Whether it is small because the provider counts in shorter intervals."""
        return now < self._shy_until

    def learn(self, said: Standing, news: News, taken: float, now: float, share: float = 1.0) -> None:
        """Take over what the provider said of an earlier time; `taken` is what has been taken by now.

        `share`: the part of it for this process. If the others use less than theirs, it fills faster than that.

        Less than expected is believed at once, more over a second: see `BELIEVED_AFTER`. If the bucket was full since
        then, some of what came in was lost, and old news cannot say how much.
        """
        level, was, shy = self.level(now), self.size, self.shy(now) and self.resource not in RESERVED
        rate = share * rate_of(said)
        if shy:
            self._news = None  # what is left over says nothing of how fast it fills
        else:
            self._compare(news, rate)
        self.rate = SLOWER * self._gain * rate
        self.size = max(1.0, rate * SHY if shy else min(share * said.limit, max(self.size, share * said.remaining)))
        self._care = max(1.0, self._care * CALMER)
        spare = self._care * max(1.0, rate * SPARE, share * said.limit * 0.005)
        self.margin = min(spare, self.size * self._care / (3 + self._care))
        told = min(self.size, share * said.remaining + max(0.0, now - news.at) * self.rate - (taken - news.taken))
        lossy = news.at < self._full_at and self.size <= was
        if shy or lossy:
            told = min(told, level)
        elif told > (least := max(level, self.margin)):  # up to the margin, nothing leaves because of it
            believed = min(max((now - self._learnt_at) / BELIEVED_AFTER, 0.0), 1.0)
            told = least + believed * (told - least)
        self._level = told
        self._learnt_at = now
        self._at = max(self._at, now)

    def _compare(self, news: News, rate: float) -> None:
        """Measure the real fill rate: others use the limit too, and requests may use less than expected."""
        before = self._news
        seconds = 0.0 if before is None else news.at - before.at
        if before is None or seconds > LATEST or self._full_at >= before.at:
            self._news = news
        elif seconds >= 1.0 and rate * seconds >= (20 if self.resource == "requests" else 20_000):
            came = news.remaining - before.remaining + news.taken - before.taken
            self._gain += 0.3 * (min(max(came / seconds / rate, 0.1), 4.0) - self._gain)
            self._news = news

    def be_careful(self) -> None:
        """A request was refused although there seemed to be room."""
        self._care = min(self._care * 1.5, 9.0)

    def be_shy(self, now: float) -> None:
        """The provider refused what it reported as left, so it counts in shorter intervals: make the bucket small."""
        self._shy_until = now + SHY_FOR
        if self.resource in RESERVED:
            return
        self.size = max(1.0, self.rate * SHY)
        self.margin = min(self.margin, self.size / 4)
        self._level = min(0.0, self.level(now))

    def trust_again(self, now: float) -> None:
        """The provider refused even what a small bucket allows: soon use the reported level again."""
        self._shy_until = min(self._shy_until, now + SHY_STILL)


def rate_of(said: Standing) -> float:
    """Units per second. Limits are per minute, unless the time to a full bucket shows that they are per day."""
    rate = said.limit / 60
    used = said.limit - said.remaining
    if said.reset and used > 0:
        implied = used / said.reset
        return implied if implied < rate / 2 else rate
    return rate


START = 32
GRACE = 0.05
QUIET_AFTER_ERROR = 8
STARVES_AFTER, FORGOTTEN_AFTER = 1.0, 0.5
"""Seconds after which who holds no slot gets the next one; and after which it has gone away, if it asks no more."""
CUT = 0.8
NEWEST, TOO_MANY = 0.1, 0.25
"""A refusal moves the share of refusals by a tenth up, and a request that leaves by a tenth down (its reply may take
long, and a refusal does not); from a quarter, after three or four in a row, there were too many."""

DECISIONS = 50
"""Number of decisions that a limiter remembers."""

LOAD = frozenset({FaultKind.RATE_LIMITED, FaultKind.OVERLOADED})
REFUSALS = {
    FaultKind.RATE_LIMITED: "the provider refused requests (rate limited)",
    FaultKind.OVERLOADED: "the provider refused requests (overloaded)",
}
TROUBLE = frozenset({FaultKind.SERVER, FaultKind.TIMEOUT, FaultKind.CONNECTION})


class PaceLimits(msgspec.Struct, frozen=True):
    """Limits of an account from its settings. None means unknown: the limit is learnt."""

    max_concurrent: int = 256
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    start: int = START


class Mark(NamedTuple):
    """When a request was sent and what it may use; what had been sent by then, and how much of that was unused."""

    at: float
    demand: Demand
    requests: int = 0
    input: int = 0
    output: int = 0
    unused_input: int = 0
    unused_output: int = 0

    def taken(self, resource: str) -> float:
        """What had been taken from a provider's bucket."""
        unused = share_of(resource, 0, self.unused_input, self.unused_output) if resource in GIVEN_BACK else 0
        return share_of(resource, self.requests, self.input, self.output) - unused


class Decision(NamedTuple):
    """Something that a limiter decided or learnt, for people: when, its concurrency limit after that, and why."""

    at: float
    cap: int
    why: str


class Starving(NamedTuple):
    """A run without a slot that found none free: since when, and when it last tried."""

    who: object
    since: float
    seen: float


SHARED_FOR = 30.0
"""Seconds after which a share is forgotten that is not renewed: that of an engine which was never closed."""


class Allowance:
    """Limits from the settings of an account, for all its models.

    Several processes may share them. `most` is how many requests this one may have in flight, and `share` the part of
    each limit that is for it.
    """

    def __init__(self, limits: PaceLimits, now: float) -> None:
        self.lock = threading.Lock()
        self.in_flight = 0
        self.starving: Starving | None = None
        self._shares: dict[object, tuple[int, float]] = {}
        self.adopt(limits, now)

    def adopt(self, limits: PaceLimits, now: float) -> None:
        """Use these settings from now on."""
        per_minute = {
            "requests": limits.requests_per_minute,
            "tokens" if limits.output_tokens_per_minute is None else "input_tokens": limits.tokens_per_minute,
            "output_tokens": limits.output_tokens_per_minute,
        }
        self.limits = limits
        self.per_minute = {name: rate for name, rate in per_minute.items() if rate is not None}
        self.buckets = [Bucket.smooth(name, rate, now) for name, rate in self.per_minute.items()]
        self._divide(now)

    def set_share(self, of: object, slots: int | None, now: float) -> None:
        """Use so many of all slots from now on, and that part of the rates; None: all. `of`: who divides them."""
        with self.lock:
            self._shares.pop(of, None)
            if slots is not None:
                self._shares[of] = slots, now
            self._divide(now)

    def _divide(self, now: float) -> None:
        whole = self.limits.max_concurrent
        self._shares = {of: share for of, share in self._shares.items() if now - share[1] < SHARED_FOR}
        self.most = min([whole, *(slots for slots, _ in self._shares.values())])
        self.share = self.most / whole
        for bucket in self.buckets:
            bucket.smooth_to(self.per_minute[bucket.resource] * self.share, now)

    def starves(self, who: object, now: float) -> None:
        """Somebody holds no slot and there is none: who has some fills each as it comes free, before others look."""
        first = self.starving
        if first is None or first.who is who or now - first.seen > FORGOTTEN_AFTER:
            since = first.since if first is not None and first.who is who else now
            self.starving = Starving(who, since, now)

    def kept_from(self, who: object, now: float) -> int:
        """How many slots are reserved for others."""
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
        self._learnt_from = 0
        self._last = Mark(now, Demand())
        self._largest = 0
        self._its_turn = now
        self._decisions: deque[Decision] = deque(maxlen=DECISIONS)
        self._gather()

    @classmethod
    def alone(cls, limits: PaceLimits, now: float) -> Pace:
        """The pace of an account's only model."""
        return cls(Allowance(limits, now), now)

    @property
    def cap(self) -> int:
        """How many requests may be in flight."""
        return min(int(self._cap), self.allowance.most)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The last cuts, waits and limits learnt, oldest first."""
        with self.allowance.lock:
            return tuple(self._decisions)

    def leave(self, demand: Demand, now: float, who: object = None) -> Mark | float:
        """Admit a request, or return when to try again: a time, or infinity for the next reply."""
        allowance = self.allowance
        with allowance.lock:
            if now < self.not_before:
                return self.not_before
            most = allowance.most
            kept = 0 if allowance.starving is None else allowance.kept_from(who, now)
            if self.in_flight + kept >= min(int(self._cap), most) or allowance.in_flight + kept >= most:
                return inf
            if self._configured is not allowance.buckets:
                self._gather()
            self.held_until = now
            if self._buckets:
                ready = self.held_until = self._ready_at(demand, now)
                if ready > now:
                    return ready
                for bucket in self._buckets:
                    bucket.take(share_of(bucket.resource, 1, demand.input, demand.output), now)
            self.in_flight += 1
            allowance.in_flight += 1
            if allowance.starving is not None:
                allowance.feed(who)
            self._refusals -= NEWEST * self._refusals
            _, _, requests, input_, output, unused_input, unused_output = self._last
            mark = Mark(now, demand, requests + 1, input_ + demand[0], output + demand[1], unused_input, unused_output)
            self._last = mark
            return mark

    def _ready_at(self, demand: Demand, now: float) -> float:
        """When there will be room. Small requests do not overtake a large one that waits."""
        amount = demand.input + demand.output
        if amount < self._largest and now < self._its_turn:
            return self._its_turn
        ready = now
        for bucket in self._buckets:
            ready = max(ready, bucket.ready_at(share_of(bucket.resource, 1, demand.input, demand.output), now))
        self._largest, self._its_turn = (amount, ready + GRACE) if ready > now else (0, now)
        return ready

    def starves(self, who: object, now: float) -> None:
        """A run that holds no slot found none free."""
        with self.allowance.lock:
            self.allowance.starves(who, now)

    def recall(self) -> None:
        """A request was abandoned, or not sent after all."""
        with self.allowance.lock:
            self.in_flight -= 1
            self.allowance.in_flight -= 1

    def done(self, mark: Mark, used: Demand, now: float) -> None:
        """A request was answered: correct its usage, and raise the limit if every slot was in use."""
        with self.allowance.lock:
            saturated = self.in_flight >= 0.85 * min(self._cap, self.allowance.most)
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
        """A request failed: back off if that was because of load."""
        with self.allowance.lock:
            self.in_flight -= 1
            self.allowance.in_flight -= 1
            if kind in LOAD:
                self._back_off(mark, kind, retry_after, now)
            elif kind in TROUBLE:
                self._quiet = QUIET_AFTER_ERROR

    def learn_limits(self, standings: Sequence[Standing], mark: Mark, now: float) -> None:
        """Learn the limits that the provider reported with the answer to a request."""
        with self.allowance.lock:
            if mark.requests < self._learnt_from:
                return  # a later one has told already
            self._learnt_from = mark.requests
            share = max(self.allowance.share, 1 / self.allowance.limits.max_concurrent)
            for said in standings:
                if said.limit < 1:
                    continue  # what is answered is not forbidden: this limit is not kept
                bucket = self._learnt.get(said.resource)
                if bucket is None:
                    bucket = self._learnt[said.resource] = Bucket(said.resource, rate_of(said), 1.0, now, full=False)
                    self._gather()
                if said.limit != bucket.limit:
                    bucket.limit = said.limit
                    self._note(now, f"learnt a limit of {_limit_text(said)}")
                news = News(mark.at, said.remaining, mark.taken(said.resource))
                bucket.learn(said, news, self._last.taken(said.resource), now, share)

    def _gather(self) -> None:
        """All buckets that apply to a request: learnt ones, and those from the settings."""
        self._configured = self.allowance.buckets
        self._buckets = [*self._learnt.values(), *self._configured]
        self.counts_tokens = any(bucket.resource != "requests" for bucket in self._buckets)

    def _correct(self, input_: int, output: int, now: float) -> None:
        """A request used this much more than expected."""
        last = self._last
        self._last = last._replace(unused_input=last.unused_input - input_, unused_output=last.unused_output - output)
        for bucket in self._buckets:
            if bucket.resource in GIVEN_BACK or bucket not in self._learnt.values():
                bucket.take(share_of(bucket.resource, 0, input_, output), now)

    def _back_off(self, mark: Mark, kind: FaultKind, retry_after: float | None, now: float) -> None:
        """One refusal among many replies only delays its request. Several mean a limit: all requests wait."""
        self._refusals += NEWEST * (1 - self._refusals)
        for bucket in self._learnt.values():
            if bucket.lacks(mark.demand, now):
                bucket.be_careful()
        if self._refusals < TOO_MANY:
            return
        if retry_after is not None:
            if retry_after > 0 and self.not_before <= now:  # else it waits already
                self._note(now, f"waits {min(retry_after, LONGEST_RETRY_AFTER):.1f} s: Retry-After")
            self.not_before = max(self.not_before, now + min(retry_after, LONGEST_RETRY_AFTER))
        if mark.at < self._cut_at:
            return  # it left before the last cut: the same episode
        self._cut_at = now
        if kind is FaultKind.RATE_LIMITED and self._explained(mark, now):
            return
        before = self.cap
        fresh, self._accepted_since_cut = self._accepted_since_cut, False
        if fresh:
            self._steep_to = max(1.0, self._cap * CUT)
        self._cap = max(1.0, self._cap * (CUT if fresh else 0.5))
        if self.cap < before:
            self._note(now, f"cut from {before} to {self.cap}: {REFUSALS[kind]}")

    def _explained(self, mark: Mark, now: float) -> bool:
        """Whether limits that we know of explain a refusal: then it is they that hold us back, and not the cap.

        Refused although they had room, the provider counts by shorter times than it says. That is held against it
        once; refused again, it must be something else, and is held against it no longer.
        """
        lacking = [bucket for bucket in self._learnt.values() if bucket.lacks(mark.demand, now)]
        trusted = [bucket for bucket in self._learnt.values() if not bucket.shy(now)]
        if lacking:
            names = " and ".join(bucket.resource.replace("_", " ") for bucket in lacking)
            self._note(now, f"not cut: the known limit of {names} explains the refusal")
            return True
        if trusted:
            self._note(now, "sends more evenly: the provider refused requests although it reported room")
        for bucket in trusted:
            bucket.be_shy(now)
        for bucket in self._learnt.values() if not trusted else ():
            bucket.trust_again(now)
        return bool(trusted)

    def _note(self, now: float, why: str) -> None:
        self._decisions.append(Decision(now, self.cap, why))


def _limit_text(said: Standing) -> str:
    """A reported limit in words. Limits are per minute, unless the report shows a longer interval."""
    text = f"{said.limit:,.0f} {said.resource.replace('_', ' ')}"
    return f"{text} per minute" if rate_of(said) == said.limit / 60 else text


class Paces:
    """The rate limiters of a process: one for each account and model, shared by all engines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allowances: dict[Hashable, Allowance] = {}
        self._paces: dict[tuple[Hashable, Hashable], Pace] = {}

    def of(self, account: Hashable, model: Hashable, limits: PaceLimits, now: float) -> Pace:
        """The rate limiter of a model, with these settings of its account."""
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


def most_uncommitted(cap: int) -> int:
    """Maximum number of replies that have arrived and are not durable; beyond it, nothing is sent.

    A crash loses these replies and the requests in flight.
    """
    return cap // 2 + 2
