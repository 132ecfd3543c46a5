"""PPO: as stable-baselines3 computes it, from usable steps alone, and whole between two updates."""

from __future__ import annotations

from typing import Any

import gymnasium
import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation.learning import ppo
from groundswell.experiments.query_mutation.learning.choosing import Rollout
from groundswell.experiments.query_mutation.learning.policy import Layer, Policy, arrays
from groundswell.experiments.query_mutation.learning.rules import Rules, State
from tests.experiments.query_mutation.learning.rollouts import (
    ACTIONS,
    HIDDEN,
    SEEN,
    garbled,
    new_policy,
    played,
    rollouts,
    seen_by,
)
from tests.properties import examples

RULES = Rules(num_mini_batch=2, ppo_epoch=2)
STEPS = 24


class Nowhere(gymnasium.Env[Any, Any]):
    """Spaces, and nothing in them."""

    observation_space = gymnasium.spaces.Box(-10, 10, (SEEN,))
    action_space = gymnasium.spaces.Discrete(ACTIONS)


def peer(policy: Policy, rules: Rules, steps: int) -> PPO:
    """The same policy, for stable-baselines3."""
    found = PPO(
        "MlpPolicy",
        Nowhere(),
        learning_rate=rules.lr,
        n_steps=steps,
        batch_size=steps,
        n_epochs=rules.ppo_epoch,
        gamma=rules.gamma,
        gae_lambda=rules.gae_lambda,
        clip_range=rules.clip_param,
        ent_coef=rules.entropy_coef,
        vf_coef=rules.value_loss_coef,
        max_grad_norm=rules.max_grad_norm,
        policy_kwargs={"net_arch": [HIDDEN, HIDDEN]},
        device="cpu",
    )
    with torch.no_grad():
        for linears, ours in ((_linears(found)[0], policy.actor), (_linears(found)[1], policy.critic)):
            for linear, (weights, biases) in zip(linears, arrays(ours), strict=True):
                linear.weight.copy_(torch.from_numpy(weights.copy()))
                linear.bias.copy_(torch.from_numpy(biases.copy()))
    found.set_logger(Logger(None, []))
    return found


def _linears(model: PPO) -> tuple[list[Any], list[Any]]:
    net: Any = model.policy
    actor, critic = net.mlp_extractor.policy_net, net.mlp_extractor.value_net
    return [actor[0], actor[2], net.action_net], [critic[0], critic[2], net.value_net]


def taught(model: PPO, rollout: Rollout) -> dict[str, float]:
    """One update of theirs from a rollout; what they say of it."""
    buffer: Any = model.rollout_buffer
    buffer.reset()
    begins = [True, *rollout.ended[:-1]]
    for at, seen in enumerate(rollout.seen):
        value = torch.tensor([rollout.values[at]])
        likely = torch.tensor([rollout.log_probabilities[at]])
        action, reward = np.array([rollout.actions[at]]), np.array([rollout.rewards[at]])
        buffer.add(seen[None], action, reward, np.array([begins[at]]), value, likely)
    buffer.compute_returns_and_advantage(torch.tensor([rollout.last_value]), np.array([rollout.ended[-1]]))
    model.train()
    return dict(model.logger.name_to_value)


