"""Budgets count what was spent and what is in flight."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import Chat, Embed, Image, Limits, Text, user
from groundswell.engine.budget import Budget, Spending, expected_usage
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
    assert (budget.reserved, budget.spent) == (Spending(), Spending(1, 5, 0.0))


def test_an_earlier_session_counts() -> None:
    assert Budget(Limits(calls=5), 0.0, Spending(calls=5)).refusal(0.0, 1, 0, 0.0)


@given(st.lists(st.sampled_from(["rejoin and arrive", "rejoin and give back"]), max_size=5))
def test_an_ask_in_flight_since_an_earlier_session_counts_once(ends: list[str]) -> None:
    budget = Budget(Limits(calls=10), 0.0, Spending(calls=5))
    for _ in ends:
        budget.rejoin()
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
