"""The limiter of an account: concurrency, rates, and what it learns from headers and refusals."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Sequence
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import FaultKind
from groundswell.engine.rate_limit import DECISIONS, Allowance, Bucket, Demand, Mark, News, Pace, PaceLimits, Paces
from groundswell.program.request import Standing

LIMITED, BUSY = FaultKind.RATE_LIMITED, FaultKind.OVERLOADED
NOTHING = Demand()

# Buckets.


def test_a_bucket_starts_full_and_fills_at_its_rate() -> None:
    bucket = Bucket("requests", 10.0, 10.0, now=0.0)
    assert bucket.level(0.0) == 10
    bucket.take(10, 0.0)
    assert bucket.ready_at(4, 0.0) == pytest.approx(0.4)
    assert bucket.level(0.5) == pytest.approx(5)
    assert bucket.level(100.0) == 10


def test_a_bucket_waits_off_an_overdraft() -> None:
    bucket = Bucket("requests", 10.0, 10.0, now=0.0)
    bucket.take(30, 0.0)
    assert bucket.level(0.0) == -20
    assert bucket.ready_at(1, 0.0) == pytest.approx(2.1)


def test_more_than_a_bucket_holds_needs_a_full_one() -> None:
    bucket = Bucket("tokens", 10.0, 10.0, now=0.0)
    bucket.take(5, 0.0)
    assert bucket.ready_at(1000, 0.0) == pytest.approx(0.5)


def test_the_margin_is_left_in_a_bucket() -> None:
    bucket = Bucket("requests", 10.0, 10.0, now=0.0)
    bucket.margin = 2.0
    bucket.take(8.0, 0.0)
    assert bucket.ready_at(0.5, 0.0) == pytest.approx(0.05)
    assert bucket.ready_at(9.5, 0.0) == pytest.approx(0.8), "a full bucket is enough"


def test_a_clock_that_goes_backwards_adds_nothing() -> None:
    bucket = Bucket("requests", 10.0, 10.0, now=5.0)
    bucket.take(10, 5.0)
    assert bucket.level(3.0) == 0
    assert bucket.level(5.1) == pytest.approx(1)
    assert bucket.ready_at(2, 3.0) >= 3.0


@pytest.mark.parametrize("per_minute", [1.0, 3.0, 60.0, 100_000.0])
def test_a_smooth_bucket_lets_no_minute_exceed_the_limit(per_minute: float) -> None:
    bucket = Bucket.smooth("requests", per_minute, 0.0)
    assert bucket.size + 60 * bucket.rate <= per_minute + 1


def said(limit: float, remaining: float, reset: float | None = None) -> Standing:
    return Standing("requests", limit, remaining, reset)


LEARNT = [
    pytest.param(said(600, 100), 0.0, 0, 100.0, id="what was left"),
    pytest.param(said(600, 100), 2.0, 20, 99.9, id="what came in since"),
    pytest.param(said(600, 100), 0.0, 30, 70.0, id="less what was sent since"),
    pytest.param(said(600, 5), 0.0, 30, -25.0, id="sent more than there was"),
    pytest.param(said(600, 700), 0.0, 0, 600.0, id="more left than allowed"),
    pytest.param(said(600, 9), 20.0, 199, 9.0, id="old news of a small bucket that is in use"),
    pytest.param(said(14_400, 14_000, 2400.0), 60.0, 100, 13_909.95, id="a limit by the day"),
]


@pytest.mark.parametrize(("standing", "ago", "sent", "expected"), LEARNT)
def test_a_bucket_takes_over_what_the_provider_says(standing: Standing, ago: float, sent: int, expected: float) -> None:
    bucket = Bucket("requests", 1.0, 1.0, now=90.0, full=False)
    bucket.learn(standing, News(100.0 - ago, standing.remaining, 7.0), 7.0 + sent, 100.0)
    assert bucket.level(100.0) == pytest.approx(expected, abs=0.01)


def test_old_news_cannot_fill_a_bucket_that_was_full_since() -> None:
    """A request leaves and takes long; the bucket stays full; ten leave at once; then the first one's news comes."""
    bucket = Bucket("requests", 10.0, 10.0, now=0.0)
    bucket.learn(said(600, 10), News(0.0, 10.0, 0.0), 0.0, 0.0)
    bucket.level(10.0)
    bucket.take(10.0, 10.0)
    bucket.learn(said(600, 10), News(0.5, 10.0, 0.0), 10.0, 10.1)
    assert bucket.level(10.1) == pytest.approx(1.0, abs=0.1)


