"""Model operators: a model writes a prompt from one or two parents. Each call is one trial.

Of a program with several texts, it writes one text, and sees all of them.

| operator | parents | task of the model |
|---|---|---|
| reflect | 1 | improve the prompt, given problems that it failed on and some that it solved |
| combine | 2 | combine the strengths of both prompts |
| paraphrase | 1 | rephrase the prompt |
| polish | 1 | shorten the prompt and correct its language; used once, on the winner |
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from groundswell.errors import MalformedReply, SettingsError
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.small_models import extras_of
from groundswell.program.trial import Trial, program

FILE = Path(__file__).with_name("operators.toml")
PARENTS: dict[str, int] = {"reflect": 1, "combine": 2, "paraphrase": 1}
"""Model operators of a search, with their number of parents."""
POLISH = "polish"
LONGEST = 20_000
"""Maximum length of a written prompt, in characters."""
SHOWN = 200
"""Characters of an unusable reply that are quoted."""
_TAGGED = re.compile(r"<prompt>((?:(?!<prompt>).)*)</prompt>", re.S | re.I)
_BEGUN = re.compile(r"<prompt>(.*)", re.S | re.I)
_FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.S)
_FIELD = re.compile(r"\{(prompt|other|task|failures|successes)\}")
FIELDS = ("prompt", "failures")
"""Fields that a template of one's own must have."""


class Writing(msgspec.Struct, frozen=True, kw_only=True):
    """How the writer is asked."""

    temperature: float | None = 1.0
    max_tokens: int = 2_000
    failures: int = 6
    """Maximum number of failed problems that are shown."""
    successes: int = 2
    """Maximum number of solved problems that are shown."""
    template: str = ""
    """Message for `reflect`, with the fields {prompt}, {failures}, {successes} and {task}. Empty: the built-in one."""

    def __post_init__(self) -> None:
        for name, least in (("max_tokens", 1), ("failures", 1), ("successes", 0)):
            if getattr(self, name) < least:
                raise SettingsError(f"{name} {getattr(self, name)}: must be at least {least}", field=name)
        if lacking := [name for name in FIELDS if self.template and f"{{{name}}}" not in self.template]:
            raise SettingsError(f"template: has no {{{lacking[0]}}}; add it where it belongs", field="template")


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """A problem with the reply to a prompt, as the writer sees it."""

    question: str
    answer: str
    reply: str
    working: str = ""
    feedback: str = ""
    turns: str = ""
    """What a program did, in short."""


class Breeding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of a trial in which a model writes a prompt."""

    operator: str
    parents: tuple[Genome, ...]
    model: str
    failures: tuple[Case, ...] = ()
    seed: int | None = None
    temperature: float | None = 1.0
    max_tokens: int = 2_000
    successes: tuple[Case, ...] = ()
    task: str = ""
    template: str = ""
    text: str = ""
    """Name of the text to write, if the parents have several."""


class Written(msgspec.Struct, frozen=True, omit_defaults=True):
    """The prompt that a model wrote, or the reason why its reply contains none. Tokens are counted in both cases."""

    genome: Genome | None
    input_tokens: int
    output_tokens: int
    why: str = ""


@cache
def _templates() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@program("prompt_evolution/breed", version=2)
async def breed(trial: Trial, spec: Breeding) -> Written:
    """Let a model write a prompt."""
    reply = await trial.ask(
        spec.model,
        message(spec),
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
        return Written(spec.parents[0].with_part(spec.text, prompt_in(reply.text)), *used)
    except MalformedReply as error:
        return Written(None, *used, f"{error}; the model wrote: {error.text[:SHOWN]}")


def message(spec: Breeding) -> str:
    """The message to the model."""
    texts = _templates()
    values = {
        "prompt": spec.parents[0].part(spec.text).text,
        "other": spec.parents[-1].part(spec.text).text,
        "task": "".join(f"{each}\n\n" for each in _about(spec)),
        "failures": _cases(spec.failures) or texts["about"]["none"],
        "successes": _cases(spec.successes, "success") or texts["about"]["none"],
    }
    template = spec.template if spec.template and spec.operator == "reflect" else texts["ask"][spec.operator].strip()
    return _FIELD.sub(lambda found: values[found[1]], template)  # one pass: a prompt may contain {failures} itself


def _about(spec: Breeding) -> Iterator[str]:
    """What the prompt is for: the task, and all texts of the program that it belongs to."""
    about = _templates()["about"]
    if spec.task:
        yield about["task"].replace("{task}", spec.task)
    if spec.text:
        values = {"name": spec.text, "texts": spec.parents[0].text}
        yield re.sub(r"\{(name|texts)\}", lambda found: values[found[1]], about["texts"].strip())


def _cases(cases: Sequence[Case], kind: str = "failure") -> str:
    """The problems as the writer sees them. Parts that are not known are left out."""
    texts = _templates()["case"]
    found = list[str]()
    for each in cases:
        more = ("working", "feedback", "turns") if kind == "failure" else ()
        lines = [texts[kind].strip(), *(texts[name].strip() for name in more if getattr(each, name))]
        values = msgspec.structs.asdict(each)
        found += [*(line.format_map(values) for line in lines), ""]
    return "\n".join(found).strip()


def prompt_in(reply: str) -> Genome:
    """The prompt in a reply: the last one in tags, because the model may quote its parents first."""
    found = _TAGGED.findall(reply)[-1:] or _BEGUN.findall(reply) or _FENCED.findall(reply)[:1]
    text = (found[0] if found else reply).strip()
    if not text:
        raise MalformedReply("prompt", "it is empty", reply)
    if len(text) > LONGEST:
        raise MalformedReply("prompt", f"it has {len(text):,} characters, more than {LONGEST:,}", reply)
    return Genome.of(text)
