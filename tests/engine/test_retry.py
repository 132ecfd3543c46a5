"""What is done about a fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import Fault, FaultKind, RetryPolicy
from groundswell.engine.retry import HOPELESS, PASSING, Decision, GiveUp, RetryAt, Stop, decide

POLICY = RetryPolicy(attempts=4, first_wait=1.0, longest_wait=5.0)
NOW = 100.0

DECISIONS = [
    pytest.param(Fault(FaultKind.SERVER, ""), 1, 0.0, RetryAt(100.5), id="first wait, least"),
    pytest.param(Fault(FaultKind.SERVER, ""), 1, 1.0, RetryAt(101.0), id="first wait, most"),
    pytest.param(Fault(FaultKind.TIMEOUT, ""), 2, 1.0, RetryAt(102.0), id="second wait"),
    pytest.param(Fault(FaultKind.CONNECTION, ""), 3, 1.0, RetryAt(104.0), id="third wait"),
    pytest.param(Fault(FaultKind.SERVER, ""), 4, 0.5, GiveUp(), id="last attempt"),
    pytest.param(Fault(FaultKind.RATE_LIMITED, "", retry_after=30.0), 1, 0.0, RetryAt(130.0), id="as asked"),
    pytest.param(Fault(FaultKind.RATE_LIMITED, "", retry_after=30.0), 1, 1.0, RetryAt(133.0), id="as asked, spread"),
    pytest.param(Fault(FaultKind.OVERLOADED, "", retry_after=0.0), 1, 0.5, RetryAt(100.0), id="at once, as asked"),
    pytest.param(Fault(FaultKind.RATE_LIMITED, "", retry_after=30.0), 4, 0.0, GiveUp(), id="asked too late"),
    pytest.param(Fault(FaultKind.BAD_REQUEST, ""), 1, 0.0, GiveUp(), id="bad request"),
    pytest.param(Fault(FaultKind.FILTERED, "", retry_after=1.0), 1, 0.0, GiveUp(), id="filtered"),
    pytest.param(Fault(FaultKind.AUTH, ""), 1, 0.0, Stop(), id="no key"),
    pytest.param(Fault(FaultKind.QUOTA, "", retry_after=1.0), 9, 0.0, Stop(), id="no money"),
]


@pytest.mark.parametrize(("fault", "attempt", "jitter", "expected"), DECISIONS)
def test_decisions(fault: Fault, attempt: int, jitter: float, expected: Decision) -> None:
    decided = decide(fault, attempt, NOW, POLICY, jitter)
    assert type(decided) is type(expected)
    assert tuple(decided) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("kind", FaultKind)
def test_every_kind_is_passing_hopeless_or_final(kind: FaultKind) -> None:
    assert not (kind in PASSING and kind in HOPELESS)
    decided = decide(Fault(kind, ""), 1, NOW, POLICY, 0.5)
    assert isinstance(decided, Stop if kind in HOPELESS else RetryAt if kind in PASSING else GiveUp)


@given(st.integers(1, 200), st.floats(0, 1, exclude_max=True))
def test_waits_are_within_bounds_however_often(attempt: int, jitter: float) -> None:
    policy = RetryPolicy(attempts=1000, first_wait=0.5, longest_wait=60.0)
    decided = decide(Fault(FaultKind.SERVER, ""), attempt, NOW, policy, jitter)
    assert isinstance(decided, RetryAt)
    assert 0.25 <= decided.when - NOW <= 60.0