def test_a_bucket_rises_slowly_to_what_is_said_to_be_left_and_falls_at_once() -> None:
    bucket = Bucket("requests", 1.0, 1.0, now=0.0, full=False)
    bucket.learn(said(600, 100), News(0.0, 100.0, 0.0), 60.0, 0.0)
    bucket.learn(said(600, 90), News(0.1, 90.0, 60.0), 60.0, 0.1)
    assert bucket.level(0.1) == pytest.approx(41 + 0.1 * 49, abs=0.1), "of 49 more than expected, a tenth in 0.1 s"
    bucket.learn(said(600, 5), News(0.2, 5.0, 60.0), 60.0, 0.2)
    assert bucket.level(0.2) == pytest.approx(5)
    bucket.learn(said(600, 90), News(1.5, 90.0, 60.0), 60.0, 1.5)
    assert bucket.level(1.5) == pytest.approx(90, abs=0.1), "after a second, all of it"


def test_a_learnt_bucket_follows_its_limit() -> None:
    bucket = Bucket("requests", 1.0, 1.0, now=0.0, full=False)
    bucket.learn(said(6000, 6000), News(0.0, 6000.0, 0.0), 0.0, 0.0)
    assert bucket.size == 6000
    bucket.learn(said(60, 60), News(1.0, 60.0, 0.0), 0.0, 1.0)
    assert (bucket.size, bucket.level(1.0)) == (60, 60)
    assert bucket.rate == pytest.approx(1.0, rel=0.01)


def test_a_bucket_sees_what_others_take() -> None:
    """It should fill by 50 a second, and does by 30."""
    bucket = Bucket("requests", 1.0, 1.0, now=0.0, full=False)
    bucket.learn(said(3000, 3000.0), News(-1.0, 3000.0, 0.0), 1000.0, -1.0)
    taken = 1000.0
    for second in range(20):
        bucket.learn(said(3000, 2000.0), News(float(second), 2000.0, taken), taken, float(second))
        taken += 30.0
    assert bucket.rate == pytest.approx(30.0, rel=0.02)


def test_a_shy_bucket_holds_little_and_believes_no_one_for_a_while() -> None:
    bucket = Bucket("requests", 1.0, 1.0, now=0.0, full=False)
    bucket.learn(said(2400, 2000), News(0.0, 2000.0, 0.0), 0.0, 0.0)
    bucket.be_shy(0.0)
    assert bucket.level(0.0) == 0
    bucket.learn(said(2400, 2000), News(0.1, 2000.0, 0.0), 0.0, 0.1)
    assert bucket.level(0.1) == pytest.approx(4.0, rel=0.01)
    assert bucket.level(9.0) == bucket.size == pytest.approx(10.0, rel=0.01)
    bucket.learn(said(2400, 2000), News(1000.0, 2000.0, 0.0), 0.0, 1000.0)
    assert bucket.level(1000.0) == 2000


def test_a_shy_bucket_of_reserved_output_stays_large() -> None:
    """Most of what is reserved comes back with the reply; in a small bucket few requests could be in flight."""
    bucket = Bucket("output_tokens", 100.0, 6000.0, 0.0)
    bucket.be_shy(0.0)
    assert bucket.shy(1.0)
    assert (bucket.size, bucket.level(1.0)) == (6000.0, 6000.0)


def test_refusals_make_a_bucket_careful_and_replies_calm_it() -> None:
    bucket = Bucket("requests", 1.0, 1.0, now=0.0, full=False)

    def margin(times: int = 1) -> float:
        for _ in range(times):
            bucket.learn(said(600, 300), News(0.0, 300.0, 0.0), 0.0, 0.0)
        return bucket.margin

    usual = margin()
    bucket.be_careful()
    bucket.be_careful()
    assert margin() > 2 * usual
    assert margin(3000) == usual


# Leaving.


def asked(pace: Pace, number: int, demand: Demand = NOTHING, now: float = 0.0) -> tuple[int, float]:
    """How many of so many requests may leave, and when to ask again."""
    for gone in range(number):
        given = pace.leave(demand, now)
        if not isinstance(given, Mark):
            return gone, given
    return number, -inf


