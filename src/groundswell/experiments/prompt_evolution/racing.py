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
    growth: float = 2.0
    """Size of each block relative to the one before."""
    doubt: float = 0.2
    """A genome continues while the chance that it is at least as good as its parents is at least this."""
    hopeless: float = 0.1
    """A genome whose chance to be as good as the best is below this is not evaluated further."""
    gate: bool = True
    """Whether a child is first compared with its parent on the few problems that it was made for."""

    def __post_init__(self) -> None:
        if self.block is not None and self.block < 1:
            raise SettingsError(f"block {self.block}: must be at least 1", field="block")
        if not 1 <= self.growth <= 10:
            raise SettingsError(f"growth {self.growth:g}: must be from 1 to 10", field="growth")
        for name in ("doubt", "hopeless"):
            if not 0 < getattr(self, name) <= 0.5:
                raise SettingsError(f"{name} {getattr(self, name):g}: must be more than 0 and at most 0.5", field=name)


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
        if not living or not parents:
            return None
        return cls(parents, mean_racer(living[: max(1, min(GROUP, len(living) // 4))]))

    def standing(self, one: Racer, rules: Rules) -> Standing:
        """Compare a genome with its rivals, on the problems that it has seen."""
        strata = self.parents[0].scores
        if any(chance_of_better(one, each, strata) < rules.doubt for each in self.parents):
            return "behind"
        return "middling" if chance_of_better(one, self.best, strata) < rules.hopeless else "ahead"

    def expected(self, one: Racer) -> float:
        """Estimate the mean score on all problems, from the difference to the best group on the problems seen."""
        known = [score for score in self.best.scores if score is not None]
        found = sum(known) / len(known) + difference(one, self.best, self.parents[0].scores)[0]
        return min(1.0, max(0.0, found))


def difference(one: Racer, other: Racer, strata: Scores) -> tuple[float, float]:
    """Estimate the difference between the mean scores of two genomes on all problems, and its standard error.

    Problems may have been chosen because the parent fails on them. So those that the parent (`strata`) solves and
    those that it fails on are averaged apart, and weighted by how many of each kind there are.
    """
    solved = [score is not None and score >= 1 for score in strata]
    known = sum(score is not None for score in strata) or 1
    share = sum(solved) / known
    value = variance = 0.0
    for kind, weight in ((True, share), (False, 1 - share)):
        differences = [
            mine - theirs
            for mine, theirs, at in zip(one.scores, other.scores, solved, strict=False)
            if mine is not None and theirs is not None and at == kind
        ]
        if differences:
            n = len(differences)
            value += weight * sum(differences) / n
            variance += weight**2 * (sum(each * each for each in differences) + 1 / n) / n**2
    beside = one.beside - other.beside
    return value + beside, sqrt(variance)


def chance_of_better(one: Racer, other: Racer, strata: Scores) -> float:
    """How likely a genome is at least as good as another, by the problems that both have seen."""
    value, error = difference(one, other, strata)
    if abs(value) < ROUNDING:
        return 0.5
    return erfc(-value / (sqrt(2) * error)) / 2 if error else float(value > 0)


def blocks(rules: Rules, gate: int, first: int, problems: int) -> Iterator[int]:
    """The numbers of problems that a genome has seen after the gate and after each block."""
    if not rules.racing:
        yield problems
        return
    end, size = min(gate, problems), float(first)
    if end:
        yield end
    while end < problems:
        end = min(problems, end + round(size))
        yield end
        size *= rules.growth


def mean_racer(group: Sequence[Racer]) -> Racer:
    """The mean score of a group on each problem that any of them has seen."""
    found = list[float | None]()
    for at in range(max((len(each.scores) for each in group), default=0)):
        there = [score for each in group if at < len(each.scores) and (score := each.scores[at]) is not None]
        found.append(sum(there) / len(there) if there else None)
    return Racer(found, sum(each.beside for each in group) / len(group) if group else 0.0)
