"""How well a yes-or-no finding agrees with labels: precision, recall, kappa, and rates corrected for its errors.

Labelled units come in clusters, such as the messages of a conversation, and may have weights, the inverse of their
probability of being labelled. Variances come from a bootstrap that draws whole clusters, within strata if there are
any. An interval of a share is exact or Wilson's at the effective sample size: the number of independent units whose
share would vary as much. For independent units without weights, that is the usual interval.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundswell.stats.rates import quantile, worth

Floats = NDArray[np.float64]

DRAWS, FEWEST_DRAWS = 2_000, 200
"""Number of bootstrap samples, and their number with very many clusters."""
LARGEST = 4_000_000
"""Maximum size of the table of samples and clusters, which bounds time and memory."""
FEWEST_CLUSTERS = 2


class Unit(NamedTuple):
    """One labelled unit: two readings of it, and its cluster. `weight` and `stratum` are those of the cluster."""

    truth: Hashable
    found: Hashable
    cluster: int
    weight: float = 1.0
    stratum: int = 0


class Share(NamedTuple):
    """A share with its interval. `n` is its effective sample size. The value is None if nothing is counted."""

    value: float | None
    low: float
    high: float
    n: float


class PrecisionRecall(NamedTuple):
    """Precision: the share of findings that are true. Recall: the share of true units that are found.

    `specificity` is the share of other units that are not found. The counts are without weights.
    """

    precision: Share
    recall: Share
    specificity: Share
    true: int
    found: int
    both: int
    n: int


class Kappa(NamedTuple):
    """Cohen's kappa with its interval. The value is None if a reading gives every unit the same label."""

    value: float | None
    low: float
    high: float
    agreed: Share
    """The share of units with the same label in both readings."""


def precision_recall(units: Sequence[Unit], level: float = 0.95, seed: int = 0) -> PrecisionRecall:
    """Precision, recall and specificity of findings. `truth` and `found` of the units are true or false."""
    drawn = _Drawn(units, [False, True], seed)
    none, false_positive, missed, hit = (drawn.cell(at, to) for at in (0, 1) for to in (0, 1))
    return PrecisionRecall(
        precision=drawn.share(hit, false_positive, level),
        recall=drawn.share(hit, missed, level),
        specificity=drawn.share(none, false_positive, level),
        true=sum(bool(unit.truth) for unit in units),
        found=sum(bool(unit.found) for unit in units),
        both=sum(bool(unit.truth) and bool(unit.found) for unit in units),
        n=len(units),
    )


def cohens_kappa(units: Sequence[Unit], level: float = 0.95, seed: int = 0) -> Kappa:
    """Agreement of two readings beyond chance, for any number of labels.

    J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20 (1960) 37-46.
    The interval is the percentile interval of the bootstrap. If both readings agree on every unit, its lower bound
    follows from the interval of the share of agreement. If a reading gives every unit the same label, kappa would be
    0 in every sample whatever the other reading says, so it cannot be estimated.
    """
    labels = list(dict.fromkeys(label for unit in units for label in (unit.truth, unit.found)))
    drawn = _Drawn(units, labels, seed)
    same = sum((drawn.cell(at, at) for at in range(len(labels))), np.zeros(len(drawn.weights)))
    agreed = drawn.share(same, drawn.whole - same, level)
    value = _kappa(drawn.table)
    if value is None or min(np.count_nonzero(drawn.table.sum(axis=axis)) for axis in (0, 1)) < 2:
        return Kappa(None, -1.0, 1.0, agreed)
    if agreed.value == 1.0:
        chance = _chance(drawn.table)
        return Kappa(value, max(-1.0, (agreed.low - chance) / (1 - chance)), 1.0, agreed)
    values = [found for table in drawn.tables() if (found := _kappa(table)) is not None]
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail]) if len(values) > 1 else (-1.0, 1.0)
    return Kappa(value, min(value, float(low)), max(value, float(high)), agreed)


class Alpha(NamedTuple):
    """Krippendorff's alpha with its interval: 1 is perfect agreement, 0 what chance gives.

    None if all values are the same, or nothing was rated twice. `units` is the number of units rated at least twice.
    """

    value: float | None
    low: float | None
    high: float | None
    units: int