GRANTS = [
    pytest.param(PaceLimits(max_concurrent=4), 3, 3, -inf, id="fewer than slots"),
    pytest.param(PaceLimits(max_concurrent=4), 9, 4, inf, id="more than slots"),
    pytest.param(PaceLimits(max_concurrent=4, start=2), 9, 2, inf, id="slow start"),
    pytest.param(PaceLimits(max_concurrent=4, start=9), 9, 4, inf, id="start above the most"),
    pytest.param(PaceLimits(requests_per_minute=1300), 5, 2, 0.042, id="requests"),
    pytest.param(PaceLimits(requests_per_minute=60), 5, 1, 1.0, id="one request a second"),
    pytest.param(PaceLimits(requests_per_minute=3), 5, 1, 20.0, id="three requests a minute"),
    pytest.param(PaceLimits(tokens_per_minute=60_000), 5, 2, 0.02, id="tokens"),
    pytest.param(PaceLimits(tokens_per_minute=1200), 5, 1, 2.0, id="tokens, more than the bucket holds"),
    pytest.param(PaceLimits(output_tokens_per_minute=600), 5, 1, 1.0, id="output tokens"),
    pytest.param(PaceLimits(tokens_per_minute=1800, output_tokens_per_minute=6e6), 5, 1, 1.0, id="input tokens"),
]


@pytest.mark.parametrize(("limits", "wanted", "leave", "again"), GRANTS)
def test_what_may_leave(limits: PaceLimits, wanted: int, leave: int, again: float) -> None:
    """Each request may use 30 tokens and give back 10."""
    pace = Pace.alone(limits, 0.0)
    gone, when = asked(pace, wanted, Demand(30, 10))
    assert (gone, pace.in_flight) == (leave, leave)
    assert when == pytest.approx(again, rel=0.15)


def test_tokens_are_corrected_by_what_was_used() -> None:
    pace = Pace.alone(PaceLimits(tokens_per_minute=6000), 0.0)
    mark = pace.leave(Demand(20, 80), 0.0)
    assert isinstance(mark, Mark)
    late = pace.leave(Demand(20, 80), 0.0)
    pace.done(mark, Demand(20, 0), 0.0)
    soon = pace.leave(Demand(20, 80), 0.0)
    assert isinstance(late, float)
    assert isinstance(soon, float)
    assert late - soon == pytest.approx(0.8, rel=0.01)


def test_small_asks_leave_room_for_a_large_one_that_waits() -> None:
    pace = Pace.alone(PaceLimits(start=100), 0.0)
    for left in (9000, 2000):
        pace.learn_limits([Standing("tokens", 60_000, left)], _left(pace, NOTHING), 0.0)
    when = pace.leave(Demand(3000, 0), 0.0)
    assert isinstance(when, float)
    assert isinstance(pace.leave(Demand(10, 0), when - 0.1), float)
    assert isinstance(pace.leave(Demand(3000, 0), when), Mark)


def test_a_large_ask_that_never_comes_back_holds_nobody_up() -> None:
    pace = Pace.alone(PaceLimits(start=100), 0.0)
    for left in (9000, 2000):
        pace.learn_limits([Standing("tokens", 60_000, left)], _left(pace, NOTHING), 0.0)
    when = pace.leave(Demand(3000, 0), 0.0)
    again = pace.leave(Demand(10, 0), 0.0)
    assert isinstance(when, float)
    assert isinstance(again, float)
    assert again <= when + 0.1
    assert isinstance(pace.leave(Demand(10, 0), again), Mark)


RATES = st.none() | st.sampled_from([30.0, 60.0, 100.0, 1000.0])
ARRIVALS = st.lists(st.tuples(st.floats(0, 20), st.integers(1, 8), st.floats(0.01, 5)), min_size=1, max_size=30)


