"""What the sealed test says: how good each prompt is, and by how much the evolved one is better, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groundswell.experiments.prompt_evolution.analysis import Gain, Tested, mean_of
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.racing import Scores
from groundswell.stats import means
from groundswell.stats.many import holm
from groundswell.stats.rates import Interval, Paired, Rate
from groundswell.stats.tests import mcnemar


def tested(
    name: str, genome: Genome, scores: Scores, validation: float | None, by_model: dict[str, float | None]
) -> Tested:
    """One prompt on the sealed test."""
    there = [score for score in scores if score is not None]
    low, high = _interval(there)
    return Tested(name, genome, mean_of(scores), low, high, len(there), validation, tuple(scores), by_model)


def gains(winner: Scores, others: Mapping[str, Scores]) -> tuple[Gain, ...]:
    """The winner against each of the others, on the same problems."""
    found = {name: _gain(_pairs(winner, scores)) for name, scores in others.items()}
    adjusted = holm([p for *_, p, _ in found.values()])
    return tuple(
        Gain(name, value, low, high, p, n)
        for (name, (value, low, high, _, n)), p in zip(found.items(), adjusted, strict=True)
    )


def _pairs(one: Scores, other: Scores) -> list[tuple[float, float]]:
    return [(mine, theirs) for mine, theirs in zip(one, other, strict=True) if mine is not None and theirs is not None]


def _gain(pairs: Sequence[tuple[float, float]]) -> tuple[float | None, float | None, float | None, float, int]:
    """Difference, interval, p and how many: exact where scores are right or wrong, else by what is in between.

    There p is that of a sign test. Where more problems speak for one side while the mean speaks for the other, it is 1:
    neither side is shown to be ahead.
    """
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
    signs = Paired(0, sum(each > 0 for each in differences), sum(each < 0 for each in differences), 0)
    agree = (signs.first - signs.second) * sum(differences) > 0
    return found.value, found.low, found.high, mcnemar(signs) if agree else 1.0, len(pairs)


def _interval(scores: Sequence[float]) -> tuple[float | None, float | None]:
    if not scores:
        return None, None
    if all(score in (0, 1) for score in scores):
        interval = Rate(round(sum(scores)), len(scores)).interval()
        return interval.low, interval.high
    found = _mean(scores, Interval(0.0, 1.0))
    return found.low, found.high


def _mean(values: Sequence[float], bounds: Interval) -> means.Figure:
    each = range(len(values))
    return means.mean(means.rows(values, list(each), list(each), [[at] for at in each]), bounds=bounds)
