"""Survival analysis: counts by the time of an event, or of the last observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log, sqrt
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc  # type: ignore[import-untyped]

from groundswell.stats.clusters import ENOUGH, ClusterTotals
from groundswell.stats.rates import quantile, worth

Counts = Mapping[int, int]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING = 1e-9
"""Values below this fraction of the largest count as 0."""


FARTHEST = 700.0
"""Largest exponent, just below what a float can hold."""


class Step(msgspec.Struct, frozen=True):
    """The surviving share from this time on."""

    time: int
    at_risk: int
    events: int
    share: float
    low: float
    high: float


class Mean(msgspec.Struct, frozen=True):
    """The mean time until the event, restricted to `until`."""

    value: float
    low: float
    high: float
    until: int


class _Moments(NamedTuple):
    """The times of events, how many were at risk at each, and how many events there were."""

    times: Ints
    at_risk: Ints
    ended: Ints


def curve(events: Counts, censored: Counts, level: float = 0.95, effect: float = 1.0) -> list[Step]:
    """The surviving share after each time with an event.

    E. L. Kaplan and P. Meier, Nonparametric estimation from incomplete observations, J. Am. Stat. Assoc. 53 (1958)
    457-481; Greenwood's variance on the log(-log) scale. An observation censored at a time is at risk at that time.
    For correlated observations, `effect` is their design effect, by which the variance is multiplied.
    """
    steps: list[Step] = []
    share, spread, z = 1.0, 0.0, quantile(level)
    for time, at_risk, ended in zip(*(each.tolist() for each in _moments(events, censored)), strict=True):
        share *= 1 - ended / at_risk
        if at_risk > ended:
            spread += effect * ended / (at_risk * (at_risk - ended))
            off = exp(min(FARTHEST, z * sqrt(spread) / -log(share)))
            low, high = share**off, share ** (1 / off)
        else:
            # Nobody is left. The scale does not include 0; the share is at most what it was before.
            share, low, high = 0.0, 0.0, steps[-1].high if steps else worth(0.0, at_risk / effect, level).high
        steps.append(Step(time, at_risk, ended, share, low, high))
    return steps


def logrank(groups: Sequence[tuple[Counts, Counts]]) -> float:
    """The p-value of equal survival in all groups: N. Mantel, Cancer Chemother. Rep. 50 (1966) 163-170.

    It assumes independent observations. 1 if there is nothing to compare: fewer than two non-empty groups, or no event.
    """
    score = _score([group for group in groups if any(group[0].values()) or any(group[1].values())])
    return float(chdtrc(score.freedom, score.statistic)) if score.freedom else 1.0


class ClusteredLogrank:
    """The log-rank test for correlated observations, added cluster by cluster.

    The variance of the log-rank score comes from its sums over clusters: E. W. Lee, L. J. Wei, D. A. Amato, in J. P.
    Klein, P. K. Goel (eds.), Survival Analysis: State of the Art (1992) 237-247. The statistic of `logrank` is divided
    by its mean design effect, with Satterthwaite's degrees of freedom: J. N. K. Rao, A. J. Scott, J. Am. Stat. Assoc.
    76 (1981) 221-230. The reference is F with the degrees of freedom of the clusters: D. R. Thomas, J. N. K. Rao, J.
    Am. Stat. Assoc. 82 (1987) 630-636.
    """

    def __init__(self) -> None:
        self._totals = ClusterTotals[tuple[str, int, bool]]()

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return self._totals.count

    def add(self, cluster: int, group: str, time: int, *, ended: bool) -> None:
        """Add an observation: the time of its event, or the last time without one. Clusters must be consecutive."""
        self._totals.add(cluster, (group, time, ended))

    def p(self) -> float | None:
        """The p-value of equal survival in all groups; None with fewer than five clusters, 1 without events."""
        if self.clusters < ENOUGH:
            return None
        names = sorted({group for group, _, _ in self._totals.keys})
        lives: dict[str, tuple[dict[int, int], dict[int, int]]] = {name: ({}, {}) for name in names}
        for (group, time, ended), n in zip(self._totals.keys, self._totals.totals.tolist(), strict=True):
            lives[group][0 if ended else 1][time] = int(n)
        score = _score(list(lives.values()))
        if not score.freedom:
            return 1.0
        weights = [score.residual(names.index(group), time, ended) for group, time, ended in self._totals.keys]
        effects = score.inverse @ self._totals.covariance(np.array(weights))
        whole, squares = float(np.trace(effects)), float(np.trace(effects @ effects))
        if whole <= ROUNDING:  # all clusters are the same, so they say nothing about their variance
            whole, squares = float(score.freedom), float(score.freedom)
        freedom = min(float(score.freedom), whole * whole / squares)
        return float(fdtrc(freedom, freedom * (self.clusters - 1), score.statistic / whole))


class _Score(NamedTuple):
    """The log-rank score: surplus events of each group but the last (they sum to 0), and its inverse variance."""

    surplus: Floats
    inverse: Floats
    freedom: int
    times: Ints
    share: Floats
    """The share of each group among those at risk, by time."""
    hazard: Floats

    @property
    def statistic(self) -> float:
        return max(0.0, float(self.surplus @ self.inverse @ self.surplus))

    def residual(self, group: int, time: int, ended: bool) -> Floats:
        """What an observation contributes to the score. The contributions of all observations sum to the surplus."""
        here, off = np.arange(len(self.surplus)) == group, self.share[: len(self.surplus)]
        seen = int(np.searchsorted(self.times, time, side="right"))
        expected = (here[:, None] - off[:, :seen]) @ self.hazard[:seen]
        found: Floats = (here - off[:, seen - 1] if ended else 0.0) - expected
        return found


def _score(groups: Sequence[tuple[Counts, Counts]]) -> _Score:
    nothing, empty = np.zeros(0), np.zeros((0, 0))
    times = np.array(sorted({time for events, _ in groups for time, n in events.items() if n}), dtype=np.int64)
    if len(groups) < 2 or not len(times):
        return _Score(nothing, empty, 0, times, empty, nothing)
    at_risk = np.array([_watched(*group, times) for group in groups], dtype=float)
    ended = np.array([[events.get(time, 0) for time in times.tolist()] for events, _ in groups], dtype=float)
    n, d = at_risk.sum(axis=0), ended.sum(axis=0)
    share, weight = at_risk / n, d * (n - d) / np.maximum(n - 1, 1)
    surplus = (ended - d * share).sum(axis=1)[:-1]
    spread = (np.diag(share @ weight) - (share * weight) @ share.T)[:-1, :-1]
    freedom = int(np.linalg.matrix_rank(spread, tol=ROUNDING * spread.max(initial=0.0), hermitian=True))
    return _Score(surplus, np.linalg.pinv(spread, rcond=ROUNDING, hermitian=True), freedom, times, share, d / n)


def restricted_mean(events: Counts, censored: Counts, until: int | None = None, level: float = 0.95) -> Mean | None:
    """The area under the curve up to a time, by default the last observation; None without observations.

    J. O. Irwin, The standard error of an estimate of expectation of life, J. Hygiene 47 (1949) 188-189.
    """
    last = max((time for counts in (events, censored) for time, n in counts.items() if n), default=None)
    if last is None:
        return None
    until = last if until is None else until
    if until <= 0:
        raise ValueError(f"until {until}: must be above 0")
    times, at_risk, ended = _moments(events, censored)
    if until > last and not (len(times) and at_risk[-1] == ended[-1]):
        raise ValueError(f"until {until}: the last observation is at {last}, and some are censored then")
    times, at_risk, ended = (each[times <= until] for each in (times, at_risk, ended))
    areas = np.cumprod([1.0, *(1 - ended / at_risk)]) * np.diff([0, *times, until])
    later = areas.sum() - areas.cumsum()[:-1]
    left = at_risk > ended
    variance = (later**2 * ended / (at_risk * np.maximum(at_risk - ended, 1)))[left].sum()
    value, off = float(areas.sum()), quantile(level) * sqrt(variance)
    return Mean(value, max(0.0, value - off), min(float(until), value + off), until)


def _moments(events: Counts, censored: Counts) -> _Moments:
    for counts in (events, censored):
        for time, n in counts.items():
            if n < 0 or time < 0:
                raise ValueError(f"{n} at time {time}: neither may be negative")
    times = np.array(sorted(time for time, n in events.items() if n), dtype=np.int64)
    ended = np.array([events[time] for time in times.tolist()], dtype=np.int64)
    return _Moments(times, _watched(events, censored, times), ended)


def _watched(events: Counts, censored: Counts, times: Ints) -> Ints:
    """How many were at risk at each of the times."""
    ends, counts = np.array([*events.items(), *censored.items()], dtype=np.int64).reshape(-1, 2).T
    watched: Ints = counts @ (ends[:, None] >= times)
    return watched
