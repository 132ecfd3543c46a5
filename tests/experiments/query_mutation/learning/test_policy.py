"""Policies: as torch would compute them, each choice for itself."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.query_mutation.learning.choosing import drawn
from groundswell.experiments.query_mutation.learning.policy import Layer, Policy, arrays
from groundswell.experiments.query_mutation.learning.ppo import _network
from tests.experiments.query_mutation.learning.rollouts import ACTIONS, SEEN, new_policy, seen_by

CHANCES = st.floats(0, 1, exclude_max=True)


def loud(policy: Policy) -> Policy:
    """The same with larger weights: a new one hardly tells actions apart."""
    last = policy.actor[-1]
    weights = (np.frombuffer(last.weights, dtype="<f4") * 100).astype("<f4").tobytes()
    actor = (*policy.actor[:-1], Layer(last.out, last.into, weights, last.biases))
    return msgspec.structs.replace(policy, actor=actor)


@given(st.integers(0, 5), st.integers(0, 999))
def test_as_torch_computes_it(seed: int, number: int) -> None:
    policy, seen = loud(new_policy(seed)), seen_by(number)
    with torch.no_grad():
        likely = torch.softmax(_network(policy.actor)(torch.from_numpy(seen)), -1).numpy()
        value = _network(policy.critic)(torch.from_numpy(seen)).item()
    assert policy.probabilities(seen) == pytest.approx(likely, abs=1e-5)
    assert policy.value(seen) == pytest.approx(value, abs=1e-5)


@given(st.integers(0, 99), CHANCES)
def test_a_choice_says_how_likely_it_was(number: int, chance: float) -> None:
    policy, seen = loud(new_policy()), seen_by(number)
    choice, likely = policy.choose(seen, chance), policy.probabilities(seen)
    assert likely.sum() == pytest.approx(1.0)
    assert np.exp(choice.log_probability) == pytest.approx(likely[choice.action])
    assert choice.value == policy.value(seen)


def test_a_choice_does_not_depend_on_others() -> None:
    one, other = loud(new_policy()), loud(new_policy())
    alone = [one.choose(seen_by(number), 0.4) for number in range(8)]
    among = [other.choose(seen_by(number % 8), 0.4) for number in reversed(range(40))]
    assert among[-8:] == alone[::-1]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda some: sum(some) > 0.1), CHANCES)
def test_chance_falls_on_actions_by_their_probabilities(weights: list[float], chance: float) -> None:
    likely = np.asarray(weights) / sum(weights)
    action = drawn(likely, chance)
    assert likely[:action].sum() <= chance + 1e-9
    assert chance <= likely[: action + 1].sum() + 1e-9


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0 - 2**-53])
def test_what_cannot_be_is_not_chosen(chance: float) -> None:
    assert drawn(np.array([0.0, 1.0, 0.0]), chance) == 1


def test_a_new_policy_prefers_nothing_and_goes_by_its_seed() -> None:
    assert new_policy(3) == new_policy(3)
    assert new_policy(3) != new_policy(4)
    for number in range(20):
        assert new_policy().probabilities(seen_by(number)) == pytest.approx([1 / ACTIONS] * ACTIONS, abs=0.05)


def test_what_is_seen_comes_through_a_new_layer_undistorted() -> None:
    first, _ = arrays(new_policy().actor)[0]
    assert first.T @ first == pytest.approx(2 * np.eye(SEEN), abs=1e-5)
