"""Which request meets which fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.faults import (
    ANTHROPIC_BATCH,
    EMBED,
    ERRAND,
    KINDS,
    LINE,
    OPENAI_BATCH,
    RESULTS,
    Faults,
    Rule,
    Subject,
    parse_fault,
)
from groundswell.emulator.faults import CHAT as ALL_CHAT
from groundswell.errors import SettingsError

CHAT = Subject("/v1/chat/completions", "gpt-4o-mini", "alice")


def struck(faults: Faults, count: int, subject: Subject = CHAT, able: frozenset[str] = ALL_CHAT) -> list[str]:
    """The faults that so many requests meet."""
    found = [faults.strike(subject, able) for _ in range(count)]
    return [hit.name if hit else "ok" for hit in found]


def test_a_script_is_followed_and_then_over() -> None:
    faults = Faults([Rule(script=("ok", "500", "429"))])
    assert struck(faults, 5) == ["ok", "500", "429", "ok", "ok"]


def test_a_rate_is_a_share_and_the_same_in_every_run() -> None:
    first = struck(Faults([Rule(fault="500", rate=0.1)], seed=3), 2_000)
    assert 150 < first.count("500") < 250
    assert first == struck(Faults([Rule(fault="500", rate=0.1)], seed=3), 2_000)
    assert first != struck(Faults([Rule(fault="500", rate=0.1)], seed=4), 2_000)


def test_a_rule_without_a_rate_always_strikes_up_to_its_times() -> None:
    assert struck(Faults([Rule(fault="hang", times=2)]), 4) == ["hang", "hang", "ok", "ok"]


@pytest.mark.parametrize(
    ("rule", "subject"),
    [
        (Rule(fault="500", path="/v1/messages"), CHAT),
        (Rule(fault="500", method="GET"), CHAT),
        (Rule(fault="500", model="claude-*"), CHAT),
        (Rule(fault="500", account="bob"), CHAT),
    ],
    ids=["path", "method", "model", "account"],
)
def test_a_rule_strikes_only_what_it_is_for(rule: Rule, subject: Subject) -> None:
    assert struck(Faults([rule]), 3, subject) == ["ok"] * 3
    matching = Subject("/v1/messages", "claude-opus-4-7", "bob", "GET")
    assert struck(Faults([rule]), 1, matching) == ["500"]


def test_the_first_rule_that_strikes_wins_and_others_do_not_see_the_request() -> None:
    faults = Faults([Rule(script=("500",)), Rule(script=("429", "529"))])
    assert struck(faults, 3) == ["500", "429", "529"]


def test_a_script_waits_for_a_request_that_can_meet_its_next() -> None:
    faults = Faults([Rule(script=("batch-stalls", "500"))])
    assert struck(faults, 2) == ["ok", "ok"], "the next is for a batch"
    assert struck(faults, 1, CHAT, OPENAI_BATCH) == ["batch-stalls"]
    assert struck(faults, 1) == ["500"]


def test_faults_of_lines_do_not_count_requests() -> None:
    faults = Faults([Rule(script=("ok", "line-500"))])
    assert struck(faults, 3) == ["ok"] * 3
    assert struck(faults, 2, CHAT, LINE) == ["ok", "line-500"]


@pytest.mark.parametrize("name", KINDS)
def test_every_fault_can_strike_somebody_and_nobody_who_cannot_meet_it(name: str) -> None:
    able = [each for each in (ALL_CHAT, EMBED, ERRAND, OPENAI_BATCH, ANTHROPIC_BATCH, RESULTS, LINE) if name in each]
    assert able
    for each in able:
        assert struck(Faults([Rule(fault=name)]), 1, CHAT, each) == [name]
        assert struck(Faults([Rule(fault=name)]), 1, CHAT, each - {name}) == ["ok"]


def test_what_a_request_cannot_meet_is_left_for_one_that_can() -> None:
    rules = Faults([Rule(script=("refusal", "empty"))])
    assert struck(rules, 3, CHAT, ERRAND) == ["ok"] * 3
    assert struck(rules, 1, CHAT, EMBED) == ["ok"], "a vector cannot refuse"
    assert struck(rules, 1) == ["refusal"]
    assert struck(rules, 1, CHAT, EMBED) == ["empty"]


def test_rules_are_shown_with_how_often_they_struck() -> None:
    faults = Faults([Rule(fault="500", rate=1.0, path="/v1/*")])
    struck(faults, 2)
    assert faults.show() == [{"fault": "500", "rate": 1.0, "path": "/v1/*", "struck": 2}]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (Rule(fault="flood"), "'flood'"),
        (Rule(script=("ok", "flood")), "'flood'"),
        (Rule(), "needs a"),
        (Rule(fault="500", script=("500",)), "cannot have both"),
        (Rule(fault="500", rate=1.5), "rate 1.5"),
        (Rule(script=("500",), rate=0.5), "cannot have a `rate`"),
        (Rule(fault="429", retry_after=-1), "retry_after"),
        (Rule(fault="429", method="post"), "upper case: use 'POST'"),
    ],
    ids=["unknown", "unknown in script", "neither", "both", "rate", "rate of a script", "retry after", "method"],
)
def test_what_is_wrong_with_a_rule_is_named(rule: Rule, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        Faults([rule])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("429=0.05", Rule(fault="429", rate=0.05)),
        ("drop=0.01@/v1/messages", Rule(fault="drop", rate=0.01, path="/v1/messages")),
        ("ok,500,429", Rule(script=("ok", "500", "429"))),
        ("batch-stalls", Rule(fault="batch-stalls")),
        ("503@/v1/batches/*", Rule(fault="503", path="/v1/batches/*")),
        ("drop-after@POST /v1/batches", Rule(fault="drop-after", path="/v1/batches", method="POST")),
        ("ok,500@GET /v1/*", Rule(script=("ok", "500"), path="/v1/*", method="GET")),
    ],
)
def test_flags(text: str, rule: Rule) -> None:
    assert parse_fault(text) == rule


@pytest.mark.parametrize(
    "text", ["429=often", "flood=0.1", "429=2", "", "429@", "429@ ", "429@get /v1/files", "ok,flood"]
)
def test_bad_flags(text: str) -> None:
    with pytest.raises(SettingsError, match="fault"):
        parse_fault(text)


@given(st.lists(st.sampled_from(["ok", "500", "429", "drop"]), max_size=30), st.integers(0, 40))
def test_a_script_meets_each_request_once(script: list[str], extra: int) -> None:
    faults = Faults([Rule(script=tuple(script))] if script else [])
    assert struck(faults, len(script) + extra) == script + ["ok"] * extra
