"""stable-baselines3: the environments as a VecEnv, and a rollout buffer that excludes failed steps from learning.

env = QueryMutationVecEnv(num_envs=16)
PPO("MlpPolicy", env, rollout_buffer_class=MaskedRolloutBuffer, rollout_buffer_kwargs={"mask": env.mask})

Without this buffer, and with algorithms that use another one (DQN), a failed step is learnt from as a step with reward
0. In this case use `masked` in the infos.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from groundswell.errors import RunError, SettingsError
from groundswell.experiments.query_mutation.documented import (
    BatchedQueryMutationEnv,
    Info,
    QueryMutationEnv,
    Row,
    step_together,
)
from groundswell.experiments.query_mutation.episode import Floats
from groundswell.experiments.query_mutation.learning.choosing import Rollout
from groundswell.experiments.query_mutation.learning.returns import advantages

Flags = NDArray[np.bool_]
FLAT = ("observations", "actions", "values", "log_probs", "advantages", "returns")


class Mask:
    """Which environments failed in the last step. The VecEnv writes it, and the buffer reads it.

    In a saved model the connection to the environment is lost. Reading it then raises an error.
    """

    def __init__(self) -> None:
        self.failed: Flags | None = None

    def read(self, count: int) -> Flags:
        """Which environments failed, given their number."""
        if self.failed is None or len(self.failed) != count:
            said = "mask: is not that of the environment; pass rollout_buffer_kwargs={'mask': env.mask}, also to load()"
            raise SettingsError(said, field="mask")
        return self.failed

    def __getstate__(self) -> dict[str, None]:
        return {"failed": None}


class QueryMutationVecEnv(VecEnv):
    """A `BatchedQueryMutationEnv` as a VecEnv of stable-baselines3.

    Pass an environment as `batch`, or the arguments of one. A new episode begins in the same step in which one ends, as
    stable-baselines3 expects. `mask` says which environments failed in the last step.
    """

    def __init__(self, batch: BatchedQueryMutationEnv | None = None, **how: Any) -> None:
        if batch is not None and how:
            raise SettingsError(f"{next(iter(how))}: set it on the environment that you pass as batch")
        self.batch = BatchedQueryMutationEnv(**how) if batch is None else batch
        self.mask = Mask()
        self._actions: NDArray[Any] = np.zeros(0, np.int64)
        single = self.batch.single_observation_space, self.batch.single_action_space
        super().__init__(self.batch.num_envs, *single)

    def reset(self) -> Floats:
        """Begin an episode in every environment. Seeds and options that were set apply to this reset only."""
        begun = [
            env.reset(seed=seed, options=options)
            for env, seed, options in zip(self.batch.envs, self._seeds, self._options, strict=True)
        ]
        self.reset_infos = [info for _, info in begun]
        self._reset_seeds()
        self._reset_options()
        return np.stack([seen for seen, _ in begun])

    def step_async(self, actions: NDArray[Any]) -> None:
        """Set the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Step every environment concurrently."""
        rows = step_together(self.batch.session, self.batch.envs, list(self._actions))
        self.mask.failed = np.array([row[4]["masked"] for row in rows])
        seen, infos = zip(*(self._told(at, row) for at, row in enumerate(rows)), strict=True)
        rewards = np.array([row[1] for row in rows], np.float32)
        return np.stack(seen), rewards, np.array([row[2] or row[3] for row in rows]), list(infos)

    def _told(self, at: int, row: Row) -> tuple[Floats, Info]:
        """The next observation, and the info in the format of stable-baselines3."""
        seen, _, terminated, truncated, info = row
        info["TimeLimit.truncated"] = truncated
        if not (terminated or truncated):
            return seen, info
        info["terminal_observation"] = seen
        if not info["masked"]:
            info["is_success"] = terminated
        begun, self.reset_infos[at] = self.batch.envs[at].reset()
        return begun, info

    def close(self) -> None:
        """Close the environments. Closing twice is harmless."""
        self.batch.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The value of an attribute in each environment."""
        return [getattr(env, attr_name) for env in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute in each environment."""
        for env in self._chosen(indices):
            setattr(env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each environment."""
        return [getattr(env, method_name)(*method_args, **method_kwargs) for env in self._chosen(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Whether each environment is wrapped in this class. None is."""
        return [is_wrapped(env, wrapper_class) for env in self._chosen(indices)]

    def _chosen(self, indices: VecEnvIndices) -> list[QueryMutationEnv]:
        return [self.batch.envs[at] for at in self._get_indices(indices)]


class MaskedRolloutBuffer(RolloutBuffer):
    """A rollout buffer that excludes failed steps, using the `mask` of its environment.

    Failed steps are in no mini-batch, and advantages do not propagate across them: the step before a failed one uses
    the value estimate of the state in which the step failed. If every step of a rollout failed, the training ends with
    an error; the model is unchanged and can continue later.
    """

    def __init__(self, *args: Any, mask: Mask, **how: Any) -> None:
        self._mask = mask
        super().__init__(*args, **how)

    def reset(self) -> None:
        """Empty the buffer."""
        super().reset()
        self.usable: Flags = np.ones((self.buffer_size, self.n_envs), np.bool_)

    def add(self, *args: Any, **how: Any) -> None:
        """Add the last step of the environments."""
        self.usable[self.pos] = ~self._mask.read(self.n_envs)
        super().add(*args, **how)

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: NDArray[Any]) -> None:
        """Generalised advantage estimation, as in `groundswell mutate train`."""
        last = last_values.clone().cpu().numpy().flatten()
        ended = np.concatenate([self.episode_starts[1:], dones[None]]).astype(np.bool_)
        for env in range(self.n_envs):
            rollout = Rollout(
                values=self.values[:, env].tolist(),
                rewards=self.rewards[:, env].tolist(),
                ended=ended[:, env].tolist(),
                usable=self.usable[:, env].tolist(),
                last_value=float(last[env]),
            )
            self.advantages[:, env] = advantages(rollout, self.gamma, self.gae_lambda)
        self.returns = self.advantages + self.values

    def get(self, batch_size: int | None = None) -> Generator[RolloutBufferSamples, None, None]:
        """Shuffled mini-batches of usable steps. A single remaining step joins the last mini-batch."""
        assert self.full, "the buffer is not full yet"
        usable = np.flatnonzero(self.usable.swapaxes(0, 1))
        if not len(usable):
            raise RunError(
                f"All {self.usable.size} steps of the rollout failed; info['failed'] has the reasons. Once the target "
                "answers again, continue with learn(..., reset_num_timesteps=False)."
            )
        order = np.random.permutation(usable)  # the generator that stable-baselines3 seeds
        if not self.generator_ready:
            for name in FLAT:
                setattr(self, name, self.swap_and_flatten(getattr(self, name)))
            self.generator_ready = True
        cuts = range(batch_size, len(order) - 1, batch_size) if batch_size else []
        for part in np.split(order, cuts):
            yield self._get_samples(part)
