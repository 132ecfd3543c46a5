"""The bandit: it finds what pays, tries what it does not know, and does not hear of what failed."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given

from groundswell.experiments.query_mutation.episode import FEATURES
from groundswell.experiments.query_mutation.learning.bandit import Arm, Bandit, Contextual
from groundswell.experiments.query_mutation.learning.choosing import Choice, Rollout
from tests.experiments.query_mutation.learning.rollouts import ACTIONS, garbled, rollouts, seen_by

PAYS = (0.1, 0.3, 0.6)
SEEN = seen_by(0)


def lessons(bandit: Bandit, steps: int, seed: int) -> tuple[Bandit, Counter[int]]:
    """So many steps with arms that pay 1 or nothing, learnt from eight at a time; which arms were tried."""
    draw, tried = random.Random(seed), Counter[int]()
    for _ in range(steps // 8):
        rollout = Rollout()
        for _ in range(8):
            choice = bandit.choose(SEEN, draw.random())
            tried[choice.action] += 1
            rollout.add(SEEN, choice, float(draw.random() < PAYS[choice.action]), ended=True, usable=True)
        bandit = bandit.learn([rollout])
    return bandit, tried


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_best_arm_and_tries_all_on_the_way(seed: int) -> None:
    bandit, tried = lessons(Bandit.new(3), 800, seed)
    chosen = Counter(bandit.choose(SEEN, chance / 100).action for chance in range(100))
    assert chosen[2] >= 95
    assert tried[2] > 400
    assert min(tried[arm] for arm in range(3)) >= 2


def test_before_anything_is_known_every_arm_is_tried_about_as_often() -> None:
    tried = Counter(Bandit.new(4).choose(SEEN, random.Random(number).random()).action for number in range(2000))
    assert all(400 < tried[arm] < 600 for arm in range(4))


def test_what_is_known_well_is_doubted_less() -> None:
    known, unknown = Arm(1000, 300.0, 300.0), Arm(3, 0.9, 0.9)
    assert known.mean == pytest.approx(0.3, abs=0.001)
    assert known.error < 0.02 < unknown.error


@given(rollouts())
def test_steps_that_failed_are_not_heard_of(rollout: Rollout) -> None:
    bandit = Bandit.new(ACTIONS).learn([rollout])
    assert bandit == Bandit.new(ACTIONS).learn([garbled(rollout)])
    assert sum(arm.pulls for arm in bandit.arms) == sum(rollout.usable)


def test_it_goes_on_from_what_was_written_down() -> None:
    bandit, _ = lessons(Bandit.new(3), 80, 1)
    again = msgspec.json.decode(msgspec.json.encode(bandit), type=Bandit)
    assert again == bandit
    assert lessons(again, 80, 2) == lessons(bandit, 80, 2)


def test_the_mean_is_drawn_towards_nothing_by_one_step() -> None:
    rollout = Rollout()
    rollout.add(SEEN, Choice(1), 1.0, ended=True, usable=True)
    assert Bandit.new(2).learn([rollout]).arms == (Arm(), Arm(1, 1.0, 1.0))
    assert Arm(1, 1.0, 1.0).mean == 0.5


def seen_with(sign: float) -> np.ndarray:
    """An observation whose embedding is one vector or its opposite."""
    seen = np.zeros(20 + FEATURES + 3, np.float32)
    seen[:20] = sign * np.linspace(-1, 1, 20)
    return seen


@pytest.mark.parametrize("seed", range(3))
def test_a_contextual_bandit_learns_which_arm_pays_when(seed: int) -> None:
    draw, bandit = random.Random(seed), Contextual.new(len(seen_with(1)), 3)
    for _ in range(30):
        rollout = Rollout()
        for _ in range(20):
            sign = draw.choice((-1.0, 1.0))
            choice = bandit.choose(seen_with(sign), draw.random())
            pays = choice.action == (0 if sign > 0 else 1)
            rollout.add(seen_with(sign), choice, float(pays), ended=True, usable=True)
        bandit = bandit.learn([rollout])
    for sign, best in ((1.0, 0), (-1.0, 1)):
        chosen = Counter(bandit.choose(seen_with(sign), at / 50).action for at in range(50))
        assert chosen[best] >= 45
    assert msgspec.json.decode(msgspec.json.encode(bandit), type=Contextual) == bandit
