"""What is done about a fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import Fault, FaultKind, RetryPolicy
from groundswell.engine.retry import HOPELESS, LOAD, PASSING, Decision, GiveUp, RetryAt, Stop, Tried, decide

POLICY = RetryPolicy(attempts=4, first_wait=1.0, longest_wait=5.0, patience=60.0)
NOW = 100.0


def failing(kind: FaultKind, retry_after: float | None = None) -> Fault:
    return Fault(kind, "", retry_after=retry_after)


LIMITED, BUSY = FaultKind.RATE_LIMITED, FaultKind.OVERLOADED
DECISIONS = [
    pytest.param(failing(FaultKind.SERVER), Tried(1), 0.0, RetryAt(100.5), id="first wait, least"),
    pytest.param(failing(FaultKind.SERVER), Tried(1), 1.0, RetryAt(101.0), id="first wait, most"),
    pytest.param(failing(FaultKind.TIMEOUT), Tried(2), 1.0, RetryAt(102.0), id="second wait"),
    pytest.param(failing(FaultKind.CONNECTION), Tried(3), 1.0, RetryAt(104.0), id="third wait"),
    pytest.param(failing(FaultKind.SERVER), Tried(4), 0.5, GiveUp(), id="last attempt"),
    pytest.param(failing(FaultKind.SERVER), Tried(1, 99, 999.0), 1.0, RetryAt(101.0), id="refusals are no failures"),
    pytest.param(failing(FaultKind.SERVER, 7.0), Tried(1), 0.0, RetryAt(107.0), id="an error that says when"),
    pytest.param(failing(FaultKind.BAD_REQUEST), Tried(1), 0.0, GiveUp(), id="bad request"),
    pytest.param(failing(FaultKind.FILTERED, 1.0), Tried(1), 0.0, GiveUp(), id="filtered"),
    pytest.param(failing(FaultKind.AUTH), Tried(1), 0.0, Stop(), id="no key"),
    pytest.param(failing(FaultKind.QUOTA, 1.0), Tried(9), 0.0, Stop(), id="no money"),
    pytest.param(failing(FaultKind.NOT_FOUND), Tried(1), 0.0, GiveUp(), id="not found, by a model that answers"),
    pytest.param(failing(FaultKind.NOT_FOUND), Tried(1, strange=True), 0.0, Stop(), id="a model that there is not"),
    pytest.param(failing(FaultKind.BAD_REQUEST), Tried(1, strange=True), 0.0, GiveUp(), id="a bad request, at first"),
    pytest.param(failing(LIMITED, 30.0), Tried(0, 1), 0.0, RetryAt(130.0), id="as asked"),
    pytest.param(failing(LIMITED, 30.0), Tried(0, 1), 1.0, RetryAt(133.0), id="as asked, spread"),
    pytest.param(failing(BUSY, 0.0), Tried(0, 1), 0.5, RetryAt(100.0), id="at once, as asked"),
    pytest.param(failing(LIMITED), Tried(0, 2), 1.0, RetryAt(102.0), id="refused twice, nothing said"),
    pytest.param(failing(BUSY), Tried(3, 1), 1.0, RetryAt(101.0), id="failures are no refusals"),
    pytest.param(failing(LIMITED), Tried(0, 99, 59.9), 1.0, RetryAt(105.0), id="refused often, not for long"),
    pytest.param(failing(LIMITED, 2.0), Tried(0, 3, 999.0), 0.0, RetryAt(102.0), id="refused for long, not often"),
    pytest.param(failing(LIMITED, 2.0), Tried(0, 4, 60.0), 0.0, GiveUp(), id="refused often and for long"),
    pytest.param(failing(BUSY), Tried(0, 4, 60.0, silent=True), 0.0, Stop(), id="and nobody else gets through"),
    pytest.param(failing(BUSY), Tried(0, 3, 60.0, silent=True), 0.0, RetryAt(102.0), id="silent, but not often"),
    pytest.param(failing(BUSY), Tried(0, 9, 9.0, silent=True), 0.0, RetryAt(102.5), id="silent, but not for long"),
    pytest.param(failing(LIMITED, 900.0), Tried(0, 1), 0.0, RetryAt(1000.0), id="a quarter of an hour, as asked"),
    pytest.param(failing(LIMITED, 86_400.0), Tried(0, 1), 0.0, Stop(), id="told to come back tomorrow"),
    pytest.param(failing(FaultKind.SERVER, 86_400.0), Tried(1), 0.0, Stop(), id="an error that says tomorrow"),
    pytest.param(failing(FaultKind.SERVER), Tried(4, silent=True), 0.0, GiveUp(), id="failing in silence"),
]


@pytest.mark.parametrize(("fault", "tried", "jitter", "expected"), DECISIONS)
def test_decisions(fault: Fault, tried: Tried, jitter: float, expected: Decision) -> None:
    decided = decide(fault, tried, NOW, POLICY, jitter)
    assert type(decided) is type(expected)
    assert tuple(decided) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("kind", FaultKind)
def test_every_kind_is_load_passing_hopeless_or_final(kind: FaultKind) -> None:
    assert sum(kind in kinds for kinds in (LOAD, PASSING, HOPELESS)) <= 1
    decided = decide(Fault(kind, ""), Tried(1, 1), NOW, POLICY, 0.5)
    retried = kind in PASSING or kind in LOAD
    assert isinstance(decided, Stop if kind in HOPELESS else RetryAt if retried else GiveUp)


KINDS = st.sampled_from(sorted(PASSING | LOAD))
JITTER = st.floats(0, 1, exclude_max=True)


@given(KINDS, st.integers(1, 200), JITTER)
def test_waits_are_within_bounds_however_often(kind: FaultKind, times: int, jitter: float) -> None:
    policy = RetryPolicy(attempts=1000, first_wait=0.5, longest_wait=60.0)
    decided = decide(Fault(kind, ""), Tried(times, times), NOW, policy, jitter)
    assert isinstance(decided, RetryAt)
    assert 0.25 <= decided.when - NOW <= 60.0


@given(KINDS, st.floats(0, 900), st.integers(1, 200), JITTER)
def test_nothing_is_sent_earlier_than_the_provider_asks(
    kind: FaultKind, retry_after: float, times: int, jitter: float
) -> None:
    policy = RetryPolicy(attempts=1000)
    decided = decide(failing(kind, retry_after), Tried(times, times), NOW, policy, jitter)
    assert isinstance(decided, RetryAt)
    assert NOW + retry_after <= decided.when <= NOW + retry_after * 1.1 + 1e-9


@given(st.sampled_from(sorted(LOAD)), st.integers(1, 20), st.floats(0, 2000), st.booleans())
def test_what_is_refused_is_retried_until_both_times_and_patience_are_used_up(
    kind: FaultKind, refusals: int, refused_for: float, silent: bool
) -> None:
    policy = RetryPolicy()
    decided = decide(Fault(kind, ""), Tried(0, refusals, refused_for, silent), NOW, policy, 0.5)
    ended = refusals >= policy.attempts and refused_for >= policy.patience
    assert isinstance(decided, (Stop if silent else GiveUp) if ended else RetryAt)
