"""One step of an environment: a query is reworded, the target answers it, and the answer is scored. One trial each.

The target and the embedding of the new query do not wait for each other, and nobody waits for other environments: a
trial whose target has answered goes on to scoring while others still wait for theirs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from groundswell.errors import AskFailed, CallFailed, MalformedReply
from groundswell.experiments.query_mutation.guards import Guard
from groundswell.experiments.query_mutation.leaking import refuses
from groundswell.experiments.query_mutation.mutators import NothingCame, Rewording, reworded
from groundswell.experiments.query_mutation.rewards import Judged, NoScore, scored
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.small_models import extras_of
from groundswell.program.request import Embedding
from groundswell.program.traps import together
from groundswell.program.trial import Trial, program

T = TypeVar("T")

DEFAULT_REFUSAL = "I'm sorry, but I can't help with that."
"""What stands for a response where the target could not be asked. It is flagged, and never learnt from."""
FAILURES = (AskFailed, CallFailed, MalformedReply, NothingCame, NoScore)
MOST_TEXTS = 256
MOST_CHARACTERS = 100_000
"""What is embedded in one ask: less than any provider takes. Asks travel together, and are shared among servers."""


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
    """Embed texts: in one ask, or in several where they are too many for one."""
    found = await together(
        *(trial.embed(spec.embedder, part, dimensions=spec.dimensions, label="encode") for part in parts(spec.texts))
    )
    whole = checked(*found)
    return Encoded(whole.width, whole.packed)


def parts(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Texts in their order, as many together as go into one ask; one that is too long by itself goes alone."""
    held: list[str] = []
    size = 0
    for text in texts:
        if held and (len(held) == MOST_TEXTS or size + len(text) > MOST_CHARACTERS):
            yield tuple(held)
            held, size = [], 0
        held.append(text)
        size += len(text)
    if held:
        yield tuple(held)


@program("query_mutation/step", version=1)
async def step(trial: Trial, spec: Step) -> Stepped:
    """Reword, ask, score. A part that fails falls back, and is flagged."""
    failed: dict[str, str] = {}
    rewording = Rewording(spec.query, spec.mutator_model, spec.temperature, spec.max_tokens)
    query = await _or(reworded(trial, spec.mutator, rewording), spec.query, "mutation", failed)
    (response, score), embedding = await together(
        _answered(trial, spec, query, failed),
        _or(_embedded(trial, spec, query), b"", "embedding", failed),
    )
    refused = refuses(response)
    if not failed:
        named = {"guard": spec.guard.name, "mutator": spec.mutator, "target": spec.target, "model": spec.target}
        trial.row(**named, score=score, refused=refused)
    return Stepped(query, response, score, refused, embedding, dict(sorted(failed.items())))


async def _answered(trial: Trial, spec: Step, query: str, failed: dict[str, str]) -> tuple[str, float]:
    """What the target says, and what that is worth."""
    asked = answered(
        trial,
        spec.target,
        query,
        spec.guard,
        spec.secret,
        temperature=spec.temperature,
        max_tokens=spec.max_tokens,
    )
    said = await _or(asked, None, "target", failed)
    if said is None:
        return DEFAULT_REFUSAL, 0.0
    response = spec.guard.let_out(said, spec.secret)
    judged = Judged(spec.goal, response, spec.secret, spec.reference, spec.judge, spec.embedder, spec.dimensions, query)
    return response, await _or(scored(trial, spec.reward, judged), 0.0, "reward", failed)


async def answered(
    trial: Trial,
    target: str,
    query: str,
    guard: Guard | None,
    secret: str,
    *,
    temperature: float | None,
    max_tokens: int,
) -> str:
    """What a target says to a query, by itself or told by a guard; as it says it, before any filter."""
    reply = await trial.ask(
        target,
        query if guard is None else guard.told(secret, query),
        label="target",
        temperature=temperature,
        max_tokens=max_tokens,
        extra=extras_of(target),
    )
    return reply.text


async def _embedded(trial: Trial, spec: Step, query: str) -> bytes:
    return checked(await trial.embed(spec.embedder, [query], dimensions=spec.dimensions, label="embedding")).packed


def checked(*found: Embedding) -> Embedding:
    """Embeddings as one, if every number of them is one: else all that is learnt would be spoilt."""
    width, packed = found[0].width, b"".join(each.packed for each in found)
    if not packed or any(each.width != width for each in found):
        raise MalformedReply("embedding", "it is empty, or others are wider", "")
    if not np.isfinite(np.frombuffer(packed, dtype="<f4")).all():
        raise MalformedReply("embedding", "not all of its numbers are finite", "")
    return Embedding(packed, width)


async def _or(work: Awaitable[T], instead: T, part: str, failed: dict[str, str]) -> T:
    """What a part of a step gives, or what stands for it if it fails."""
    try:
        return await work
    except FAILURES as error:
        failed[part] = str(error)
        return instead
