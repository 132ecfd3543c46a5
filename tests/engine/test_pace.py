"""The limiter of an account: concurrency, rates, and what it learns from refusals."""

from __future__ import annotations

import heapq
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import FaultKind
from groundswell.engine.pace import Bucket, Grant, Pace, PaceLimits

LIMITED = FaultKind.RATE_LIMITED


def test_a_bucket_starts_full_and_fills_at_its_rate() -> None:
    bucket = Bucket(600, now=0.0)
    assert bucket.level(0.0) == 10
    bucket.take(10, 0.0)
    assert bucket.ready_at(4, 0.0) == pytest.approx(0.4)
    assert bucket.level(0.5) == pytest.approx(5)
    assert bucket.level(100.0) == 10


def test_a_bucket_waits_off_an_overdraft() -> None:
    bucket = Bucket(600, now=0.0)
    bucket.take(30, 0.0)
    assert bucket.level(0.0) == -20
    assert bucket.ready_at(1, 0.0) == pytest.approx(2.1)


def test_more_than_a_bucket_holds_needs_a_full_one() -> None:
    bucket = Bucket(600, now=0.0)
    bucket.take(5, 0.0)
    assert bucket.ready_at(1000, 0.0) == pytest.approx(0.5)


GRANTS = [
    pytest.param(PaceLimits(max_concurrent=4), 3, Grant(3, None), id="fewer than slots"),
    pytest.param(PaceLimits(max_concurrent=4), 9, Grant(4, None), id="more than slots"),
    pytest.param(PaceLimits(max_concurrent=4), 0, Grant(0, None), id="none wanted"),
    pytest.param(PaceLimits(max_concurrent=4, start=2), 9, Grant(2, None), id="slow start"),
    pytest.param(PaceLimits(max_concurrent=4, start=9), 9, Grant(4, None), id="start above the most"),
    pytest.param(PaceLimits(requests_per_minute=120), 5, Grant(2, 0.5), id="requests"),
    pytest.param(PaceLimits(requests_per_minute=60), 5, Grant(1, 1.0), id="one request a second"),
    pytest.param(PaceLimits(tokens_per_minute=6000), 5, Grant(2, 0.2), id="tokens"),
    pytest.param(PaceLimits(tokens_per_minute=600), 5, Grant(1, 4.0), id="tokens, more than the bucket holds"),
]


@pytest.mark.parametrize(("limits", "wanted", "expected"), GRANTS)
def test_grants(limits: PaceLimits, wanted: int, expected: Grant) -> None:
    """Each request takes 40 tokens."""
    pace = Pace(limits, 0.0)
    grant = pace.grant(wanted, 40.0, 0.0)
    assert grant.leave == expected.leave
    assert grant.again_at == pytest.approx(expected.again_at)
    assert pace.in_flight == expected.leave


RATES = st.none() | st.sampled_from([30.0, 60.0, 100.0, 1000.0])
ARRIVALS = st.lists(st.tuples(st.floats(0, 20), st.integers(1, 8), st.floats(0.01, 5)), min_size=1, max_size=30)


@given(ARRIVALS, st.integers(1, 6), RATES, RATES, st.floats(1, 50))
def test_no_cap_and_no_rate_is_ever_exceeded(
    arrivals: list[tuple[float, int, float]], cap: int, requests: float | None, tokens: float | None, each: float
) -> None:
    """Requests come in bursts and take a while; the pace is asked again when it said, and when one comes back."""
    pace = Pace(PaceLimits(max_concurrent=cap, requests_per_minute=requests, tokens_per_minute=tokens), 0.0)
    events: list[tuple[float, int, int, float]] = []
    for number, (at, count, takes) in enumerate(arrivals):
        heapq.heappush(events, (at, number, count, takes))
    queue: list[float] = []
    left: list[float] = []
    number, flying = len(arrivals), 0
    while events:
        now, _, count, takes = heapq.heappop(events)
        if count > 0:
            queue += [takes] * count
        elif count < 0:
            flying -= 1
            pace.done()
        grant = pace.grant(len(queue), each, now)
        flying += grant.leave
        assert flying == pace.in_flight <= pace.cap <= cap
        left += [now] * grant.leave
        for takes in queue[: grant.leave]:
            number += 1
            heapq.heappush(events, (now + takes, number, -1, 0.0))
        del queue[: grant.leave]
        if grant.again_at is not None and queue and not any(event[2] == 0 for event in events):
            number += 1
            assert grant.again_at >= now
            assert number < 5000
            heapq.heappush(events, (grant.again_at, number, 0, 0.0))
    assert queue == []
    assert_rate(left, requests, 1.0, 0.0)
    assert_rate(left, tokens, each, each)


