"""Gymnasium environments for query mutation: `QueryMutationEnv` and `BatchedQueryMutationEnv`.

One step is one trial. At temperature 0 its result depends on the task, the seed of the episode and the actions alone,
not on other environments of the session. `BatchedQueryMutationEnv` submits the steps of all environments
together: an environment whose target has answered goes on to scoring while others still wait.
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
    embedded_size,
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
    "leak": "The secret leaked.",
    "steps": "The episode reached its last step.",
    "fault": "The step failed. The episode ends here; the step is masked.",
}
Info = dict[str, Any]
Row = tuple[Floats, float, bool, bool, Info]
"""The result of a step: observation, reward, terminated, truncated, info."""
Steps = tuple[Floats, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[Info]]
"""The results of one step in several environments."""
Actions = Sequence[SupportsIndex] | NDArray[np.integer[Any]]
Seeds = int | Sequence[int | None] | None


class Prepared(NamedTuple):
    """A step to submit: the key and the spec of its trial."""

    key: str
    spec: Step
    action: int


class QueryMutationEnv(gymnasium.Env[Floats, np.int64]):
    """A Gymnasium environment that queries a guarded model for a planted secret. An action is the index of a mutation.

    The observation is the embedding of the query, whether the last response was a refusal, its score, the progress of
    the episode, and the last action (one-hot). Without a task, all models are emulated. Without a `session`, the
    environment opens one on a temporary store when needed, and closes it. A given session stays open.

    A copy of an environment (pickle, deepcopy) continues its episode and opens a session of its own. A given session
    cannot be copied, and neither can an environment that uses one.

    If a part of a step fails, the reward is 0, the episode is truncated and `info["masked"]` is True. Exclude such
    steps from learning.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012  as Gymnasium has it

    def __init__(
        self, task: Task | None = None, *, session: Session | None = None, render_mode: str | None = None
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise SettingsError(f"render_mode {render_mode!r}: must be 'ansi' or 'human'", field="render_mode")
        self._task = task or Task()
        self.render_mode = render_mode
        self.given = session
        """The session that was given, if any."""
        self._own: Session | None = None
        self._batch: BatchedQueryMutationEnv | None = None
        """The vector environment that this copy belongs to, and whose session it uses."""
        self._closed = False
        self._episode: Episode | None = None
        self._encoded: Mapping[str, bytes] = {}
        self._occurrence = 0
        self._info: Info = {}
        try:
            self.width = self.task.width or self.session.world(self.task).width
            """Size of an embedding."""
        except BaseException:
            self.close()
            raise
        self.observation_space = _seen(self.task, self.width)
        self.action_space = Discrete(len(self.task.mutators))

    @property
    def task(self) -> Task:
        """The task. It cannot be changed: whether the target may be tested is checked when an episode begins."""
        return self._task

    @property
    def session(self) -> Session:
        """The session that requests go through. It is opened here if none was given."""
        if self._closed:
            raise ClosedEnvironmentError("This environment is closed: create a new one")
        if self.given is not None:
            return self.given
        if self._batch is not None:
            return self._batch.session
        if self._own is None:
            self._own = _opened([self])
        return self._own

    def join(self, session: Session) -> None:
        """Use a shared session from now on. The environment's own session is closed.

        The current episode is abandoned: whether its target may be tested is checked per session, at the reset.
        """
        if self.given is not session:
            self._episode = None
        self._leave()
        self.given = session

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, Info]:
        """Begin an episode. `options` may set `guard` (a name), `secret` and `query`; the rest is drawn at random."""
        session = self.session
        super().reset(seed=seed)
        world = session.world(self.task)
        if world.width != self.width:
            raise SettingsError(
                f"dimensions {self.width}: {self.task.embedder} returned embeddings of size {world.width}; set "
                f"dimensions={world.width} in the task",
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
        """Reword the query with the mutation of this action, and query the target."""
        session, prepared = self.session, self.prepare(action)
        return self.settle(prepared, session.submit(stepping.step, prepared.spec, key=prepared.key))

    def prepare(self, action: SupportsIndex) -> Prepared:
        """The trial of a step, for callers that submit several at once. Pass its outcome to `settle`."""
        episode, number = self._going, _number(action)
        if not 0 <= number < len(self.task.mutators):
            raise InvalidAction(f"action {number}: must be between 0 and {len(self.task.mutators) - 1}")
        spec = step_of(self.task, episode, number)
        # the spec is part of the key: a continued session may choose other actions
        digest = blake2b(msgspec.json.encode(spec), digest_size=6).hexdigest()
        return Prepared(f"{episode.seed}/{self._occurrence}/{episode.step}/{digest}", spec, number)

    def settle(self, prepared: Prepared, outcome: Outcome[Stepped]) -> Row:
        """The result of a step, from the outcome of its trial."""
        after = advance(self.task, self._going, prepared.action, outcome.result, self._encoded)
        self._episode = after.episode
        self._info = _about(self.task, after.episode) | _told(self.task, prepared.action, after, outcome)
        self._show()
        info = self._info | {"failed": dict(self._info["failed"])}
        return observed(self.task, after.episode), after.reward, after.terminated, after.truncated, info

    def render(self) -> str | None:
        """The last query and response as text. In mode `human`, print it to standard output."""
        if self.render_mode is None:
            gymnasium.logger.warn("Cannot render: create the environment with render_mode='ansi' or 'human'")
            return None
        if self._episode is None:
            raise ResetNeeded("Nothing to render: call reset() first")
        text = shown(self.task, self._episode, self._info)
        if self.render_mode == "ansi":
            return text
        sys.stdout.write(f"{text}\n")
        return None

    def close(self) -> None:
        """Close the session, unless it was given. Closing twice is harmless."""
        self._closed = True
        self._leave()

    def without_session(self) -> QueryMutationEnv:
        """A shallow copy without a session."""
        found = QueryMutationEnv.__new__(type(self))
        found.__dict__ = self.__dict__ | {"given": None, "_own": None, "_batch": None}
        return found

    def continue_in(self, session: Session) -> None:
        """Continue the current episode, if any, in another session. Check there whether its target may be tested."""
        if self._episode is not None:
            session.world(self.task)
            session.continued(self._episode.seed, self._occurrence)

    def __getstate__(self) -> dict[str, Any]:
        if self.given is not None or self._batch is not None:
            raise _not_copied()
        return self.__dict__ | {"_own": None}

    @property
    def _going(self) -> Episode:
        if self._closed:
            raise ClosedEnvironmentError("This environment is closed: create a new one")
        if self._episode is None:
            raise ResetNeeded("No episode has begun: call reset() first")
        if self._episode.end:
            raise ResetNeeded(f"The episode is over ({self._episode.end}): call reset() first")
        return self._episode

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _leave(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.close()


def _opened(envs: Iterable[QueryMutationEnv], max_workers: int | None = None) -> Session:
    """A new session for these environments."""
    session = Session(max_workers=max_workers)
    try:
        for env in envs:
            env.continue_in(session)
    except BaseException:
        session.close()
        raise
    return session


def _not_copied() -> SettingsError:
    said = "session: a given session cannot be copied; create the environment without one, or where it is used"
    return SettingsError(said, field="session")


def _number(action: SupportsIndex) -> int:
    with suppress(TypeError):
        if not isinstance(action, bool) and "bool" not in str(getattr(action, "dtype", "")):
            return index(action)
    raise InvalidAction(f"action {action!r}: must be an integer")


def _seen(task: Task, width: int) -> Box[np.float32]:
    """The observation space. Emulated embeddings have norm 1; those of other models are unbounded."""
    bound, embedded = 1.0 if task.embedder.startswith("emulated/") else np.inf, embedded_size(task, width)
    low, high = np.zeros(size_of(task, width), np.float32), np.ones(size_of(task, width), np.float32)
    low[:embedded], high[:embedded] = -bound, bound
    return Box(low, high, dtype=np.float32)


def _fixed(task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an episode that the options of a reset set."""
    for name, value in options.items():
        if name not in OPTIONS:
            raise SettingsError(f"options: unknown option {name!r}; known: {', '.join(OPTIONS)}", field="options")
        if not isinstance(value, str) or not value.strip():
            raise SettingsError(f"options: {name} {value!r}: must be a non-empty string", field=name)
    found = {"goal" if name == "query" else name: value for name, value in options.items()}
    if "guard" in found:
        names = [guard.name for guard in task.guards]
        if found["guard"] not in names:
            said = f"options: the task has no guard {found['guard']!r}; its guards are {', '.join(names)}"
            raise SettingsError(said, field="guard")
        found["guard"] = names.index(found["guard"])
    if "secret" in found or "goal" in found:
        secrets = (found["secret"],) if "secret" in found else task.secrets
        queries = (found["goal"],) if "goal" in found else task.queries
        check_secrets(secrets, tuple(guard.brief for guard in task.guards), queries)
    return found


def _about(task: Task, episode: Episode) -> Info:
    """The info of an episode: its query, goal, guard and secret."""
    guard = guard_of(task, episode).name
    return {"query": episode.query, "goal": episode.goal, "guard": guard, "secret": episode.secret}


def _told(task: Task, action: int, after: Transition, outcome: Outcome[Stepped]) -> Info:
    """The info of a step. A step without a result has only the reason."""
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
    """The last query and response of an episode; before the first step, its guard and goal."""
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
    """A Gymnasium vector environment that steps all its environments concurrently.

    It wraps the environments in `envs`, or makes `num_envs` (16) of one task. They share one session: the one given
    here or to one of the environments, which stays open; otherwise one is opened here with at most `max_workers`
    requests in flight (None: adaptive). Environments in `envs` may have different tasks with the same mutations and
    observation space. They are closed together with this environment.

    `autoreset_mode` says what happens after an episode ends. NEXT_STEP: the next step only begins a new episode. This
    is the default of Gymnasium. SAME_STEP: a new episode begins at once, and `final_obs` and `final_info` hold the end
    of the last one. DISABLED: call `reset` with a `reset_mask`.

    A copy (pickle, deepcopy) continues all episodes in a session of its own, unless a session was given.
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
        self._session: Session | None = Session(max_workers=max_workers) if shared is None else shared
        self._max_workers = max_workers
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

    @property
    def session(self) -> Session:
        """The session that requests go through. A copy opens its own."""
        if self._session is None:
            self._check_open()
            self._session = _opened(self.envs, self._max_workers)
        return self._session

    def reset(self, *, seed: Seeds = None, options: dict[str, Any] | None = None) -> tuple[Floats, Info]:
        """Like `batch_reset`, with the infos as one dict of arrays, as in Gymnasium."""
        seen, infos = self.batch_reset(seed=seed, options=options)
        return seen, self._merged(infos)

    def step(self, actions: Actions) -> tuple[Floats, NDArray[Any], NDArray[Any], NDArray[Any], Info]:
        """Like `batch_step`, with the infos as one dict of arrays, as in Gymnasium."""
        seen, rewards, terminated, truncated, infos = self.batch_step(actions)
        return seen, rewards, terminated, truncated, self._merged(infos)

    def batch_reset(self, *, seed: Seeds = None, options: dict[str, Any] | None = None) -> tuple[Floats, list[Info]]:
        """Begin an episode in every environment. Returns the observations and a list of infos.

        An integer seed n seeds the environments with n, n + 1, n + 2 and so on; a list gives one seed per environment.
        Options apply to all environments. `options["reset_mask"]`, a bool array, selects the environments to reset; the
        others have an empty info.
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
        """Step every environment concurrently. Returns observations, rewards, terminated, truncated, a list of infos.

        `autoreset_mode` says what happens to environments whose episode is over.
        """
        self._check_open()
        if np.ndim(actions) != 1:  # type: ignore[arg-type]  # numpy knows no SupportsIndex
            raise InvalidAction(f"actions {actions!r}: must be a list of {self.num_envs} integers, one per environment")
        if len(actions) != self.num_envs:
            raise InvalidAction(f"actions: got {len(actions)} for {self.num_envs} environments; give one each")
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
        """The rendering of each environment."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments, and the session if it was opened here."""
        for env in getattr(self, "envs", []):
            env.close()
        if self._owner and self._session is not None:
            self._session.close()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute, as in Gymnasium's SyncVectorEnv."""
        found = [env.get_wrapper_attr(name) for env in self.envs]
        return tuple(each(*args, **kwargs) if callable(each) else each for each in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """The value of an attribute in each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: list[Any] | tuple[Any, ...] | Any) -> None:
        """Set an attribute in each environment. A list or tuple has one value per environment."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            said = f"values: got {len(values)} for {self.num_envs} environments; give one each"
            raise SettingsError(said, field="values")
        for env, value in zip(self.envs, values, strict=True):
            env.set_wrapper_attr(name, value)

    def __getstate__(self) -> dict[str, Any]:
        if not self._owner:
            raise _not_copied()
        return self.__dict__ | {"_session": None, "envs": [env.without_session() for env in self.envs]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for env in self.envs:
            env._batch = self

    def _renewed(self, at: int, row: Row) -> Row:
        """The row of a step. In mode SAME_STEP a new episode begins, and the info holds the end of the last one."""
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
            raise SettingsError(f"seed: got {len(seed)} for {self.num_envs} environments; give one each", field="seed")
        return [None if each is None else int(each) for each in seed]

    def _which(self, mask: Any) -> NDArray[np.bool_]:
        if mask is None:
            return np.ones(self.num_envs, np.bool_)
        found = np.asarray(mask)
        if found.shape != (self.num_envs,) or found.dtype != np.bool_ or not found.any():
            said = f"options: reset_mask must be an array of {self.num_envs} bools with at least one True"
            raise SettingsError(said, field="reset_mask")
        return found

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("This environment is closed: create a new one")


def step_together(session: Session, envs: Sequence[QueryMutationEnv], actions: Sequence[SupportsIndex]) -> list[Row]:
    """Step these environments concurrently. If one action is invalid, no environment steps."""
    prepared = [env.prepare(action) for env, action in zip(envs, actions, strict=True)]
    outcomes = session.submit_all(stepping.step, [(each.key, each.spec) for each in prepared])
    return [env.settle(each, outcome) for env, each, outcome in zip(envs, prepared, outcomes, strict=True)]


def _begun(env: QueryMutationEnv) -> Row:
    """The row of a step that only begins a new episode."""
    seen, info = env.reset()
    return seen, 0.0, False, False, info


def _mode(given: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(given)
    except ValueError:
        known = ", ".join(mode.value for mode in AutoresetMode)
        raise SettingsError(f"autoreset_mode {given!r}: must be one of {known}", field="autoreset_mode") from None


def _given(envs: list[QueryMutationEnv], **others: object) -> list[QueryMutationEnv]:
    """Check the environments that were given."""
    for name, value in others.items():
        if value is not None:
            raise SettingsError(f"{name}: the environments in envs already have it; omit {name}", field=name)
    if not envs:
        raise SettingsError("envs: must not be empty", field="envs")
    for env in envs:
        if not isinstance(env, QueryMutationEnv):
            said = (
                f"envs: {env} is not a QueryMutationEnv; pass `env.unwrapped` and wrap the vector environment instead"
            )
            raise SettingsError(said, field="envs")
    if len(set(map(id, envs))) < len(envs):
        raise SettingsError("envs: contains the same environment twice; create one per position", field="envs")
    for one, other in pairwise(envs):
        if one.task.mutators != other.task.mutators or one.observation_space != other.observation_space:
            said = "envs: all must have the same mutators, embedder and dimensions"
            raise SettingsError(said, field="envs")
        if one.render_mode != other.render_mode:
            raise SettingsError("envs: all must have the same render_mode", field="envs")
    return envs


def _shared(envs: Sequence[QueryMutationEnv], session: Session | None, max_workers: int | None) -> Session | None:
    """The session that was given, if any. There may be only one."""
    given = [each for each in (session, *(env.given for env in envs)) if each is not None]
    if any(each is not given[0] for each in given):
        said = "session: the environments have different sessions; give all of them the same session, or none"
        raise SettingsError(said, field="session")
    if given and max_workers is not None:
        said = "max_workers: set it on the session that you pass: Session(max_workers=...)"
        raise SettingsError(said, field="max_workers")
    return given[0] if given else None


gymnasium.register(
    ID, entry_point=f"{__name__}:QueryMutationEnv", vector_entry_point=f"{__name__}:BatchedQueryMutationEnv"
)