def close(layers: tuple[Layer, ...], linears: list[Any]) -> bool:
    return all(
        np.allclose(weights, linear.weight.detach().numpy(), atol=1e-5)
        and np.allclose(biases, linear.bias.detach().numpy(), atol=1e-5)
        for (weights, biases), linear in zip(arrays(layers), linears, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [
        Rules(num_mini_batch=1, ppo_epoch=1),
        Rules(num_mini_batch=1, ppo_epoch=6, lr=0.01),
        Rules(num_mini_batch=1, clip_param=0.05, entropy_coef=0.1, value_loss_coef=1.0, gamma=0.8, gae_lambda=0.5),
        Rules(num_mini_batch=1, max_grad_norm=0.01),
    ],
    ids=["one epoch", "six epochs", "other coefficients", "small steps"],
)
def test_an_update_is_that_of_stable_baselines3(rules: Rules) -> None:
    before = State(new_policy(1))
    rollout = played(before.policy, STEPS)
    model = peer(before.policy, rules, STEPS)
    said = taught(model, rollout)
    after, losses = ppo.learn(before, [rollout], rules, seed=0)
    assert losses is not None
    assert losses.policy == pytest.approx(said["train/policy_gradient_loss"], abs=1e-5)
    assert losses.value == pytest.approx(said["train/value_loss"], rel=1e-4)
    assert losses.entropy == pytest.approx(-said["train/entropy_loss"], rel=1e-4)
    assert losses.clipped == pytest.approx(said["train/clip_fraction"], abs=1e-6)
    actor, critic = _linears(model)
    assert close(after.policy.actor, actor)
    assert close(after.policy.critic, critic)
    assert not close(before.policy.actor, actor)


def test_updates_go_on_from_what_was_written_down_bit_by_bit() -> None:
    state = State(new_policy())
    for update in range(3):
        written = msgspec.json.decode(msgspec.json.encode(state), type=State)
        assert written == state
        several = [played(state.policy, STEPS, 10 * update + number, failing=0.2) for number in range(2)]
        state, losses = ppo.learn(state, several, RULES, seed=5)
        again, same = ppo.learn(written, several, RULES, seed=5)
        assert (again, same) == (state, losses)
        assert state.policy != written.policy
    assert (state.updates, state.steps) == (3, 3 * RULES.ppo_epoch * RULES.num_mini_batch)


def test_what_adam_remembers_matters() -> None:
    state, _ = ppo.learn(State(new_policy()), [played(new_policy(), STEPS)], RULES, seed=0)
    rollout = [played(state.policy, STEPS, 1)]
    forgetful = msgspec.structs.replace(state, moments=(), steps=0)
    assert ppo.learn(state, rollout, RULES, seed=0)[0].policy != ppo.learn(forgetful, rollout, RULES, seed=0)[0].policy


@how(max_examples=examples(25))
@given(st.lists(rollouts(), min_size=1, max_size=3))
def test_garbage_in_failed_steps_changes_nothing(some: list[Rollout]) -> None:
    before = State(new_policy())
    after, losses = ppo.learn(before, some, RULES, seed=1)
    assert (after, losses) == ppo.learn(before, [garbled(rollout) for rollout in some], RULES, seed=1)
    for layer in (*after.policy.actor, *after.policy.critic):
        assert np.isfinite(np.frombuffer(layer.weights, dtype="<f4")).all()


def test_an_update_is_one_on_the_usable_steps_alone() -> None:
    """Whole episodes of one step, some of which failed: without these, the same is learnt."""
    before = State(new_policy())
    whole = played(before.policy, STEPS)
    with_failures, without = Rollout(), Rollout()
    for at in range(STEPS):
        choice = before.policy.choose(whole.seen[at], 0.3)
        usable = at % 3 != 1
        with_failures.add(whole.seen[at], choice, whole.rewards[at], ended=True, usable=usable)
        if usable:
            without.add(whole.seen[at], choice, whole.rewards[at], ended=True, usable=True)
    assert ppo.learn(before, [with_failures], RULES, seed=2) == ppo.learn(before, [without], RULES, seed=2)


@pytest.mark.parametrize("usable", [0, 1], ids=["none", "one, which has no spread"])
def test_with_nothing_to_learn_from_nothing_changes(usable: int) -> None:
    before = State(new_policy(), updates=3, steps=12)
    rollout = Rollout()
    for at in range(4):
        choice = before.policy.choose(seen_by(at), 0.5)
        rollout.add(seen_by(at), choice, 1.0, ended=True, usable=at < usable)
    after, losses = ppo.learn(before, [rollout], RULES, seed=0)
    assert losses is None
    assert after == msgspec.structs.replace(before, updates=4)


def test_the_learning_rate_can_fall_to_almost_nothing() -> None:
    before = State(new_policy())
    rollout = [played(before.policy, STEPS)]
    moved = [_moved(before, ppo.learn(before, rollout, RULES, seed=0, scale=scale)[0]) for scale in (1.0, 0.1, 0.001)]
    assert moved[0] > 5 * moved[1] > 25 * moved[2] > 0


def _moved(before: State, after: State) -> float:
    pairs = zip(arrays(before.policy.actor), arrays(after.policy.actor), strict=True)
    return max(float(np.abs(one[0] - other[0]).max()) for one, other in pairs)


def test_the_number_of_threads_is_left_as_it_was() -> None:
    threads = torch.get_num_threads()
    ppo.learn(State(new_policy()), [played(new_policy(), STEPS)], RULES, seed=0)
    assert torch.get_num_threads() == threads


@pytest.mark.slow
def test_it_learns_what_to_do_by_what_is_seen() -> None:
    """The action that pays is the place of the largest of three numbers."""
    state, draw = State(new_policy()), np.random.default_rng(0)
    rules = Rules(lr=0.01, num_mini_batch=4, ppo_epoch=4)
    rates = []
    for update in range(12):
        rollout = Rollout()
        for _ in range(128):
            seen = draw.standard_normal(SEEN).astype(np.float32)
            choice = state.policy.choose(seen, draw.random())
            paid = float(choice.action == int(np.argmax(seen[:ACTIONS])))
            rollout.add(seen, choice, paid, ended=True, usable=True)
        rates.append(sum(rollout.rewards) / len(rollout.rewards))
        state, _ = ppo.learn(state, [rollout], rules, seed=update)
    assert rates[0] < 0.5
    assert rates[-1] > 0.8


@pytest.mark.parametrize("name", ["lr", "entropy_coef", "clip_param", "max_grad_norm", "value_loss_coef"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_rule_that_no_checkpoint_can_hold_is_refused(name: str, value: float) -> None:
    with pytest.raises(SettingsError, match=rf"^{name} {value:g}: must be a finite number"):
        Rules(**{name: value})  # type: ignore[arg-type]


def test_layers_wider_than_a_checkpoint_should_hold_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"^hidden 100000000: must be at most"):
        Rules(hidden=100_000_000)
