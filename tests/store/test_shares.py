"""How processes on one store share the limits of an account."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.store.journal import Store
from groundswell.store.shares import Share, fair_share
from tests.stores import BOTH, new_store, rows


class Processes:
    """Some processes on one store."""

    def __init__(self, stack: ExitStack, kind: str, folder: Path) -> None:
        self.place = new_store(kind, folder)
        self._stack = stack

    def one_more(self) -> Store:
        store = Store(self.place)
        self._stack.callback(store.close_reading)
        return store


@pytest.fixture(params=BOTH)
def processes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Processes]:
    with ExitStack() as stack:
        yield Processes(stack, request.param, tmp_path)


def test_a_process_alone_has_everything(processes: Processes) -> None:
    shares = processes.one_more().shares
    assert [shares.take("a", wants, 0, 100) for wants in (0, 1, 500)] == [100, 100, 100]
    assert shares.take("b", 1, 0, 8) == 8


def test_two_share_by_what_they_want_once_the_first_has_given_something_up(processes: Processes) -> None:
    first, second = processes.one_more().shares, processes.one_more().shares
    assert first.take("a", 30, 30, 100) == 100
    assert second.take("a", 90, 0, 100) == 0
    assert first.take("a", 30, 30, 100) == 25  # of which it uses 30 until some of its requests have ended
    assert second.take("a", 90, 0, 100) == 70
    assert first.take("a", 30, 25, 100) == 25
    assert second.take("a", 90, 70, 100) == 75
    first.leave()
    assert second.take("a", 90, 75, 100) == 100


@pytest.mark.parametrize("gone", ["UPDATE shares SET process = ?", "UPDATE shares SET at = at - 31, process = process"])
def test_the_share_of_a_process_that_has_gone_is_free(processes: Processes, gone: str) -> None:
    first, second = processes.one_more().shares, processes.one_more().shares
    first.take("a", 30, 30, 100)
    assert second.take("a", 1, 0, 100) == 0
    (text,) = rows(processes.place, "SELECT process FROM shares WHERE slots = 100")[0]
    where = " WHERE slots = 100"
    rows(processes.place, gone + where, *[text.replace('"started":"', '"started":"9')] * gone.count("?"))
    assert second.take("a", 1, 0, 100) == 100
    assert rows(processes.place, "SELECT count(*) FROM shares") == [(1,)]


def test_nothing_is_written_as_long_as_nothing_changes(processes: Processes) -> None:
    shares = processes.one_more().shares
    shares.take("a", 10, 0, 100)
    before = rows(processes.place, "SELECT * FROM shares")
    for wants in (10, 80, 3):
        shares.take("a", wants, wants, 100)
    assert rows(processes.place, "SELECT * FROM shares") == before


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 100), st.integers(0, 40)), max_size=60),
)
def test_no_more_is_ever_in_flight_than_the_limit(most: int, turns: list[tuple[int, int, int]]) -> None:
    """Processes take turns: each says what it wants and gets its share; then some requests end and others leave."""
    published, using, wants = [0] * 5, [0] * 5, [1] * 5
    for process, wanted, ended in turns:
        wants[process] = wanted
        slots = renew(process, wants, published, using, most)
        using[process] = max(min(wanted, slots), using[process] - ended)
        assert sum(using) <= sum(published) <= most


@given(st.integers(5, 300), st.lists(st.integers(1, 500), min_size=1, max_size=5))
def test_everything_is_in_use_soon_and_fairly(most: int, wants: list[int]) -> None:
    published, using = [0] * len(wants), [0] * len(wants)
    for process in [number for _ in range(len(wants) + 2) for number in range(len(wants))]:
        using[process] = renew(process, wants, published, using, most)
    assert sum(using) == most
    for slots, wanted in zip(using, wants, strict=True):
        assert slots <= most * wanted / sum(wants) + 1 or len(wants) == 1
        assert slots >= most * wanted / sum(wants) - len(wants)


def renew(process: int, wants: list[int], published: list[int], using: list[int], most: int) -> int:
    others = [Share(*pair) for number, pair in enumerate(zip(wants, published, strict=True)) if number != process]
    slots = fair_share(wants[process], most, others)
    published[process] = max(slots, using[process])
    return slots


def test_processes_of_all_sizes_find_their_share() -> None:
    for most, (one, other) in itertools.product((1, 2, 7, 256), ((1, 1), (1, 1000), (3, 4))):
        slots = fair_share(one, most, [Share(other, 0)])
        assert 1 <= slots <= most
        assert (
            fair_share(other, most, [Share(one, slots)]) == most - slots or most * other // (one + other) < most - slots
        )


def test_a_process_that_wants_nothing_leaves_its_slots(processes: Processes) -> None:
    first, second = processes.one_more().shares, processes.one_more().shares
    assert first.take("a", 1, 0, 1) == 1
    assert second.take("a", 9, 0, 1) == 0
    assert first.take("a", 0, 1, 1) == 0
    assert first.take("a", 0, 0, 1) == 0
    assert second.take("a", 9, 0, 1) == 1


def test_a_process_that_wants_little_is_not_kept_out_by_one_that_wants_much() -> None:
    assert fair_share(512, 256, [Share(1, 0)]) == 255
    assert fair_share(1, 256, [Share(512, 255)]) == 1
