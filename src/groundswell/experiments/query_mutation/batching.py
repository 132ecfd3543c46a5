"""Batch functions: encode queries, mutate queries, query the target. Lists in, lists out, in the same order.

`encode_queries`, `mutate_queries` and `query_target_model` are async and work in a run. `batch_encode_queries`,
`batch_mutate_queries` and `batch_query_target_model` do the same for synchronous code. All of them use the features of
a run: cache, rate limiting, several endpoints, journal. Errors that stop a run, such as a wrong key or an unreachable
server, raise an exception.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from groundswell.engine.outcome import Outcome
from groundswell.engine.run import Run
from groundswell.errors import SettingsError
from groundswell.experiments.named import trust_named
from groundswell.experiments.query_mutation.episode import Floats
from groundswell.experiments.query_mutation.guards import Guard
from groundswell.experiments.query_mutation.mutators import Rewording, find_mutator, reworded
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stepping import DEFAULT_REFUSAL, Encode, Encoded, answered, encode, parts
from groundswell.experiments.query_mutation.targets import authorised
from groundswell.experiments.query_mutation.task import EMBEDDER, MOST_TOKENS, MUTATOR, TARGET, width_of
from groundswell.program.trial import Trial, program

T = TypeVar("T")

ASKED_AS = TARGET.format(strength="0.5", kind="courtesy")
"""The default target when no guard is given."""


class Texts(list[str]):
    """A list of texts, in the order of the input. `failed` maps the index of each fallback text to the reason."""

    def __init__(self, texts: Iterable[str] = (), failed: dict[int, str] | None = None) -> None:
        super().__init__(texts)
        self.failed = failed or {}

    def __repr__(self) -> str:
        said = super().__repr__()
        return f"Texts({said}, failed={self.failed!r})" if self.failed else said


class Rewrite(msgspec.Struct, frozen=True):
    """A query and the mutation to apply."""

    mutator: str
    rewording: Rewording


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt for a target, with or without a guard."""

    target: str
    prompt: str
    guard: Guard | None = None
    secret: str = ""
    temperature: float | None = 0.0
    max_tokens: int = MOST_TOKENS


@program("query_mutation/mutate", version=1)
async def mutate(trial: Trial, spec: Rewrite) -> str:
    """Reword a query."""
    return await reworded(trial, spec.mutator, spec.rewording)


@program("query_mutation/ask", version=1)
async def ask(trial: Trial, spec: Prompt) -> str:
    """Ask a target."""
    said = await answered(
        trial,
        spec.target,
        spec.prompt,
        spec.guard,
        spec.secret,
        temperature=spec.temperature,
        max_tokens=spec.max_tokens,
    )
    return said if spec.guard is None else spec.guard.let_out(said, spec.secret)


async def encode_queries(
    run: Run, queries: Sequence[str], *, model: str = EMBEDDER, dimensions: int | None = None
) -> Floats:
    """Embed queries, one row each. Equal queries are embedded once. Raises an error if a query cannot be embedded."""
    texts = list(dict.fromkeys(_checked(queries, "queries")))
    _at_least_one("dimensions", dimensions)
    width = width_of(model, dimensions)
    specs = [Encode(model, width, part) for part in parts(texts)]
    found = [outcome.unwrap() async for outcome in run.map(encode, specs)]
    if not found:
        return np.zeros((0, width or 0), dtype=np.float32)
    rows = {text: at for at, text in enumerate(texts)}
    return np.concatenate([_rows(each) for each in found])[[rows[query] for query in queries]]


async def mutate_queries(
    run: Run,
    queries: Sequence[str],
    mutations: str | Sequence[str],
    *,
    model: str = MUTATOR,
    temperature: float | None = 0.0,
    max_tokens: int = MOST_TOKENS,
) -> Texts:
    """Reword queries, each with its own mutation or all with the same. If a mutation fails, the query stays as is."""
    queries = _checked(queries, "queries")
    mutations = _mutations(mutations, len(queries))
    _at_least_one("max_tokens", max_tokens)
    run.relies_on(mutate, [find_mutator(each) for each in dict.fromkeys(mutations)])
    specs = [
        Rewrite(mutation, Rewording(query, model, temperature, max_tokens))
        for query, mutation in zip(queries, mutations, strict=True)
    ]
    return _texts([outcome async for outcome in run.map(mutate, specs)], queries)


async def query_target_model(
    run: Run,
    prompts: Sequence[str],
    *,
    model: str | None = None,
    guard: Guard | None = None,
    secret: str = "",
    temperature: float | None = 0.0,
    max_tokens: int = MOST_TOKENS,
    allowed_targets: Sequence[str] = (),
    confirmed: bool = False,
) -> Texts:
    """Send prompts to a target, behind a guard if one is given. A request that fails returns `DEFAULT_REFUSAL`.

    A target on another machine must be allowed and confirmed: see targets.py.
    """
    prompts = _checked(prompts, "prompts")
    _at_least_one("max_tokens", max_tokens)
    if (guard is None) != (not secret):
        raise SettingsError("guard and secret: give both or neither", field="secret" if guard else "guard")
    target = guard.model(model or TARGET) if guard is not None else model or ASKED_AS
    authorised(run, target, allowed=allowed_targets, confirmed=confirmed)
    specs = [Prompt(target, prompt, guard, secret, temperature, max_tokens) for prompt in prompts]
    outcomes = [outcome async for outcome in run.map(ask, specs)]
    return _texts(outcomes, [DEFAULT_REFUSAL] * len(prompts))


