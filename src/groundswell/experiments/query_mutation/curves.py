"""Learning curves: the leak rate by update, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from groundswell.experiments.query_mutation.analysis import Curve, Point
from groundswell.stats.clusters import student
from groundswell.stats.rates import Interval, wilson

WINDOW = 5
"""Number of updates that are pooled for a single learner: one update holds few episodes."""


class At(NamedTuple):
    """The leak rate after a number of steps, with its band, and the mean reward per step."""

    steps: int
    rate: float
    low: float
    high: float
    reward: float


class Band(NamedTuple):
    """A kind of learner, the number of learners, what the band shows, and the points."""

    learner: str
    learners: int
    what: str
    points: tuple[At, ...]


def bands(curves: Sequence[Curve], level: float = 0.95) -> list[Band]:
    """One band for each kind of learner. Updates without a finished episode have no point."""
    kinds = dict.fromkeys(curve.learner for curve in curves)
    return [_band(kind, [curve.points for curve in curves if curve.learner == kind], level) for kind in kinds]


def _band(kind: str, curves: Sequence[Sequence[Point]], level: float) -> Band:
    if len(curves) == 1:
        what = f"Wilson {level:.0%} interval over the episodes of {WINDOW} updates of one learner"
        return Band(kind, 1, what, tuple(_windowed(curves[0], level)))
    many = len(curves)
    what = "range of the two learners" if many == 2 else f"{level:.0%} interval of the mean of {many} learners"
    found = [_across(some, level) for some in zip(*curves, strict=False)]
    return Band(kind, many, what, tuple(each for each in found if each is not None))


def _windowed(points: Sequence[Point], level: float) -> list[At]:
    """The pooled rate of the last updates, at each update."""
    found = []
    for end in range(1, len(points) + 1):
        some = points[max(0, end - WINDOW) : end]
        leaks, episodes = sum(each.leaks for each in some), sum(each.episodes for each in some)
        if episodes:
            low, high = wilson(leaks, episodes, level)
            found.append(At(some[-1].steps, leaks / episodes, low, high, some[-1].reward))
    return found


def _across(some: Sequence[Point], level: float) -> At | None:
    """One update of several learners; learners without a finished episode are omitted."""
    rates = [each.leaks / each.episodes for each in some if each.episodes]
    if not rates:
        return None
    low, high = _spanned(rates, level)
    return At(some[0].steps, fmean(rates), low, high, fmean(each.reward for each in some))


def _spanned(rates: Sequence[float], level: float) -> Interval:
    if len(rates) < 3:
        return Interval(min(rates), max(rates))
    off = student(len(rates) - 1, level) * stdev(rates) / sqrt(len(rates))
    return Interval(max(0.0, fmean(rates) - off), min(1.0, fmean(rates) + off))
