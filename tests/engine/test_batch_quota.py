"""Room in a provider's queue: never more than is known to fit, and nothing waits for ever."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.engine.batch_quota import FIRST_PAUSE, LONGEST_PAUSE, BatchQuota, Capacity, Load, ProviderQueue
from tests.properties import examples

EXAMPLES = settings(max_examples=examples(150), deadline=None)
LOADS = st.builds(Load, st.integers(1, 40), st.integers(0, 30))
CAPACITIES = st.builds(
    Capacity,
    st.integers(1, 8),
    st.integers(40, 200),
    st.none() | st.integers(1, 60),
    st.sampled_from(["tokens", "requests"]),
)


def hold(capacity: Capacity) -> tuple[BatchQuota, ProviderQueue]:
    room = ProviderQueue(capacity.queue)
    return BatchQuota(capacity, room), room


@EXAMPLES
@given(CAPACITIES, st.lists(LOADS, min_size=1, max_size=30), st.lists(st.integers(0, 3), max_size=20))
def test_no_more_is_in_flight_than_may_wait_and_all_of_it_leaves(
    capacity: Capacity, loads: list[Load], order: list[int]
) -> None:
    """Whichever of the batches ends first."""
    held, room = hold(capacity)
    waiting, flying = list(loads), list[list[int]]()
    while waiting or flying:
        count = held.fit(waiting, 0.0)
        batch, waiting = waiting[:count], waiting[count:]
        assert count <= capacity.requests
        assert sum(load.bytes for load in batch) <= capacity.bytes
        if batch:
            alone = held.empty
            flying.append([held.take(load) for load in batch])
            assert room.taken == sum(map(sum, flying))
            assert room.taken <= room.limit or (alone and count == 1), "more than fits, and not by itself"
        else:
            assert flying, "something waits, nothing is in flight, and nothing leaves"
            for amount in flying.pop((order.pop() if order else 0) % len(flying)):
                held.free(amount)
    assert room.taken == 0, "what was taken was given back"


@EXAMPLES
@given(st.integers(1, 200), st.booleans(), st.lists(LOADS, min_size=1, max_size=25), st.sampled_from([1, 7]))
def test_a_limit_that_nobody_knows_is_found_and_everything_leaves(
    real: int, tells: bool, loads: list[Load], ratio: int
) -> None:
    """A provider refuses what is too much. What it does not take even by itself goes another way."""
    held, room = hold(Capacity(1000, 1 << 20))
    waiting, now, refusals = list(loads), 0.0, 0
    while waiting:
        count = held.fit(waiting, now)
        if not count:
            assert held.not_before > now, "nothing is in flight, and nobody says when to try again"
            now = held.not_before
            continue
        batch, amounts = waiting[:count], [held.take(load) for load in waiting[:count]]
        for amount in amounts:
            held.free(amount)
        if sum(max(1, load.tokens * ratio) for load in batch) <= real:
            held.worked(60.0)
            for load in batch:
                held.counted(load, load.tokens * ratio)
        elif count > 1:
            held.refused(sum(amounts), real if tells else None, now)
            refusals += 1
            continue
        waiting = waiting[count:]
    assert refusals < 8 * len(loads), "a limit is found soon"
    assert room.taken == 0


def test_pauses_grow_until_something_is_taken() -> None:
    room, waits = ProviderQueue(None), list[float]()
    for _ in range(8):
        room.refused(10, None, 100.0)
        waits.append(room.not_before - 100.0)
    assert waits == [30.0, 60.0, 120.0, 240.0, 480.0, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    room.accepted()
    room.refused(10, None, 100.0)
    assert room.not_before == 100.0 + FIRST_PAUSE


def test_room_that_is_freed_ends_a_pause() -> None:
    room = ProviderQueue(None)
    room.take(10)
    room.refused(5, None, 0.0)
    assert (room.left(1.0), room.limit) == (0.0, 10.5)
    room.free(10)
    assert room.left(1.0) == 10.5


TOLD = [
    pytest.param(30, 25, 25.0, id="told, and that explains it"),
    pytest.param(20, 25, 14.0, id="told, but others use it too"),
    pytest.param(20, None, 14.0, id="not told"),
]


@pytest.mark.parametrize(("asked", "told", "limit"), TOLD)
def test_what_a_refusal_teaches(asked: int, told: int | None, limit: float) -> None:
    room = ProviderQueue(None)
    room.refused(asked, told, 0.0)
    assert room.limit == limit
    for _ in range(20):
        room.accepted()
    assert room.limit >= (25 if told else 1000)
    assert room.limit <= (told or inf)


@EXAMPLES
@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0.3, 4.0)), min_size=1, max_size=300))
def test_the_estimate_of_tokens_stays_among_what_was_seen(seen: list[tuple[int, float]]) -> None:
    held, _ = hold(Capacity(1000, 1 << 20))
    for tokens, ratio in seen:
        held.counted(Load(1, tokens), max(1, int(tokens * ratio)))
    ratios = [max(1, int(tokens * ratio)) / tokens for tokens, ratio in seen]
    assert 1000 * min(1.0, *ratios) - 1 <= held.take(Load(1, 1000)) <= 1000 * max(1.0, *ratios) + 1


def test_an_estimate_comes_close_in_one_large_batch() -> None:
    held, _ = hold(Capacity(50_000, 1 << 30))
    for _ in range(20_000):
        held.counted(Load(1, 100), 130)
    assert held.take(Load(1, 100)) == pytest.approx(130, rel=0.01)


def test_fractions_leave_no_rest_that_would_keep_a_large_request_waiting() -> None:
    held, _ = hold(Capacity(10, 1000, 5))
    for number in range(50):
        held.counted(Load(1, 30), 31 + number % 3)
    amounts = [held.take(Load(1, tokens)) for tokens in (7, 11, 13, 17)]
    for amount in (amounts[2], amounts[0], amounts[3], amounts[1]):
        held.free(amount)
    assert held.empty
    assert held.fit([Load(1, 5000)], 0.0) == 1


@pytest.mark.parametrize(("asked", "waited"), [(None, FIRST_PAUSE), (500.0, 500.0), (86_400.0, LONGEST_PAUSE)])
def test_a_retry_after_is_followed_up_to_a_quarter_of_an_hour(asked: float | None, waited: float) -> None:
    quota = BatchQuota(Capacity(10, 1000), ProviderQueue(100))
    quota.limited(100, asked, 0.0)
    assert quota.not_before == waited


def test_a_refusal_for_load_tells_nothing_of_limits_unless_it_goes_on() -> None:
    hold = BatchQuota(Capacity(10, 1000), ProviderQueue(100))
    hold.limited(100, None, 0.0)
    assert hold.not_before > 0
    assert hold.fit([Load(1, 50)] * 2, 0.0) == 0
    assert hold.fit([Load(1, 50)] * 2, hold.not_before) == 2
    hold.limited(100, 500.0, 0.0)
    assert hold.not_before == 500
    hold.limited(100, None, 5000.0)
    assert hold.fit([Load(1, 50)] * 2, hold.not_before) == 1