@given(ARRIVALS, st.integers(1, 6), RATES, RATES, st.integers(1, 50))
def test_no_cap_and_no_configured_rate_is_ever_exceeded(
    arrivals: list[tuple[float, int, float]], cap: int, requests: float | None, tokens: float | None, each: int
) -> None:
    """Requests come in bursts and take a while; the pace is asked again when it said, and when one comes back."""
    limits = PaceLimits(max_concurrent=cap, requests_per_minute=requests, tokens_per_minute=tokens)
    pace, demand = Pace.alone(limits, 0.0), Demand(each, 0)
    events: list[tuple[float, int, int, float, Mark | None]] = []
    for number, (at, count, takes) in enumerate(arrivals):
        heapq.heappush(events, (at, number, count, takes, None))
    queue: list[float] = []
    left: list[float] = []
    number, alarm = len(arrivals), inf
    while events:
        now, _, count, takes, mark = heapq.heappop(events)
        alarm = inf if now >= alarm else alarm
        queue += [takes] * count
        if mark is not None:
            pace.done(mark, demand, now)
        while queue and isinstance(given := pace.leave(demand, now), Mark):
            number += 1
            left.append(now)
            heapq.heappush(events, (now + queue.pop(0), number, 0, 0.0, given))
            assert pace.in_flight <= pace.cap <= cap
        if queue and isinstance(given, float) and given < alarm:
            number += 1
            alarm = given
            assert given > now
            assert number < 5000
            heapq.heappush(events, (given, number, 0, 0.0, None))
    assert queue == []
    assert_rate(left, requests, 1.0)
    assert_rate(left, tokens, each)


def assert_rate(left: list[float], per_minute: float | None, each: float) -> None:
    """In no stretch of time did more leave than the rate gives in it, and a tenth of a second's worth, or one."""
    if per_minute is None:
        return
    rate = per_minute / 60
    for first, start in enumerate(left):
        for last in range(first, len(left)):
            allowed = max(1.0, rate * 0.1) + (left[last] - start) * rate + each
            assert (last - first + 1) * each <= allowed + 1e-6


# The cap.


def flying(pace: Pace, now: float = 0.0) -> list[Mark]:
    """Fill every slot."""
    marks = []
    while isinstance(mark := pace.leave(NOTHING, now), Mark):
        marks.append(mark)
    return marks


def round_of(pace: Pace, now: float = 10.0) -> None:
    """As many replies as there are slots, every slot in use at each."""
    for _ in range(pace.cap):
        marks = flying(pace, now)
        pace.done(marks[0], NOTHING, now)
        for _ in marks[1:]:
            pace.recall()


def refuse(pace: Pace, marks: Sequence[Mark], now: float, wait: float | None = None, kind: FaultKind = LIMITED) -> None:
    for mark in marks:
        pace.failed(mark, kind, wait, now)


def at_once(cap: int) -> Pace:
    return Pace.alone(PaceLimits(max_concurrent=cap, start=cap), 0.0)


def test_slow_start_doubles_while_every_slot_is_used() -> None:
    pace = Pace.alone(PaceLimits(max_concurrent=64, start=4), 0.0)
    caps = []
    for _ in range(5):
        for mark in flying(pace):
            pace.done(mark, NOTHING, 1.0)
            flying(pace, 1.0)
        caps.append(pace.cap)
        while pace.in_flight:
            pace.recall()
    assert caps == [8, 16, 32, 64, 64]


def test_the_cap_stays_where_slots_are_idle() -> None:
    pace = Pace.alone(PaceLimits(max_concurrent=64, start=4), 0.0)
    for _ in range(20):
        mark, other = pace.leave(NOTHING, 0.0), pace.leave(NOTHING, 0.0)
        assert isinstance(mark, Mark)
        assert isinstance(other, Mark)
        pace.done(mark, NOTHING, 1.0)
        pace.done(other, NOTHING, 1.0)
    assert pace.cap == 4


@pytest.mark.parametrize("kind", [LIMITED, BUSY])
def test_the_cap_is_cut_once_per_episode(kind: FaultKind) -> None:
    pace = at_once(20)
    marks = flying(pace)
    refuse(pace, marks[:8], 5.0, kind=kind)
    assert pace.cap == 16
    refuse(pace, marks[8:], 9.0, kind=kind)
    assert pace.cap == 16, "they left before the cut"
    refuse(pace, flying(pace, 10.0), 10.5, kind=kind)
    assert pace.cap == 8, "nothing was accepted since the last cut"


@pytest.mark.parametrize("kind", [LIMITED, BUSY])
def test_an_isolated_refusal_is_an_accident(kind: FaultKind) -> None:
    pace = at_once(20)
    for now in range(30):
        marks = flying(pace, float(now))
        refuse(pace, marks[:1], now + 0.1, 50.0, kind)
        for mark in marks[1:]:
            pace.done(mark, NOTHING, now + 0.5)
    assert pace.cap == 20
    assert len(flying(pace, 30.0)) == 20, "and nobody else waits for it"


