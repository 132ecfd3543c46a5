"""One step of an environment as one trial: reword the query, query the target, score the response.

The target and the embedder are queried concurrently. Environments do not wait for each other: a trial whose target has
answered goes on to scoring while others still wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from groundswell.errors import AskFailed, CallFailed, MalformedReply
from groundswell.experiments.query_mutation.guards import Exchange, Guard
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
"""The response of a step whose request to the target failed. Such a step is masked."""
FAILURES = (AskFailed, CallFailed, MalformedReply, NothingCame, NoScore)
MOST_TEXTS = 256
MOST_CHARACTERS = 100_000
"""Limits of one embedding request, below those of all providers. Several requests are distributed over endpoints."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of a step."""

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
    multi_turn: bool = False
    read_responses: bool = False
    talk: tuple[Exchange, ...] = ()
    """The episode so far."""
    session: str = ""
    """Session id for an application that keeps conversations."""

    @classmethod
    def of(
        cls,
        task: Task,
        mutator: str,
        query: str,
        goal: str,
        secret: str,
        guard: Guard,
        *,
        talk: tuple[Exchange, ...] = (),
    ) -> Step:
        """The step of a task that rewords this query with this mutation."""
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
            task.multi_turn,
            task.read_responses,
            talk,
        )


class Stepped(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a step. `failed` maps its failed parts to the reasons; then the step is masked."""

    query: str
    response: str
    score: float
    refused: bool
    embedding: bytes
    """32-bit floats, as returned by the embedder."""
    failed: dict[str, str] = {}
    heard: bytes = b""
    """The embedding of the response, if the task reads it."""

    @property
    def usable(self) -> bool:
        """Whether every part worked."""
        return not self.failed


class Encode(msgspec.Struct, frozen=True):
    """Texts to embed."""

    embedder: str
    dimensions: int | None
    texts: tuple[str, ...]


class Encoded(msgspec.Struct, frozen=True):
    """Embeddings as consecutive 32-bit floats."""

    width: int
    packed: bytes


@program("query_mutation/encode", version=1)
async def encode(trial: Trial, spec: Encode) -> Encoded:
    """Embed texts, in as few requests as possible."""
    found = await together(
        *(trial.embed(spec.embedder, part, dimensions=spec.dimensions, label="encode") for part in parts(spec.texts))
    )
    whole = checked(*found)
    return Encoded(whole.width, whole.packed)


def parts(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Divide texts into requests, in order. A text above the limit gets a request of its own."""
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


@program("query_mutation/step", version=2)
async def step(trial: Trial, spec: Step) -> Stepped:
    """Reword, query, score. A part that fails uses a fallback and is listed in `failed`."""
    failed: dict[str, str] = {}
    rewording = Rewording(spec.query, spec.mutator_model, spec.temperature, spec.max_tokens, spec.goal, spec.talk)
    query = await _or(reworded(trial, spec.mutator, rewording), spec.query, "mutation", failed)
    (response, score, heard), embedding = await together(
        _answered(trial, spec, query, failed),
        _or(_embedded(trial, spec, query), b"", "embedding", failed),
    )
    refused = refuses(response)
    if not failed:
        named = {"guard": spec.guard.name, "mutator": spec.mutator, "target": spec.target, "model": spec.target}
        trial.row(**named, score=score, refused=refused)
    return Stepped(query, response, score, refused, embedding, dict(sorted(failed.items())), heard)


async def _answered(trial: Trial, spec: Step, query: str, failed: dict[str, str]) -> tuple[str, float, bytes]:
    """The response of the target, its score, and its embedding if the task reads it."""
    asked = answered(
        trial,
        spec.target,
        query,
        spec.guard,
        spec.secret,
        temperature=spec.temperature,
        max_tokens=spec.max_tokens,
        talk=spec.talk if spec.multi_turn else (),
        session=spec.session,
    )
    said = await _or(asked, None, "target", failed)
    if said is None:
        return DEFAULT_REFUSAL, 0.0, b""
    response = spec.guard.let_out(said, spec.secret)
    judged = Judged(
        *(spec.goal, response, spec.secret, spec.reference, spec.judge, spec.embedder, spec.dimensions, query),
        talk=spec.talk,
    )
    scoring = _or(scored(trial, spec.reward, judged), 0.0, "reward", failed)
    if not spec.read_responses or not response.strip():
        return response, await scoring, b""
    return response, *await together(scoring, _or(_embedded(trial, spec, response), b"", "embedding", failed))


async def answered(
    trial: Trial,
    target: str,
    query: str,
    guard: Guard | None,
    secret: str,
    *,
    temperature: float | None,
    max_tokens: int,
    talk: Sequence[Exchange] = (),
    session: str = "",
) -> str:
    """The response of a target to a query, with or without a guard, before any filter."""
    reply = await trial.ask(
        target,
        query if guard is None else guard.told(secret, query, talk),
        label="target",
        temperature=temperature,
        max_tokens=max_tokens,
        extra={"session": session} if session else extras_of(target),
    )
    return reply.text


async def _embedded(trial: Trial, spec: Step, text: str) -> bytes:
    return checked(await trial.embed(spec.embedder, [text], dimensions=spec.dimensions, label="embedding")).packed


def checked(*found: Embedding) -> Embedding:
    """Join embeddings, and check that they have the same size and finite numbers."""
    width, packed = found[0].width, b"".join(each.packed for each in found)
    if not packed or any(each.width != width for each in found):
        raise MalformedReply("embedding", "it is empty, or the sizes differ", "")
    if not np.isfinite(np.frombuffer(packed, dtype="<f4")).all():
        raise MalformedReply("embedding", "it contains numbers that are not finite", "")
    return Embedding(packed, width)


async def _or(work: Awaitable[T], instead: T, part: str, failed: dict[str, str]) -> T:
    """The result of a part of a step, or the fallback if it fails."""
    try:
        return await work
    except FAILURES as error:
        failed[part] = str(error)
        return instead
