"""Who plays what in a self-test."""

from __future__ import annotations

from collections import Counter

import pytest

from groundswell.emulator.characters import NAMES
from groundswell.emulator.in_process import known
from groundswell.emulator.skills.encodings import ENCODINGS
from groundswell.emulator.skills.game import decoy_for
from groundswell.errors import SettingsError
from groundswell.experiments.detectors.ladder import FORMS as LADDER
from groundswell.experiments.secret_game.selftest.planting import FEWEST, FORMS, IMPROVISERS, JUDGE, arms, plan
from groundswell.experiments.secret_game.words import built_in_pool


def test_a_plan_is_the_same_for_the_same_seed_and_no_game_is_there_twice() -> None:
    one, again, other = (list(plan(seed, 0.1)) for seed in (3, 3, 4))
    assert one == again
    assert [each.duel.seats[0].secret for each in one] != [each.duel.seats[0].secret for each in other]
    assert [each.duel.number for each in one] == list(range(len(one)))
    assert Counter(each.arm for each in one) == {arm.name: arm.games for arm in arms(0.1)}


@pytest.mark.parametrize("size", [1.0, 0.1, 0.001], ids=str)
def test_every_arm_plays_however_small_the_test_is(size: float) -> None:
    assert min(arm.games for arm in arms(size)) >= 1
    assert next(arm for arm in arms(size) if arm.name == "once").games >= 30 * FEWEST
    assert len({arm.name for arm in arms(size)}) == len(arms(size))


@pytest.mark.parametrize("size", [0.0, -1.0, 1.5])
def test_a_size_that_makes_no_sense(size: float) -> None:
    with pytest.raises(SettingsError, match=f"size {size:g}"):
        list(plan(0, size))


def test_both_seats_are_taken_equally_often() -> None:
    seats = Counter((each.arm, each.duel.seats[0].model) for each in plan(0) if each.arm in ("open", "trade", "once"))
    assert set(seats.values()) == {100, 1500}


def test_every_model_is_one_that_the_emulator_has() -> None:
    models = {model for arm in arms(1) for model in arm.models} | {JUDGE}
    assert all(known(model) for model in models)
    assert {model.removeprefix("emulated/").partition(":")[0] for model in models - set(IMPROVISERS)} <= set(NAMES)
    assert set(FORMS) == set(ENCODINGS) <= set(LADDER)


def test_no_decoy_is_the_secret_of_the_other_side() -> None:
    assert not [word for like in built_in_pool() for word in like if decoy_for(word) in like]