def test_the_cap_never_falls_below_one() -> None:
    pace = at_once(6)
    for at in range(12):
        refuse(pace, flying(pace, at * 10.0), at * 10.0 + 1)
    assert pace.cap == 1


def test_after_a_cut_the_cap_grows_fast_to_where_it_was_cut_and_then_slowly() -> None:
    pace = at_once(100)
    refuse(pace, flying(pace), 1.0)
    for at in range(2, 9):
        refuse(pace, flying(pace, float(at)), at + 0.5)
    assert pace.cap == 1
    caps = [pace.cap]
    for _ in range(12):
        round_of(pace)
        caps.append(pace.cap)
    assert caps[:7] == [1, 2, 4, 8, 16, 32, 64]
    assert caps[8:] == [caps[8] + more for more in range(5)]
    assert 80 <= caps[8] <= 82


def test_where_replies_take_long_the_cap_grows_by_one_a_second() -> None:
    pace = at_once(100)
    refuse(pace, flying(pace), 1.0)
    for mark in flying(pace, 1.0):
        pace.done(mark, NOTHING, 11.0)
    cap = pace.cap
    for mark in flying(pace, 11.0):
        pace.done(mark, NOTHING, 21.0)
        flying(pace, 21.0)
    assert pace.cap - cap == pytest.approx(10, abs=1)


@pytest.mark.parametrize("kind", [FaultKind.SERVER, FaultKind.TIMEOUT, FaultKind.CONNECTION])
def test_after_an_error_the_cap_does_not_grow_for_a_while(kind: FaultKind) -> None:
    pace = Pace.alone(PaceLimits(start=10), 0.0)
    marks = flying(pace)
    pace.failed(marks[0], kind, None, 1.0)
    caps = []
    for mark in marks[1:]:
        assert isinstance(pace.leave(NOTHING, 1.0), Mark)
        pace.done(mark, NOTHING, 1.0)
        caps.append(pace.cap)
    assert caps == [10] * 8 + [11]


@pytest.mark.parametrize("kind", [FaultKind.SERVER, FaultKind.TIMEOUT, FaultKind.BAD_REQUEST, FaultKind.AUTH])
def test_other_faults_leave_the_cap(kind: FaultKind) -> None:
    pace = at_once(10)
    for mark in flying(pace)[:9]:
        pace.failed(mark, kind, 7.0, 5.0)
    assert (pace.cap, pace.in_flight) == (10, 1)
    assert isinstance(pace.leave(NOTHING, 5.0), Mark)


def test_retry_after_holds_everything_back() -> None:
    pace = at_once(10)
    marks = flying(pace)
    refuse(pace, marks[:5], 10.0, 30.0)
    refuse(pace, marks[5:], 11.0, 5.0)
    assert pace.leave(NOTHING, 39.9) == 40.0
    assert isinstance(pace.leave(NOTHING, 40.0), Mark)


def test_a_retry_after_of_a_day_holds_back_for_a_quarter_of_an_hour() -> None:
    pace = at_once(10)
    refuse(pace, flying(pace), 10.0, 86_400.0)
    assert pace.leave(NOTHING, 20.0) == 910.0


def test_a_recall_frees_the_slot_and_tells_nothing() -> None:
    pace = at_once(2)
    assert len(flying(pace)) == 2
    pace.recall()
    assert (pace.in_flight, pace.allowance.in_flight, pace.cap) == (1, 1, 2)
    assert isinstance(pace.leave(NOTHING, 0.0), Mark)
    assert pace.latency is None


# Headers.


def heard(limit: float, remaining: float, start: int = 32) -> tuple[Pace, list[Mark]]:
    """A pace that was told of a limit by the reply to one of the requests that left."""
    pace = Pace.alone(PaceLimits(max_concurrent=1000, start=start), 0.0)
    marks = flying(pace)
    pace.learn_limits([said(limit, remaining)], marks[-1], 0.0)
    return pace, marks


def test_a_refusal_that_a_known_limit_explains_does_not_cut_the_cap() -> None:
    pace, marks = heard(600, 0)
    refuse(pace, marks, 1.0, 1.0)
    assert pace.cap == 32
    assert pace.leave(NOTHING, 1.5) == 2.0, "but what was asked for is done"


