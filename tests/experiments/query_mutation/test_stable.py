"""stable-baselines3 over the environments: what it gets, and that it learns nothing from steps that failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.error import InvalidAction
from gymnasium.spaces import Box, Discrete
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from groundswell.errors import RunError, SettingsError
from groundswell.experiments.query_mutation.documented import BatchedQueryMutationEnv, QueryMutationEnv
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stable import Mask, MaskedRolloutBuffer, QueryMutationVecEnv
from groundswell.experiments.query_mutation.task import Task
from tests.experiments.query_mutation.models import Emulated, is_target, some_queries_fail
from tests.properties import examples

SHORT = Task(max_steps=3)
PLACES = {"observation_space": Box(-1.0, 1.0, (2,)), "action_space": Discrete(3)}


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(script=Emulated(some_queries_fail)) as opened:
        yield opened


@pytest.fixture
def env(session: Session) -> QueryMutationVecEnv:
    return QueryMutationVecEnv(num_envs=4, task=SHORT, session=session)


def learner(env: VecEnv, mask: Mask | None) -> PPO:
    how: dict[str, Any] = {"n_steps": 8, "batch_size": 8, "n_epochs": 2, "seed": 5, "device": "cpu", "ent_coef": 0.01}
    if mask is not None:
        how |= {"rollout_buffer_class": MaskedRolloutBuffer, "rollout_buffer_kwargs": {"mask": mask}}
    return PPO("MlpPolicy", env, **how)


def weights(model: PPO) -> dict[str, NDArray[Any]]:
    return {name: tensor.numpy().copy() for name, tensor in model.policy.state_dict().items()}


def same(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


def test_it_is_what_stable_baselines_makes_of_single_environments(env: QueryMutationVecEnv) -> None:
    with Session(script=Emulated(some_queries_fail)) as elsewhere:
        dummy: Any = DummyVecEnv([lambda: QueryMutationEnv(SHORT, session=elsewhere)] * 4)
        assert (env.observation_space, env.action_space) == (dummy.observation_space, dummy.action_space)
        assert env.seed(3) == dummy.seed(3)
        assert np.array_equal(env.reset(), dummy.reset())
        ends = 0
        for round_ in range(10):
            actions = np.array([round_ % 7, 1, 4, 6])
            (seen, rewards, dones, infos), others = env.step(actions), dummy.step(actions)
            assert isinstance(seen, np.ndarray)
            assert np.array_equal(seen, others[0])
            assert np.array_equal(rewards, others[1])
            assert rewards.dtype == others[1].dtype
            assert np.array_equal(dones, others[2])
            ends += dones.sum()
            for at, (info, other) in enumerate(zip(infos, others[3], strict=True)):
                success = info.pop("is_success", None)
                assert success == (None if info["masked"] or not dones[at] else not info["TimeLimit.truncated"])
                assert np.array_equal(info.pop("terminal_observation", None), other.pop("terminal_observation", None))
                assert info == other
            assert env.reset_infos == dummy.reset_infos
        assert ends > 8


def test_seeds_and_options_are_for_one_reset(env: QueryMutationVecEnv) -> None:
    env.seed(3)
    env.set_options({"secret": "nutmeg"})
    first = env.reset()
    assert {info["secret"] for info in env.reset_infos} == {"nutmeg"}
    second = env.reset()
    assert {info["secret"] for info in env.reset_infos} != {"nutmeg"}
    env.seed(3)
    assert np.array_equal(env.reset(), first)
    assert np.array_equal(env.reset(), second)


def test_what_it_knows_of_its_environments(env: QueryMutationVecEnv) -> None:
    env.seed(1)
    env.reset()
    assert env.get_attr("task") == [SHORT] * 4
    assert env.get_attr("width", indices=[0, 2]) == [64, 64]
    env.set_attr("colour", "red", indices=1)
    assert [env.has_attr("colour"), env.get_attr("colour", 1)] == [False, ["red"]]
    assert [each.spec.mutator for each in env.env_method("prepare", 2)] == ["politeness"] * 4
    assert env.env_is_wrapped(gymnasium.Wrapper) == [False] * 4


def test_the_mask_is_that_of_the_last_step(env: QueryMutationVecEnv) -> None:
    env.seed(3)
    env.reset()
    found = []
    for _ in range(6):
        infos = env.step(np.array([0, 1, 2, 3]))[3]
        assert env.mask.read(4).tolist() == [info["masked"] for info in infos]
        found += env.mask.read(4).tolist()
    assert len(set(found)) == 2


def test_closing_it_closes_what_it_made() -> None:
    env = QueryMutationVecEnv(num_envs=2)
    env.close()
    env.close()
    assert env.batch.session.closed


def test_one_that_is_given_has_its_own_settings(session: Session) -> None:
    batch = BatchedQueryMutationEnv(num_envs=2, session=session)
    assert QueryMutationVecEnv(batch).batch is batch
    with pytest.raises(SettingsError, match="num_envs: set it on the environment"):
        QueryMutationVecEnv(batch, num_envs=3)


class Garbled(VecEnvWrapper):
    """An environment whose failed steps are full of nonsense."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        seen, rewards, dones, infos = self.venv.step_wait()
        for at, info in enumerate(infos):
            if info["masked"]:
                rewards[at] = 1e4 * (at + 1)
                info["terminal_observation"] = np.full_like(info["terminal_observation"], 77.0)
        return seen, rewards, dones, infos


