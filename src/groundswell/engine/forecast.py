"""What a run will have cost in the end, from what its trials have cost so far. Pure."""

from __future__ import annotations

from math import sqrt

from groundswell.engine.ranges import Range

FEWEST = 20
"""So many trials must have ended before anything is said."""


class Tally:
    """What ended trials cost: how many, their sum and the sum of their squares, kept as they end.

    A trial that got replies from the cache, the journal or the run it was forked from says nothing of what another
    costs that must pay for all of them: these are only counted, in `reused`.
    """

    __slots__ = ("paid", "reused", "squares", "usd")

    def __init__(self) -> None:
        self.paid = 0
        self.reused = 0
        self.usd = 0.0
        self.squares = 0.0

    def add(self, usd: float, *, reused: bool) -> None:
        """A trial ended."""
        if reused:
            self.reused += 1
        else:
            self.paid += 1
            self.usd += usd
            self.squares += usd * usd


def forecast(spent: float, begun: float, left: int, tally: Tally) -> Range | None:
    """The total cost of a run, in nineteen cases of twenty if its trials are alike; None while too little is known.

    `spent` is what all its trials have cost, `begun` the part of that for trials that have not ended, and `left` how
    many have not. High: all of these pay for every reply. Low: as many as before get theirs for nothing.
    """
    if tally.paid < FEWEST:
        return None
    mean = tally.usd / tally.paid
    spread = sqrt(max(0.0, tally.squares - tally.usd * mean) / (tally.paid - 1))
    share = tally.paid / (tally.paid + tally.reused)
    low = spent - begun + share * left * mean - _doubt(spread, share * left, tally.paid)
    high = spent - begun + left * mean + _doubt(spread, left, tally.paid)
    return Range(max(spent, low), max(spent, high))


def _doubt(spread: float, left: float, seen: int) -> float:
    """How far the sum of what is left may lie from what the mean of what was seen leads to expect."""
    freedom = seen - 1
    times = 2.2 + 2.4 / freedom  # a little more than Student's t at 97.5 %: costs have long tails
    return times * spread * sqrt(left * (1 + left / seen))