def test_a_refusal_against_what_the_headers_say_makes_shy_and_then_cuts() -> None:
    pace, marks = heard(6000, 5000)
    refuse(pace, marks, 1.0)
    assert pace.cap == 32
    for mark in flying(pace, 2.0):
        pace.done(mark, NOTHING, 2.0)
    gone = flying(pace, 3.0)
    assert 15 <= len(gone) <= 25, "a quarter of a second's worth"
    refuse(pace, gone[:5], 3.3)
    assert pace.cap == 25, "then it was not that"


def test_what_is_refused_even_so_is_held_against_the_headers_only_for_a_while() -> None:
    pace, marks = heard(6000, 5000)
    refuse(pace, marks, 1.0)
    refuse(pace, flying(pace, 3.0)[:5], 3.3)
    mark = flying(pace, 9.0)[-1]
    pace.learn_limits([said(6000, 5000)], mark, 9.0)
    while pace.in_flight:
        pace.recall()
    assert len(flying(pace, 9.0)) == pace.cap, "what the provider says is left is there again"


LIMIT = "learnt a limit of 600 requests per minute"


def cut_twice(pace: Pace, marks: Sequence[Mark]) -> None:
    refuse(pace, marks, 5.0, kind=BUSY)
    refuse(pace, flying(pace, 6.0), 6.5, kind=LIMITED)


def refuse_for_long(pace: Pace, marks: Sequence[Mark]) -> None:
    refuse(pace, marks, 0.5, kind=BUSY)
    for second in range(1, 30):
        refuse(pace, flying(pace, float(second)), float(second), kind=BUSY)


def learn_and_refuse(left: float) -> Callable[[Pace, Sequence[Mark]], None]:
    def happens(pace: Pace, marks: Sequence[Mark]) -> None:
        pace.learn_limits([said(600, left)], marks[-1], 0.0)
        refuse(pace, marks, 0.05)

    return happens


REASONS = [
    pytest.param(at_once(64), lambda pace, marks: None, [], id="nothing happened"),
    pytest.param(
        at_once(64),
        cut_twice,
        [
            (5.0, 51, "cut from 64 to 51: the provider refused requests (overloaded)"),
            (6.5, 25, "cut from 51 to 25: the provider refused requests (rate limited)"),
        ],
        id="one entry for each cut",
    ),
    pytest.param(
        at_once(10),
        lambda pace, marks: refuse(pace, marks, 5.0, 2.0),
        [
            (5.0, 10, "waits 2.0 s: Retry-After"),
            (5.0, 8, "cut from 10 to 8: the provider refused requests (rate limited)"),
        ],
        id="one entry for each wait",
    ),
    pytest.param(
        at_once(2),
        refuse_for_long,
        [(1.0, 1, "cut from 2 to 1: the provider refused requests (overloaded)")],
        id="a cap of one is not cut",
    ),
    pytest.param(
        at_once(8),
        lambda pace, marks: [pace.learn_limits([said(600, left)], mark, 1.0) for left, mark in enumerate(marks)],
        [(1.0, 8, LIMIT)],
        id="a limit is learnt once",
    ),
    pytest.param(
        at_once(8),
        lambda pace, marks: pace.learn_limits([Standing("input_tokens", 14_400, 14_000, 2400.0)], marks[0], 1.0),
        [(1.0, 8, "learnt a limit of 14,400 input tokens")],
        id="a limit by the day",
    ),
    pytest.param(
        at_once(8),
        lambda pace, marks: [
            pace.learn_limits([said(limit, 0)], mark, 1.0) for limit, mark in zip((600, 900), marks, strict=False)
        ],
        [(1.0, 8, LIMIT), (1.0, 8, "learnt a limit of 900 requests per minute")],
        id="a limit that changed",
    ),
    pytest.param(
        at_once(8),
        learn_and_refuse(0),
        [(0.0, 8, LIMIT), (0.05, 8, "not cut: the known limit of requests explains the refusal")],
        id="a refusal that a limit explains",
    ),
    pytest.param(
        at_once(8),
        learn_and_refuse(500),
        [(0.0, 8, LIMIT), (0.05, 8, "sends more evenly: the provider refused requests although it reported room")],
        id="a refusal against the headers",
    ),
]


