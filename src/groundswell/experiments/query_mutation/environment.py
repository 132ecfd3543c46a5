"""The environment as Gymnasium has it: one step is one trial.

What happens follows from the task, the seed of the episode and the actions alone (at temperature 0): who steps, and
what else is going on in the session, makes no difference.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from operator import index
from typing import Any, NamedTuple, SupportsIndex

import gymnasium
import msgspec
import numpy as np
from gymnasium.error import ClosedEnvironmentError, InvalidAction, ResetNeeded
from gymnasium.spaces import Box, Discrete

from groundswell.engine.outcome import Outcome
from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation import stepping
from groundswell.experiments.query_mutation.episode import (
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
from groundswell.experiments.query_mutation.rendering import shown
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stepping import DEFAULT_REFUSAL, Step, Stepped
from groundswell.experiments.query_mutation.task import Task, check_secrets

ID = "QueryMutation-v0"
Info = dict[str, Any]
Row = tuple[Floats, float, bool, bool, Info]
"""What a step gives: observation, reward, terminated, truncated, info."""
OPTIONS = ("guard", "secret", "query")
SEEDS = 1 << 63


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


gymnasium.register(
    ID,
    entry_point=f"{__name__}:QueryMutationEnv",
    vector_entry_point="groundswell.experiments.query_mutation.vector:BatchedQueryMutationEnv",
)
