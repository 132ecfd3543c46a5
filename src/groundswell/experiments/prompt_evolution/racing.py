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
"""By problem, from 0 to 1; None where one is missing."""
Standing = Literal["behind", "middling", "ahead"]
FEWEST = 3
"""So many must live before anybody is raced against them."""
GROUP = 5
"""So many are the best, and so many the middle."""
ROUNDING = 1e-9
"""Sums that are equal differ by rounding."""


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


class Racer(NamedTuple):
    """What is compared: scores; and what one has beside them, in scores: so much on every problem, whatever it is."""

    scores: Scores
    beside: float = 0.0


class Rivals(NamedTuple):
    """Whom a newcomer meets in its race: two groups, by the means of their members."""

    middle: Racer
    best: Racer

    @classmethod
    def of(cls, living: Sequence[Racer], problems: int) -> Rivals | None:
        """Of those who live, the fittest first; None while they are too few. The best are those who met everything."""
        if len(living) < FEWEST:
            return None
        begin = max(0, len(living) // 2 - GROUP // 2)
        whole = [each for each in living if len(each.scores) == problems]
        return cls(_mean(living[begin : begin + GROUP], problems), _mean(whole[:GROUP], problems))

    def standing(self, one: Racer, doubt: float) -> Standing:
        """How one does who has met the first so many problems."""
        if behind(one, self.middle, doubt):
            return "behind"
        return "middling" if behind(one, self.best, doubt) else "ahead"

    def expected(self, scores: Scores) -> float:
        """The mean score of one on all problems, from how it compares with the best on those that it met."""
        pairs = _pairs(scores, self.best.scores)
        known = [score for score in self.best.scores if score is not None]
        found = sum(known) / len(known) + sum(one - other for one, other in pairs) / len(pairs)
        return min(1.0, max(0.0, found))


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


def behind(one: Racer, other: Racer, doubt: float) -> bool:
    """Whether a genome is behind others, on the problems that all have met."""
    differences = [mine - theirs for mine, theirs in _pairs(one.scores, other.scores)]
    return so_bad(differences, one.beside - other.beside) < doubt


def so_bad(differences: Sequence[float], beside: float = 0.0) -> float:
    """How likely differences are so much to one's disadvantage, or more, if each could as well have the other sign.

    What one has `beside` them is no matter of luck, and moves all of them; but it decides nothing by itself where there
    are none, or hardly any: then as much doubt is left as one right answer more or less would make.
    """
    squares, total = sum(each * each for each in differences), sum(differences) + len(differences) * beside
    squares += abs(beside) > ROUNDING
    return 0.5 if abs(total) < ROUNDING else erfc(-total / sqrt(2 * squares)) / 2


def _pairs(one: Scores, other: Scores) -> list[tuple[float, float]]:
    return [(mine, theirs) for mine, theirs in zip(one, other, strict=False) if mine is not None and theirs is not None]


def _mean(group: Sequence[Racer], problems: int) -> Racer:
    found = list[float | None]()
    for at in range(problems):
        there = [score for each in group if at < len(each.scores) and (score := each.scores[at]) is not None]
        found.append(sum(there) / len(there) if there else None)
    return Racer(found, sum(each.beside for each in group) / len(group) if group else 0.0)