@pytest.mark.parametrize(("pace", "happens", "expected"), REASONS)
def test_cuts_waits_and_limits_are_recorded_with_their_reasons(
    pace: Pace, happens: Callable[[Pace, list[Mark]], object], expected: list[tuple[float, int, str]]
) -> None:
    happens(pace, flying(pace))
    assert list(pace.decisions) == expected


def test_only_the_last_decisions_are_kept() -> None:
    pace = at_once(1)
    (mark,) = flying(pace)
    for limit in range(1, 1000):
        pace.learn_limits([said(limit, 0)], mark, 1.0)
    assert len(pace.decisions) == DECISIONS
    assert pace.decisions[-1].why == "learnt a limit of 999 requests per minute"


def test_an_overload_cuts_whatever_the_headers_say() -> None:
    pace, marks = heard(600, 0)
    refuse(pace, marks, 1.0, kind=BUSY)
    assert pace.cap == 25


def test_old_news_does_not_replace_newer() -> None:
    pace, marks = heard(600, 100)
    pace.learn_limits([said(600, 3)], marks[0], 1.0)
    while pace.in_flight:
        pace.recall()
    assert len(flying(pace, 1.0)) == 32


def test_a_limit_of_nothing_is_no_limit() -> None:
    pace, _ = heard(0, 0)
    while pace.in_flight:
        pace.recall()
    assert len(flying(pace, 1.0)) == 32
    assert not pace.counts_tokens


def test_output_that_was_not_used_is_given_back_where_the_provider_does_so() -> None:
    """Two leave; the first comes back having used a tenth; then the provider says what was left before the second."""
    left = {}
    for resource in ("output_tokens", "tokens"):
        pace = at_once(10)
        pace.learn_limits([Standing(resource, 60_000, 10_000)], _left(pace, NOTHING), 0.0)
        first, second = _left(pace, Demand(0, 4000)), _left(pace, Demand(0, 4000))
        pace.done(first, Demand(0, 400), 0.0)
        pace.learn_limits([Standing(resource, 60_000, 2000)], second, 0.0)
        left[resource] = isinstance(pace.leave(Demand(0, 3000), 0.0), Mark)
    assert left == {"output_tokens": True, "tokens": False}


def _left(pace: Pace, demand: Demand) -> Mark:
    mark = pace.leave(demand, 0.0)
    assert isinstance(mark, Mark)
    return mark


STANDINGS = st.builds(
    Standing,
    st.sampled_from(["requests", "tokens", "input_tokens", "output_tokens", "project_tokens"]),
    st.floats(-5, 1e7),
    st.floats(-1e5, 1e7),
    st.none() | st.floats(0, 1e6),
)
STEPS = st.lists(
    st.tuples(st.floats(-0.5, 30), st.sampled_from(["done", "limited", "error", "recall"]), st.lists(STANDINGS)),
    max_size=40,
)


@given(STEPS)
def test_whatever_is_said_and_whatever_the_clock_does_the_pace_goes_on(
    steps: list[tuple[float, str, list[Standing]]],
) -> None:
    """A time to ask again is never past, nor for ever unless something is in flight; slots are counted."""
    pace = Pace.alone(PaceLimits(max_concurrent=5), 100.0)
    now, marks = 100.0, list[Mark]()
    for passed, what, standings in steps:
        now += passed
        given = pace.leave(Demand(100, 50), now)
        if isinstance(given, Mark):
            marks.append(given)
        else:
            assert given > now
            assert given < inf or marks
        if len(marks) > 2:
            mark = marks.pop(0)
            pace.learn_limits(standings, mark, now)
            if what == "done":
                pace.done(mark, Demand(90, 10), now)
            elif what == "recall":
                pace.recall()
            else:
                pace.failed(mark, LIMITED if what == "limited" else FaultKind.SERVER, 1.0, now)
        assert pace.in_flight == pace.allowance.in_flight == len(marks) <= 5
        assert 1 <= pace.cap <= 5


# Accounts.

SETTINGS = PaceLimits(max_concurrent=4, start=4)


def test_paces_are_shared_by_account_and_model() -> None:
    paces = Paces()
    pace = paces.of("account", "model", SETTINGS, 0.0)
    assert paces.of("account", "model", SETTINGS, 1.0) is pace
    other = paces.of("account", "other", SETTINGS, 1.0)
    assert other is not pace
    assert other.allowance is pace.allowance
    assert paces.of("another", "model", SETTINGS, 1.0).allowance is not pace.allowance


