"""The population: survival, parent selection and replacement. It depends only on the births and their order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple, get_args

import msgspec

from groundswell.experiments.prompt_evolution.genome import Genome, distance
from groundswell.experiments.prompt_evolution.pareto import front

Selection = Literal["thompson", "tournament", "roulette", "rank"]
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
Fate = Literal["lives", "middling", "behind", "known", "failed"]
"""The outcome of a birth.

| fate | |
|---|---|
| lives | joined the population as a possible parent; can win |
| middling | possible parent that cannot win; in runs of earlier versions |
| behind | not good enough for the population |
| known | duplicate of an earlier prompt |
| failed | no prompt was written, or too many problems are missing |
"""
LIVING: tuple[Fate, ...] = ("lives", "middling")
BOLDNESS = 0.2
"""Thompson sampling adds normal noise to each accuracy: this share of its standard error."""
PLACES = 9
"""Decimal places of the spread. The running sum of distances is accurate to more than this."""


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """A genome with its evaluation. `scores` has one entry per training problem; None for those it has not seen."""

    born: int
    genome: Genome
    operator: str
    parents: tuple[int, ...] = ()
    scores: tuple[float | None, ...] = ()
    fitness: float = 0.0
    """With racing, it uses the estimated accuracy; otherwise the mean score."""
    fate: Fate = "lives"
    asks: int = 0
    tokens: float = 0.0
    """Tokens of prompt and reply, per problem."""
    usd: float | None = 0.0
    """Cost of creating and evaluating it; None if a price is unknown."""
    why: str = ""
    estimate: float = 0.0
    """The accuracy, as `fitness` uses it."""
    error: float = 0.0
    """Standard error of the accuracy."""

    @property
    def seen(self) -> int:
        """The number of problems with a score."""
        return sum(score is not None for score in self.scores)

    @property
    def accuracy(self) -> float | None:
        """The mean score on the problems that it has seen."""
        met = [score for score in self.scores if score is not None]
        return sum(met) / len(met) if met else None


class Population(NamedTuple):
    """The surviving genomes, the fittest first."""

    members: tuple[Member, ...] = ()
    apart: float = 0.0
    """The sum of the distances of all pairs. It is updated incrementally: a large population has millions of pairs."""
    pareto: bool = False
    """Whether fewer tokens count as much as fitness: members that no other one dominates survive and become parents."""
    accuracy_weight: float = 1.0
    """Share of accuracy in the fitness."""

    @property
    def best(self) -> Member | None:
        """The fittest member."""
        return self.members[0] if self.members else None

    def joined(self, child: Member, size: int, elite: int) -> Population:
        """Add a genome. If the population is too large, remove the least fit one, but none of the elite."""
        members, apart = sorted((*self.members, child), key=_order), self.apart + _apart(child, self.members)
        if len(members) > size:
            commons = members[min(elite, size - 1) :]
            if self.pareto:
                kept = self._front(members)
                commons = [each for each in commons if each.born not in kept] or commons
            gone = max(commons, key=_order)
            members = [each for each in members if each.born != gone.born]
            apart -= _apart(gone, members)
        return self._replace(members=tuple(members), apart=apart)

    def replaced(self, new: Member) -> Population:
        """The population with a member that was evaluated on more problems."""
        members = [new if each.born == new.born else each for each in self.members]
        return self._replace(members=tuple(sorted(members, key=_order)))

    def sorted(self, members: Sequence[Member]) -> Population:
        """The population with new estimates of its members."""
        return self._replace(members=tuple(ranked(members)))

    @staticmethod
    def _front(members: Sequence[Member]) -> set[int]:
        """The numbers of the members on the Pareto front of fitness and tokens."""
        return {each.born for each in front(members, lambda each: (each.fitness, -each.tokens))}

    def parent(self, selection: Selection, tournament: int, draw: Random) -> Member:
        """Select a parent."""
        if self.pareto:
            best = self._front(self.members)
            return draw.choice([each for each in self.members if each.born in best])
        if selection == "thompson":
            noise = BOLDNESS * self.accuracy_weight
            return max(self.members, key=lambda each: each.fitness + noise * each.error * draw.gauss(0, 1))
        if selection == "tournament":
            return min((draw.choice(self.members) for _ in range(tournament)), key=_order)
        if selection == "rank":
            weights = [float(len(self.members) - at) for at in range(len(self.members))]
        else:
            least = min(each.fitness for each in self.members)
            weights = [each.fitness - least + 1e-9 for each in self.members]
        return draw.choices(self.members, weights)[0]

    @property
    def spread(self) -> float:
        """The mean distance between two members, from 0 to 1."""
        pairs = len(self.members) * (len(self.members) - 1) / 2
        return max(0.0, round(self.apart / pairs, PLACES)) if pairs else 0.0


def _apart(one: Member, others: Sequence[Member]) -> float:
    return sum(distance(one.genome, other.genome) for other in others)


def _order(member: Member) -> tuple[float, float, int]:
    """Sort key: the fittest first; ties by fewer tokens, then by age."""
    return -member.fitness, member.tokens, member.born


def ranked(members: Sequence[Member]) -> list[Member]:
    """Sort by fitness, the fittest first."""
    return sorted(members, key=_order)
