"""Model operators: a model makes a prompt from one or two. One trial each.

| operator | parents | what the model is asked for |
|---|---|---|
| paraphrase | 1 | the same in other words |
| reflect | 1 | a better one, shown problems that it failed on |
| combine | 2 | one that has the strengths of both |
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from groundswell.errors import MalformedReply
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.small_models import extras_of
from groundswell.program.trial import Trial, program

FILE = Path(__file__).with_name("operators.toml")
PARENTS: dict[str, int] = {"paraphrase": 1, "reflect": 1, "combine": 2}
LONGEST = 6_000
"""Characters of a prompt. A model that runs away is not followed."""
SHOWN = 200
"""Characters of a reply that is no prompt."""
_TAGGED = re.compile(r"<prompt>((?:(?!<prompt>).)*)</prompt>", re.S | re.I)
_BEGUN = re.compile(r"<prompt>(.*)", re.S | re.I)
_FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.S)


class Failure(msgspec.Struct, frozen=True):
    """A problem that a prompt failed on."""

    question: str
    answer: str
    reply: str


class Breeding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt to be made."""

    operator: str
    parents: tuple[Genome, ...]
    model: str
    failures: tuple[Failure, ...] = ()
    seed: int | None = None
    temperature: float | None = 1.0
    max_tokens: int = 800


class Written(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt that a model made; or, paid for like any other, a reply that holds none, and why."""

    genome: Genome | None
    input_tokens: int
    output_tokens: int
    why: str = ""


@cache
def _told() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@program("prompt_evolution/breed", version=1)
async def breed(trial: Trial, spec: Breeding) -> Written:
    """Have a model make a prompt."""
    reply = await trial.ask(
        spec.model,
        asked(spec),
        label=spec.operator,
        temperature=spec.temperature,
        seed=spec.seed,
        max_tokens=spec.max_tokens,
        extra=extras_of(spec.model),
    )
    used = reply.usage.input_tokens, reply.usage.output_tokens
    try:
        if reply.finish == "length":
            raise MalformedReply("prompt", f"it was cut off after {spec.max_tokens} tokens", reply.text)
        return Written(prompt_in(reply.text), *used)
    except MalformedReply as error:
        return Written(None, *used, f"{error}; the model wrote: {error.text[:SHOWN]}")


def asked(spec: Breeding) -> str:
    """What the model is told."""
    told = _told()
    failures = "\n".join(
        told["failure"]["each"].strip().format(question=each.question, answer=each.answer, reply=each.reply)
        for each in spec.failures
    )
    values = {
        "one": spec.parents[0].text,
        "other": spec.parents[-1].text,
        "failures": failures or told["failure"]["none"],
    }
    return told["ask"][spec.operator].strip().format_map(values)


def prompt_in(reply: str) -> Genome:
    """The prompt in what a model wrote: the last in tags, for it may speak of tags or quote its parents before that."""
    found = _TAGGED.findall(reply)[-1:] or _BEGUN.findall(reply) or _FENCED.findall(reply)[:1]
    text = (found[0] if found else reply).strip()
    if not text:
        raise MalformedReply("prompt", "it is empty", reply)
    if len(text) > LONGEST:
        raise MalformedReply("prompt", f"it has {len(text):,} characters, and {LONGEST:,} are the most", reply)
    return Genome.of(text)