def krippendorffs_alpha(
    ratings: Sequence[Sequence[Hashable | None]],
    clusters: Sequence[int],
    *,
    interval: bool = False,
    level: float = 0.95,
    seed: int = 0,
) -> Alpha:
    """Agreement of any number of raters, with missing ratings, on labels or (with `interval`) on numbers.

    `ratings` has a row per unit and a column per rater; None is missing. K. Krippendorff, Content Analysis (2004),
    chapter 11. The interval is from a bootstrap of the clusters, such as the conversations that lines belong to.
    """
    rows = [[each for each in row if each is not None] for row in ratings]
    there = [at for at, row in enumerate(rows) if len(row) > 1]
    values = sorted({each for at in there for each in rows[at]}, key=repr)
    if len(values) < 2:
        return Alpha(None, None, None, len(there))
    n = np.array([len(rows[at]) for at in there], dtype=float)
    if interval:
        numbers = [np.array(rows[at], dtype=float) for at in there]
        middle = np.concatenate(numbers).mean()
        parts = np.array([((each - middle).sum(), ((each - middle) ** 2).sum()) for each in numbers])
    else:
        code = {each: number for number, each in enumerate(values)}
        parts = np.zeros((len(there), len(values)))
        for unit, at in enumerate(there):
            for each in rows[at]:
                parts[unit, code[each]] += 1
    observed = _disagreement(n, parts, interval=interval)
    _, cluster = np.unique(np.array(clusters)[there], return_inverse=True)
    many = int(cluster.max()) + 1
    totals = np.zeros((many, 2 + parts.shape[1]))
    np.add.at(totals, cluster, np.column_stack([observed, n, parts]))
    value = float(_alphas(np.ones((1, many)) @ totals, interval=interval)[0])
    if many < FEWEST_CLUSTERS:
        return Alpha(value, None, None, len(there))
    drawn = _resampled(np.zeros(many, dtype=np.int64), seed)
    found = _alphas(drawn @ totals, interval=interval)
    low, high = np.quantile(found[np.isfinite(found)], [(1 - level) / 2, (1 + level) / 2])
    return Alpha(value, float(low), float(high), len(there))


def _disagreement(n: Floats, parts: Floats, *, interval: bool) -> Floats:
    """The sum of differences between all pairs of values, divided by n - 1.

    For numbers, differences are squared, and `parts` are the sum of values and of their squares. For labels, a
    difference is 1, and `parts` are the counts of each label.
    """
    if interval:
        found = 2 * (n * parts[:, 1] - parts[:, 0] ** 2) / (n - 1)
    else:
        found = (n**2 - (parts**2).sum(axis=1)) / (n - 1)
    return np.asarray(found, dtype=float)


def _alphas(totals: Floats, *, interval: bool) -> Floats:
    """Alpha for each sample of clusters; not a number where all values are the same."""
    expected = _disagreement(totals[:, 1], totals[:, 2:], interval=interval)
    expected[expected <= 1e-9 * expected.max(initial=0.0)] = np.nan  # rounding: all values are the same
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = 1 - totals[:, 0] / expected
    return found


def rogan_gladen(measured: float, n: float, recall: Share, specificity: Share, level: float = 0.95) -> Share | None:
    """A measured rate corrected for the known errors of the measurement. None if the errors hide everything.

    W. J. Rogan and B. Gladen, Estimating prevalence from the results of a screening test, Am. J. Epidemiology 107
    (1978) 71-76. The interval includes the uncertainty of recall and specificity: Z. Lang and J. Reiczigel, Confidence
    limits for prevalence of disease adjusted for estimated sensitivity and specificity, Preventive Veterinary Medicine
    113 (2014) 13-22. `n` is the effective sample size of the measured rate.
    """
    if recall.value is None or specificity.value is None or recall.value + specificity.value <= 1 or n <= 0:
        return None
    value = (measured + specificity.value - 1) / (recall.value + specificity.value - 1)
    z = quantile(level)
    rate, rate_n = (n * measured + z * z / 2) / (n + z * z), n + z * z
    hit, hit_n = _plus_two(recall)
    none, none_n = _plus_two(specificity)
    span = hit + none - 1
    if span <= 0:
        return None
    middle = (rate + none - 1) / span
    hit_spread, none_spread = hit * (1 - hit) / hit_n, none * (1 - none) / none_n
    shift = 2 * z * z * (middle * hit_spread - (1 - middle) * none_spread)
    half = z * sqrt(rate * (1 - rate) / rate_n + middle**2 * hit_spread + (1 - middle) ** 2 * none_spread) / span
    value = min(1.0, max(0.0, value))
    low, high = (min(1.0, max(0.0, end)) for end in (middle + shift - half, middle + shift + half))
    return Share(value, min(low, value), max(high, value), n)


