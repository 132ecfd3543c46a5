"""The environments that the description of query mutation names, for Gymnasium. They need gymnasium; stable.py needs
stable-baselines3 too, and batching.py neither.

One step is one trial. What happens follows from the task, the seed of the episode and the actions alone (at temperature
0), whatever else is going on in the session. `BatchedQueryMutationEnv` submits the steps of a round together: one whose
target has answered does not wait for the others before the round is over.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from operator import index
from typing import Any, NamedTuple, SupportsIndex

import gymnasium
import msgspec
import numpy as np
from gymnasium.error import ClosedEnvironmentError, InvalidAction, ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from groundswell.engine.outcome import Outcome
from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation import stepping
from groundswell.experiments.query_mutation.episode import (
    End,
    Episode,
    Floats,
    Transition,
    advance,
    begin,
    guard_of,
    observed,
    size_of,
    step_of,
)
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stepping import DEFAULT_REFUSAL, Step, Stepped
from groundswell.experiments.query_mutation.task import Task, check_secrets
from groundswell.reporting.words import visible

ID = "QueryMutation-v0"
NUM_ENVS = 16
OPTIONS = ("guard", "secret", "query")
SEEDS = 1 << 63
WIDTH = 100
ENDS: Mapping[End, str] = {
    "": "",
    "leak": "The secret is out.",
    "steps": "That was the last step.",
    "fault": "The step failed: the episode is broken off here, and nothing is learnt from it.",
}
Info = dict[str, Any]
Row = tuple[Floats, float, bool, bool, Info]
"""What a step gives: observation, reward, terminated, truncated, info."""
Steps = tuple[Floats, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[Info]]
"""The same of several environments."""
Actions = Sequence[SupportsIndex] | NDArray[np.integer[Any]]
Seeds = int | Sequence[int | None] | None


class Prepared(NamedTuple):
    """A step that is to be made: the key and the spec of its trial."""

    key: str
    spec: Step
    action: int


class QueryMutationEnv(gymnasium.Env[Floats, np.int64]):
    """A guarded model that is asked, again and again, for a planted secret. An action is a mutator of the task.

    Seen are the embedding of the query, whether the last response refused, its score, how far the episode is, and the
    last action. With no task the emulator plays all parts. A `session` that is given is not closed; without one the
    environment opens its own when it is needed, on a temporary store.

    A step of which a part failed has reward 0 and truncates the episode where it stood; its info says `masked`, and
    nothing should be learnt from it.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012  as Gymnasium has it

    def __init__(
        self, task: Task | None = None, *, session: Session | None = None, render_mode: str | None = None
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise SettingsError(f"render_mode {render_mode!r}: there are ansi and human", field="render_mode")
        self._task = task or Task()
        self.render_mode = render_mode
        self.given = session
        """The session that it was given, if it was."""
        self._own: Session | None = None
        self._closed = False
        self._episode: Episode | None = None
        self._encoded: Mapping[str, bytes] = {}
        self._occurrence = 0
        self._info: Info = {}
        try:
            self.width = self.task.width or self.session.world(self.task).width
            """Of an embedding."""
        except BaseException:
            self.close()
            raise
        self.observation_space = _seen(self.task, self.width)
        self.action_space = Discrete(len(self.task.mutators))

    @property
    def task(self) -> Task:
        """What it is about. It stays so: whether its target may be tested is asked when an episode begins."""
        return self._task

    @property
    def session(self) -> Session:
        """The session that it asks through; opened here if none was given."""
        if self._closed:
            raise ClosedEnvironmentError("this environment is closed: make another one")
        if self.given is not None:
            return self.given
        if self._own is None:
            self._own = Session()
        return self._own

    def join(self, session: Session) -> None:
        """Ask through a session that is shared from now on. One of its own, if there is one, is closed.

        An episode of another session is not gone on with: whom this one may test is asked when one begins.
        """
        if self.given is not session:
            self._episode = None
        self._leave()
        self.given = session

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, Info]:
        """Begin an episode. `options` may name its guard, and give its secret and its query; the rest is drawn."""
        session = self.session
        super().reset(seed=seed)
        world = session.world(self.task)
        if world.width != self.width:
            raise SettingsError(
                f"dimensions {self.width}: {self.task.embedder} gives embeddings of {world.width} numbers: say so in "
                "the task",
                field="dimensions",
            )
        drawn = begin(self.task, int(self.np_random.integers(SEEDS)), world.encoded)
        fixed = _fixed(self.task, options or {})
        goal = fixed.pop("goal", drawn.goal)
        embedding = session.encoded(self.task, goal)
        self._encoded = {goal: embedding}
        self._episode = msgspec.structs.replace(drawn, goal=goal, query=goal, embedding=embedding, **fixed)
        self._occurrence = session.occurrence(drawn.seed)
        self._info = _about(self.task, self._episode)
        self._show()
        return observed(self.task, self._episode), dict(self._info)

    def step(self, action: SupportsIndex) -> Row:
        """Reword the query as the mutator of this action does, and ask."""
        session, prepared = self.session, self.prepare(action)
        return self.settle(prepared, session.submit(stepping.step, prepared.spec, key=prepared.key))

    def prepare(self, action: SupportsIndex) -> Prepared:
        """The trial of a step, for those who make many at once; `settle` takes what comes of it."""
        episode, number = self._going, _number(action)
        if not 0 <= number < len(self.task.mutators):
            raise InvalidAction(f"action {number}: must be from 0 to {len(self.task.mutators) - 1}")
        spec = step_of(self.task, episode, number)
        # the spec is part of the key: whoever goes on with a session may choose otherwise from there on
        digest = blake2b(msgspec.json.encode(spec), digest_size=6).hexdigest()
        return Prepared(f"{episode.seed}/{self._occurrence}/{episode.step}/{digest}", spec, number)

    def settle(self, prepared: Prepared, outcome: Outcome[Stepped]) -> Row:
        """What a step came to."""
        after = advance(self.task, self._going, prepared.action, outcome.result, self._encoded)
        self._episode = after.episode
        self._info = _about(self.task, after.episode) | _told(self.task, prepared.action, after, outcome)
        self._show()
        info = self._info | {"failed": dict(self._info["failed"])}
        return observed(self.task, after.episode), after.reward, after.terminated, after.truncated, info

    def render(self) -> str | None:
        """The last exchange as text; in the mode `human`, on standard output."""
        if self.render_mode is None:
            gymnasium.logger.warn("nothing is rendered: make the environment with render_mode='ansi' or 'human'")
            return None
        if self._episode is None:
            raise ResetNeeded("nothing to render yet: call reset() first")
        text = shown(self.task, self._episode, self._info)
        if self.render_mode == "ansi":
            return text
        sys.stdout.write(f"{text}\n")
        return None

    def close(self) -> None:
        """Close the session, unless it was given. To close again does nothing."""
        self._closed = True
        self._leave()

    @property
    def _going(self) -> Episode:
        if self._closed:
            raise ClosedEnvironmentError("this environment is closed: make another one")
        if self._episode is None:
            raise ResetNeeded("no episode has begun: call reset() first")
        if self._episode.end:
            raise ResetNeeded(f"the episode is over ({self._episode.end}): call reset() first")
        return self._episode

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _leave(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.close()


def _number(action: SupportsIndex) -> int:
    with suppress(TypeError):
        if not isinstance(action, bool):
            return index(action)
    raise InvalidAction(f"action {action!r}: must be a whole number")


def _seen(task: Task, width: int) -> Box[np.float32]:
    """The bounds of what is seen. Emulated embeddings have length 1; those of other models may have any."""
    bound = 1.0 if task.embedder.startswith("emulated/") else np.inf
    low, high = np.zeros(size_of(task, width), np.float32), np.ones(size_of(task, width), np.float32)
    low[:width], high[:width] = -bound, bound
    return Box(low, high, dtype=np.float32)


def _fixed(task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the options of a reset say of an episode."""
    for name, value in options.items():
        if name not in OPTIONS:
            raise SettingsError(f"options: there is no {name!r}; there are {', '.join(OPTIONS)}", field="options")
        if not isinstance(value, str) or not value.strip():
            raise SettingsError(f"options: {name} {value!r}: must be a text, and not empty", field=name)
    found = {"goal" if name == "query" else name: value for name, value in options.items()}
    if "guard" in found:
        names = [guard.name for guard in task.guards]
        if found["guard"] not in names:
            said = f"options: the task has no guard {found['guard']!r}; it has {', '.join(names)}"
            raise SettingsError(said, field="guard")
        found["guard"] = names.index(found["guard"])
    if "secret" in found or "goal" in found:
        secrets = (found["secret"],) if "secret" in found else task.secrets
        queries = (found["goal"],) if "goal" in found else task.queries
        check_secrets(secrets, tuple(guard.brief for guard in task.guards), queries)
    return found


def _about(task: Task, episode: Episode) -> Info:
    """What an episode is about, and its query."""
    guard = guard_of(task, episode).name
    return {"query": episode.query, "goal": episode.goal, "guard": guard, "secret": episode.secret}


def _told(task: Task, action: int, after: Transition, outcome: Outcome[Stepped]) -> Info:
    """What a step came to. Of one that is missing altogether nothing is known but why."""
    stepped = outcome.result
    if stepped is None:
        why = "" if outcome.fault is None else f"{outcome.fault.kind}: {outcome.fault.message}"
        stepped = Stepped(after.episode.query, DEFAULT_REFUSAL, 0.0, True, b"", {"step": why})
    return {
        "mutator": task.mutators[action],
        "query": stepped.query,
        "response": stepped.response,
        "score": stepped.score,
        "refused": stepped.refused,
        "drift": after.drift,
        "failed": dict(stepped.failed),
        "masked": not after.usable,
    }


def shown(task: Task, episode: Episode, info: Mapping[str, Any]) -> str:
    """The last exchange of an episode; before the first, what it is about."""
    lines = [f"guard {info['guard']}, step {episode.step} of {task.max_steps}"]
    lines += _field("goal", episode.goal)
    if "response" in info:
        lines += _field(info["mutator"], info["query"])
        lines += _field("response", info["response"])
        lines.append(f"score {info['score']:.2f} (best {episode.best:.2f}), drift {info['drift']:.2f}")
    lines += [f"failed: {part}: {why}" for part, why in info.get("failed", {}).items()]
    lines += [said] if (said := ENDS[episode.end]) else []
    return visible("\n".join(lines) + "\n")


def _field(name: str, text: str) -> list[str]:
    return textwrap.wrap(f"{name}: {text}", WIDTH, subsequent_indent="  ")


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
            self.envs = given or [
                QueryMutationEnv(task, session=self.session, render_mode=render_mode) for _ in range(count)
            ]
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

    def batch_step(self, actions: Actions) -> Steps:
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


gymnasium.register(
    ID, entry_point=f"{__name__}:QueryMutationEnv", vector_entry_point=f"{__name__}:BatchedQueryMutationEnv"
)
