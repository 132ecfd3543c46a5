"""Racing: genomes are evaluated on blocks of problems, and weak ones are dropped early.

After each block a genome is compared with two groups of the population, on the problems that it has seen:

    below the median group   it is dropped
    below the best group     it stays as a possible parent, but is not evaluated further and cannot win
    neither                  it is evaluated on the next block, which is larger

Scores are compared in pairs, on the same problems, which removes most of the variance between problems. The groups have
several members because the single best genome was also lucky. Racing saves requests. It proves nothing: the claims of a
report rest on the held-out test alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import erfc, sqrt
from typing import Literal, NamedTuple

import msgspec

from groundswell.errors import SettingsError

Scores = Sequence[float | None]
"""One score per problem, from 0 to 1; None if it is missing."""
Standing = Literal["behind", "middling", "ahead"]
FEWEST = 3
"""Minimum size of the population for racing."""
GROUP = 5
"""Size of the best group and of the median group."""
ROUNDING = 1e-9
"""Tolerance for rounding errors."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of racing."""

    racing: bool = True
    block: int = 20
    """Number of problems in the first block."""
    growth: float = 1.5
    """Size of each block relative to the one before."""
    doubt: float = 0.3
    """A genome continues while the one-sided p-value of being worse is at least this."""

    def __post_init__(self) -> None:
        if self.block < 1:
            raise SettingsError(f"block {self.block}: must be at least 1", field="block")
        if not 1 <= self.growth <= 10:
            raise SettingsError(f"growth {self.growth:g}: must be from 1 to 10", field="growth")
        if not 0 < self.doubt < 0.5:
            raise SettingsError(f"doubt {self.doubt:g}: must be between 0 and 0.5", field="doubt")


class Racer(NamedTuple):
    """The values that racing compares: scores, and a constant bonus per problem for other parts of the fitness."""

    scores: Scores
    beside: float = 0.0


class Rivals(NamedTuple):
    """The two groups that a new genome is compared with, as mean scores of their members."""

    middle: Racer
    best: Racer

    @classmethod
    def of(cls, living: Sequence[Racer], problems: int) -> Rivals | None:
        """The groups of a population, sorted by fitness; None if it is too small.

        The best group contains only genomes that were evaluated on all problems.
        """
        if len(living) < FEWEST:
            return None
        begin = max(0, len(living) // 2 - GROUP // 2)
        whole = [each for each in living if len(each.scores) == problems]
        return cls(_mean(living[begin : begin + GROUP], problems), _mean(whole[:GROUP], problems))

    def standing(self, one: Racer, doubt: float) -> Standing:
        """Compare a genome with both groups, on the problems that it has seen."""
        if behind(one, self.middle, doubt):
            return "behind"
        return "middling" if behind(one, self.best, doubt) else "ahead"

    def expected(self, scores: Scores) -> float:
        """Estimate the mean score on all problems, from the difference to the best group on the problems seen."""
        pairs = _pairs(scores, self.best.scores)
        known = [score for score in self.best.scores if score is not None]
        found = sum(known) / len(known) + sum(one - other for one, other in pairs) / len(pairs)
        return min(1.0, max(0.0, found))


def blocks(rules: Rules, problems: int) -> Iterator[range]:
    """The blocks of problems, in order."""
    if not rules.racing:
        yield range(problems)
        return
    begin, size = 0, float(rules.block)
    while begin < problems:
        end = min(problems, begin + round(size))
        yield range(begin, end)
        begin, size = end, size * rules.growth


def behind(one: Racer, other: Racer, doubt: float) -> bool:
    """Whether a genome is clearly worse than another or a group, on the problems that both have seen."""
    differences = [mine - theirs for mine, theirs in _pairs(one.scores, other.scores)]
    return so_bad(differences, one.beside - other.beside) < doubt


def so_bad(differences: Sequence[float], beside: float = 0.0) -> float:
    """The one-sided p-value of these differences, if each sign were random (normal approximation).

    `beside` shifts every difference. It has no variance of its own, so the variance of one answer is added: a shift
    alone decides nothing while there are few differences.
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
