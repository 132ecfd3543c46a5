"""Estimates of accuracies from the scores of related candidates."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution.accuracy import (
    CHANGE,
    FIRST,
    Accuracies,
    Belief,
    expected_accuracy,
)

trees = st.lists(st.tuples(st.integers(0, 30), st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=6)), min_size=1)


def grown(given: Sequence[tuple[int, Sequence[float]]]) -> tuple[Accuracies, list[int | None], list[Belief]]:
    """A tree in which no two candidates share a problem, so that difficulties play no part."""
    found, parents, own = Accuracies(), list[int | None](), list[Belief]()
    for number, (parent, scores) in enumerate(given):
        parents.append(min(parent, number - 1) if number else None)
        assert found.add(parents[-1]) == number
        problems = {100 * number + at: score for at, score in enumerate(scores)}
        found.learn(number, problems)
        own.append(Belief.of(scores))
    return found, parents, own


@given(trees)
def test_estimates_are_the_posterior_of_the_tree(given: list[tuple[int, list[float]]]) -> None:
    """The same, by inverting the whole precision matrix."""
    found, parents, own = grown(given)
    precision, weighted = np.diag([each.precision for each in own]), np.array([each.weighted for each in own])
    precision[0, 0] += FIRST.precision
    weighted[0] += FIRST.weighted
    for child, parent in enumerate(parents):
        if parent is not None:
            precision[np.ix_([child, parent], [child, parent])] += np.array([[1, -1], [-1, 1]]) / CHANGE**2
    covariance = np.linalg.inv(precision)
    estimates = found.of(*range(len(given)))
    assert [each.mean for each in estimates] == pytest.approx(list(covariance @ weighted))
    assert [each.variance for each in estimates] == pytest.approx(list(np.diag(covariance)))
    assert found.of(len(given) - 1) == estimates[-1:]


def test_a_lucky_child_of_a_poor_parent_is_not_believed() -> None:
    found, _, _ = grown([(0, [0.0] * 15 + [1.0] * 5), (0, [1.0] * 4)])
    parent, child = found.of(0, 1)
    assert 0.25 < parent.mean < 0.45 < child.mean < 0.6
    assert child.variance < CHANGE**2 + parent.variance


def test_children_say_something_about_their_parent() -> None:
    alone, _, _ = grown([(0, [1.0, 0.0])])
    good, _, _ = grown([(0, [1.0, 0.0]), (0, [1.0] * 20), (0, [1.0] * 20)])
    assert good.of(0)[0].mean > alone.of(0)[0].mean
    assert good.of(0)[0].variance < alone.of(0)[0].variance


def test_hard_problems_count_less_against_a_candidate() -> None:
    def estimate(problems: range) -> float:
        found = Accuracies()
        for number in range(20):
            found.add(0 if number else None)
            scores = {at: float(at < 10) for at in range(20)}
            found.learn(number, scores)
        found.add(0)
        scores = dict.fromkeys(problems, 0.0)
        found.learn(20, scores)
        return found.of(20)[0].mean

    hard, easy = estimate(range(10, 16)), estimate(range(6))
    assert hard > easy + 0.1, "nobody solves the hard ones"


def test_scores_can_be_learned_bit_by_bit() -> None:
    """The order in which relatives are evaluated makes no difference, apart from the difficulties."""
    once, _, _ = grown([(0, [1.0, 0.0, 1.0]), (0, [0.0, 1.0]), (1, [1.0])])
    found = Accuracies()
    for parent in (None, 0, 1):
        found.add(parent)
    found.learn(2, {200: 1.0})
    found.learn(0, {0: 1.0})
    found.learn(1, {100: 0.0, 101: 1.0})
    found.learn(0, {})
    assert [each.mean for each in found.of(1, 2)] != pytest.approx([each.mean for each in once.of(1, 2)])
    found._problems.clear()
    found.learn(0, {0: 1.0, 1: 0.0, 2: 1.0})
    assert [each.mean for each in found.of(0, 1, 2)] == pytest.approx([each.mean for each in once.of(0, 1, 2)])


def test_scores_that_are_learned_again_do_not_count_twice() -> None:
    once, twice = Accuracies(), Accuracies()
    for found in (once, twice):
        found.add(None)
        found.learn(0, {0: 1.0, 1: 0.0})
    twice.learn(0, {0: 1.0, 1: 0.0})
    assert twice._problems == once._problems
    twice.learn(0, {0: 1.0, 1: 0.0, 2: 1.0})
    assert {at: seen for at, (seen, _) in twice._problems.items()} == {0: 1, 1: 1, 2: 1}


def test_the_estimate_of_the_best_is_less_biased_than_its_mean() -> None:
    """Of many candidates that are all equally good, the luckiest is not taken to be much better."""
    draw, biases = Random(1), list[tuple[float, float]]()
    for _ in range(50):
        found, _, own = grown([(0, [float(draw.random() < 0.5) for _ in range(6)]) for _ in range(40)])
        best = max(range(40), key=lambda at: found.of(at)[0].mean)
        biases.append((found.of(best)[0].mean - 0.5, max(each.mean for each in own) - 0.5))
    estimated, plain = (fmean(each) for each in zip(*biases, strict=True))
    assert estimated < 0.15 < plain


def test_many_validation_problems_outweigh_training() -> None:
    assert expected_accuracy(0.9, 0.05, []) == pytest.approx(0.9)
    few, many = (expected_accuracy(0.9, 0.05, [0.0, 1.0] * count) for count in (5, 100))
    assert 0.55 < few < 0.8
    assert 0.5 < many < 0.55
