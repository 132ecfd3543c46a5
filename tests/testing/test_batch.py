"""The books of the provider for tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

from groundswell.program.request import Fault, FaultKind, Reply, Request
from groundswell.testing.batch import ProviderBooks, ScriptedBatch
from groundswell.testing.clock import FakeClock
from groundswell.testing.transport_checks import make_wave


def second_time_lucky(request: Request, nth: int) -> Reply | Fault:
    return Reply("now") if nth else Fault(FaultKind.SERVER, "not yet")


def test_books_tell_what_was_placed_and_what_was_paid(tmp_path: Path) -> None:
    books = ProviderBooks(tmp_path / "books.jsonl")
    assert (books.entries(), books.paid().total()) == ([], 0)
    way = ScriptedBatch(books, second_time_lucky, FakeClock())

    async def main() -> None:
        for number, asks in ((1, 3), (2, 2)):
            await way.dispatch(make_wave(way, number, asks))

    asyncio.run(main())
    again = ProviderBooks(tmp_path / "books.jsonl")
    asks = make_wave(way, 1, 3).asks
    assert again.placed() == {asks[0]: 2, asks[1]: 2, asks[2]: 1}
    assert again.paid() == {asks[0]: 1, asks[1]: 1}
    assert set(again.custom_ids().values()) == {1}
    assert [entry.batch for entry in again.entries()] == ["batch-0", "batch-1"]


def test_a_batch_is_found_by_run_and_custom_ids_alone(tmp_path: Path) -> None:
    books = ProviderBooks(tmp_path / "books.jsonl")
    wave = make_wave(ScriptedBatch(books, second_time_lucky, FakeClock()), 1, 3)
    placed = books.place(wave, second_time_lucky, batch=True)
    ids = [wave.custom_id(ask) for ask in wave.asks]
    assert books.find(wave.run, ids[::-1]) == placed
    assert books.find("another run", ids) is None
    assert books.find(wave.run, ids[:2]) is None
