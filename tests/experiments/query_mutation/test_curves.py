"""Bands of learning curves say what they are of."""

from __future__ import annotations

import pytest

from groundswell.experiments.query_mutation.curves import bands
from groundswell.stats.rates import wilson
from tests.experiments.query_mutation.trainings import curve


def test_one_learner_has_the_interval_of_a_window() -> None:
    (band,) = bands([curve(rates=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0))])
    assert (band.learners, len(band.points)) == (1, 6)
    assert "of one learner" in band.what
    assert band.points[0].rate == 0
    last = band.points[-1]
    assert last.rate == pytest.approx(0.6), "of the last five updates"
    assert (last.low, last.high) == tuple(wilson(150, 250))


def test_two_learners_have_their_range_and_three_an_interval() -> None:
    curves = [curve(number=at, rates=(0.2, rate)) for at, rate in enumerate((0.4, 0.6, 0.8))]
    (two,), (three,) = bands(curves[:2]), bands(curves)
    assert two.what == "range of the two learners"
    assert (two.points[1].low, two.points[1].high) == (0.4, 0.6)
    assert "mean of 3 learners" in three.what
    assert three.points[1].rate == pytest.approx(0.6)
    assert three.points[1].high == pytest.approx(min(1, 0.6 + 4.3027 * 0.2 / 3**0.5), abs=1e-4)
    assert three.points[0].low == three.points[0].high, "all began alike"


def test_kinds_are_apart_and_an_update_without_episodes_has_no_point() -> None:
    empty = curve("bandit")
    points = list(empty.points)
    points[1] = type(points[1])(1024, 500, 12, 0.0, 0, 0)
    found = bands([curve(), type(empty)("bandit", 0, (points[1], points[2]))])
    assert [band.learner for band in found] == ["ppo", "bandit"]
    assert [at.steps for at in found[1].points] == [1536]
