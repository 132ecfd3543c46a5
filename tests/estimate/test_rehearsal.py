"""A rehearsed trial asks what a real one asks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundswell.engine.spending import Range
from groundswell.estimate.rehearsal import MOST_ASKS, Rehearsed, rehearse_trial
from groundswell.program.trial import Program, Trial, program
from tests.estimate import stage
from tests.estimate.stage import M, N

SOME = Range(2, 40)


def rehearsed(program: Program[Any, Any], spec: Any = 1, replies: Range = SOME) -> Rehearsed:
    return rehearse_trial(program, spec, "k", 7, replies)


ASKED: list[tuple[str, Program[Any, Any], Any, dict[str, Range], Range]] = [
    ("turns", stage.chat, 3, {M: Range(3, 3)}, Range(3, 3)),
    ("together is one turn", stage.branches, 1, {M: Range(3, 3), N: Range(3, 3)}, Range(4, 4)),
    ("until a verdict, each asked for twice", stage.judged, 1, {M: Range(1, 10)}, Range(1, 10)),
    ("a program that cannot bear malformed replies", stage.strict, 1, {M: Range(1, 1)}, Range(1, 1)),
    ("a value in place of a function's", stage.stocked, "lamp", {M: Range(0, 1)}, Range(0, 1)),
    ("a function that does not say what it returns", stage.silent, "x", {M: Range(1, 1)}, Range(1, 1)),
    ("one that raises", stage.broken, 1, {M: Range(1, 1)}, Range(1, 1)),
    ("one without end", stage.endless, 1, {M: Range(MOST_ASKS, MOST_ASKS)}, Range(MOST_ASKS, MOST_ASKS)),
    ("a tool, once", stage.tooled, 1, {M: Range(1, 2)}, Range(1, 2)),
    ("embeddings", stage.embedding, 1, {"openai/text-embedding-3-small": Range(1, 1)}, Range(1, 1)),
]


@pytest.mark.parametrize(("program", "spec", "calls", "turns"), [pytest.param(*rest, id=name) for name, *rest in ASKED])
def test_calls_and_turns(program: Program[Any, Any], spec: Any, calls: dict[str, Range], turns: Range) -> None:
    found = rehearsed(program, spec)
    assert {model: use.calls for model, use in found.uses.items()} == calls
    assert found.turns == turns


NOTED = [
    (stage.stocked, "lamp", "estimate/look up is not called; its return value is made up"),
    (stage.silent, "x", "estimate/unsaid is not called and has no return annotation"),
    (stage.broken, 1, "estimate/broken raised LookupError: there is nothing here"),
    (stage.endless, 1, "ended after 2,000 requests"),
]


@pytest.mark.parametrize(("program", "spec", "words"), NOTED, ids=["stood in for", "failed", "raised", "endless"])
def test_what_cannot_be_rehearsed_is_said(program: Program[Any, Any], spec: Any, words: str) -> None:
    assert any(words in note for note in rehearsed(program, spec).notes)


def test_prompts_grow_with_the_replies() -> None:
    short, long = (rehearsed(stage.open_chat, 5, Range(size, size)).uses[M] for size in (2, 50))
    assert long.output == Range(250, 250)
    assert short.output == Range(10, 10)
    grown = 50 * (0 + 1 + 2 + 3 + 4)
    assert long.input.high - short.input.high == pytest.approx(4 / 3 * (grown - grown / 25), rel=0.1)


@pytest.mark.parametrize("expected", [10, 10_000])
def test_a_reply_may_be_as_long_as_max_tokens_and_no_longer(expected: float) -> None:
    assert rehearsed(stage.chat, 1, Range(1, expected)).uses[M].output == Range(1, 50)


def test_both_ends_have_results() -> None:
    found = rehearsed(stage.stocked, "lamp")
    assert (found.short.result, found.long.result) == (0, 1)


class Bid(msgspec.Struct):
    bid: int


@program("tests/typed")
async def typed(trial: Trial, spec: int) -> int:
    return (await trial.ask("openai/gpt-4o-mini", "Bid.", into=Bid, max_tokens=400)).bid


def test_what_is_expected_of_replies_bounds_typed_ones_too() -> None:
    wide = rehearse_trial(typed, 1, "key", 0).uses["openai/gpt-4o-mini"].output
    narrow = rehearse_trial(typed, 1, "key", 0, Range(5, 20)).uses["openai/gpt-4o-mini"].output
    assert wide.high == 800, "a reply that cannot be read, and the one that is asked for then"
    assert (narrow.low, narrow.high) == (wide.low, 40)
