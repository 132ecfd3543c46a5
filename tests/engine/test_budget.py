"""Budgets count what was spent and what is in flight."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import Chat, Embed, Image, Limits, Text, Tool, Usage, user
from groundswell.emulator.tokens import count_request
from groundswell.engine.records import Amounts
from groundswell.engine.spending import (
    ENOUGH,
    LONG_REPLY,
    LONG_THOUGHT,
    Budget,
    Seen,
    expected_usage,
    most_usage,
)
from groundswell.program.request import Request

REFUSALS = [
    pytest.param(Limits(), 10**9, None, id="no limit"),
    pytest.param(Limits(calls=3), 1, None, id="calls left"),
    pytest.param(Limits(calls=3), 2, "3 calls", id="no calls left"),
    pytest.param(Limits(tokens=40), 2, None, id="tokens left"),
    pytest.param(Limits(tokens=39), 2, "39 tokens.*10 spent, 10 in flight", id="no tokens left"),
    pytest.param(Limits(usd=4.0), 2, None, id="money left"),
    pytest.param(Limits(usd=3.9), 2, r"\$3\.9 .*\$1\.0000 spent, \$1\.0000 in flight", id="no money left"),
    pytest.param(Limits(seconds=11), 0, None, id="time left"),
    pytest.param(Limits(seconds=10), 0, "10 s", id="no time left"),
]


@pytest.mark.parametrize(("limits", "more", "words"), REFUSALS)
def test_refusals(limits: Limits, more: int, words: str | None) -> None:
    """One call of ten tokens and a dollar is spent and one in flight; more are wanted ten seconds on."""
    budget = Budget(limits, 100.0)
    for _ in range(2):
        budget.reserve(10, 1.0)
    budget.settle(10, 1.0, 10, 1.0)
    refusal = budget.refusal(110.0, more, 10 * more, 1.0 * more)
    assert (refusal is None) == (words is None)
    assert re.search(words or "", refusal or "")


def test_what_was_reserved_is_given_back() -> None:
    budget = Budget(Limits(tokens=100), 0.0)
    budget.reserve(90, 0.0)
    assert budget.refusal(0.0, 1, 20, 0.0)
    budget.settle(90, 0.0, 5, 0.0)
    assert budget.refusal(0.0, 1, 20, 0.0) is None
    assert (budget.reserved, budget.spent) == (Amounts(), Amounts(1, 5, 0.0))


def test_an_earlier_session_counts() -> None:
    assert Budget(Limits(calls=5), 0.0, Amounts(calls=5)).refusal(0.0, 1, 0, 0.0)


@given(st.lists(st.sampled_from(["rejoin and arrive", "rejoin and give back"]), max_size=5))
def test_an_ask_in_flight_since_an_earlier_session_counts_once(ends: list[str]) -> None:
    budget = Budget(Limits(calls=10), 0.0, Amounts(calls=5))
    for _ in ends:
        budget.rejoin(0, 0.0)
    assert budget.spent.calls + budget.reserved.calls == 5
    for _ in ends:
        budget.settle(0, 0.0, 7, 0.0)
    assert (budget.spent.calls, budget.reserved.calls) == (5, 0)


EXPECTED: list[tuple[str, Request, int]] = [
    ("prompt and most reply", Chat("m", (user("x" * 40),), max_tokens=100), 110),
    ("a reply of unknown length", Chat("m", (user("x" * 40),)), 266),
    ("parts", Chat("m", (user((Text("x" * 40), Image(url="u"))),), max_tokens=1), 761),
    ("embedding", Embed("e", ("x" * 8, "y" * 8)), 6),
]


@pytest.mark.parametrize(("request_", "tokens"), [pytest.param(r, t, id=i) for i, r, t in EXPECTED])
def test_expected_usage(request_: Request, tokens: int) -> None:
    usage = expected_usage(request_)
    assert usage.input_tokens + usage.output_tokens == tokens


@given(st.lists(st.text(max_size=400), min_size=1, max_size=5))
def test_no_less_is_held_back_than_the_emulator_counts(texts: list[str]) -> None:
    chat = Chat("m", tuple(user(text) for text in texts), max_tokens=7)
    held = most_usage(chat, Seen())
    assert held.input_tokens >= count_request(chat)
    assert held.output_tokens == 7
    assert most_usage(Embed("e", tuple(texts)), Seen()).input_tokens >= count_request(Embed("e", tuple(texts)))


REAL = [
    ("English", "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all.", 18),
    ("Chinese", "人工智能正在改变世界的每一个角落。", 17),
    ("emoji", "😀🎉🚀", 6),
    ("Russian", "Съешь ещё этих мягких французских булок, да выпей чаю.", 20),
]


@pytest.mark.parametrize(("text", "tokens"), [pytest.param(text, n, id=name) for name, text, n in REAL])
def test_no_less_is_held_back_than_real_tokenizers_count(text: str, tokens: int) -> None:
    assert most_usage(Chat("m", (user(text),)), Seen()).input_tokens >= tokens


def test_tools_and_pictures_are_held_back_for() -> None:
    plain = most_usage(Chat("m", (user("x"),)), Seen()).input_tokens
    tool = Tool("look", "Look something up.", {"type": "object", "properties": {"what": {"type": "string"}}})
    assert most_usage(Chat("m", (user("x"),), tools=(tool,)), Seen()).input_tokens > plain + 100
    assert most_usage(Chat("m", (user((Image(url="u"),)),)), Seen()).input_tokens > plain + 1000


def test_replies_of_unknown_length_are_judged_by_those_that_came() -> None:
    seen, chat = Seen(), Chat("m", (user("x" * 30),))
    assert most_usage(chat, seen).output_tokens == LONG_REPLY
    assert most_usage(Chat("m", (user("x"),), reasoning="high"), seen).output_tokens == LONG_THOUGHT
    for _ in range(ENOUGH):
        seen.note(20, Usage(10, 40))
    assert most_usage(chat, seen).output_tokens == 80
    seen.note(20, Usage(10, 5000))
    assert most_usage(chat, seen).output_tokens == 10_000


def test_prompts_that_turn_out_longer_are_reckoned_longer_from_then_on() -> None:
    seen, chat = Seen(), Chat("m", (user("x" * 30),))
    before = most_usage(chat, seen).input_tokens
    seen.note(20, Usage(60, 1))
    assert most_usage(chat, seen).input_tokens == 3 * before
