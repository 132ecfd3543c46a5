"""Racing: a genome is evaluated on blocks of problems, and dropped as soon as it is clearly worse.

After each block a genome is compared with its parents and with the best of the population, on the problems that it has
seen:

    below its better parent   it is dropped
    below the best            it stays as a possible parent, but is not evaluated further and cannot win
    neither                   it is evaluated on the next block, which is larger

Scores are compared in pairs, on the same problems, which removes most of the variance between problems. The best are a
group where the population is large enough, because the single best genome was also lucky. Racing saves requests. It
proves nothing: the claims of a report rest on the held-out test alone.
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
GROUP = 5
"""Maximum size of the best group: a quarter of the population up to this."""
ROUNDING = 1e-9
"""Tolerance for rounding errors."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of racing."""

    racing: bool = True
    block: int | None = None
    """Number of problems in the first block. None: it follows from the budget."""
    growth: float = 1.5
    """Size of each block relative to the one before."""
    doubt: float = 0.3
    """A genome continues while the one-sided p-value of being worse is at least this."""
    gate: bool = True
    """Whether a child is first compared with its parent on the few problems that it was made for."""

    def __post_init__(self) -> None:
        if self.block is not None and self.block < 1:
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
    """Those that a new genome is compared with: its parents, and the mean of the best group."""

    parents: Sequence[Racer]
    best: Racer

    @classmethod
    def of(cls, parents: Sequence[Racer], living: Sequence[Racer]) -> Rivals | None:
        """The rivals in a population, sorted by fitness; None if it is empty."""
        if not living:
            return None
        group = living[: max(1, min(GROUP, len(living) // 4))]
        return cls(parents, mean_racer(group))

    def standing(self, one: Racer, doubt: float) -> Standing:
        """Compare a genome with its rivals, on the problems that it has seen."""
        if any(behind(one, each, doubt) for each in self.parents):
            return "behind"
        return "middling" if behind(one, self.best, doubt) else "ahead"

    def expected(self, scores: Scores) -> float:
        """Estimate the mean score on all problems, from the difference to the best group on the problems seen."""
        pairs = _pairs(scores, self.best.scores)
        known = [score for score in self.best.scores if score is not None]
        found = sum(known) / len(known) + sum(one - other for one, other in pairs) / len(pairs)
        return min(1.0, max(0.0, found))


def blocks(rules: Rules, first: int, problems: int) -> Iterator[range]:
    """The blocks of problems, in order."""
    if not rules.racing:
        yield range(problems)
        return
    begin, size = 0, float(first)
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


def mean_racer(group: Sequence[Racer]) -> Racer:
    """The mean score of a group on each problem that any of them has seen."""
    found = list[float | None]()
    for at in range(max((len(each.scores) for each in group), default=0)):
        there = [score for each in group if at < len(each.scores) and (score := each.scores[at]) is not None]
        found.append(sum(there) / len(there) if there else None)
    return Racer(found, sum(each.beside for each in group) / len(group) if group else 0.0)