def learnt(steps: int, *, garbled: bool, masked: bool) -> dict[str, NDArray[Any]]:
    with Session(script=Emulated(some_queries_fail)) as session:
        env = QueryMutationVecEnv(num_envs=4, task=SHORT, session=session)
        model = learner(Garbled(env) if garbled else env, env.mask if masked else None)
        return weights(model.learn(steps))


@pytest.mark.slow
def test_what_is_in_failed_steps_changes_nothing() -> None:
    assert same(learnt(64, garbled=True, masked=True), learnt(64, garbled=False, masked=True))
    assert not same(learnt(32, garbled=True, masked=False), learnt(32, garbled=False, masked=False))


@pytest.mark.slow
def test_it_learns_from_the_steps_that_did_not_fail(env: QueryMutationVecEnv) -> None:
    model = learner(env, env.mask)
    before = weights(model)
    model.learn(32)
    assert not same(weights(model), before)


@pytest.mark.slow
def test_a_rollout_in_which_everything_failed() -> None:
    models = Emulated(is_target)
    with Session(script=models) as session:
        env = QueryMutationVecEnv(num_envs=2, task=SHORT, session=session)
        model = learner(env, env.mask)
        before = weights(model)
        with pytest.raises(RunError, match="All 16 steps of the rollout failed"):
            model.learn(32)
        assert same(weights(model), before)
        models.fails = lambda _: False
        model.learn(16, reset_num_timesteps=False)
        assert not same(weights(model), before)


@pytest.mark.slow
def test_a_saved_model_must_be_given_its_mask_again(env: QueryMutationVecEnv, tmp_path: Path) -> None:
    model = learner(env, env.mask).learn(32)
    model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", env=env, device="cpu")
    assert same(weights(loaded), weights(model))
    with pytest.raises(SettingsError, match=r"rollout_buffer_kwargs=\{'mask': env.mask\}"):
        loaded.learn(32)
    again = PPO.load(tmp_path / "model", env=env, device="cpu", rollout_buffer_kwargs={"mask": env.mask})
    again.learn(32)
    assert again.num_timesteps == 32


def filled(buffer: RolloutBuffer, masks: NDArray[np.bool_], mask: Mask, seed: int) -> RolloutBuffer:
    """A buffer with numbers of chance in it."""
    draw, count = np.random.default_rng(seed), masks.shape[1]
    starts = draw.random(masks.shape) < 0.3
    for at, failed in enumerate(masks):
        mask.failed = failed
        buffer.add(
            draw.random((count, 2)),
            draw.integers(3, size=(count, 1)),
            draw.normal(size=(count,)),
            starts[at],
            torch.from_numpy(draw.normal(size=count)),
            torch.from_numpy(draw.normal(size=count)),
        )
    buffer.compute_returns_and_advantage(torch.from_numpy(draw.normal(size=count)), draw.random((count,)) < 0.3)
    return buffer


