"""Episodes: where one stands, what is seen of it, and what a step does to it. Pure; chance comes from seeds alone."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundswell.experiments.query_mutation.guards import Guard
from groundswell.experiments.query_mutation.mutators import NOOP
from groundswell.experiments.query_mutation.rewards import cosine
from groundswell.experiments.query_mutation.stepping import Step, Stepped
from groundswell.experiments.query_mutation.task import Task

Floats = NDArray[np.float32]
FEATURES = 3
"""What is seen beside the embedding and the last action: refusal, score, how far the episode is."""
STILL = -1
"""The action that leaves the query as it is where no mutator of the task does: for a baseline, never for a policy."""
End = Literal["", "leak", "steps", "fault"]
"""How an episode ended: not yet, with success, at its last step, or with a step that failed."""


class Episode(msgspec.Struct, frozen=True):
    """One attempt at a secret: which one, behind which guard, from which query, and how far it is."""

    seed: int
    guard: int
    """Which of the task's guards."""
    secret: str
    goal: str
    query: str
    embedding: bytes
    step: int = 0
    best: float = 0.0
    """The highest score so far: only what is gained over it counts."""
    score: float = 0.0
    """The share that the last response gave away."""
    refused: bool = False
    previous: int = -1
    """The last action; none yet."""
    end: End = ""


class Transition(msgspec.Struct, frozen=True):
    """What a step came to."""

    episode: Episode
    reward: float
    gained: float
    drift: float
    usable: bool

    @property
    def terminated(self) -> bool:
        """Whether the episode reached its end."""
        return self.episode.end == "leak"

    @property
    def truncated(self) -> bool:
        """Whether it was broken off."""
        return self.episode.end in ("steps", "fault")


def begin(task: Task, seed: int, embeddings: Mapping[str, bytes]) -> Episode:
    """The episode of a seed: guard, secret and query are drawn."""
    draw = Random(seed)
    guard, secret, goal = draw.randrange(len(task.guards)), draw.choice(task.secrets), draw.choice(task.queries)
    return Episode(seed, guard, secret, goal, goal, embeddings[goal])


def guard_of(task: Task, episode: Episode) -> Guard:
    """The guard of an episode."""
    return task.guards[episode.guard]


def mutator_of(task: Task, action: int) -> str:
    """The mutator of an action."""
    return NOOP if action == STILL else task.mutators[action]


def action_of(task: Task, mutator: str) -> int:
    """The action that a mutator is."""
    return STILL if mutator == NOOP and NOOP not in task.mutators else task.mutators.index(mutator)


def step_of(task: Task, episode: Episode, action: int) -> Step:
    """What is to be tried."""
    guard = guard_of(task, episode)
    return Step.of(task, mutator_of(task, action), episode.query, episode.goal, episode.secret, guard)


def size_of(task: Task, width: int) -> int:
    """How many numbers are seen."""
    return width + FEATURES + len(task.mutators)


def observed(task: Task, episode: Episode) -> Floats:
    """What is seen of an episode: the embedding of its query, refusal, score, step, and the last action."""
    vector = np.frombuffer(episode.embedding, dtype="<f4")
    seen = np.zeros(size_of(task, len(vector)), dtype=np.float32)
    seen[: len(vector)] = vector
    at = len(vector)
    seen[at : at + FEATURES] = (float(episode.refused), episode.score, episode.step / task.max_steps)
    if episode.previous >= 0:
        seen[at + FEATURES + episode.previous] = 1.0
    return seen


def advance(
    task: Task, episode: Episode, action: int, stepped: Stepped | None, embeddings: Mapping[str, bytes]
) -> Transition:
    """What a step does to an episode. One that failed, or is missing altogether, breaks it off where it stood.

    So does an embedding of another width: what is seen has as many numbers from the beginning to the end.
    """
    if stepped is None or not stepped.usable or len(stepped.embedding) != len(episode.embedding):
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
        end=end,
    )
    reward = gained - task.query_cost - task.drift_cost * drift
    return Transition(after, reward, gained, drift, usable=True)


def _vector(packed: bytes) -> Floats:
    return np.frombuffer(packed, dtype="<f4")
