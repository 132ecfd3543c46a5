"""Model operators: a model writes a prompt from one or two parents. Each call is one trial.

| operator | parents | task of the model |
|---|---|---|
| paraphrase | 1 | rephrase the prompt |
| reflect | 1 | improve the prompt, given problems that it failed on |
| combine | 2 | combine the strengths of both prompts |
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
"""Maximum length of a written prompt, in characters."""
SHOWN = 200
"""Characters of an unusable reply that are quoted."""
_TAGGED = re.compile(r"<prompt>((?:(?!<prompt>).)*)</prompt>", re.S | re.I)
_BEGUN = re.compile(r"<prompt>(.*)", re.S | re.I)
_FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.S)


class Failure(msgspec.Struct, frozen=True):
    """A problem that a prompt failed on, with the reply."""

    question: str
    answer: str
    reply: str


class Breeding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of a trial in which a model writes a prompt."""

    operator: str
    parents: tuple[Genome, ...]
    model: str
    failures: tuple[Failure, ...] = ()
    seed: int | None = None
    temperature: float | None = 1.0
    max_tokens: int = 800


class Written(msgspec.Struct, frozen=True, omit_defaults=True):
    """The prompt that a model wrote, or the reason why its reply contains none. Tokens are counted in both cases."""

    genome: Genome | None
    input_tokens: int
    output_tokens: int
    why: str = ""


@cache
def _told() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@program("prompt_evolution/breed", version=1)
async def breed(trial: Trial, spec: Breeding) -> Written:
    """Let a model write a prompt."""
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
    """The message to the model."""
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
    """The prompt in a reply: the last one in tags, because the model may quote its parents first."""
    found = _TAGGED.findall(reply)[-1:] or _BEGUN.findall(reply) or _FENCED.findall(reply)[:1]
    text = (found[0] if found else reply).strip()
    if not text:
        raise MalformedReply("prompt", "it is empty", reply)
    if len(text) > LONGEST:
        raise MalformedReply("prompt", f"it has {len(text):,} characters, more than {LONGEST:,}", reply)
    return Genome.of(text)
