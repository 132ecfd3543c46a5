"""A population: who lives, who becomes a parent, and who has to go. Everything follows from what was born, in order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple, get_args

import msgspec

from groundswell.experiments.prompt_evolution.genome import Genome, distance
from groundswell.experiments.prompt_evolution.racing import Racer

Selection = Literal["tournament", "roulette", "rank"]
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
Fate = Literal["lives", "middling", "behind", "known", "failed"]
"""What became of one that was born.

| fate | |
|---|---|
| lives | it met all problems, and may win |
| middling | it lives, but is not among the best: it met some of the problems, and its fitness is an estimate |
| behind | it fell behind in its race |
| known | the same prompt was born before |
| failed | too much was missing |
"""
LIVING: tuple[Fate, ...] = ("lives", "middling")
PLACES = 9
"""Of a spread: what sums that are kept up to date lose by rounding is less."""


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """A genome that was born, and what became of it. `scores` are those on the problems that it met, in their order."""

    born: int
    genome: Genome
    operator: str
    parents: tuple[int, ...] = ()
    scores: tuple[float | None, ...] = ()
    fitness: float = 0.0
    """On all problems; of one that met some of them, as far as can be told."""
    fate: Fate = "lives"
    asks: int = 0
    tokens: float = 0.0
    """Per problem, of the prompt and the reply."""
    usd: float | None = 0.0
    """What its birth and its races cost; None where a price is not known."""
    why: str = ""
    beside: float = 0.0
    """What else it has that counts in a race, as a score."""

    @property
    def racer(self) -> Racer:
        """What races compare."""
        return Racer(self.scores, self.beside)

    @property
    def accuracy(self) -> float | None:
        """The mean score on what it met."""
        met = [score for score in self.scores if score is not None]
        return sum(met) / len(met) if met else None


class Population(NamedTuple):
    """Those who live, the fittest first."""

    members: tuple[Member, ...] = ()
    apart: float = 0.0
    """The distances of all pairs. It is kept up to date: a search that keeps all who lived has millions of them."""

    @property
    def best(self) -> Member | None:
        """The fittest of those who met all problems: what is known of others is an estimate."""
        return next((each for each in self.members if each.fate == "lives"), None)

    def joined(self, child: Member, size: int | None, elite: int, draw: Random) -> Population:
        """With a newcomer; where that is one too many, somebody goes: of three who are no elite, the least fit."""
        members, apart = sorted((*self.members, child), key=_order), self.apart + _apart(child, self.members)
        if size is not None and len(members) > size:
            commons = members[min(elite, size - 1) :]
            drawn = [draw.choice(commons) for _ in range(3)]
            gone = max(drawn, key=_order)
            members = [each for each in members if each.born != gone.born]
            apart -= _apart(gone, members)
        return Population(tuple(members), apart)

    def without(self, prompt: str) -> Population:
        """Without the one who is this prompt, if it is there."""
        gone = next((each for each in self.members if each.genome.text == prompt), None)
        if gone is None:
            return self
        members = tuple(each for each in self.members if each is not gone)
        return Population(members, self.apart - _apart(gone, members))

    def parent(self, selection: Selection, tournament: int, draw: Random) -> Member:
        """One who becomes a parent."""
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
        """How much the members differ: the mean distance of two, from 0 to 1."""
        pairs = len(self.members) * (len(self.members) - 1) / 2
        return max(0.0, round(self.apart / pairs, PLACES)) if pairs else 0.0


def _apart(one: Member, others: Sequence[Member]) -> float:
    return sum(distance(one.genome, other.genome) for other in others)


def _order(member: Member) -> tuple[float, float, int]:
    """The fittest first; of equals the cheaper, and then the older."""
    return -member.fitness, member.tokens, member.born


def ranked(members: Sequence[Member]) -> list[Member]:
    """The fittest first."""
    return sorted(members, key=_order)
