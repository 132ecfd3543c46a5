"""The stopping rule: the size of cohorts, blocks as values, and missing interactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.secret_game.played import Duel
from groundswell.experiments.secret_game.stopping import LEAST, StoppingRule
from groundswell.experiments.secret_game.tally import Leaked
from tests.experiments.secret_game.scene import a_duel

Answer = Callable[[Duel], Leaked | None]
"""Which secrets leak in an interaction; None if it is missing."""


def duels() -> Iterator[Duel]:
    """Two models, in blocks of four."""
    number = 0
    while True:
        yield a_duel(number=number, block=number // 4)
        number += 1


def rule_of(width: float, planned: int = 100_000) -> StoppingRule:
    return StoppingRule(width, {"m": 4, "n": 4}, 4, planned)


def played(rule: StoppingRule, answer: Answer) -> StoppingRule:
    """Play cohorts until the rule is met."""
    left = duels()
    while cohort := list(islice(left, rule.release())):
        for duel in cohort:
            if (leaked := answer(duel)) is not None:
                rule.add(duel, leaked)
    return rule


def leaks(rate: float, seed: int, missing: float = 0.0) -> Answer:
    random = Random(seed)
    return lambda _: None if random.random() < missing else (random.random() < rate, random.random() < rate)


@pytest.mark.parametrize("width", [0.05, 0.1, 0.2, 0.5])
def test_if_nothing_leaks_one_cohort_is_enough_and_little_of_it_is_too_much(width: float) -> None:
    found = played(rule_of(width), lambda _: (False, False)).report()
    assert found.reached
    assert len(found.cohorts) == 1
    assert found.met_after is not None
    assert found.met_after <= found.interactions == found.cohorts[0] <= 1.1 * found.met_after + 4
    assert {arm.rate for arm in found.arms.values()} == {0.0}


@given(st.floats(0.0, 1.0), st.sampled_from([0.2, 0.4]), st.integers(0, 50))
def test_cohorts_are_whole_blocks_and_all_of_them_count(rate: float, width: float, seed: int) -> None:
    rule = played(rule_of(width), leaks(rate, seed))
    found = rule.report()
    assert found.reached
    assert found.interactions == sum(found.cohorts) == found.arms["m"].interactions
    assert all(size % 4 == 0 for size in found.cohorts)
    for at, size in enumerate(found.cohorts[1:], 1):
        assert size >= LEAST * sum(found.cohorts[:at])
    for arm in found.arms.values():
        assert arm.high - arm.low <= width + 1e-9
        assert arm.rate is not None
        assert arm.low <= arm.rate <= arm.high


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.5])
def test_little_more_is_released_than_the_rule_needs(rate: float) -> None:
    found = [played(rule_of(0.2), leaks(rate, seed)).report() for seed in range(20)]
    ratios = [sum(each.cohorts) / each.met_after for each in found if each.met_after]
    assert sum(ratios) / len(ratios) <= 1.3
    assert max(len(each.cohorts) for each in found) <= 10


@given(st.floats(0.0, 0.6), st.integers(0, 50))
def test_cohorts_depend_only_on_results_in_order(rate: float, seed: int) -> None:
    """A run that was killed in its last cohort adds everything again."""
    first = played(rule_of(0.3), leaks(rate, seed, missing=0.1))
    assert played(rule_of(0.3), leaks(rate, seed, missing=0.1)).cohorts == first.cohorts


def test_no_more_is_released_than_is_planned() -> None:
    found = played(rule_of(0.05, planned=122), leaks(0.3, 1)).report()
    assert not found.reached
    assert found.met_after is None
    assert sum(found.cohorts) == 122


def test_blocks_are_values_so_that_more_of_the_same_words_does_not_count_as_more() -> None:
    """If all four of a block leak or none, the rule needs far more interactions than if each may."""
    alike = Random(4)
    blocks = [alike.random() < 0.3 for _ in range(2000)]
    together = played(rule_of(0.2), lambda duel: (blocks[duel.block],) * 2).report()
    apart = played(rule_of(0.2), leaks(0.3, 4)).report()
    assert together.interactions > 2 * apart.interactions


def test_more_is_released_if_some_are_missing() -> None:
    whole = played(rule_of(0.2), leaks(0.3, 7)).report()
    found = played(rule_of(0.2), leaks(0.3, 7, missing=0.4)).report()
    assert found.reached
    assert found.interactions < sum(found.cohorts)
    assert sum(found.cohorts) > sum(whole.cohorts)


def test_a_model_without_a_usable_interaction_does_not_meet_the_rule() -> None:
    found = played(rule_of(0.5, planned=100), lambda _: None).report()
    assert not found.reached
    assert sum(found.cohorts) == 100
    assert {(arm.rate, arm.low, arm.high) for arm in found.arms.values()} == {(None, 0.0, 1.0)}


def test_a_model_that_plays_itself_has_one_value_per_interaction() -> None:
    rule = StoppingRule(0.3, {"m": 4}, 4, 400)
    left = duels()
    while cohort := list(islice(left, rule.release())):
        for duel in cohort:
            rule.add(a_duel(("m", "m"), number=duel.number, block=duel.block), (True, False))
    found = rule.report().arms["m"]
    assert found.rate == 0.5
    assert found.interactions == rule.report().interactions
