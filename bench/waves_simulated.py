"""Simulates conversations on slots: the makespan of each way of scheduling, and its lower bound. Pure.

Latencies are known in advance, and nothing else takes time. `bench/waves.py` compares the engine with this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, count
from math import exp
from random import Random
from typing import NamedTuple

Talk = list[float]
"""A conversation: the latencies of its requests, in order."""
Urgency = Callable[[Talk, int], float]
"""The priority of a conversation and its next request. The smallest goes first; equal ones in order of arrival."""

GRAIN = 16
"""Latencies are whole 16ths of the median: sums of them are exact, and the clock of the engine has few stops."""
UNLIMITED = 1 << 30


class Span(NamedTuple):
    """When a request was in flight, and its conversation."""

    end: float
    start: float
    talk: int


class Load(NamedTuple):
    """Conversations whose latencies have a lognormal distribution with median 1."""

    sigma: float
    shortest: int
    longest: int
    conversations: int

    @property
    def title(self) -> str:
        """A description."""
        asks = f"{self.shortest}" if self.shortest == self.longest else f"{self.shortest} to {self.longest}"
        return f"{self.conversations:,} conversations of {asks} messages, sigma {self.sigma:g}"

    def talks(self, seed: int) -> list[Talk]:
        """The latencies; always the same for a seed."""
        chance = Random(f"{self.sigma} {self.shortest} {self.longest} {seed}")
        return [
            [_grained(chance.gauss(0.0, self.sigma)) for _ in range(chance.randint(self.shortest, self.longest))]
            for _ in range(self.conversations)
        ]


def _grained(exponent: float) -> float:
    return max(1, round(GRAIN * exp(exponent))) / GRAIN


def in_turn(talk: Talk, turn: int) -> float:
    """Requests leave in the order in which they arrive."""
    return 0.0


def longest_left(talk: Talk, turn: int) -> float:
    """The conversation with the most work left goes first. This requires knowing all latencies."""
    return -sum(talk[turn:])


def least_possible(talks: list[Talk], slots: int) -> float:
    """The lower bound: the longest conversation, or all work divided by all slots."""
    return max(*map(sum, talks), sum(map(sum, talks)) / slots)


def stream(
    talks: list[Talk],
    slots: int,
    window: int = UNLIMITED,
    *,
    first: int = 0,
    last: int = 0,
    urgency: Urgency = in_turn,
) -> list[Span]:
    """A conversation goes on when it has its reply and a slot is free.

    `window` of them are open at once, or as many as were opened `first` while more of those are left. When there are no
    more to open than `last`, all of these are opened.
    """
    ready: list[tuple[float, int, int, int]] = []
    flying: list[tuple[float, int, int, int]] = []
    spans: list[Span] = []
    now, opened, order = 0.0, 0, count()
    while ready or flying or opened < len(talks):
        while opened < len(talks) and (opened < max(first, window) or len(talks) - opened <= last):
            heappush(ready, (urgency(talks[opened], 0), next(order), opened, 0))
            opened += 1
        while ready and len(flying) < slots:
            _, _, talk, turn = heappop(ready)
            heappush(flying, (now + talks[talk][turn], next(order), talk, turn))
            spans.append(Span(now + talks[talk][turn], now, talk))
        now = flying[0][0]
        while flying and flying[0][0] == now:
            _, _, talk, turn = heappop(flying)
            if turn + 1 < len(talks[talk]):
                heappush(ready, (urgency(talks[talk], turn + 1), next(order), talk, turn + 1))
            else:
                window += 1
    return sorted(spans)


def waves(talks: list[Talk], slots: int) -> list[Span]:
    """The next requests of all conversations leave together. No other leaves until all have their replies."""
    spans: list[Span] = []
    left = list(range(len(talks)))
    for turn in range(max(map(len, talks))):
        wave = stream([[talks[talk][turn]] for talk in left], slots)
        spans += _after(spans, wave, left)
        left = sorted(left[span.talk] for span in wave if turn + 1 < len(talks[left[span.talk]]))
    return spans


def groups(talks: list[Talk], slots: int) -> list[Span]:
    """As many conversations as there are slots, and no others until all of them have ended."""
    spans: list[Span] = []
    for first in range(0, len(talks), slots):
        group = talks[first : first + slots]
        spans += _after(spans, stream(group, slots), range(first, first + len(group)))
    return spans


def _after(before: list[Span], spans: list[Span], talks: Sequence[int]) -> list[Span]:
    """Move a schedule that starts at 0 to the end of the one before, and renumber its conversations."""
    start = makespan(before) if before else 0.0
    return [Span(start + span.end, start + span.start, talks[span.talk]) for span in spans]


def makespan(spans: list[Span]) -> float:
    """When the last request has its reply."""
    return max(span.end for span in spans)


def half_ended(spans: list[Span]) -> float:
    """When half of the conversations have ended, as a share of the makespan."""
    ends = {span.talk: span.end for span in sorted(spans)}
    return sorted(ends.values())[len(ends) // 2] / makespan(spans)


def in_flight(spans: list[Span], points: int) -> list[tuple[float, float]]:
    """The mean number of requests in flight in each of several equal parts of the makespan."""
    part = makespan(spans) / points
    busy = [0.0] * points
    for span in spans:
        for at in range(int(span.start / part), min(points, int(span.end / part) + 1)):
            busy[at] += max(0.0, min(span.end, (at + 1) * part) - max(span.start, at * part))
    return [((at + 0.5) * part, each / part) for at, each in enumerate(busy)]


def most_at_once(spans: list[Span]) -> int:
    """The maximum number of requests in flight. One that ends frees its slot for one that starts then."""
    changes = sorted([(span.start, 1) for span in spans] + [(span.end, -1) for span in spans])
    return max(accumulate(change for _, change in changes))


def check() -> None:
    """Check a case that was computed by hand, and properties of all cases."""
    talks = [[3.0], [3.0], [2.0, 2.0, 2.0]]
    assert least_possible(talks, 2) == 6
    assert makespan(stream(talks, 2)) == makespan(waves(talks, 2)) == makespan(groups(talks, 2)) == 9
    assert makespan(stream(talks, 2, urgency=longest_left)) == 6
    assert makespan(stream(talks, 2, window=1)) == makespan(stream(talks, 1)) == 12
    assert makespan(stream(talks, 3)) == 6
    assert makespan(waves(talks, 3)) == 7
    for seed in range(30):
        check_any(Load(1.0, 1, 5, 40).talks(seed), 1 + seed % 9)


def check_any(talks: list[Talk], slots: int) -> None:
    """No schedule is below the lower bound, and no greedy schedule is above Graham's bound."""
    least, most = least_possible(talks, slots), sum(map(sum, talks)) / slots + max(map(sum, talks))
    for spans in (stream(talks, slots), stream(talks, slots, urgency=longest_left)):
        assert least <= makespan(spans) <= most
        assert most_at_once(spans) <= slots
    for spans in (waves(talks, slots), groups(talks, slots), stream(talks, slots, window=2 * slots)):
        assert least <= makespan(spans) <= sum(map(sum, talks))
        assert most_at_once(spans) <= slots