def _plus_two(share: Share) -> tuple[float, float]:
    """A share with one success and one failure more, and its n."""
    assert share.value is not None
    return (share.n * share.value + 1) / (share.n + 2), share.n + 2


class _Drawn:
    """The table of two readings, by cluster, and how often each bootstrap sample draws each cluster."""

    def __init__(self, units: Sequence[Unit], labels: Sequence[Hashable], seed: int) -> None:
        clusters = {cluster: at for at, cluster in enumerate(dict.fromkeys(unit.cluster for unit in units))}
        places = {label: at for at, label in enumerate(labels)}
        self._cells = np.zeros((len(clusters), len(labels), len(labels)))
        self.weights = np.ones(len(clusters))
        strata = np.zeros(len(clusters), dtype=np.int64)
        for unit in units:
            at = clusters[unit.cluster]
            self._cells[at, places[unit.truth], places[unit.found]] += 1
            self.weights[at], strata[at] = unit.weight, unit.stratum
        self._times = _resampled(strata, seed)

    def cell(self, truth: int, found: int) -> Floats:
        """The number of units of a cell, by cluster, without weights."""
        return np.asarray(self._cells[:, truth, found])

    @property
    def whole(self) -> Floats:
        """The number of units, by cluster."""
        return np.asarray(self._cells.sum(axis=(1, 2)))

    @property
    def table(self) -> Floats:
        """The weighted table."""
        return np.asarray(np.tensordot(self.weights, self._cells, 1))

    def tables(self) -> Floats:
        """The weighted tables of all bootstrap samples."""
        return np.asarray(np.tensordot(self._times * self.weights, self._cells, 1))

    def share(self, yes: Floats, no: Floats, level: float) -> Share:
        """The share of `yes` in both, which are numbers of units by cluster."""
        both = yes + no
        total = float(self.weights @ both)
        if total <= 0:
            return Share(None, 0.0, 1.0, 0.0)
        value = min(1.0, float(self.weights @ yes) / total)
        n = self._effective(value, yes, both)
        return Share(value, *worth(value, n, level), n)

    def _effective(self, value: float, yes: Floats, both: Floats) -> float:
        """The effective sample size of a share. If all units agree, a cluster counts as one unit."""
        units = float(self.weights @ both) ** 2 / float(self.weights**2 @ both)
        counted = both > 0
        count = int(counted.sum())
        sums = (self.weights * both)[counted]
        clusters = float(sums.sum() ** 2 / (sums**2).sum())
        if value in (0.0, 1.0) or count < FEWEST_CLUSTERS:
            return min(units, clusters)
        totals = self._times @ (self.weights * both)
        drawn = (self._times @ (self.weights * yes))[totals > 0] / totals[totals > 0]
        variance = float(drawn.var()) * count / (count - 1)
        return min(units, value * (1 - value) / variance) if variance > 0 else min(units, clusters)


def _resampled(strata: NDArray[np.int64], seed: int) -> Floats:
    """How often each sample with replacement draws each cluster, stratum by stratum."""
    rng = np.random.default_rng(seed)
    draws = max(FEWEST_DRAWS, min(DRAWS, LARGEST // max(1, len(strata))))
    times = np.zeros((draws, len(strata)))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        times[:, members] = rng.multinomial(len(members), np.full(len(members), 1 / len(members)), draws)
    return times


def _chance(table: Floats) -> float:
    """The share of agreement that is due to chance."""
    total = float(table.sum())
    return float(table.sum(axis=0) @ table.sum(axis=1)) / total**2


def _kappa(table: Floats) -> float | None:
    total = float(table.sum())
    if total <= 0 or (chance := _chance(table)) >= 1 - 1e-12:
        return None
    return (float(np.trace(table)) / total - chance) / (1 - chance)


__all__ = ["Kappa", "PrecisionRecall", "Share", "Unit", "cohens_kappa", "precision_recall", "rogan_gladen"]