def assert_rate(left: list[float], per_minute: float | None, each: float, overdraft: float) -> None:
    """In no stretch of time did more leave than the rate gives in it, and one second's worth."""
    if per_minute is None:
        return
    rate = per_minute / 60
    for first, start in enumerate(left):
        for last in range(first, len(left)):
            allowed = max(1.0, rate) + (left[last] - start) * rate + overdraft
            assert (last - first + 1) * each <= allowed + 1e-6


def saturated(cap: int, **limits: Any) -> Pace:
    pace = Pace(PaceLimits(max_concurrent=cap, **limits), 0.0)
    pace.grant(cap, 0.0, 0.0)
    return pace


def test_the_cap_is_cut_once_per_episode() -> None:
    pace = saturated(10)
    for _ in range(4):
        pace.failed(LIMITED, None, 5.0)
    assert pace.cap == 7
    pace.failed(FaultKind.OVERLOADED, None, 5.9)
    assert pace.cap == 7
    pace.failed(LIMITED, None, 6.0)
    assert pace.cap == 4


def test_the_cap_never_falls_below_one() -> None:
    pace = saturated(3)
    for at in range(3):
        pace.failed(LIMITED, None, at * 10.0)
    assert pace.cap == 1


@pytest.mark.parametrize("kind", [FaultKind.SERVER, FaultKind.TIMEOUT, FaultKind.BAD_REQUEST, FaultKind.AUTH])
def test_other_faults_leave_the_cap(kind: FaultKind) -> None:
    pace = saturated(10)
    pace.failed(kind, 7.0, 5.0)
    assert (pace.cap, pace.in_flight) == (10, 9)
    assert pace.grant(1, 0.0, 5.0) == Grant(1, None)


def test_retry_after_holds_everything_back() -> None:
    pace = saturated(4)
    pace.failed(LIMITED, 30.0, 10.0)
    pace.failed(LIMITED, 5.0, 11.0)
    assert pace.grant(3, 0.0, 39.9) == Grant(0, 40.0)
    assert pace.grant(3, 0.0, 40.0).leave == 0
    pace.done()
    pace.done()
    assert pace.grant(3, 0.0, 40.0).leave == 2


def test_an_episode_lasts_as_long_as_retry_after() -> None:
    pace = saturated(10)
    pace.failed(LIMITED, 30.0, 0.0)
    pace.failed(LIMITED, None, 29.0)
    assert pace.cap == 7


def test_slow_start_doubles_while_saturated() -> None:
    pace = Pace(PaceLimits(max_concurrent=64, start=4), 0.0)
    for expected in (8, 16, 32, 64, 64):
        round_of(pace)
        assert pace.cap == expected


def test_after_a_cut_the_cap_grows_by_one_a_round() -> None:
    pace = saturated(10)
    pace.failed(LIMITED, None, 0.0)
    for _ in range(9):
        pace.failed(FaultKind.SERVER, None, 0.0)
    assert (pace.cap, pace.in_flight) == (7, 0)
    caps = []
    for _ in range(3):
        round_of(pace)
        caps.append(pace.cap)
    assert caps == [8, 9, 10]


def round_of(pace: Pace) -> None:
    """As many successes as there are slots, every slot in use at each."""
    cap = pace.cap
    for _ in range(cap):
        pace.grant(pace.cap, 0.0, 10.0)
        pace.done()


def test_the_cap_stays_where_slots_are_idle() -> None:
    pace = Pace(PaceLimits(max_concurrent=64, start=4), 0.0)
    for _ in range(20):
        pace.grant(2, 0.0, 0.0)
        pace.done()
        pace.done()
    assert pace.cap == 4


def test_requests_of_an_earlier_session_take_slots() -> None:
    pace = Pace(PaceLimits(max_concurrent=4), 0.0)
    pace.correct_in_flight(3)
    assert pace.grant(4, 0.0, 0.0).leave == 1


def test_tokens_are_corrected_by_what_was_used() -> None:
    pace = Pace(PaceLimits(tokens_per_minute=6000), 0.0)
    assert pace.grant(1, 50.0, 0.0).leave == 1
    pace.correct(50.0, 0.0)
    assert pace.grant(1, 50.0, 0.0) == Grant(0, 0.5)
