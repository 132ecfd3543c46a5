"""The program: replies, schemas, grades, and what a run holds of them when it was stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import (
    Chat,
    Embed,
    Embedding,
    Fault,
    FaultKind,
    Limits,
    Outcome,
    Reply,
    Request,
    RunOptions,
    Usage,
    user,
)
from groundswell.experiments.prompting.program import Answer, Grade, Judged, Likened, Prompt, reply
from groundswell.experiments.settled import carry_out, settled

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}


def run_one(tmp_path: Path, script: Callable[[Any], Any], spec: Prompt) -> Outcome[Answer]:
    async def main() -> Outcome[Answer]:
        async with groundswell.open(tmp_path / "runs.db", script=script) as engine:
            return await engine.run().submit(reply, spec)

    return asyncio.run(main())


def test_a_reply_is_handed_on_with_what_it_used(tmp_path: Path) -> None:
    asked: list[Chat] = []

    def script(request: Chat) -> Reply:
        asked.append(request)
        return Reply("hello", Usage(5, 2), "length")

    found = run_one(tmp_path, script, Prompt("m", (user("hi"),), max_tokens=7, temperature=0.5))
    assert found.unwrap() == Answer("hello", None, Usage(5, 2), "length")
    assert asked == [Chat("m", (user("hi"),), max_tokens=7, temperature=0.5)]


def test_a_reply_that_breaks_its_schema_is_told_so_and_asked_for_once_more(tmp_path: Path) -> None:
    asked: list[Chat] = []

    def script(request: Chat) -> Reply:
        asked.append(request)
        return Reply('{"n": 11}' if len(asked) == 1 else '```json\n{"n": 3}\n```', Usage(5, 2))

    found = run_one(tmp_path, script, Prompt("m", (user("hi"),), SCHEMA)).unwrap()
    assert (found.value, found.usage) == ({"n": 3}, Usage(10, 4))
    assert [str(message.content) for message in asked[1].messages] == [
        "hi",
        '{"n": 11}',
        "That was not valid: $.n is above the maximum of 9. Reply with the JSON alone.",
    ]
    assert asked[1].schema == SCHEMA


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (Reply("no idea"), "the model wrote: no idea"),
        (Reply('{"n": "x"}'), '$.n is "x", not of type integer'),
        (Reply('{"n":', finish="length"), "it was cut off"),
        (Reply(""), "the reply is not a valid value for the schema"),
        (Reply("[" * 50_000), "recursion"),
    ],
    ids=["no JSON", "wrong", "cut off", "nothing", "too deep"],
)
def test_one_that_stays_wrong_is_missing_with_what_it_wrote(tmp_path: Path, said: Reply, told: str) -> None:
    found = run_one(tmp_path, lambda request: said, Prompt("m", (user("hi"),), SCHEMA))
    assert found.fault is not None
    assert found.fault.kind == FaultKind.MALFORMED
    assert told in found.fault.message


def grade(request: Request) -> Any:
    if isinstance(request, Embed):
        return (
            Embedding.of([[1.0, 0.0], [0.6, 0.8]], Usage(4))
            if "like" in request.texts[1]
            else Fault(FaultKind.BAD_REQUEST, "no embedding")
        )
    if request.schema is None:
        return Reply("I am glad to.")
    shown = str(request.messages[0].content)
    assert "<prompt>\nhi\n</prompt>" in shown
    assert "<reply>\nI am glad to.\n</reply>" in shown
    return '{"reason": "it is glad", "verdict": true}' if "kind?" in shown else "I would rather not say"


def test_a_grade_that_cannot_be_had_leaves_the_reply_usable(tmp_path: Path) -> None:
    wanted = (Judged("kind?", "j"), Likened("like this", "e"), Judged("long?", "j"), Likened("other", "e"))
    found = run_one(tmp_path, grade, Prompt("m", (user("hi"),), grades=wanted)).unwrap()
    assert found.text == "I am glad to."
    assert found.grades[0] == Grade(passed=True, reason="it is glad")
    assert found.grades[1] == Grade(likeness=0.6, usage=Usage(4))
    assert found.grades[2].problem is not None
    assert found.grades[3] == Grade(problem="bad_request: no embedding")


def test_what_a_run_holds_is_found_by_the_keys_that_map_gives(tmp_path: Path) -> None:
    """Also where it was stopped, and where rows are equal; and in a later session that could ask nothing at all."""
    specs = [Prompt("m", (user(text),)) for text in ("a", "b", "a", "refused", "c", "d")]

    def script(request: Chat) -> str | Fault:
        said = str(request.messages[0].content)
        return Fault(FaultKind.BAD_REQUEST, "no") if said == "refused" else f"{said}!"

    async def session(calls: int) -> list[Answer | Fault | None]:
        options = RunOptions(limits=Limits(calls=calls), window=1)
        async with groundswell.open(tmp_path / "runs.db", script=script, options=options) as engine:
            run = engine.run("r")
            await carry_out(run, reply, specs)
            return [each async for _, _, each in settled(run, reply, enumerate(specs))]

    def shown(found: list[Answer | Fault | None]) -> list[str | None]:
        return [each.text if isinstance(each, Answer) else None if each is None else each.message for each in found]

    assert shown(asyncio.run(session(4))) == ["a!", "b!", "a!", "no", None, None]
    assert shown(asyncio.run(session(4))) == ["a!", "b!", "a!", "no", None, None]
    assert shown(asyncio.run(session(9))) == ["a!", "b!", "a!", "no", "c!", "d!"]