def batch_encode_queries(
    queries: Sequence[str],
    *,
    model: str = EMBEDDER,
    dimensions: int | None = None,
    max_workers: int | None = None,
    session: Session | None = None,
    store: str | Path | None = None,
    name: str | None = None,
) -> Floats:
    """Embed queries: an array of 32-bit floats with one row per query. Raises an error if one cannot be embedded.

    Requests go through `session`. Without one, a session is opened for this call: `store` and `name` continue the run
    of that name, and `max_workers` limits the requests in flight (None: adaptive).
    """
    return _worked(
        lambda run: encode_queries(run, queries, model=model, dimensions=dimensions), session, max_workers, store, name
    )


def batch_mutate_queries(
    queries: Sequence[str],
    mutations: str | Sequence[str],
    *,
    model: str = MUTATOR,
    temperature: float | None = 0.0,
    max_tokens: int = MOST_TOKENS,
    max_workers: int | None = None,
    session: Session | None = None,
    store: str | Path | None = None,
    name: str | None = None,
) -> Texts:
    """Reword queries, each with its own mutation or all with the same.

    A mutation that fails returns the query as is; `.failed` maps its index to the reason. For `session`, `store`,
    `name` and `max_workers` see `batch_encode_queries`.
    """
    return _worked(
        lambda run: mutate_queries(
            run, queries, mutations, model=model, temperature=temperature, max_tokens=max_tokens
        ),
        session,
        max_workers,
        store,
        name,
    )


def batch_query_target_model(
    prompts: Sequence[str],
    *,
    model: str | None = None,
    guard: Guard | None = None,
    secret: str = "",
    temperature: float | None = 0.0,
    max_tokens: int = MOST_TOKENS,
    allowed_targets: Sequence[str] = (),
    confirmed: bool = False,
    max_workers: int | None = None,
    session: Session | None = None,
    store: str | Path | None = None,
    name: str | None = None,
) -> Texts:
    """Send prompts to a target, behind a guard if one is given.

    A request that fails returns `DEFAULT_REFUSAL`; `.failed` maps its index to the reason. For `session`, `store`,
    `name` and `max_workers` see `batch_encode_queries`.
    """
    return _worked(
        lambda run: query_target_model(
            run,
            prompts,
            model=model,
            guard=guard,
            secret=secret,
            temperature=temperature,
            max_tokens=max_tokens,
            allowed_targets=allowed_targets,
            confirmed=confirmed,
        ),
        session,
        max_workers,
        store,
        name,
    )


def _worked(
    work: Callable[[Run], Awaitable[T]],
    session: Session | None,
    max_workers: int | None,
    store: str | Path | None,
    name: str | None,
) -> T:
    """Do the work in the given session, or in one that is opened for it."""
    if session is not None:
        for field, value in (("max_workers", max_workers), ("store", store), ("name", name)):
            if value is not None:
                raise SettingsError(f"{field}: the session already has one; omit {field}", field=field)
        return session.run.wait(work(session.run.run))
    if name is not None and store is None:
        raise SettingsError("name: a named run needs a store; give store too", field="name")
    _at_least_one("max_workers", max_workers)
    with Session(store=store, name=name, max_workers=max_workers) as opened:
        return opened.run.wait(work(opened.run.run))


def _at_least_one(field: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise SettingsError(f"{field} {value}: must be at least 1", field=field)


def _checked(texts: Sequence[str], field: str) -> list[str]:
    if isinstance(texts, str):
        raise SettingsError(f"{field}: must be a list of strings, not a string", field=field)
    texts = list(texts)
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise SettingsError(f"{field}[{at}]: must be a string, not {type(text).__name__}", field=field)
    return texts


def _mutations(mutations: str | Sequence[str], count: int) -> list[str]:
    """The mutation of each query."""
    named = [mutations] * count if isinstance(mutations, str) else _checked(mutations, "mutations")
    if len(named) != count:
        raise SettingsError(f"mutations: got {len(named)} for {count} queries; give one per query, or one name for all")
    trust_named(named)
    for each in dict.fromkeys([mutations] if isinstance(mutations, str) else named):
        try:
            find_mutator(each)
        except SettingsError as error:
            raise SettingsError(f"mutations{str(error).removeprefix('mutators')}", field="mutations") from error
    return named


def _rows(found: Encoded) -> Floats:
    return np.frombuffer(found.packed, dtype="<f4").reshape(-1, found.width)


def _texts(outcomes: Sequence[Outcome[str]], instead: Sequence[str]) -> Texts:
    """The results, with fallbacks for failed trials."""
    failed = {
        at: f"{outcome.fault.kind}: {outcome.fault.message}"
        for at, outcome in enumerate(outcomes)
        if outcome.fault is not None
    }
    return Texts((outcome.result or "" if outcome.ok else instead[at] for at, outcome in enumerate(outcomes)), failed)
