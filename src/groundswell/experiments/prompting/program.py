"""The program of `ask` and `map`: sends a prompt and returns an answer.

reply     asks the model, and once more if the reply violates the schema
_grade    asks other models about the reply, concurrently, for checks that need them
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import msgspec

from groundswell.errors import AskFailed, MalformedReply
from groundswell.experiments.prompting.shapes import flaw
from groundswell.program.request import ChatOptions, Message, Reply, Text, Usage, assistant, user
from groundswell.program.traps import together
from groundswell.program.trial import Trial, program

VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "verdict": {"type": "boolean"}},
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}


class Judged(msgspec.Struct, frozen=True, tag="judged"):
    """A yes-or-no question about the reply, for a judge."""

    question: str
    model: str


class Likened(msgspec.Struct, frozen=True, tag="likened"):
    """The similarity of the reply and another text, by embeddings."""

    text: str
    model: str


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt for one model, and the gradings of its reply."""

    model: str
    messages: tuple[Message, ...]
    schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    grades: tuple[Judged | Likened, ...] = ()

    @property
    def said(self) -> str:
        """The text of the last message."""
        content = self.messages[-1].content
        if isinstance(content, str):
            return content
        return "\n".join(part.text for part in content if isinstance(part, Text))


class Grade(msgspec.Struct, frozen=True, omit_defaults=True):
    """The grading of a reply: a verdict or a similarity, and the reason; or the problem that prevented it."""

    passed: bool | None = None
    likeness: float | None = None
    reason: str | None = None
    problem: str | None = None
    usage: Usage = Usage()


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a prompt. With a schema, `value` is the JSON of the reply."""

    text: str
    value: Any = None
    usage: Usage = Usage()
    finish: str = "stop"
    grades: tuple[Grade, ...] = ()


@program("prompting/reply", version=1)
async def reply(trial: Trial, spec: Prompt) -> Answer:
    """Ask, see that the reply keeps to the schema, and have it graded."""
    options: ChatOptions = {"max_tokens": spec.max_tokens, "temperature": spec.temperature, "schema": spec.schema}
    said, value, usage = await _ask(trial, spec.model, spec.messages, options)
    grades = await together(*(_grade(trial, each, spec, said.text) for each in spec.grades)) if spec.grades else ()
    return Answer(said.text, value, usage, said.finish, tuple(grades))


async def _ask(
    trial: Trial, model: str, messages: Sequence[Message], options: ChatOptions, label: str = ""
) -> tuple[Reply, Any, Usage]:
    """A reply, its JSON and its usage. If the reply violates its schema, the model is asked once more."""
    first = await trial.ask(model, messages, label=label, **options)
    schema = options.get("schema")
    if schema is None:
        return first, None, first.usage
    value, problem = _read(first, schema)
    if problem is None:
        return first, value, first.usage
    said = [assistant(first.text)] if first.text else []
    told = user(f"That was not valid: {problem}. Reply with the JSON alone.")
    second = await trial.ask(model, [*messages, *said, told], label=label, **options)
    value, problem = _read(second, schema)
    if problem is not None:
        raise MalformedReply("value for the schema", problem, second.text)
    return second, value, _sum(first.usage, second.usage)


def _read(said: Reply, schema: dict[str, Any]) -> tuple[Any, str | None]:
    """The JSON of a reply, and its problem, if any."""
    value, problem = read_json(said.text)
    problem = problem or flaw(value, schema)
    if problem is not None and said.finish == "length":
        problem += " (it was cut off at the most tokens that a reply may have)"
    return value, problem


def read_json(text: str) -> tuple[Any, str | None]:
    """The JSON in a text, also inside a code fence; and its problem, if any."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        bare = bare[bare.index("\n") + 1 : -3]
    try:
        return msgspec.json.decode(bare), None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return None, str(error).rstrip(".")


async def _grade(trial: Trial, wanted: Judged | Likened, spec: Prompt, text: str) -> Grade:
    """Grade a reply. If this fails, only the grade is missing; the reply stays usable."""
    try:
        if isinstance(wanted, Likened):
            return await _liken(trial, wanted, text)
        options: ChatOptions = {"schema": VERDICT, "temperature": 0.0}
        _, value, usage = await _ask(trial, wanted.model, [user(_case(wanted, spec, text))], options, "judge")
        return Grade(passed=value["verdict"], reason=value["reason"], usage=usage)
    except (AskFailed, MalformedReply) as error:
        return Grade(problem=str(error))


def _case(wanted: Judged, spec: Prompt, text: str) -> str:
    """The prompt of a judge."""
    return (
        "You are a judge. Here are a prompt and the reply that was given to it.\n\n"
        f"<prompt>\n{spec.said}\n</prompt>\n\n<reply>\n{text}\n</reply>\n\n"
        f"The question about the reply is: {wanted.question}\n"
        "Give your reason in a sentence, then your verdict: true for yes, false for no."
    )


async def _liken(trial: Trial, wanted: Likened, text: str) -> Grade:
    embedded = await trial.embed(wanted.model, [text, wanted.text], label="likeness")
    one, other = embedded.vectors
    return Grade(likeness=round(_cosine(one, other), 6), usage=embedded.usage)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine similarity of two vectors; 0 if one of them is the zero vector."""
    lengths = sqrt(sum(x * x for x in one)) * sqrt(sum(y * y for y in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / lengths if lengths else 0.0


def _sum(one: Usage, other: Usage) -> Usage:
    fields = Usage.__struct_fields__
    return Usage(*(getattr(one, field) + getattr(other, field) for field in fields))
