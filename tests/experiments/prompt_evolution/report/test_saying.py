"""Sentences: what is not shown is not claimed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from groundswell.experiments.prompt_evolution.report.circumstances import warnings
from groundswell.experiments.prompt_evolution.report.saying import Gap, gap, headline, standing
from groundswell.experiments.prompt_evolution.verdict import tested as sealed
from tests.experiments.prompt_evolution.report.evolutions import SCORES, SEED, analysis, searched, told

NONE: list[float | None] = [None] * 10


def test_better_and_open_are_told_apart() -> None:
    found = analysis(SCORES)
    said = headline(found)
    assert "scores 90.0% (95% interval 55.5% to 99.7%; 10 problems)" in said
    assert "It is better than the seed prompt (+80.0 points" in said
    assert "Whether it is better than random search (+11.1 points" in said
    assert said.count("better than") == 2
    assert [standing(found, name) for name in ("seed", "random")] == ["better", "open"]
    assert "it had 50.0%: 40.0 points less" in said


def test_worse_is_called_worse() -> None:
    found = analysis({"seed": SCORES["evolution"], "evolution": SCORES["seed"]})
    assert "It is worse than the seed prompt (−80.0 points" in headline(found)
    assert "better" not in headline(found)


def test_a_search_that_found_nothing_but_the_seed() -> None:
    scores = SCORES["seed"]
    found = analysis({"seed": scores, "evolution": scores}, [searched(winner=0)])
    assert "It is the seed prompt itself" in headline(found)
    assert standing(found, "seed") == "the same prompt"


def test_two_searches_with_one_result() -> None:
    scores = {"seed": SCORES["seed"], "evolution": SCORES["evolution"], "random": SCORES["evolution"]}
    found = analysis(scores, [searched(), searched("random")])
    assert "Random search came to the same prompt." in headline(found)
    assert "open" not in headline(found)


def test_budgets_that_are_not_the_same_are_told() -> None:
    scores = dict.fromkeys(("seed", "evolution", "random"), SCORES["seed"])
    other = msgspec.structs.replace(searched("random", winner=1), asks=40)
    said = headline(analysis(scores, [searched(), other]))
    assert "The budgets are not the same: random search had 40 asks, and the evolution 13." in said
    assert "budgets" not in headline(analysis(scores))


def test_a_search_in_which_most_births_failed_is_told() -> None:
    scores = dict.fromkeys(("seed", "evolution", "random"), SCORES["seed"])
    other = searched("random", winner=1)
    failed = [msgspec.structs.replace(each, fate="failed", why="out of order") for each in other.members[1:]]
    other = msgspec.structs.replace(other, members=(other.members[0], *failed), asks=5)
    said = headline(analysis(scores, [searched(), other]))
    assert f"Most births failed: {len(failed)} of the {len(failed) + 1} births of random search." in said
    assert "random search had 5 asks" in said, "fewer are told too"


def test_nothing_is_said_of_nothing() -> None:
    assert headline(analysis({"seed": SCORES["seed"], "evolution": NONE})).startswith("Nothing can be said")
    said = headline(analysis({"seed": NONE, "evolution": SCORES["evolution"]}, validation=None))
    assert "the seed prompt (no problem was met by both) is open" in said
    assert "validation" not in said


@pytest.mark.parametrize(
    ("validated", "scores", "value", "bounded"),
    [
        ([1.0, 1.0, 0.0, None], [1.0, 0.0], 2 / 3 - 1 / 2, True),
        ([0.5, 1.0, 0.25, 0.5, 1.0, 0.75], [0.0, 0.5, 1.0, 0.5, 0.25, 0.75], 4 / 6 - 3 / 6, True),
        ([], [1.0, 0.0], 0.3, False),
        ([1.0], [None], None, False),
    ],
    ids=["right or wrong", "in between", "not stored", "no test"],
)
def test_the_gap(validated: list[float | None], scores: list[float | None], value: float | None, bounded: bool) -> None:
    found = gap(validated, sealed("evolution", SEED, scores, 0.8, {}))
    assert found.value == (None if value is None else pytest.approx(value))
    if bounded:
        assert found.low is not None
        assert found.high is not None
        assert found.low < (value or 0.0) < found.high
    else:
        assert found == Gap(found.value)


def test_efficiency_is_asks_over_what_they_would_have_been() -> None:
    assert searched().efficiency == 13 / (13 + 3 + 4)


def test_warnings_are_about_this_run() -> None:
    said = " ".join(warnings(told()))
    for words in ("luckiest of 6 births", "opened once", "takes several runs", "emulated", "Races end on little"):
        assert words in said
    assert "drawn at random" not in said


def test_p_of_comparisons_is_what_counts() -> None:
    scores: dict[str, Sequence[float | None]] = {
        "seed": [0.0] * 6 + [1.0] * 4,
        "evolution": [1.0] * 10,
        "random": [0.0] * 6 + [1.0] * 4,
    }
    found = analysis(scores)
    assert {each.over: round(each.p, 4) for each in found.gains} == {"seed": 0.0625, "random": 0.0625}
    assert all(each.low is not None and each.low > 0 for each in found.gains)
    assert "It is better" not in headline(found)
