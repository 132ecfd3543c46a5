"""Mutations: small programs that reword a query. Register your own with `@mutator("name")`.

A mutator gets a `Rewording` and returns the new query. It may send requests to models. If a request fails or returns
nothing, the step keeps the old query and is masked. If its code raises an error, the step is missing and is tried again
on resume. Neither is used for learning.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.named import Named
from groundswell.experiments.query_mutation.guards import Exchange
from groundswell.experiments.small_models import extras_of
from groundswell.program.trial import Program, ProgramFunction, Trial, program

FILE = Path(__file__).with_name("mutators.toml")
NOOP, AFRESH = "noop", "afresh"
_OPENED = re.compile(r"<query>|```\w*+")
_CLOSED = ("</query>", "```")
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»"}


class Rewording(msgspec.Struct, frozen=True, omit_defaults=True):
    """The input of a mutator: a query, and the model that may reword it."""

    query: str
    model: str
    temperature: float | None = 0.0
    max_tokens: int = 200
    goal: str = ""
    """The first query of the episode."""
    talk: tuple[Exchange, ...] = ()
    """The episode so far, for mutators that read the responses."""


class NothingCame(Exception):
    """A mutator returned an empty query."""


Mutator = Program[Rewording, str]
_MUTATORS = Named[Mutator]("mutators")


def mutator(name: str) -> Callable[[ProgramFunction[Rewording, str]], Mutator]:
    """Register an `async def f(trial, rewording) -> str` as a mutator of this name."""

    def register(function: ProgramFunction[Rewording, str]) -> Mutator:
        made = program(f"query_mutation/mutators/{name}")(function)
        _MUTATORS[name] = made
        return made

    return register


def mutators_named(names: Sequence[str]) -> tuple[str, ...]:
    """Check the names of mutators. `module:name` imports the module first, which registers it."""
    for given in names:
        find_mutator(given)
    if len({given.rpartition(":")[2] for given in names}) < len(names):
        raise SettingsError("mutators: a name is given twice; names must be unique", field="mutators")
    return tuple(names)


def find_mutator(given: str) -> Mutator:
    """The mutator of this name or `module:name`."""
    return _MUTATORS.find(given)


async def reworded(trial: Trial, given: str, spec: Rewording) -> str:
    """The query reworded by this mutator. An empty query is an error."""
    query = await find_mutator(given)(trial, spec)
    if not query or not query.strip():
        raise NothingCame(f"mutator {given!r} returned {query!r} instead of a query")
    return query


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@cache
def digest() -> str:
    """A hash of the prompts. Results with different prompts are not comparable."""
    return blake2b(FILE.read_bytes(), digest_size=6).hexdigest()


@mutator(NOOP)
async def noop(trial: Trial, spec: Rewording) -> str:
    """The query without changes."""
    return spec.query


def _asking(name: str) -> Mutator:
    """A mutator that asks a model to reword the query."""

    @mutator(name)
    async def reword(trial: Trial, spec: Rewording) -> str:
        said = _words()["frame"]["ask"].format(instruction=_words()["mutators"][name], query=spec.query)
        reply = await trial.ask(
            spec.model,
            said,
            label=name,
            temperature=spec.temperature,
            max_tokens=spec.max_tokens,
            extra=extras_of(spec.model),
        )
        query = tidied(reply.text)
        if not query:
            raise NothingCame(f"{spec.model} returned an empty reply for {name}")
        return query

    return reword


def tidied(text: str) -> str:
    """The query without the code fence, tags or quotes that models put around it."""
    text = text.strip()
    opened = _OPENED.match(text)
    closed = next((mark for mark in _CLOSED if text.endswith(mark)), None)
    if opened is not None and closed is not None and opened.end() <= len(text) - len(closed):
        text = text[opened.end() : -len(closed)].strip()
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1]
    return text.strip()


for _name in ("paraphrase", "politeness", "indirect", "synonyms", "shorten", "passive_voice"):
    _asking(_name)

BUILT_IN: tuple[str, ...] = tuple(_MUTATORS)
"""The built-in mutators, in the order of the actions."""


@mutator(AFRESH)
async def afresh(trial: Trial, spec: Rewording) -> str:
    """Another wording of the first query, sampled by a model at temperature 1 or the given one if that is above 0."""
    number = f"Wording {len(spec.talk) + 1}."  # otherwise equal requests could share a reply
    instruction = f"{number} {_words()['mutators']['paraphrase']}"
    said = _words()["frame"]["ask"].format(instruction=instruction, query=spec.goal or spec.query)
    reply = await trial.ask(
        spec.model,
        said,
        label=AFRESH,
        temperature=spec.temperature or 1.0,
        max_tokens=spec.max_tokens,
        extra=extras_of(spec.model),
    )
    query = tidied(reply.text)
    if not query:
        raise NothingCame(f"{spec.model} returned an empty reply for {AFRESH}")
    return query


def described(name: str) -> str | None:
    """The instruction of a built-in mutator, if it has one."""
    return _words()["mutators"].get(name)