def masked_buffer(masks: NDArray[np.bool_], seed: int = 1) -> MaskedRolloutBuffer:
    mask = Mask()
    made = MaskedRolloutBuffer(
        len(masks), **PLACES, device="cpu", gae_lambda=0.9, gamma=0.8, n_envs=masks.shape[1], mask=mask
    )
    assert isinstance(filled(made, masks, mask, seed), MaskedRolloutBuffer)
    return made


@pytest.mark.parametrize("batch_size", [None, 4, 5, 15, 40])
def test_where_nothing_failed_it_is_the_buffer_of_stable_baselines(batch_size: int | None) -> None:
    masks = np.zeros((5, 3), np.bool_)
    plain = RolloutBuffer(5, **PLACES, device="cpu", gae_lambda=0.9, gamma=0.8, n_envs=3)
    ours, theirs = masked_buffer(masks), filled(plain, masks, Mask(), 1)
    assert np.allclose(ours.advantages, theirs.advantages, atol=1e-6)
    assert np.allclose(ours.returns, theirs.returns, atol=1e-6)
    found = []
    for buffer in (ours, theirs):
        np.random.seed(3)  # what stable-baselines3 draws from
        found.append(list(buffer.get(batch_size)))
    for one, other in zip(*found, strict=True):
        assert all(torch.allclose(mine, yours, atol=1e-6) for mine, yours in zip(one, other, strict=True))


@given(masks=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=8), size=st.integers(1, 9))
@settings(max_examples=examples(60), deadline=None)
def test_minibatches_hold_each_usable_step_once(masks: list[list[bool]], size: int) -> None:
    buffer = masked_buffer(np.array(masks))
    assume(not np.all(masks))
    expected = sorted(buffer.log_probs[~np.array(masks)].tolist())
    for _ in range(2):
        parts = list(buffer.get(size))
        assert sorted(number for part in parts for number in part.old_log_prob.tolist()) == expected
        sizes = [len(part.actions) for part in parts]
        assert all(count == size for count in sizes[:-1])
        assert len(sizes) == 1 or size == 1 or 1 < sizes[-1] <= size + 1


def test_advantages_stop_at_a_failed_step() -> None:
    mask = Mask()
    buffer = MaskedRolloutBuffer(4, **PLACES, device="cpu", gae_lambda=0.5, gamma=0.5, n_envs=1, mask=mask)
    for at, (reward, value) in enumerate([(1.0, 10.0), (2.0, 20.0), (1e6, 30.0), (4.0, 40.0)]):
        mask.failed = np.array([at == 2])
        number = torch.tensor([value])
        buffer.add(np.zeros((1, 2)), np.zeros((1, 1)), np.array([reward]), np.array([at == 3]), number, number)
    buffer.compute_returns_and_advantage(torch.tensor([50.0]), np.array([False]))
    second = 2.0 + 0.5 * 30.0 - 20.0
    first = 1.0 + 0.5 * 20.0 - 10.0 + 0.25 * second
    assert buffer.advantages[:, 0].tolist() == [first, second, 0.0, 4.0 + 0.5 * 50.0 - 40.0]
    assert buffer.returns[:, 0].tolist() == [10.0 + first, 20.0 + second, 30.0, 40.0 - 11.0]


def test_a_mask_of_another_environment_is_refused() -> None:
    mask = Mask()
    mask.failed = np.zeros(2, np.bool_)
    with pytest.raises(SettingsError, match="mask: is not that of the environment"):
        mask.read(3)


def test_bools_are_no_actions(env: QueryMutationVecEnv) -> None:
    env.reset()
    with pytest.raises(InvalidAction, match="must be an integer"):
        env.step(np.ones(4, np.bool_))
