"""Fitness: the accuracy of a genome, or a weighted sum of accuracy and other properties.

| part | from 0 to 1 |
|---|---|
| accuracy | the mean score on the problems |
| consistency | 1 minus twice the standard deviation of the mean scores of groups of ten problems |
| efficiency | the share of `max_tokens` that replies leave unused |
| diversity | the mean distance from the population; 0.5 while it is empty |
| length | 1 for prompts of up to 120 words, falling to 0 at 400 words |
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.genome import Genome, distance

GROUP = 10
SHORT, LONG = 120, 400


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of each part; they are scaled to a sum of 1."""

    accuracy: float = 1.0
    consistency: float = 0.0
    efficiency: float = 0.0
    diversity: float = 0.0
    length: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 <= getattr(self, name) < float("inf"):
                raise SettingsError(f"{name} {getattr(self, name):g}: must be 0 or more", field=name)
        if not any(msgspec.structs.astuple(self)):
            raise SettingsError("accuracy: at least one fitness weight must be more than 0", field="accuracy")


PLAIN = Weights()
COMPOSITE = Weights(accuracy=0.6, consistency=0.15, efficiency=0.1, diversity=0.1, length=0.05)


class Worth(msgspec.Struct, frozen=True):
    """The parts of a genome's fitness."""

    accuracy: float
    consistency: float
    efficiency: float
    diversity: float
    length: float

    def fitness(self, weights: Weights) -> float:
        """The weighted mean of the parts."""
        parts: tuple[float, ...] = msgspec.structs.astuple(self)
        counts: tuple[float, ...] = msgspec.structs.astuple(weights)
        return sum(part * count for part, count in zip(parts, counts, strict=True)) / sum(counts)


def apart(genome: Genome, others: Sequence[Genome]) -> float:
    """The mean distance of a genome from others, from 0 to 1; 0.5 if there are none."""
    return fmean(distance(genome, other) for other in others) if others else 0.5


def worth(genome: Genome, scores: Sequence[float], output_tokens: float, max_tokens: int, diversity: float) -> Worth:
    """The parts of the fitness of a genome with these scores, reply tokens and diversity."""
    groups = [fmean(scores[at : at + GROUP]) for at in range(0, len(scores) - GROUP + 1, GROUP)]
    words = len(genome.text.split())
    return Worth(
        accuracy=fmean(scores) if scores else 0.0,
        consistency=max(0.0, 1 - 2 * pstdev(groups)) if groups else 1.0,
        efficiency=max(0.0, 1 - output_tokens / max_tokens),
        diversity=diversity,
        length=min(1.0, max(0.0, (LONG - words) / (LONG - SHORT))),
    )
