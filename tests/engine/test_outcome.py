"""Outcomes: results through JSON and back, and what an exception makes of a trial."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import (
    AskFailed,
    CallFailed,
    Fault,
    FaultKind,
    MalformedReply,
    Outcome,
    Program,
    SettingsError,
    Trial,
    TrialMissing,
)
from groundswell.engine.outcome import decode_result, decode_spec, encode_result, encode_spec, fault_of


class Score(msgspec.Struct, frozen=True):
    by: tuple[str, ...]
    points: float | None = None


class Untagged(msgspec.Struct, frozen=True):
    other: int


async def scoring(trial: Trial, spec: Score) -> Score:
    return spec


async def unreadable(trial: Trial, spec: Score) -> Score | Untagged:
    return spec


SCORING = Program("tests/scoring", 2, scoring)
SCORES = st.builds(Score, st.lists(st.text()).map(tuple), st.none() | st.floats(allow_nan=False, allow_infinity=False))


@given(SCORES)
def test_results_and_specs_come_back_in_their_type(score: Score) -> None:
    assert decode_result(SCORING, encode_result(SCORING, score)) == score
    assert decode_spec(SCORING, encode_spec(SCORING, score)) == score


@pytest.mark.parametrize("what", [object(), {1: "a"}, {"a": {1, object()}}], ids=["object", "key", "set"])
def test_what_is_not_plain_data_is_refused_by_name(what: Any) -> None:
    with pytest.raises(SettingsError, match=r"tests/scoring@2.*result"):
        encode_result(SCORING, what)
    with pytest.raises(SettingsError, match=r"tests/scoring@2.*spec"):
        encode_spec(SCORING, what)


def test_what_does_not_fit_the_type_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"tests/scoring@2.*points"):
        decode_result(SCORING, '{"by": [], "points": "many"}')
    with pytest.raises(SettingsError, match=r"tests/scoring@2.*spec.*by"):
        decode_spec(SCORING, b"{}")


def test_a_type_that_cannot_be_read_back_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="tests/unreadable@1"):
        decode_result(Program("tests/unreadable", 1, unreadable), "{}")


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001  to give it a traceback
        return caught


REFUSED = Fault(FaultKind.FILTERED, "no", attempts=3)
FAULTS = [
    pytest.param(AskFailed(REFUSED), REFUSED, id="ask"),
    pytest.param(CallFailed(REFUSED), REFUSED, id="call"),
]


@pytest.mark.parametrize(("error", "fault"), FAULTS)
def test_faults_are_kept_as_they_are(error: Exception, fault: Fault) -> None:
    assert fault_of(raised(error)) == fault


def test_a_malformed_reply_is_kept_with_what_was_written() -> None:
    fault = fault_of(raised(MalformedReply("Point", "no x", "I think " + "x" * 1000)))
    assert fault.kind is FaultKind.MALFORMED
    assert "I think" in fault.message
    assert len(fault.message) < 500


def test_an_error_of_the_program_is_kept_with_its_place() -> None:
    fault = fault_of(raised(ZeroDivisionError("by zero")))
    assert fault.kind is FaultKind.PROGRAM
    assert fault.message.startswith("ZeroDivisionError: by zero (in raised, test_outcome.py)")


def test_an_error_without_a_place() -> None:
    assert fault_of(KeyError("k")) == Fault(FaultKind.PROGRAM, "KeyError: 'k'")


def test_unwrap() -> None:
    assert Outcome("k", 1, 3).unwrap() == 3
    assert Outcome("k", 1, None).unwrap() is None
    assert Outcome("k", 1, None).ok
    missing: Outcome[int] = Outcome("k", 1, None, REFUSED)
    assert not missing.ok
    with pytest.raises(TrialMissing, match=r"'k' is missing.*no"):
        missing.unwrap()
