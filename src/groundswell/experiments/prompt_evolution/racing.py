"""Races: a genome meets the problems in blocks, the same for all, for as long as it is worth it.

It is compared with two groups of those who live, on the problems that it has met itself:

    behind the middle   it has no place among them, and goes no further
    behind the best     it lives, and may be a parent; but it will not win, so that it need not meet the rest
    neither             on with the next block, which is larger

What is compared is pairs: the scores of two on the same problem. That makes much of the luck of the draw cancel. And it
is groups, not the best alone: the best of many was lucky, and next to it everybody seems to be behind. A race saves
asks; it proves nothing, and what a report says rests on the sealed test alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import erfc, sqrt
from typing import Literal, NamedTuple

import msgspec

from groundswell.errors import SettingsError

Scores = Sequence[float | None]
"""What one has of fitness by problem: where that is accuracy, 1 for a right answer. None where one is missing."""
Standing = Literal["behind", "middling", "ahead"]
FEWEST = 3
"""So many must live before anybody is raced against them."""
GROUP = 5
"""So many are the best, and so many the middle."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How races are run."""

    racing: bool = True
    block: int = 20
    """Problems of the first block."""
    growth: float = 1.5
    """How much larger each block is than the one before: one that is still there is worth a better look."""
    doubt: float = 0.3
    """A genome goes on while it is at least this likely to score so badly by chance, if it were as good."""

    def __post_init__(self) -> None:
        if self.block < 1:
            raise SettingsError(f"block {self.block}: must be at least 1", field="block")
        if not 1 <= self.growth <= 10:
            raise SettingsError(f"growth {self.growth:g}: from 1 to 10", field="growth")
        if not 0 < self.doubt < 0.5:
            raise SettingsError(f"doubt {self.doubt:g}: must lie between 0 and 0.5", field="doubt")


class Rivals(NamedTuple):
    """Whom a newcomer meets in its race: the mean scores of two groups, by problem."""

    middle: Scores
    best: Scores

    @classmethod
    def of(cls, living: Sequence[Scores], problems: int) -> Rivals | None:
        """Of those who live, the fittest first; None while they are too few. The best are those who met everything."""
        if len(living) < FEWEST:
            return None
        begin = max(0, len(living) // 2 - GROUP // 2)
        whole = [scores for scores in living if len(scores) == problems]
        return cls(_means(living[begin : begin + GROUP], problems), _means(whole[:GROUP], problems))

    def standing(self, scores: Scores, doubt: float) -> Standing:
        """How one does who has met the first so many problems."""
        if behind(scores, self.middle, doubt):
            return "behind"
        return "middling" if behind(scores, self.best, doubt) else "ahead"

    def expected(self, scores: Scores) -> float:
        """What one would have on all problems, from how it compares with the best on those that it met."""
        pairs = _pairs(scores, self.best)
        known = [score for score in self.best if score is not None]
        return sum(known) / len(known) + sum(one - other for one, other in pairs) / len(pairs)


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
    """Whether a genome is behind others, on the problems that all have met."""
    return so_bad([one - other for one, other in _pairs(scores, others)]) < doubt


def so_bad(differences: Sequence[float]) -> float:
    """How likely differences are so much to one's disadvantage, or more, if each could as well have the other sign."""
    squares = sum(each * each for each in differences)
    return 0.5 if squares == 0 else erfc(-sum(differences) / sqrt(2 * squares)) / 2


def _pairs(one: Scores, other: Scores) -> list[tuple[float, float]]:
    return [(mine, theirs) for mine, theirs in zip(one, other, strict=False) if mine is not None and theirs is not None]


def _means(group: Sequence[Scores], problems: int) -> list[float | None]:
    found = list[float | None]()
    for at in range(problems):
        there = [score for scores in group if at < len(scores) and (score := scores[at]) is not None]
        found.append(sum(there) / len(there) if there else None)
    return found
