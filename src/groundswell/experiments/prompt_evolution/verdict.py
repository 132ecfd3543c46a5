"""The statistics of the held-out test: the score of each prompt, and the gains of the evolved one, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groundswell.experiments.prompt_evolution.analysis import Analysis, Gain, Tested, mean_of
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.stats import clusters
from groundswell.stats.compare import difference, holm, mcnemar
from groundswell.stats.rates import Interval, Paired, Rate

Scores = Sequence[float | None]
"""One score per problem, from 0 to 1; None if it is missing."""
FEW = 14
"""With up to this many differences, all combinations of signs are enumerated."""
DRAWS, AT_A_TIME = 20_000, 1_000
"""Otherwise this many combinations are sampled, in blocks that limit memory."""
ROUNDING = 1e-9
"""Tolerance for rounding errors."""


def tested(
    name: str, genome: Genome, scores: Scores, validation: float | None, by_model: dict[str, float | None]
) -> Tested:
    """The result of one prompt on the held-out test."""
    there = [score for score in scores if score is not None]
    low, high = _interval(there)
    return Tested(name, genome, mean_of(scores), low, high, len(there), validation, tuple(scores), by_model)


def gains(winner: Scores, others: Mapping[str, Scores]) -> tuple[Gain, ...]:
    """Paired comparisons of the winner with each of the others."""
    found = {name: _gain(_pairs(winner, scores)) for name, scores in others.items()}
    adjusted = holm([p for *_, p, _ in found.values()])
    return tuple(
        Gain(name, value, low, high, p, n)
        for (name, (value, low, high, _, n)), p in zip(found.items(), adjusted, strict=True)
    )


def deployed_gains(analysis: Analysis) -> tuple[Gain, ...]:
    """Paired comparisons of the prompt to deploy with each of the others."""
    if analysis.shipped == analysis.evolution.name:
        return analysis.gains
    others = {each.name: each.scores for each in analysis.tested if each.name != analysis.shipped}
    return gains(analysis.deployed.scores, others)


def paired(one: Scores, other: Scores) -> tuple[float | None, float | None, float | None, int]:
    """The mean difference of two series of scores on the same problems, its interval and n."""
    value, low, high, _, n = _gain(_pairs(one, other))
    return value, low, high, n


class Gap(NamedTuple):
    """The validation score of a prompt minus its held-out test score."""

    value: float | None
    low: float | None = None
    high: float | None = None


def gap(validated: Scores, tested: Tested) -> Gap:
    """Validation minus test, with an interval for two independent samples if the scores are stored."""
    there, judged = ([score for score in some if score is not None] for some in (validated, tested.scores))
    if not there or not judged:
        known = tested.validation is not None and tested.accuracy is not None
        return Gap((tested.validation or 0.0) - (tested.accuracy or 0.0)) if known else Gap(None)
    value = (mean_of(there) or 0.0) - (mean_of(judged) or 0.0)
    if all(score in (0, 1) for score in (*there, *judged)):
        one, other = (Rate(round(sum(some)), len(some)) for some in (there, judged))
        return Gap(value, *difference(one, other))
    each = list(range(len(there) + len(judged)))
    both = clusters.rows([*there, *judged], each, each, [[at] for at in each])
    first = both.who < len(there)
    found = clusters.difference(both.among(first), both.among(~first), bounds=Interval(-1.0, 1.0))
    return Gap(found.value, found.low, found.high)


def _pairs(one: Scores, other: Scores) -> list[tuple[float, float]]:
    return [(mine, theirs) for mine, theirs in zip(one, other, strict=True) if mine is not None and theirs is not None]


def _gain(pairs: Sequence[tuple[float, float]]) -> tuple[float | None, float | None, float | None, float, int]:
    """Difference, interval, p-value and n: McNemar's exact test for scores of 0 and 1, else a sign-flip test."""
    if not pairs:
        return None, None, None, 1.0, 0
    if all(score in (0, 1) for pair in pairs for score in pair):
        counted = Paired(
            sum(one == 1 and other == 1 for one, other in pairs),
            sum(one > other for one, other in pairs),
            sum(one < other for one, other in pairs),
            sum(one == 0 and other == 0 for one, other in pairs),
        )
        low, high = counted.interval()
        return counted.difference, low, high, mcnemar(counted), len(pairs)
    differences = [one - other for one, other in pairs]
    found = _mean(differences, Interval(-1.0, 1.0))
    return found.value, found.low, found.high, by_signs(differences), len(pairs)


def by_signs(differences: Sequence[float]) -> float:
    """The two-sided p-value of a mean difference, by a sign-flip permutation test.

    Unlike a sign test it uses the size of the differences. All sign combinations are enumerated if there are few
    differences; otherwise a fixed sample is used.
    """
    import numpy as np

    sizes, far = np.abs([each for each in differences if each]), abs(sum(differences)) - ROUNDING
    if len(sizes) <= FEW:
        signs = (np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes))) & 1
        return float((np.abs((2 * signs - 1) @ sizes) >= far).mean())
    chance, as_far = np.random.default_rng(0), 1  # the observed signs count as one combination
    for _ in range(DRAWS // AT_A_TIME):
        signs = chance.integers(0, 2, (AT_A_TIME, len(sizes)), dtype=np.int8)
        as_far += int((np.abs((2 * signs - 1) @ sizes) >= far).sum())
    return as_far / (DRAWS + 1)


def _interval(scores: Sequence[float]) -> tuple[float | None, float | None]:
    if not scores:
        return None, None
    if all(score in (0, 1) for score in scores):
        interval = Rate(round(sum(scores)), len(scores)).interval()
        return interval.low, interval.high
    found = _mean(scores, Interval(0.0, 1.0))
    return found.low, found.high


def _mean(values: Sequence[float], bounds: Interval) -> clusters.Figure:
    each = range(len(values))
    return clusters.mean(clusters.rows(values, list(each), list(each), [[at] for at in each]), bounds=bounds)