def test_the_models_of_an_account_share_its_slots_and_configured_rates() -> None:
    paces = Paces()
    limits = PaceLimits(max_concurrent=3, start=3, requests_per_minute=60_000)
    one, two = paces.of("account", "one", limits, 0.0), paces.of("account", "two", limits, 0.0)
    assert len(flying(one)) == 3
    assert two.leave(NOTHING, 0.0) == inf
    one.recall()
    assert isinstance(two.leave(NOTHING, 0.0), Mark)
    slow = PaceLimits(max_concurrent=9, start=9, requests_per_minute=60)
    first, second = paces.of("slow", "one", slow, 0.0), paces.of("slow", "two", slow, 0.0)
    assert isinstance(first.leave(NOTHING, 0.0), Mark)
    assert second.leave(NOTHING, 0.0) == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("model", ["one", "two"])
def test_who_holds_no_slot_gets_one_in_time(model: str) -> None:
    """Others fill their slots as they come free; after a second one is kept for who has none, while it still looks."""
    paces, busy, starving = Paces(), object(), object()
    limits = PaceLimits(max_concurrent=3, start=3)
    one, its = paces.of("account", "one", limits, 0.0), paces.of("account", model, limits, 0.0)
    assert len(flying(one)) == 3
    for now in (0.0, 0.4, 0.8):
        assert its.leave(NOTHING, now, starving) == inf
        its.starves(starving, now)
        one.recall()
        assert isinstance(one.leave(NOTHING, now, busy), Mark)
    its.starves(starving, 1.0)
    one.recall()
    assert one.leave(NOTHING, 1.0, busy) == inf
    assert isinstance(its.leave(NOTHING, 1.01, starving), Mark)
    one.recall()
    assert isinstance(one.leave(NOTHING, 1.02, busy), Mark), "it has what was kept"


def test_no_slot_is_kept_for_who_went_away() -> None:
    pace, busy, gone = Pace.alone(PaceLimits(max_concurrent=1, start=1), 0.0), object(), object()
    assert isinstance(pace.leave(NOTHING, 0.0, busy), Mark)
    pace.starves(gone, 0.0)
    pace.starves(gone, 1.0)
    pace.recall()
    assert pace.leave(NOTHING, 1.1, busy) == inf
    assert isinstance(pace.leave(NOTHING, 1.6, busy), Mark)


def test_one_model_is_not_held_up_by_the_limit_of_another() -> None:
    paces = Paces()
    one, two = paces.of("account", "one", SETTINGS, 0.0), paces.of("account", "two", SETTINGS, 0.0)
    mark = _left(one, NOTHING)
    one.learn_limits([said(60, 0)], mark, 0.0)
    assert isinstance(one.leave(NOTHING, 0.0), float)
    assert isinstance(two.leave(NOTHING, 0.0), Mark)


def test_settings_that_come_later_hold_for_everyone() -> None:
    paces = Paces()
    pace = paces.of("account", "model", SETTINGS, 0.0)
    paces.of("account", "other", PaceLimits(max_concurrent=2, requests_per_minute=60), 0.0)
    assert pace.cap == 2
    assert asked(pace, 5)[0] == 1
    assert not pace.counts_tokens
    paces.of("account", "other", PaceLimits(max_concurrent=9, tokens_per_minute=60), 0.0)
    assert asked(pace, 5, Demand(1, 0))[0] == 1
    assert pace.counts_tokens


def test_an_allowance_knows_which_tokens_a_limit_is_for() -> None:
    whole = Allowance(PaceLimits(tokens_per_minute=10), 0.0)
    parted = Allowance(PaceLimits(tokens_per_minute=10, output_tokens_per_minute=5), 0.0)
    assert [bucket.resource for bucket in whole.buckets] == ["tokens"]
    assert [bucket.resource for bucket in parted.buckets] == ["input_tokens", "output_tokens"]


def test_threads_lose_no_slot() -> None:
    paces, over = Paces(), []

    def work() -> None:
        pace = paces.of("account", "model", SETTINGS, 0.0)
        for _ in range(400):
            given = pace.leave(NOTHING, 0.0)
            if isinstance(given, Mark):
                over.append(pace.in_flight > 4)
                pace.done(given, NOTHING, 0.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pace = paces.of("account", "model", SETTINGS, 0.0)
    assert (pace.in_flight, pace.allowance.in_flight, any(over)) == (0, 0, False)
