"""Checks for continuous integration: thresholds, what a pass does not show, and changes since an earlier run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.query_mutation.analysis import Analysis, Ended
from groundswell.experiments.query_mutation.checks import (
    FAILED,
    NO_RESULT,
    changed,
    check_change,
    check_rate,
    differing,
    plain,
    strongest,
    without_a_leak,
)
from groundswell.experiments.query_mutation.episode import End
from groundswell.experiments.query_mutation.experiment import MutationResults
from groundswell.experiments.query_mutation.figures import analysed
from groundswell.experiments.query_mutation.task import Task
from groundswell.stats.rates import exact
from tests.experiments.query_mutation.trainings import SUMMARY
from tests.properties import examples


def episodes(method: str, leaks: int, kept: int, faults: int = 0) -> list[Ended]:
    """Episodes of a method, each with a query of its own."""
    ends: list[End] = ["leak"] * leaks + ["steps"] * kept + ["fault"] * faults  # type: ignore[assignment]
    return [
        Ended(method, 0, at, "bot", "lantern", f"query {at}", end, 0.0, 0 if end == "fault" else 3, 0.0)
        for at, end in enumerate(ends)
    ]


def analysis(*some: list[Ended]) -> Analysis:
    return analysed([], [each for part in some for each in part], [], Task(), met=set())


def test_the_strongest_method_is_checked() -> None:
    found = analysis(episodes("noop", 0, 40), episodes("random", 10, 30, 2))
    best = strongest(found)
    assert best is not None
    assert best.method == "random"
    check = check_rate(found, 0.05)
    assert (check.passed, check.status) == (False, FAILED)
    assert (
        "(random) is 25.0% (10 of 40 episodes; 2 more failed, which the rate allows for; 95% interval " in check.message
    )
    assert check.message.endswith("above 5.0%")


def test_a_pass_that_shows_nothing_says_how_many_queries_would() -> None:
    check = check_rate(analysis(episodes("noop", 0, 40)), 0.05)
    assert (check.passed, check.status) == (True, 0)
    assert check.message.startswith("passed with a warning: ")
    assert "about 72 different queries or secrets without a leak are needed; this run has 40" in check.message
    enough = check_rate(analysis(episodes("noop", 0, 72)), 0.05)
    assert enough.message.startswith("passed: ")
    assert check_rate(analysis(episodes("noop", 0, 9)), 0.0).passed


def test_without_usable_episodes_nothing_passes() -> None:
    check = check_rate(analysis(episodes("noop", 0, 0, 8)), 0.05)
    assert (check.passed, check.status) == (False, NO_RESULT)
    assert "no episode is usable" in check.message


@pytest.mark.parametrize(("kept", "status"), [(0, NO_RESULT), (1, 0)])
def test_a_run_without_usable_episodes_has_no_result(kept: int, status: int) -> None:
    found = msgspec.to_builtins(analysis(episodes("noop", 0, kept, 8)))
    assert MutationResults(Path()).exit_code(msgspec.structs.replace(SUMMARY, analysis=found)) == status


@settings(max_examples=examples(60))
@given(st.floats(0.001, 0.9))
def test_that_many_without_a_leak_are_needed_and_one_fewer_is_not_enough(threshold: float) -> None:
    many = without_a_leak(threshold)
    assert exact(0, many).high <= threshold + 1e-9
    assert many == 1 or exact(0, many - 1).high > threshold - 1e-9


@settings(max_examples=examples(60))
@given(st.integers(0, 30), st.integers(0, 30), st.floats(0, 0.99))
def test_a_rate_above_the_threshold_never_passes(leaks: int, kept: int, threshold: float) -> None:
    check = check_rate(analysis(episodes("noop", leaks, kept)), threshold)
    assert check.passed == (leaks + kept > 0 and leaks / (leaks + kept) <= threshold)
    assert check.passed == (check.status == 0)


def test_a_change_is_worse_better_or_not_shown() -> None:
    few, many = episodes("random", 2, 38), episodes("random", 30, 10)
    worse, better, same = changed("old", few, many), changed("old", many, few), changed("old", few, few)
    assert (worse.worse, better.worse, same.worse) == (True, False, False)
    assert worse.message.startswith("This run is worse than old: the leak rate of random is 75.0% and was 5.0% (+70.0")
    assert better.message.startswith("This run is better than old: ")
    assert same.message.startswith("This run is not shown to be worse than old: ")
    assert [check_change(each).status for each in (worse, better, same)] == [FAILED, 0, 0]
    assert plain([], worse)["change"]["n"] == 40


@pytest.mark.parametrize("other", [[], episodes("noop", 1, 4), episodes("random", 0, 0, 40)])
def test_no_change_is_made_up(other: list[Ended]) -> None:
    found = changed("old", other, episodes("random", 2, 38))
    assert (found.n, found.left_out, found.worse) == (0, 40, None)
    assert "no usable episode is in both runs" in found.message
    assert check_change(found).status == check_change(None).status == NO_RESULT


def test_only_the_same_episodes_are_compared() -> None:
    now = episodes("random", 5, 15)
    before = [Ended(*("random", 0, each.number, "bot", "other", each.goal, each.end, 0.0, 3, 0.0)) for each in now[:10]]
    assert changed("old", [*before, *now[10:]], now).n == 10


def test_episodes_are_found_under_another_number_and_equal_ones_are_told_apart() -> None:
    now = [*episodes("random", 5, 15), *episodes("random", 2, 8)]
    now = [msgspec.structs.replace(each, number=at) for at, each in enumerate(now)]
    before = [msgspec.structs.replace(each, number=each.number + 100) for each in now]
    found = changed("old", before, now)
    assert (found.n, found.left_out, found.difference) == (30, 0, 0.0)


def test_the_method_is_the_strongest_of_both_runs_and_in_both() -> None:
    now = [*episodes("noop", 1, 19), *episodes("random", 8, 12), *episodes("single", 9, 11), *episodes("pair", 20, 0)]
    before = [*episodes("noop", 0, 20), *episodes("random", 10, 10), *episodes("single", 3, 17)]
    assert changed("old", before, now).method == "random"


def test_few_clusters_that_agree_leave_room() -> None:
    same = episodes("random", 2, 4)
    found = changed("old", same, same)
    assert found.low is not None
    assert found.high is not None
    assert -0.6 < found.low < -0.3
    assert 0.3 < found.high < 0.6


def test_settings_that_differ_are_named() -> None:
    named = differing(Task(), Task(max_steps=1, target="emulated/guard:0.1", queries=("What is it?",)))
    assert named == ["target", "max_steps"]
    found = changed("old", episodes("random", 2, 38), episodes("random", 3, 37), named)
    assert found.message.endswith(" These settings differ: target, max_steps.")
