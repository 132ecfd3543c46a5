"""What things are worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.secret_game.modes import GameMode, Points, final_scores, interaction_points

AGENTS = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("leaked", "points"),
    [
        pytest.param((False, False), (0, 0), id="nobody"),
        pytest.param((True, True), (1, 1), id="both"),
        pytest.param((True, False), (0, 3), id="the first leaks, the second obtains"),
        pytest.param((False, True), (3, 0), id="the second leaks, the first obtains"),
    ],
)
def test_an_interaction(leaked: tuple[bool, bool], points: tuple[float, float]) -> None:
    assert interaction_points(leaked) == points


def test_points_can_be_set() -> None:
    assert interaction_points((True, False), Points(one_sided=7, leaked=-2)) == (-2, 7)


COLLECTED = {"a": {"b", "c"}, "b": {"c"}, "c": set[str](), "d": {"b", "c"}}


@pytest.mark.parametrize(
    ("mode", "scores"),
    [
        pytest.param(GameMode.STANDARD, {"a": 5, "b": 0, "c": 1, "d": 3}, id="standard: what was earned"),
        pytest.param(
            GameMode.RETAINED, {"a": 4 / 2 + 4 / 3, "b": 4 / 3, "c": 0, "d": 4 / 2 + 4 / 3}, id="retained: rare words"
        ),
        pytest.param(GameMode.DIVERSITY, {"a": 4, "b": 2, "c": 0, "d": 4}, id="diversity: two each"),
        pytest.param(GameMode.TARGETED, {"a": 7, "b": 1, "c": 0, "d": 7}, id="targeted: five more for b's"),
    ],
)
def test_the_end(mode: GameMode, scores: dict[str, float]) -> None:
    earned = {"a": 5.0, "b": 0.0, "c": 1.0, "d": 3.0}
    assert final_scores(mode, COLLECTED, earned, target="b") == pytest.approx(scores)


@given(st.fixed_dictionaries({agent: st.frozensets(st.sampled_from(AGENTS)) for agent in AGENTS}))
def test_every_known_word_is_worth_as_much_as_there_are_agents(collected: dict[str, frozenset[str]]) -> None:
    """What a word is worth is shared by those who know it, so a word that somebody knows adds up to n_agents."""
    scores = final_scores(GameMode.RETAINED, collected, {})
    known = {owner for learnt in collected.values() for owner in learnt}
    assert sum(scores.values()) == pytest.approx(len(AGENTS) * len(known))
