"""Which endpoint is asked, and when one is taken out. Time is a number here."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.program.request import FaultKind
from groundswell.transports.endpoints import BREAKS_AFTER, FIRST_PAUSE, LONGEST_CHECK, Endpoint, Endpoints, shown
from tests.properties import examples

A, B, C = "http://a", "http://b", "http://c"
KINDS = [kind for kind in FaultKind if kind is not FaultKind.UNREACHABLE]


def named(endpoint: Endpoint | None) -> str | None:
    return None if endpoint is None else endpoint.url


def answer(endpoint: Endpoint, seconds: float, now: float) -> None:
    endpoint.answered(endpoint.take(now), seconds, now)


def miss(endpoint: Endpoint, kind: FaultKind, now: float = 0.0, times: int = 1) -> list[bool]:
    taken_out = []
    for _ in range(times):
        endpoint.take(now)
        taken_out.append(endpoint.missed(kind, now))
    return taken_out


Behaviour = Callable[[float, int], tuple[float, FaultKind | None]]
"""From the time and what is outstanding: after how many seconds a request ends, and how it fails if it does."""


def simulated(behaviours: dict[str, Behaviour], seconds: float, at_once: int) -> Counter[str]:
    """Keep so many requests in flight for a while; how many each endpoint took. Nothing is found by health checks."""
    endpoints = Endpoints(list(behaviours))
    ends: list[tuple[float, int, Endpoint, int, float, FaultKind | None]] = []
    sent: Counter[str] = Counter()
    now = number = 0.0
    while now < seconds:
        while len(ends) < at_once and (endpoint := endpoints.choose(now)) is not None:
            took, fault = behaviours[endpoint.url](now, endpoint.outstanding)
            heapq.heappush(ends, (now + took, int(number), endpoint, endpoint.take(now), now, fault))
            sent[endpoint.url] += 1
            number += 1
        now, _, endpoint, before, left, fault = heapq.heappop(ends)
        if fault is None:
            endpoint.answered(before, now - left, now)
        else:
            endpoint.missed(fault, now)
    return sent


def steady(seconds: float) -> Behaviour:
    """A server that answers in the same time, whatever it has to do."""
    return lambda now, outstanding: (seconds, None)


def queued(seconds: float) -> Behaviour:
    """A server that works on one request after the other."""
    return lambda now, outstanding: (seconds * (outstanding + 1), None)


def failing(seconds: float, kind: FaultKind) -> Behaviour:
    return lambda now, outstanding: (seconds, kind)


def test_among_equals_the_one_with_the_fewest_outstanding_is_asked() -> None:
    endpoints = Endpoints([A, B, C])
    chosen = []
    for _ in range(6):
        endpoint = endpoints.choose(0.0)
        assert endpoint is not None
        endpoint.take(0.0)
        chosen.append(endpoint.url)
    assert Counter(chosen) == {A: 2, B: 2, C: 2}
    endpoints.all[1].given_up()
    assert named(endpoints.choose(0.0)) == B


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=60))
def test_equals_are_kept_level(steps: list[tuple[int, bool]]) -> None:
    endpoints = Endpoints([A, B, C])
    for which, ends in steps:
        if ends and endpoints.all[which].outstanding:
            endpoints.all[which].given_up()
        else:
            least = min(endpoint.outstanding for endpoint in endpoints.all)
            endpoint = endpoints.choose(0.0)
            assert endpoint is not None
            assert endpoint.outstanding == least
            endpoint.take(0.0)


def test_of_servers_that_work_on_one_request_after_the_other_each_gets_what_it_can_do() -> None:
    sent = simulated({A: queued(0.1), B: queued(1.0)}, 60.0, 16)
    assert 5 < sent[A] / sent[B] < 20


def test_where_many_at_once_are_no_slower_the_fast_one_gets_nearly_all() -> None:
    sent = simulated({A: steady(0.1), B: steady(1.0)}, 60.0, 16)
    assert sent[A] > 10 * sent[B]
    assert sent[B] > 5


def test_one_that_becomes_slow_loses_its_share_and_gets_it_back() -> None:
    endpoints = Endpoints([A, B])
    for now in range(10):
        answer(endpoints.all[0], 5.0, float(now))
        answer(endpoints.all[1], 0.5, float(now))
    assert named(endpoints.choose(10.0)) == B
    for now in range(10, 30):
        answer(endpoints.all[0], 0.1, float(now))
    assert named(endpoints.choose(30.0)) == A


def test_old_news_of_one_that_is_idle_fades_so_that_it_is_tried_again() -> None:
    endpoints = Endpoints([A, B])
    answer(endpoints.all[0], 8.0, 0.0)
    for now in range(100):
        answer(endpoints.all[1], 1.0, float(now))
    assert named(endpoints.choose(100.0)) == A


def test_one_that_hangs_does_not_attract_more_and_more() -> None:
    def hangs_after_a_minute(now: float, outstanding: int) -> tuple[float, FaultKind | None]:
        return (1.0, None) if now < 60 else (600.0, FaultKind.TIMEOUT)

    sent = simulated({A: hangs_after_a_minute, B: steady(1.0)}, 300.0, 32)
    assert sent[B] > 3 * sent[A]


def test_what_keeps_requests_waiting_is_as_slow_as_that_shows() -> None:
    endpoints = Endpoints([A, B])
    answer(endpoints.all[0], 1.0, 0.0)
    for _ in range(3):
        endpoints.all[1].take(10.0)
    assert endpoints.all[1].each(10.0, guess=1.0) == 1.0
    assert endpoints.all[1].each(40.0, guess=1.0) == 10.0
    endpoints.all[1].answered(0, 30.0, 40.0)
    assert endpoints.all[1].each(41.0) == 30.0


def test_one_whose_answers_take_long_is_not_thought_faster_for_it() -> None:
    endpoint = Endpoint(A)
    for number in range(5):
        answer(endpoint, 60.0, 60.0 * number)
    endpoint.take(300.0)
    assert endpoint.each(300.0) == 60.0


@pytest.mark.parametrize("kind", [FaultKind.GARBLED, FaultKind.RATE_LIMITED, FaultKind.OVERLOADED, FaultKind.SERVER])
def test_a_black_hole_that_fails_at_once_does_not_attract_everything(kind: FaultKind) -> None:
    sent = simulated({A: failing(0.001, kind), B: steady(0.5)}, 60.0, 16)
    assert sent[A] < sent[B] / 4
    assert sent[B] > 1000


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_failed_a_moment_ago_is_avoided_while_another_works(kind: FaultKind) -> None:
    endpoints = Endpoints([A, B])
    miss(endpoints.all[0], kind)
    endpoints.all[1].take(0.0)
    cools = kind in {*BREAKS_AFTER, FaultKind.OVERLOADED, FaultKind.RATE_LIMITED, FaultKind.GARBLED}
    assert named(endpoints.choose(0.0)) == (B if cools else A)
    assert named(endpoints.choose(FIRST_PAUSE)) == A


def test_it_cools_for_longer_and_longer_and_not_for_ever() -> None:
    endpoint = Endpoint(A)
    cooling = []
    for _ in range(8):
        miss(endpoint, FaultKind.OVERLOADED)
        cooling.append(next(at / 100 for at in range(1000) if not endpoint.cools(at / 100)))
    assert cooling == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]


def test_it_cools_for_as_long_as_it_wants_to_be_left_alone() -> None:
    endpoints = Endpoints([A, B])
    limited, free = endpoints.all
    limited.take(0.0)
    limited.missed(FaultKind.RATE_LIMITED, 0.0, 30.0)
    miss(limited, FaultKind.RATE_LIMITED, 1.0)
    free.take(0.0)
    assert [named(endpoints.choose(now)) for now in (0.0, 29.0, 30.0)] == [B, B, A]
    assert endpoints.spare(29.0)
    miss(free, FaultKind.OVERLOADED, 29.0)
    assert not endpoints.spare(29.0)
    assert endpoints.spare(30.0)


def test_one_that_cools_is_asked_where_there_is_no_other() -> None:
    endpoints = Endpoints([A, B])
    for endpoint in endpoints.all:
        miss(endpoint, FaultKind.RATE_LIMITED)
    assert endpoints.choose(0.0) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_taken_out_after_failures_in_a_row(kind: FaultKind) -> None:
    endpoint = Endpoint(A)
    after = BREAKS_AFTER.get(kind)
    assert miss(endpoint, kind, times=20) == [number == after for number in range(1, 21)]
    assert endpoint.state == ("up" if after is None else "down")


def test_an_answer_in_between_begins_the_count_anew() -> None:
    endpoint = Endpoint(A)
    for _ in range(5):
        miss(endpoint, FaultKind.CONNECTION, times=2)
        answer(endpoint, 1.0, 0.0)
    assert endpoint.state == "up"


def test_what_is_out_is_not_asked_and_one_request_tries_it_when_it_is_found() -> None:
    endpoints = Endpoints([A])
    only = endpoints.all[0]
    miss(only, FaultKind.CONNECTION, times=3)
    assert (endpoints.open, endpoints.working, endpoints.choose(99.0)) == (False, 0, None)
    only.state = "trying"
    assert (endpoints.open, endpoints.tried, named(endpoints.choose(99.0))) == (True, False, A)
    before = only.take(99.0)
    assert (endpoints.open, endpoints.tried, endpoints.choose(99.0)) == (False, True, None)
    only.answered(before, 0.1, 99.0)
    assert (only.state, endpoints.open, endpoints.working) == ("up", True, 1)


@pytest.mark.parametrize(
    ("kind", "state"),
    [(FaultKind.SERVER, "down"), (FaultKind.TIMEOUT, "down"), (FaultKind.OVERLOADED, "trying")],
)
def test_a_try_that_fails(kind: FaultKind, state: str) -> None:
    endpoint = Endpoint(A)
    miss(endpoint, FaultKind.CONNECTION, times=3)
    endpoint.state = "trying"
    assert miss(endpoint, kind) == [state == "down"]
    assert (endpoint.state, endpoint.outstanding) == (state, 0)


def test_a_try_that_is_cancelled_can_be_made_again() -> None:
    endpoint = Endpoint(A)
    miss(endpoint, FaultKind.CONNECTION, times=3)
    endpoint.state = "trying"
    endpoint.take(0.0)
    endpoint.given_up()
    assert endpoint.open


def test_some_can_be_left_out() -> None:
    endpoints = Endpoints([A, B, C])
    assert named(endpoints.choose(0.0, endpoints.all[:2])) == C
    assert endpoints.choose(0.0, endpoints.all) is None


def test_health_checks_are_further_and_further_apart_until_an_answer_comes() -> None:
    endpoint = Endpoint(A)
    pauses = [endpoint.next_pause() for _ in range(20)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (FIRST_PAUSE, LONGEST_CHECK)
    answer(endpoint, 1.0, 0.0)
    assert endpoint.next_pause() == FIRST_PAUSE


@settings(max_examples=examples(80))
@given(st.lists(st.sampled_from(["take", "answered", "given up", "trying", *KINDS]), max_size=60))
def test_outstanding_is_what_was_taken_and_has_not_ended(steps: list[str | FaultKind]) -> None:
    endpoint, flying, sent, failed = Endpoint(A), 0, 0, 0
    for now, step in enumerate(steps):
        if step == "trying":
            endpoint.state = "trying" if endpoint.state == "down" else endpoint.state
        elif step == "take" or not flying:
            endpoint.take(float(now))
            flying, sent = flying + 1, sent + 1
        else:
            flying -= 1
            if step == "answered":
                endpoint.answered(0, 1.0, float(now))
            elif step == "given up":
                endpoint.given_up()
            else:
                endpoint.missed(FaultKind(step), float(now))
                failed += 1
        assert endpoint.figures[2:5] == (sent, failed, flying)
        assert endpoint.open == (endpoint.state == "up" or (endpoint.state == "trying" and not flying))


def test_figures() -> None:
    endpoint = Endpoint("http://user:secret@host:1234/v1?key=secret")
    answer(endpoint, 2.0, 0.0)
    answer(endpoint, 1.0, 1.0)
    miss(endpoint, FaultKind.SERVER)
    assert endpoint.figures[:5] == ("http://host:1234/v1", "up", 3, 1, 0)
    assert endpoint.seconds == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("http://127.0.0.1:11434/", "http://127.0.0.1:11434"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://me:pass@host/v1?key=abc#x", "https://host/v1"),
        ("https://me:p@ss@host", "https://host"),
    ],
)
def test_what_is_shown_of_a_url(url: str, seen: str) -> None:
    assert shown(url) == seen


def test_endpoints_come_and_go_while_requests_are_in_flight() -> None:
    endpoints = Endpoints([])
    assert (endpoints.open, endpoints.choose(0.0), endpoints.only) == (False, None, None)
    assert endpoints.set([A, B])
    assert not endpoints.set([A, B])
    first, second = endpoints.all
    before = first.take(0.0)
    miss(second, FaultKind.CONNECTION, times=3)
    assert second.figures.state == "down"
    assert endpoints.set([C])
    assert endpoints.gone == [first, second]
    first.answered(before, 1.0, 1.0)
    assert not any(miss(second, FaultKind.CONNECTION, times=3))
    assert [endpoint.figures.state for endpoint in endpoints.gone] == ["gone", "gone"]
    assert named(endpoints.only) == named(endpoints.choose(1.0)) == C
    assert endpoints.set([B, C])
    assert endpoints.all[0] is second
    assert [endpoint.state for endpoint in endpoints.all] == ["up", "up"]
    assert endpoints.set([])
    assert endpoints.choose(2.0) is None
    assert len(endpoints.gone) == 3
