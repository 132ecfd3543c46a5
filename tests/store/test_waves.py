"""Waves across the runs of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from groundswell.engine.records import About, AskId, Possible, Receipt, RunRecord
from groundswell.program.request import Fault, FaultKind, Reply, Usage
from groundswell.store.journal import Store
from groundswell.store.waves import Came, StoredWave
from tests.store.planted import MINE, Planted


@pytest.fixture
def planted(place: str | Path) -> Planted:
    return Planted(place)


@pytest.fixture
def store(planted: Planted) -> Iterator[Store]:
    opened = Store(planted.path)
    yield opened
    opened.close_reading()


def the(store: Store, record: RunRecord, number: int) -> StoredWave:
    found = store.waves.find(record, number)
    assert found is not None
    return found


def test_open_waves_of_all_runs_or_of_one(store: Store, planted: Planted) -> None:
    duels, other = store.runs.create("duels", 0), store.runs.create(None, 0)
    planted.send(duels, 1, 3, "batch_1")
    planted.send(duels, 4, 3)
    planted.send(other, 2, 2, "batch_2")
    planted.end(duels, 1)
    assert [(wave.title, wave.size, wave.batch) for wave in store.waves.open()] == [
        ("duels/4", 3, None),
        (f"{other.id}/2", 2, "batch_2"),
    ]
    (wave,) = store.waves.open(other)
    assert wave == StoredWave(
        *(other.span[0] + 2, other.id, None, "openai", "openai_batch", 2, 1000.0, MINE),
        *(Receipt({"batch": "batch_2"}), None),
    )
    assert store.waves.open(duels)[0].number == 4


def test_all_waves_of_a_run(store: Store, planted: Planted) -> None:
    duels, other = store.runs.create("duels", 0), store.runs.create(None, 0)
    planted.send(duels, 1, 3, "batch_1")
    planted.send(duels, 4, 2)
    planted.send(other, 2, 2)
    planted.end(duels, 1)
    found = [(wave.number, wave.size, wave.ended_at is None) for wave in store.waves.of(duels)]
    assert found == [(1, 3, False), (4, 2, True)]


def test_a_wave_that_said_nothing_of_itself(store: Store, planted: Planted) -> None:
    record = store.runs.create("r", 0)
    planted.send(record, 1, 1, about=About())
    assert the(store, record, 1).about == About()


@pytest.mark.parametrize("number", [0, 2, -1, 2**32, 2**80])
def test_waves_that_are_not_there(store: Store, planted: Planted, number: int) -> None:
    record, following = store.runs.create("r", 0), store.runs.create("s", 0)
    planted.send(record, 1, 1)
    planted.send(following, 1, 1)
    assert store.waves.find(record, number) is None


def test_a_wave_is_found_by_its_batch_even_if_it_has_ended(store: Store, planted: Planted) -> None:
    record = store.runs.create("r", 0)
    planted.send(record, 1, 1, "batch_10")
    planted.send(record, 2, 1, "batch_1")
    planted.end(record, 2)
    found = store.waves.of_batch("batch_1")
    assert found is not None
    assert (found.number, found.ended_at is None) == (2, False)
    assert store.waves.of_batch("batch%1") is None
    assert store.waves.of_batch("batch") is None
    assert store.waves.batches() == {"batch_10", "batch_1"}


def test_what_a_wave_carries(store: Store, planted: Planted) -> None:
    record = store.runs.create("r", 0)
    planted.send(record, 7, 1200)
    wave = the(store, record, 7)
    intent = store.waves.intent(wave)
    assert (intent.run, intent.id, intent.about, len(intent.asks)) == (record.id, wave.id, MINE, 1200)
    assert intent.asks[1199] == AskId(record.span[0] + 1200, "0")
    assert store.waves.trials(wave, 2) == ["key 1", "key 2"]


def test_what_came_of_a_wave(store: Store, planted: Planted) -> None:
    record = store.runs.create("r", 0)
    planted.send(record, 1, 700)
    planted.send(record, 2, 0)
    reply, refused = Reply("yes", Usage(5, 1)), Fault(FaultKind.FILTERED, "no")
    planted.settle(record, 1, 1, reply)
    planted.settle(record, 1, 700, refused)
    planted.settle(record, 2, 3, reply)
    planted.settle(record, 1, 1, reply, "1")  # live, in an earlier session that gave the same number
    wave = the(store, record, 1)
    assert list(store.waves.settled(wave)) == [reply, refused]
    assert store.waves.waiting(wave) == 697


def test_how_the_replies_of_a_run_came(store: Store, planted: Planted) -> None:
    record, other = store.runs.create("r", 0), store.runs.create(None, 0)
    reply = Reply("yes", Usage(5, 1))
    planted.settle(other, 9, 1, reply)
    planted.send(record, 1, 4, "refused")
    planted.end(record, 1)
    planted.send(record, 2, 4, "batch_2")
    for trial in (1, 2):
        planted.settle(record, 2, trial, reply)
    planted.settle(record, 2, 3, Fault(FaultKind.FILTERED, "no"))
    planted.settle(record, 3, 4, reply)
    assert (store.waves.came(record), store.waves.came(other)) == (Came(1, 2, 1), Came(0, 0, 0))


def test_a_receipt_by_hand_is_what_a_resumed_run_reads(store: Store, planted: Planted) -> None:
    record = store.runs.create("r", 0)
    planted.send(record, 1, 2)
    about = About("another", "gpt-4o-mini", 0.5)
    store.waves.set_receipt(the(store, record, 1), Receipt({"batch": "batch_9"}), about)

    async def read() -> None:
        journal = store.journal(record, lambda error: None)
        ((intent, receipt, prints),) = await journal.open_waves()
        assert (intent.about, receipt, len(prints)) == (about, Receipt({"batch": "batch_9"}), 2)
        journal.close()

    asyncio.run(read())


def test_a_wave_that_is_given_up_counts_what_is_sent_again(store: Store, planted: Planted) -> None:
    record = store.runs.create("r", 0)
    planted.send(record, 1, 5)
    planted.send(record, 2, 2)
    planted.settle(record, 1, 3, Reply("yes"))
    record = store.runs.get("r")
    record.counters.resent = 10
    store.runs.change(record, counters=record.counters)
    assert store.waves.give_up(the(store, record, 1)) == 2, "one has a reply, and two are in a later wave"
    assert [wave.number for wave in store.waves.open()] == [2]
    assert store.runs.get("r").counters.resent == 12
    assert store.runs.get("r").counters.possible == Possible(asks=2, usd=0.5 * 2 / 5), "their share of the batch"


def test_a_wave_of_unknown_price_that_is_given_up(store: Store, planted: Planted) -> None:
    record = store.runs.create("r", 0)
    planted.send(record, 1, 5, about=About("owner", "m"))
    assert store.waves.give_up(the(store, record, 1)) == 5
    assert store.runs.get("r").counters.possible == Possible(asks=5, unknown=5)
