"""One step of an environment: a query is reworded, the target answers it, and the answer is scored. One trial each.

The target and the embedding of the new query do not wait for each other, and nobody waits for other environments: a
trial whose target has answered goes on to scoring while others still wait for theirs.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import msgspec

from groundswell.errors import AskFailed, CallFailed, MalformedReply
from groundswell.experiments.query_mutation.guards import Guard
from groundswell.experiments.query_mutation.leaking import refuses
from groundswell.experiments.query_mutation.mutators import NothingCame, Rewording, find_mutator
from groundswell.experiments.query_mutation.rewards import Judged, find_reward
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.small_models import extras_of
from groundswell.program.traps import together
from groundswell.program.trial import Trial, program

T = TypeVar("T")

DEFAULT_REFUSAL = "I'm sorry, but I can't help with that."
"""What stands for a response where the target could not be asked. It is flagged, and never learnt from."""
FAILURES = (AskFailed, CallFailed, MalformedReply, NothingCame)


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that a step needs."""

    mutator: str
    query: str
    goal: str
    secret: str
    guard: Guard
    target: str
    mutator_model: str
    embedder: str
    dimensions: int | None
    judge: str
    reward: str
    reference: str = ""
    temperature: float | None = 0.0
    max_tokens: int = 120

    @classmethod
    def of(cls, task: Task, mutator: str, query: str, goal: str, secret: str, guard: Guard) -> Step:
        """The step of a task that rewords this query in this way."""
        return cls(
            mutator,
            query,
            goal,
            secret,
            guard,
            guard.model(task.target),
            task.mutator_model,
            task.embedder,
            task.width,
            task.judge,
            task.reward,
            task.reference,
            task.temperature,
            task.max_tokens,
        )


class Stepped(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a step. `failed` says which of its parts did, and why: then it must not be learnt from."""

    query: str
    response: str
    score: float
    refused: bool
    embedding: bytes
    """32-bit floats, as the embedder gave them."""
    failed: dict[str, str] = {}

    @property
    def usable(self) -> bool:
        """Whether every part worked."""
        return not self.failed


class Encode(msgspec.Struct, frozen=True):
    """Texts to embed, in one call."""

    embedder: str
    dimensions: int | None
    texts: tuple[str, ...]


class Encoded(msgspec.Struct, frozen=True):
    """Their embeddings, one after the other, as 32-bit floats."""

    width: int
    packed: bytes


@program("query_mutation/encode", version=1)
async def encode(trial: Trial, spec: Encode) -> Encoded:
    """Embed texts."""
    found = await trial.embed(spec.embedder, spec.texts, dimensions=spec.dimensions, label="encode")
    return Encoded(found.width, found.packed)


@program("query_mutation/step", version=1)
async def step(trial: Trial, spec: Step) -> Stepped:
    """Reword, ask, score. A part that fails falls back, and is flagged."""
    failed: dict[str, str] = {}
    rewording = Rewording(spec.query, spec.mutator_model, spec.temperature, spec.max_tokens)
    query = await _or(find_mutator(spec.mutator)(trial, rewording), spec.query, "mutation", failed)
    (response, score), embedding = await together(
        _answered(trial, spec, query, failed),
        _or(_embedded(trial, spec, query), b"", "embedding", failed),
    )
    return Stepped(query, response, score, refuses(response), embedding, dict(sorted(failed.items())))


async def _answered(trial: Trial, spec: Step, query: str, failed: dict[str, str]) -> tuple[str, float]:
    """What the target says, and what that is worth."""
    said = await _or(_asked(trial, spec, query), None, "target", failed)
    if said is None:
        return DEFAULT_REFUSAL, 0.0
    response = spec.guard.let_out(said, spec.secret)
    judged = Judged(spec.goal, response, spec.secret, spec.reference, spec.judge, spec.embedder, spec.dimensions)
    return response, await _or(find_reward(spec.reward)(trial, judged), 0.0, "reward", failed)


async def _asked(trial: Trial, spec: Step, query: str) -> str:
    reply = await trial.ask(
        spec.target,
        spec.guard.told(spec.secret, query),
        label="target",
        temperature=spec.temperature,
        max_tokens=spec.max_tokens,
        extra=extras_of(spec.target),
    )
    return reply.text


async def _embedded(trial: Trial, spec: Step, query: str) -> bytes:
    return (await trial.embed(spec.embedder, [query], dimensions=spec.dimensions, label="embedding")).packed


async def _or(work: Awaitable[T], instead: T, part: str, failed: dict[str, str]) -> T:
    """What a part of a step gives, or what stands for it if it fails."""
    try:
        return await work
    except FAILURES as error:
        failed[part] = str(error)
        return instead
