"""Buckets, meters and Ollama's queue, with time passed in."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.limits import INPUT, REQUESTS, TOKENS, Bucket, Meter, Slots


def test_a_bucket_fills_continuously_up_to_its_size() -> None:
    bucket = Bucket(60, 60, now=0)
    assert bucket.level(0) == 60
    bucket.take(60, 0)
    assert bucket.wait(1, 0) == pytest.approx(1)
    assert bucket.wait(1, 0.5) == pytest.approx(0.5)
    assert bucket.wait(1, 1) == 0
    assert bucket.level(1_000) == 60


def test_sixty_a_minute_may_be_one_a_second() -> None:
    bucket = Bucket(60, 1, now=0)
    bucket.take(1, 0)
    assert bucket.wait(1, 0) == pytest.approx(1)


def test_what_is_larger_than_the_bucket_never_fits() -> None:
    assert Bucket(60, 60, now=0).wait(61, 0) == math.inf


@given(
    st.floats(1, 1e6),
    st.floats(0.1, 60),
    st.lists(st.tuples(st.floats(0, 10), st.integers(0, 1000)), max_size=100),
)
def test_no_window_admits_more_than_size_plus_refill(
    per_minute: float, burst: float, arrivals: list[tuple[float, int]]
) -> None:
    bucket, now, taken = Bucket(per_minute, burst, now=0), 0.0, 0
    for pause, amount in arrivals:
        now += pause
        if bucket.wait(amount, now) == 0:
            bucket.take(amount, now)
            taken += amount
    assert taken <= bucket.size + per_minute / 60 * now + 1e-3


def test_a_meter_takes_from_all_buckets_or_from_none() -> None:
    meter = Meter({REQUESTS: 10, TOKENS: 100}, 60, now=0)
    assert meter.admit({REQUESTS: 1, TOKENS: 90}, 0) is None
    over = meter.admit({REQUESTS: 1, TOKENS: 20}, 0)
    assert over is not None
    assert (over.name, over.limit, over.used, over.wanted) == (TOKENS, 100, 90, 20)
    assert over.wait == pytest.approx(6)
    assert {standing.name: standing.remaining for standing in meter.standings(0)} == {REQUESTS: 9, TOKENS: 10}


def test_the_limit_that_takes_longest_is_told() -> None:
    meter = Meter({REQUESTS: 1, TOKENS: 60}, 60, now=0)
    assert meter.admit({REQUESTS: 1, TOKENS: 60}, 0) is None
    over = meter.admit({REQUESTS: 1, TOKENS: 1}, 0)
    assert over is not None
    assert over.name == REQUESTS


def test_an_estimate_is_corrected_both_ways() -> None:
    meter = Meter({INPUT: 600}, 60, now=0)
    meter.admit({INPUT: 100}, 0)
    meter.correct(INPUT, -50, 0)
    assert meter.standings(0)[0].remaining == 550
    meter.correct(INPUT, 600, 0)
    assert meter.standings(0)[0].remaining == 0
    assert meter.admit({INPUT: 1}, 0) is not None
    meter.correct("unlimited", 1, 0)


def test_no_limits_admit_everything() -> None:
    meter = Meter({REQUESTS: None, TOKENS: None}, 60, now=0)
    assert all(meter.admit({REQUESTS: 1, TOKENS: 10**9}, 0) is None for _ in range(100))
    assert meter.standings(0) == []


def test_slots_make_requests_wait_their_turn_and_turn_away_what_does_not_fit() -> None:
    slots = Slots(parallel=2, queue=2)
    assert [slots.enter(1, 0) for _ in range(4)] == [1, 1, 2, 2]
    assert slots.full(0)
    assert not slots.full(1), "two have moved up"
    assert slots.enter(1, 1) == 2
