"""Choose an account's endpoint for a request, and track which endpoints work. Pure: time is passed in.

A request goes to the endpoint that should answer first: the one with the least outstanding work, weighted by its recent
response times. An endpoint that fails is avoided briefly while another one works. One that keeps failing is taken out
(the circuit is open) until a health check succeeds. Then it gets one request, and after its reply a full share.
Endpoints may come and go while requests are in flight.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import exp2
from urllib.parse import urlsplit

from groundswell.engine.records import EndpointFigures, EndpointState
from groundswell.program.request import FaultKind

BREAKS_AFTER = {FaultKind.CONNECTION: 3, FaultKind.TIMEOUT: 3, FaultKind.SERVER: 8}
"""Consecutive failures after which an endpoint is taken out, by the kind of the last one."""
COOLS = frozenset({*BREAKS_AFTER, FaultKind.OVERLOADED, FaultKind.RATE_LIMITED, FaultKind.GARBLED})
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
LONGER, LONGEST_CHECK = 1.1, 1.0
"""Growth and limit of the pauses between health checks. They are free, and nothing is sent until one succeeds."""
FORGETS = 10.0
"""Seconds after which past measurements count half."""


class Endpoint:
    """One address of an account."""

    __slots__ = (
        "_cool_until",
        "_each",
        "_news_at",
        "_waits_since",
        "failed",
        "misses",
        "name",
        "outstanding",
        "pause",
        "seconds",
        "sent",
        "state",
        "url",
    )

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = shown(url)
        self.state: EndpointState = "up"
        self.outstanding = 0
        self.sent = 0
        self.failed = 0
        self.misses = 0
        self.pause = FIRST_PAUSE
        self.seconds: float | None = None
        self._each: float | None = None
        self._news_at = 0.0
        self._waits_since = 0.0
        self._cool_until = 0.0

    @property
    def figures(self) -> EndpointFigures:
        """Counters and timings."""
        return EndpointFigures(self.name, self.state, self.sent, self.failed, self.outstanding, self.seconds)

    @property
    def open(self) -> bool:
        """Whether it accepts a request now."""
        return self.state == "up" or (self.state == "trying" and not self.outstanding)

    def each(self, now: float, guess: float = 0.0) -> float:
        """Expected seconds per outstanding request, or the guess if nothing is known yet.

        An idle endpoint's figure falls over time, so it is tried again. An endpoint with overdue requests counts as at
        least that slow.
        """
        known = guess if self._each is None else self._each
        if self.outstanding:
            return max(known, (now - self._waits_since) / self.outstanding)
        return known if self._each is None else known * exp2((self._news_at - now) / FORGETS)

    @property
    def known(self) -> bool:
        """Whether it has ever answered."""
        return self._each is not None

    def cools(self, now: float) -> bool:
        """Whether it failed a moment ago."""
        return now < self._cool_until

    def take(self, now: float) -> int:
        """Count one more request. Return how many were outstanding before."""
        before = self.outstanding
        if not before:
            self._waits_since = now
        self.outstanding += 1
        self.sent += 1
        return before

    def answered(self, before: int, seconds: float, now: float) -> None:
        """Record an answer after this many seconds; `before` is the return value of `take`."""
        self.outstanding -= 1
        self.misses = 0
        self.pause = FIRST_PAUSE
        if self.state != "gone":
            self.state = "up"
        self.seconds = seconds if self.seconds is None else self.seconds + 0.2 * (seconds - self.seconds)
        each = seconds / (before + 1)
        new = 1 - 0.8 * exp2((self._news_at - now) / FORGETS)
        self._each = each if self._each is None else self._each + new * (each - self._each)
        self._news_at = self._waits_since = now

    def missed(self, kind: FaultKind, now: float, retry_after: float | None = None) -> bool:
        """Record a failure. Return whether it takes the endpoint out."""
        self.outstanding -= 1
        self.failed += 1
        self._news_at = self._waits_since = now
        if kind not in COOLS:
            return False
        self.misses += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self.misses - 1, 10))
        self._cool_until = max(self._cool_until, now + max(pause, retry_after or 0.0))
        broken = kind in BREAKS_AFTER and (self.state == "trying" or self.misses >= BREAKS_AFTER[kind])
        if not broken or self.state in ("down", "gone"):
            return False
        self.state = "down"
        return True

    def given_up(self) -> None:
        """Record a cancelled request."""
        self.outstanding -= 1

    def next_pause(self) -> float:
        """Seconds until the next health check. Pauses grow until one succeeds."""
        pause, self.pause = self.pause, min(LONGEST_CHECK, self.pause * LONGER)
        return pause


class Endpoints:
    """The addresses of one account. `gone`: those that it had before."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.all: list[Endpoint] = []
        self.gone: list[Endpoint] = []
        self._single: Endpoint | None = None
        self.set(urls)

    def set(self, urls: Sequence[str]) -> bool:
        """Change the addresses. Returns whether they have changed."""
        before = [endpoint.url for endpoint in self.all]
        if list(urls) == before:
            return False
        known = {endpoint.url: endpoint for endpoint in (*self.all, *self.gone)}
        self.all = [known.pop(url) if url in known else Endpoint(url) for url in dict.fromkeys(urls)]
        self.gone = list(known.values())
        for endpoint in self.gone:
            endpoint.state = "gone"
        for endpoint in self.all:
            if endpoint.state == "gone":
                endpoint.state = "up"
        self._single = self.all[0] if len(self.all) == 1 else None
        return True

    @property
    def only(self) -> Endpoint | None:
        """The endpoint for all requests, if there is only one and it works."""
        single = self._single
        return single if single is not None and single.state == "up" else None

    @property
    def open(self) -> bool:
        """Whether any endpoint accepts a request now."""
        return any(endpoint.open for endpoint in self.all)

    def spare(self, now: float) -> bool:
        """Whether an endpoint accepts a request now and did not fail recently."""
        return any(endpoint.open and not endpoint.cools(now) for endpoint in self.all)

    @property
    def tried(self) -> bool:
        """Whether a request is in flight that will show if an endpoint works."""
        return any(endpoint.state == "trying" and endpoint.outstanding for endpoint in self.all)

    @property
    def working(self) -> int:
        """The number of working endpoints."""
        return sum(endpoint.state == "up" for endpoint in self.all)

    def choose(self, now: float, without: Collection[Endpoint] = ()) -> Endpoint | None:
        """The endpoint for the next request, except those in `without`."""
        if self._single is not None:
            return self._single if self._single.open else None
        able = [endpoint for endpoint in self.all if endpoint.open and endpoint not in without]
        able = [endpoint for endpoint in able if not endpoint.cools(now)] or able
        guess = min([endpoint.each(now) for endpoint in able if endpoint.known], default=1.0)

        def wait(endpoint: Endpoint) -> tuple[float, int]:
            return (endpoint.outstanding + 1) * endpoint.each(now, guess), endpoint.sent

        return min(able, key=wait, default=None)


def shown(url: str) -> str:
    """A URL without credentials and query, for display."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")
