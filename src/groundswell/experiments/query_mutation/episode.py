"""Episodes: their state, the observation, and the transition of a step. Pure; randomness comes from seeds alone."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundswell.experiments.query_mutation.guards import Exchange, Guard
from groundswell.experiments.query_mutation.mutators import AFRESH, NOOP
from groundswell.experiments.query_mutation.rewards import cosine
from groundswell.experiments.query_mutation.stepping import Step, Stepped
from groundswell.experiments.query_mutation.task import Task

Floats = NDArray[np.float32]
FEATURES = 3
"""Number of observed features beside the embedding and the last action: refusal, score, progress."""
OUTSIDE = (NOOP, AFRESH, "pair", "tap", "crescendo")
"""Mutations of methods that always use the same one. If the task does not have it, its action is negative."""
End = Literal["", "leak", "steps", "fault"]
"""How an episode ended: not yet, with a leak, at its last step, or with a failed step."""


class Episode(msgspec.Struct, frozen=True):
    """The state of an episode: secret, guard, first query, and progress."""

    seed: int
    guard: int
    """Index of the guard in the task."""
    secret: str
    goal: str
    query: str
    embedding: bytes
    step: int = 0
    best: float = 0.0
    """Highest score so far. Only a gain over it is rewarded."""
    score: float = 0.0
    """Score after the last response."""
    refused: bool = False
    previous: int = -1
    """Last action; -1 before the first."""
    taken: tuple[int, ...] = ()
    """All actions so far."""
    heard: bytes = b""
    """Embedding of the last response, if the task reads responses."""
    end: End = ""
    talk: tuple[Exchange, ...] = ()
    """The queries so far, with their responses."""


class Transition(msgspec.Struct, frozen=True):
    """The result of a step."""

    episode: Episode
    reward: float
    gained: float
    drift: float
    usable: bool

    @property
    def terminated(self) -> bool:
        """Whether the episode ended with a leak."""
        return self.episode.end == "leak"

    @property
    def truncated(self) -> bool:
        """Whether the episode ended without a leak."""
        return self.episode.end in ("steps", "fault")


def begin(task: Task, seed: int, embeddings: Mapping[str, bytes]) -> Episode:
    """Begin the episode of a seed: draw guard, secret and query."""
    draw = Random(seed)
    guard, secret, goal = draw.randrange(len(task.guards)), draw.choice(task.secrets), draw.choice(task.queries)
    return Episode(seed, guard, secret, goal, goal, embeddings[goal])


def guard_of(task: Task, episode: Episode) -> Guard:
    """The guard of an episode."""
    return task.guards[episode.guard]


def mutator_of(task: Task, action: int) -> str:
    """The mutation of an action."""
    return task.mutators[action] if action >= 0 else OUTSIDE[-1 - action]


def action_of(task: Task, mutator: str) -> int:
    """The action of a mutation."""
    return task.mutators.index(mutator) if mutator in task.mutators else -1 - OUTSIDE.index(mutator)


def step_of(task: Task, episode: Episode, action: int) -> Step:
    """The spec of the next step."""
    guard = guard_of(task, episode)
    return Step.of(
        task, mutator_of(task, action), episode.query, episode.goal, episode.secret, guard, talk=episode.talk
    )


def size_of(task: Task, width: int) -> int:
    """Size of the observation."""
    return embedded_size(task, width) + FEATURES + len(task.mutators)


def embedded_size(task: Task, width: int) -> int:
    """How many numbers of the observation are embeddings: of the query, and of the response if the task reads it."""
    return 2 * width if task.read_responses else width


def observed(task: Task, episode: Episode) -> Floats:
    """The observation: embeddings, refusal, score, progress, and the last action (one-hot)."""
    vector = np.frombuffer(episode.embedding, dtype="<f4")
    seen = np.zeros(size_of(task, len(vector)), dtype=np.float32)
    seen[: len(vector)] = vector
    if episode.heard:
        seen[len(vector) : 2 * len(vector)] = np.frombuffer(episode.heard, dtype="<f4")
    at = embedded_size(task, len(vector))
    seen[at : at + FEATURES] = (float(episode.refused), episode.score, episode.step / task.max_steps)
    if episode.previous >= 0:
        seen[at + FEATURES + episode.previous] = 1.0
    return seen


def advance(
    task: Task, episode: Episode, action: int, stepped: Stepped | None, embeddings: Mapping[str, bytes]
) -> Transition:
    """Apply the result of a step. A step that failed or has no result ends the episode in its current state.

    So does an embedding of another size: the size of the observation must not change within an episode.
    """
    lengths = {len(stepped.embedding), len(stepped.heard or stepped.embedding)} if stepped is not None else set()
    if stepped is None or not stepped.usable or lengths != {len(episode.embedding)}:
        return Transition(msgspec.structs.replace(episode, end="fault"), 0.0, 0.0, 0.0, usable=False)
    drift = 1.0 - cosine(_vector(stepped.embedding), _vector(embeddings[episode.goal]))
    gained = max(0.0, stepped.score - episode.best)
    count = episode.step + 1
    end: End = "leak" if stepped.score >= task.success else "steps" if count >= task.max_steps else ""
    after = msgspec.structs.replace(
        episode,
        query=stepped.query,
        embedding=stepped.embedding,
        step=count,
        best=max(episode.best, stepped.score),
        score=stepped.score,
        refused=stepped.refused,
        previous=action,
        taken=(*episode.taken, action),
        heard=stepped.heard,
        end=end,
        talk=(*episode.talk, Exchange(stepped.query, stepped.response)),
    )
    reward = gained - task.query_cost - task.drift_cost * drift
    return Transition(after, reward, gained, drift, usable=True)


def _vector(packed: bytes) -> Floats:
    return np.frombuffer(packed, dtype="<f4")
