"""Many environments that step at once: a Gymnasium VectorEnv over one session.

All steps of a round are submitted together, and each goes through mutation, target, scoring and embedding by itself:
one whose target has answered does not wait for the others before the round is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, SupportsIndex

import numpy as np
from gymnasium.error import ClosedEnvironmentError, InvalidAction
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation import stepping
from groundswell.experiments.query_mutation.environment import Info, QueryMutationEnv, Row
from groundswell.experiments.query_mutation.episode import Floats, size_of
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.task import Task

NUM_ENVS = 16
Actions = Sequence[SupportsIndex] | NDArray[np.integer[Any]]
Seeds = int | Sequence[int | None] | None
Stepped = tuple[Floats, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[Info]]


class BatchedQueryMutationEnv(VectorEnv[Floats, Actions, NDArray[Any]]):
    """Environments that step at once: those given as `envs`, or `num_envs` of one task.

    They share one session. If one was given, to any of them or here, it is that one, and it is not closed; otherwise
    one is opened here, with `max_workers` asks in flight at most (None: as many as the models bear). Environments that
    are given may differ in their tasks, but not in their mutators and spaces; they are closed with this one.

    `autoreset_mode` says what becomes of an environment whose episode is over: its next step begins another one and
    does nothing else (NEXT_STEP, what most of Gymnasium expects); another one begins at once, and `final_obs` and
    `final_info` hold what there was last (SAME_STEP); or `reset` must be called with a `reset_mask` (DISABLED).
    """

    def __init__(
        self,
        envs: Iterable[QueryMutationEnv] | None = None,
        *,
        num_envs: int | None = None,
        task: Task | None = None,
        session: Session | None = None,
        max_workers: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ) -> None:
        self.autoreset_mode = _mode(autoreset_mode)
        given = None if envs is None else _given(list(envs), num_envs=num_envs, task=task, render_mode=render_mode)
        count = NUM_ENVS if num_envs is None else num_envs
        if count < 1:
            raise SettingsError(f"num_envs {count}: must be at least 1", field="num_envs")
        shared = _shared(given or [], session, max_workers)
        self.session = Session(max_workers=max_workers) if shared is None else shared
        self._owner = shared is None
        try:
            self.envs = given or _made(count, task, self.session, render_mode)
        except BaseException:
            self.close_extras()
            raise
        for env in self.envs:
            env.join(self.session)
        first = self.envs[0]
        self.num_envs = len(self.envs)
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)
        self._seen: Floats = np.zeros((self.num_envs, size_of(first.task, first.width)), np.float32)
        self._over = np.zeros(self.num_envs, np.bool_)

    def reset(self, *, seed: Seeds = None, options: dict[str, Any] | None = None) -> tuple[Floats, Info]:
        """As `batch_reset`, with the infos as Gymnasium has them: one dict of arrays."""
        seen, infos = self.batch_reset(seed=seed, options=options)
        return seen, self._merged(infos)

    def step(self, actions: Actions) -> tuple[Floats, NDArray[Any], NDArray[Any], NDArray[Any], Info]:
        """As `batch_step`, with the infos as Gymnasium has them: one dict of arrays."""
        seen, rewards, terminated, truncated, infos = self.batch_step(actions)
        return seen, rewards, terminated, truncated, self._merged(infos)

    def batch_reset(self, *, seed: Seeds = None, options: dict[str, Any] | None = None) -> tuple[Floats, list[Info]]:
        """Begin an episode in every environment: the observations, and an info for each environment.

        A number seeds the first, and the others with those that follow it; or there is a seed for each. Options are
        for all alike; `reset_mask`, an array of bools, says which to reset, and the others have an empty info.
        """
        self._check_open()
        seeds = self._seeds(seed)
        options = dict(options or {})
        which = self._which(options.pop("reset_mask", None))
        infos: list[Info] = [{} for _ in self.envs]
        for at in np.flatnonzero(which):
            self._seen[at], infos[at] = self.envs[at].reset(seed=seeds[at], options=options)
            self._over[at] = False
        return self._seen.copy(), infos

    def batch_step(self, actions: Actions) -> Stepped:
        """One step in every environment, all at once: observations, rewards, terminated, truncated; an info for each.

        What becomes of episodes that are over, `autoreset_mode` says.
        """
        self._check_open()
        if np.ndim(actions) != 1:  # type: ignore[arg-type]  # numpy knows no SupportsIndex
            raise InvalidAction(f"actions {actions!r}: give one for each of {self.num_envs} environments")
        if len(actions) != self.num_envs:
            raise InvalidAction(f"actions: {len(actions)} for {self.num_envs} environments: give one for each")
        over = self._over if self.autoreset_mode is AutoresetMode.NEXT_STEP else np.zeros_like(self._over)
        going = np.flatnonzero(~over).tolist()
        stepped = step_together(self.session, [self.envs[at] for at in going], [actions[at] for at in going])
        rows = {at: self._renewed(at, row) for at, row in zip(going, stepped, strict=True)}
        rows |= {at: _begun(env) for at, env in enumerate(self.envs) if over[at]}
        seen, rewards, terminated, truncated, infos = zip(*(rows[at] for at in range(self.num_envs)), strict=True)
        self._seen = np.stack(seen)
        self._over = np.array(terminated) | np.array(truncated)
        return self._seen.copy(), np.array(rewards), np.array(terminated), np.array(truncated), list(infos)

    def render(self) -> tuple[Any, ...] | None:
        """What each environment renders."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments, and the session if it was opened here."""
        for env in getattr(self, "envs", []):
            env.close()
        if self._owner:
            self.session.close()

    def _renewed(self, at: int, row: Row) -> Row:
        """A step as it is told: where another episode begins at once, with the end of the last one in the info."""
        seen, reward, terminated, truncated, info = row
        if self.autoreset_mode is not AutoresetMode.SAME_STEP or not (terminated or truncated):
            return row
        begun, about = self.envs[at].reset()
        return begun, reward, terminated, truncated, {"final_obs": seen, "final_info": info, **about}

    def _merged(self, infos: Sequence[Info]) -> Info:
        merged: Info = {}
        for at, info in enumerate(infos):
            merged = self._add_info(merged, info, at)
        return merged

    def _seeds(self, seed: Seeds) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + at for at in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise SettingsError(f"seed: {len(seed)} for {self.num_envs} environments: give one for each", field="seed")
        return [None if each is None else int(each) for each in seed]

    def _which(self, mask: Any) -> NDArray[np.bool_]:
        if mask is None:
            return np.ones(self.num_envs, np.bool_)
        found = np.asarray(mask)
        if found.shape != (self.num_envs,) or found.dtype != np.bool_ or not found.any():
            said = f"options: reset_mask must be {self.num_envs} bools, at least one of them true"
            raise SettingsError(said, field="reset_mask")
        return found

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("this environment is closed: make another one")


