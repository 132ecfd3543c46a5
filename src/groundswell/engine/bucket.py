"""What a rate limit lets through: a bucket that follows what the provider says and what was sent. Pure."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from groundswell.program.request import Standing

SMOOTH = 0.1
"""Seconds' worth that a bucket holds where only the rate is known."""
SHY = 0.25
SHY_FOR = 600.0
"""Seconds' worth that it holds once its provider was found to count by shorter times than it says, and for how long."""
SHY_STILL = 5.0
"""For how long still, once its provider refused even that little, and so for another reason."""
SPARE = 0.05
"""Seconds' worth that is left in it."""
SLOWER = 0.995
"""It fills a little slower than it might: clocks differ, and requests come close together on their way."""
CALMER = 0.999
"""How much of the care after a refusal is left after each reply."""
LATEST = 10.0
"""News that is more seconds apart is not compared."""
RESERVED = frozenset({"output_tokens"})
"""What is held for a request until its reply shows how little it used: in a small bucket, few could be in flight."""
GIVEN_BACK = frozenset({"input_tokens", "output_tokens"})
"""What a provider that counts these reserves and does not use, it gives back. One that counts `tokens` does not."""


class Demand(NamedTuple):
    """The tokens that a request may use."""

    input: int = 0
    output: int = 0


class Sent(NamedTuple):
    """How much has left so far, and how much of that turned out not to be used."""

    requests: int = 0
    input: int = 0
    output: int = 0
    unused_input: int = 0
    unused_output: int = 0

    def of(self, resource: str) -> float:
        """What has been taken from a provider's bucket."""
        unused = share_of(resource, 0, self.unused_input, self.unused_output) if resource in GIVEN_BACK else 0
        return share_of(resource, self.requests, self.input, self.output) - unused


def share_of(resource: str, requests: float, input_: float, output: float) -> float:
    """How much of a resource so many requests and tokens take."""
    if resource == "requests":
        return requests
    if resource == "input_tokens":
        return input_
    return output if resource == "output_tokens" else input_ + output


class News(NamedTuple):
    """What a provider said was left, when a request left, and what had been taken by then."""

    at: float
    remaining: float
    taken: float


class Bucket:
    """Fills at a rate, up to a size. What is taken may bring it below zero, and then has to be waited for.

    `margin` is left in it, since the other side's clock and order of arrival are not ours. It is more after refusals.
    """

    __slots__ = (
        "_at",
        "_care",
        "_full_at",
        "_gain",
        "_level",
        "_news",
        "_shy_until",
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
        self._level = self.size if full else 0.0
        self._at = now
        self._full_at = -inf
        self._shy_until = -inf
        self._care = 1.0
        self._gain = 1.0
        self._news: News | None = None

    @classmethod
    def smooth(cls, resource: str, per_minute: float, now: float) -> Bucket:
        """A bucket for a limit that is all we know of: it holds so little that no minute sees more than the limit."""
        rate = SLOWER * per_minute / 60
        return cls(resource, rate, rate * SMOOTH, now)

    def level(self, now: float) -> float:
        """What is in it now."""
        if now > self._at:
            self._level = min(self.size, self._level + (now - self._at) * self.rate)
            self._at = now
        if self._level >= self.size:
            self._full_at = now
        return self._level

    def take(self, amount: float, now: float) -> None:
        """Take some, or, below zero, put some back."""
        self._level = min(self.size, self.level(now) - amount)

    def ready_at(self, amount: float, now: float) -> float:
        """When `amount` and the margin, or a full bucket if that is less, will be there."""
        lacking = min(amount + self.margin, self.size) - self.level(now)
        return now if lacking <= 1e-9 else now + lacking / self.rate

    def lacks(self, demand: Demand, now: float) -> bool:
        """Whether a request would not find enough in it."""
        return self.level(now) < share_of(self.resource, 1, demand.input, demand.output)

    def shy(self, now: float) -> bool:
        """Whether it holds little because the provider was found to count by shorter times."""
        return now < self._shy_until

    def learn(self, said: Standing, news: News, taken: float, now: float) -> None:
        """Take over what the provider said of an earlier time; `taken` is what has been taken by now.

        If the bucket was full since then, some of what came in was lost, and old news cannot say how much.
        """
        level, was, shy = self.level(now), self.size, self.shy(now) and self.resource not in RESERVED
        rate = rate_of(said)
        if shy:
            self._news = None  # what is left over says nothing of how fast it fills
        else:
            self._compare(news, rate)
        self.rate = SLOWER * self._gain * rate
        self.size = max(1.0, rate * SHY if shy else min(said.limit, max(self.size, said.remaining)))
        self._care = max(1.0, self._care * CALMER)
        spare = self._care * max(1.0, rate * SPARE, said.limit * 0.005)
        self.margin = min(spare, self.size * self._care / (3 + self._care))
        told = min(self.size, said.remaining + max(0.0, now - news.at) * self.rate - (taken - news.taken))
        lossy = news.at < self._full_at and self.size <= was
        self._level = min(told, level) if shy or lossy else told
        self._at = max(self._at, now)

    def _compare(self, news: News, rate: float) -> None:
        """See how fast it really fills, by our count: others take from it, and requests may cost less than we think."""
        before = self._news
        seconds = 0.0 if before is None else news.at - before.at
        if before is None or seconds > LATEST or self._full_at >= before.at:
            self._news = news
        elif seconds >= 1.0 and rate * seconds >= (20 if self.resource == "requests" else 20_000):
            came = news.remaining - before.remaining + news.taken - before.taken
            self._gain += 0.3 * (min(max(came / seconds / rate, 0.1), 4.0) - self._gain)
            self._news = news

    def be_careful(self) -> None:
        """A request was refused that seemed to have room."""
        self._care = min(self._care * 1.5, 9.0)

    def be_shy(self, now: float) -> None:
        """The provider refused what it said was left: it counts by shorter times than it says. Hold little."""
        self._shy_until = now + SHY_FOR
        if self.resource in RESERVED:
            return
        self.size = max(1.0, self.rate * SHY)
        self.margin = min(self.margin, self.size / 4)
        self._level = min(0.0, self.level(now))

    def trust_again(self, now: float) -> None:
        """The provider refused even the little that a shy bucket lets go: soon, hold what it says is left."""
        self._shy_until = min(self._shy_until, now + SHY_STILL)


def rate_of(said: Standing) -> float:
    """Units per second. Limits are per minute, unless the time to a full bucket shows that they are per day."""
    rate = said.limit / 60
    used = said.limit - said.remaining
    if said.reset and used > 0:
        implied = used / said.reset
        return implied if implied < rate / 2 else rate
    return rate
