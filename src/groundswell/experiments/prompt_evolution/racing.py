"""Races: a genome meets the problems in blocks, the same for all, and one that is plainly behind goes no further.

What is compared is pairs: the scores of the two on the same problems. That makes most of the luck of the draw cancel.
A race saves asks; it proves nothing, and what a report says rests on the sealed test alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb

import msgspec

from groundswell.errors import SettingsError

Scores = Sequence[float | None]
"""By problem, from 0 to 1; None where one is missing."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How races are run."""

    racing: bool = True
    block: int = 20
    """Problems of the first block."""
    growth: float = 1.5
    """How much larger each block is than the one before: one that is still there is worth a better look."""
    doubt: float = 0.25
    """A genome goes on while it is at least this likely to score so badly by chance, if it were as good."""

    def __post_init__(self) -> None:
        if self.block < 1:
            raise SettingsError(f"block {self.block}: must be at least 1", field="block")
        if not 1 <= self.growth <= 10:
            raise SettingsError(f"growth {self.growth:g}: from 1 to 10", field="growth")
        if not 0 < self.doubt < 0.5:
            raise SettingsError(f"doubt {self.doubt:g}: must lie between 0 and 0.5", field="doubt")


def blocks(rules: Rules, problems: int) -> Iterator[range]:
    """The blocks of a race: all problems, each once, in their order."""
    if not rules.racing:
        yield range(problems)
        return
    begin, size = 0, float(rules.block)
    while begin < problems:
        end = min(problems, begin + round(size))
        yield range(begin, end)
        begin, size = end, size * rules.growth


def behind(scores: Scores, others: Scores, doubt: float) -> bool:
    """Whether a genome is behind another, on the problems that both have met."""
    pairs = [(one, other) for one, other in zip(scores, others, strict=False) if one is not None and other is not None]
    better = sum(one > other for one, other in pairs)
    worse = sum(one < other for one, other in pairs)
    return so_bad(better, worse) < doubt


def so_bad(better: int, worse: int) -> float:
    """How likely two that are equally good differ so much to the disadvantage of the first, or more.

    The sign test on the pairs that differ; of what is exactly as bad, half counts (the mid-p value).
    """
    n = better + worse
    tail = sum(comb(n, k) for k in range(better)) + comb(n, better) / 2
    return tail / float(2**n)
