"""How long something lasts: counts by the time at which it ended, or at which one stopped watching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log, sqrt
from typing import NamedTuple

import msgspec

from groundswell.stats.rates import quantile, worth

Counts = Mapping[int, int]
ROUNDING = 1e-9
"""What is less than this share of the largest is 0 but for rounding."""


class Lives(NamedTuple):
    """How many ended at each time, and how many were last seen at each time without having ended."""

    events: Counts
    censored: Counts


class Step(msgspec.Struct, frozen=True):
    """From this time on, this share is left."""

    time: int
    at_risk: int
    events: int
    share: float
    low: float
    high: float


class Mean(msgspec.Struct, frozen=True):
    """The mean time until the end, or until `until` where it comes first."""

    value: float
    low: float
    high: float
    until: int


class _Moment(NamedTuple):
    time: int
    at_risk: int
    events: int


def curve(events: Counts, censored: Counts, level: float = 0.95, effect: float = 1.0) -> list[Step]:
    """The share that is left after each time at which some ended.

    E. L. Kaplan and P. Meier, Nonparametric estimation from incomplete observations, J. Am. Stat. Assoc. 53 (1958)
    457-481; Greenwood's variance on the log(-log) scale. Who is last seen at a time was still watched at it.
    Where lives hang together, `effect` is how many of them are worth one: the variance is so many times as large.
    """
    steps: list[Step] = []
    share, spread, z = 1.0, 0.0, quantile(level)
    for time, at_risk, ended in _moments(events, censored):
        share *= 1 - ended / at_risk
        if at_risk > ended:
            spread += effect * ended / (at_risk * (at_risk - ended))
            off = exp(z * sqrt(spread) / -log(share))
            low, high = share**off, share ** (1 / off)
        else:
            # Nobody is left. The scale has no such point; but the share is no more than it was before.
            share, low, high = 0.0, 0.0, steps[-1].high if steps else worth(0.0, at_risk / effect, level).high
        steps.append(Step(time, at_risk, ended, share, low, high))
    return steps


def logrank(groups: Sequence[tuple[Counts, Counts]]) -> float:
    """The p of all groups lasting equally long: N. Mantel, Cancer Chemother. Rep. 50 (1966) 163-170.

    1 where nothing could tell: fewer than two groups that anybody was in, or nothing that ended.
    """
    import numpy as np
    from scipy.special import chdtrc  # type: ignore[import-untyped]

    groups = [group for group in groups if any(group[0].values()) or any(group[1].values())]
    if len(groups) < 2:
        return 1.0
    times = sorted({time for events, _ in groups for time, n in events.items() if n})
    watched = np.array([_watched(*group, times) for group in groups], dtype=float)
    surplus, spread = np.zeros(len(groups)), np.zeros((len(groups), len(groups)))
    for time, at_risk in zip(times, watched.T, strict=True):
        ended = np.array([events.get(time, 0) for events, _ in groups], dtype=float)
        n, d = at_risk.sum(), ended.sum()
        share = at_risk / n
        surplus += ended - d * share
        if n > 1:
            spread += d * (n - d) / (n - 1) * (np.diag(share) - np.outer(share, share))
    # The surpluses sum to 0: the last says nothing that the others do not.
    spread = spread[:-1, :-1]
    statistic = float(surplus[:-1] @ np.linalg.pinv(spread, rcond=ROUNDING, hermitian=True) @ surplus[:-1])
    freedom = int(np.linalg.matrix_rank(spread, tol=ROUNDING * spread.max(initial=0.0), hermitian=True))
    return float(chdtrc(freedom, max(0.0, statistic))) if freedom else 1.0


def restricted_mean(events: Counts, censored: Counts, until: int | None = None, level: float = 0.95) -> Mean | None:
    """The area under the curve up to a time, by default the last at which any was seen; None of nothing.

    J. O. Irwin, The standard error of an estimate of expectation of life, J. Hygiene 47 (1949) 188-189.
    """
    moments = _moments(events, censored)
    last = max((time for counts in (events, censored) for time, n in counts.items() if n), default=None)
    if last is None:
        return None
    until = last if until is None else until
    if until <= 0:
        raise ValueError(f"until {until}: must be above 0")
    if until > last and not (moments and moments[-1].at_risk == moments[-1].events):
        raise ValueError(f"until {until}: some had not ended at {last}, and nobody was watched beyond")
    within = [moment for moment in moments if moment.time <= until]
    areas = _areas(within, until)
    off = quantile(level) * sqrt(_variance(within, areas))
    value = sum(areas)
    return Mean(value, max(0.0, value - off), min(float(until), value + off), until)


def _variance(moments: Sequence[_Moment], areas: Sequence[float]) -> float:
    found, left = 0.0, sum(areas)
    for (_, at_risk, ended), before in zip(moments, areas, strict=False):
        left -= before
        if at_risk > ended:
            found += left**2 * ended / (at_risk * (at_risk - ended))
    return found


def _areas(moments: Sequence[_Moment], until: int) -> list[float]:
    """The area before the first of the moments, and after each up to the next."""
    share, since, areas = 1.0, 0, []
    for time, at_risk, ended in moments:
        areas.append(share * (time - since))
        share, since = share * (1 - ended / at_risk), time
    return [*areas, share * (until - since)]


def _moments(events: Counts, censored: Counts) -> list[_Moment]:
    """The times at which some ended, with how many were still watched."""
    for counts in (events, censored):
        for time, n in counts.items():
            if n < 0 or time < 0:
                raise ValueError(f"{n} at time {time}: neither may be below 0")
    times = sorted(time for time, n in events.items() if n)
    at_risk = _watched(events, censored, times)
    return [_Moment(time, n, events[time]) for time, n in zip(times, at_risk, strict=True)]


def _watched(events: Counts, censored: Counts, times: Sequence[int]) -> list[int]:
    """How many were still watched at each of the times, which ascend."""
    ends = sorted([*events.items(), *censored.items()])
    left, i, found = sum(n for _, n in ends), 0, []
    for time in times:
        while i < len(ends) and ends[i][0] < time:
            left, i = left - ends[i][1], i + 1
        found.append(left)
    return found