def step_together(session: Session, envs: Sequence[QueryMutationEnv], actions: Sequence[SupportsIndex]) -> list[Row]:
    """One step in each of these environments, all at once. If one cannot be made, none is."""
    prepared = [env.prepare(action) for env, action in zip(envs, actions, strict=True)]
    outcomes = session.submit_all(stepping.step, [(each.key, each.spec) for each in prepared])
    return [env.settle(each, outcome) for env, each, outcome in zip(envs, prepared, outcomes, strict=True)]


def _begun(env: QueryMutationEnv) -> Row:
    """A step that only begins another episode."""
    seen, info = env.reset()
    return seen, 0.0, False, False, info


def _mode(given: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(given)
    except ValueError:
        known = ", ".join(mode.value for mode in AutoresetMode)
        raise SettingsError(f"autoreset_mode {given!r}: there are {known}", field="autoreset_mode") from None


def _made(count: int, task: Task | None, session: Session, render_mode: str | None) -> list[QueryMutationEnv]:
    return [QueryMutationEnv(task, session=session, render_mode=render_mode) for _ in range(count)]


def _given(envs: list[QueryMutationEnv], **others: object) -> list[QueryMutationEnv]:
    """Environments that were given, checked."""
    for name, value in others.items():
        if value is not None:
            raise SettingsError(f"{name}: is what the given environments have: leave it out beside envs", field=name)
    if not envs:
        raise SettingsError("envs: at least one is needed", field="envs")
    for env in envs:
        if not isinstance(env, QueryMutationEnv):
            said = f"envs: {env} is no QueryMutationEnv: give its `unwrapped`, and wrap the vector environment instead"
            raise SettingsError(said, field="envs")
    if len(set(map(id, envs))) < len(envs):
        raise SettingsError("envs: the same environment is given twice: make one for each place", field="envs")
    for one, other in pairwise(envs):
        if one.task.mutators != other.task.mutators or one.observation_space != other.observation_space:
            said = "envs: they must agree on mutators and spaces, and so on the embedder and its dimensions"
            raise SettingsError(said, field="envs")
        if one.render_mode != other.render_mode:
            raise SettingsError("envs: they must agree on render_mode", field="envs")
    return envs


def _shared(envs: Sequence[QueryMutationEnv], session: Session | None, max_workers: int | None) -> Session | None:
    """The session that was given, if one was; there may be but one."""
    given = [each for each in (session, *(env.given for env in envs)) if each is not None]
    if any(each is not given[0] for each in given):
        said = "session: the environments have different ones: give all the same, or none, and one is opened for all"
        raise SettingsError(said, field="session")
    if given and max_workers is not None:
        said = "max_workers: is a setting of the session that was given: Session(max_workers=...)"
        raise SettingsError(said, field="max_workers")
    return given[0] if given else None
