"""Mutations: small programs that reword a query. Register your own with `@mutator("name")`.

A mutator gets a `Rewording` and returns the new query. It may send requests to models. If a request fails or returns
nothing, the step keeps the old query and is masked. If its code raises an error, the step is missing and is tried again
on resume. Neither is used for learning.

Rewordings change the query of the last step. Converters (converters.py) and attackers (attackers.py) begin with the
first query of the episode, so a converter is never applied to its own output.
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
from groundswell.experiments.query_mutation.converters import converted
from groundswell.experiments.query_mutation.guards import Exchange
from groundswell.experiments.small_models import extras_of
from groundswell.program.request import Message
from groundswell.program.trial import Program, ProgramFunction, Trial, program

FILE = Path(__file__).with_name("mutators.toml")
NOOP, AFRESH = "noop", "afresh"
TABLES = ("mutators", "converters", "languages", "attackers")
"""The tables of mutators.toml that have an entry for each mutator."""
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

    @property
    def first(self) -> str:
        """The first query of the episode; outside of episodes, the query."""
        return self.goal or self.query


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
    """Check the names of mutators, with the members of groups in their place.

    `module:name` imports the module first, which registers it. A mutator that is named and also in a group counts once.
    """
    if len({given.rpartition(":")[2] for given in names}) < len(names):
        raise SettingsError("mutators: a name is given twice; names must be unique", field="mutators")
    found = dict[str, str]()
    for given in names:
        for each in GROUPS.get(given, (given,)):
            try:
                find_mutator(each)
            except SettingsError as error:
                if ":" in each:  # about a module
                    raise
                raise SettingsError(f"{error}; groups: {', '.join(GROUPS)}", field="mutators") from error
            found.setdefault(each.rpartition(":")[2], each)
    return tuple(found.values())


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
def prompts() -> Mapping[str, Mapping[str, str]]:
    """The tables of mutators.toml."""
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
        return await written(trial, spec, _framed(prompts()["mutators"][name], spec.query), label=name)

    return reword


def _translating(name: str) -> Mutator:
    """A converter that asks a model to translate the first query of the episode."""

    @mutator(name)
    async def translate(trial: Trial, spec: Rewording) -> str:
        return await written(trial, spec, _framed(prompts()["languages"][name], spec.first), label=name)

    return translate


def _converting(name: str) -> Mutator:
    """A converter that needs no model."""

    @mutator(name)
    async def convert(trial: Trial, spec: Rewording) -> str:
        return converted(name, prompts()["converters"][name], spec.first)

    return convert


def _framed(instruction: str, query: str) -> str:
    return prompts()["frame"]["ask"].format(instruction=instruction, query=query)


async def written(trial: Trial, spec: Rewording, messages: str | Sequence[Message], *, label: str) -> str:
    """The query that the model writes when it is told this."""
    reply = await trial.ask(
        spec.model,
        messages,
        label=label,
        temperature=spec.temperature,
        max_tokens=spec.max_tokens,
        extra=extras_of(spec.model),
    )
    query = tidied(reply.text)
    if not query:
        raise NothingCame(f"{spec.model} returned an empty reply for {label}")
    return query


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
"""The built-in rewordings, in the order of the actions."""

for _name in prompts()["converters"]:
    _converting(_name)
for _name in prompts()["languages"]:
    _translating(_name)

CONVERTERS = (*prompts()["converters"], *prompts()["languages"])
ATTACKERS = tuple(prompts()["attackers"])
GROUPS: Mapping[str, tuple[str, ...]] = {
    "rewordings": BUILT_IN,
    "converters": CONVERTERS,
    "attackers": ATTACKERS,
    "all": (*BUILT_IN, *CONVERTERS, *ATTACKERS),
}
"""Names for several mutators at once."""
USUAL = (*BUILT_IN, *CONVERTERS)
"""The mutators of a task if none are named."""


@mutator(AFRESH)
async def afresh(trial: Trial, spec: Rewording) -> str:
    """Another wording of the first query, sampled by a model at temperature 1 or the given one if that is above 0."""
    number = f"Wording {len(spec.talk) + 1}."  # otherwise equal requests could share a reply
    warm = msgspec.structs.replace(spec, temperature=spec.temperature or 1.0)
    return await written(
        trial, warm, _framed(f"{number} {prompts()['mutators']['paraphrase']}", spec.first), label=AFRESH
    )


def described(name: str) -> str | None:
    """The prompt of a built-in mutator, if it has one."""
    found = next((prompts()[table][name] for table in TABLES if name in prompts()[table]), None)
    if name not in ATTACKERS or found is None:
        return found
    attack = prompts()["attack"]
    rate = [attack["rate"]] if name == "tap" else []
    return "\n\n".join([attack["system"], attack["ask"].replace("{instruction}", found), *rate])
