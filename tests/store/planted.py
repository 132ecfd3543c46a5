"""Waves as a run would have left them in a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from groundswell.engine.ports import Journal
from groundswell.engine.records import About, AskId, Intent, Receipt, RunRecord, TrialRow
from groundswell.program.request import Settlement
from groundswell.store.journal import Store

OWNER = "0123456789abcdef"
MINE = About(OWNER, "gpt-4o-mini", 0.5)


class Planted:
    """Writes into a store as the journal of a run does."""

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def run(self, name: str | None) -> RunRecord:
        """A new run."""
        store = Store(self.path)
        record = store.runs.create(name, 0)
        store.close_reading()
        return record

    def send(
        self,
        record: RunRecord,
        number: int,
        trials: int,
        batch: str | None = None,
        *,
        about: About = MINE,
        account: str = "openai",
        at: float = 1000.0,
    ) -> None:
        """A wave with the first ask of so many trials."""
        first = record.span[0]
        carried = tuple(AskId(first + one, "0") for one in range(1, trials + 1))
        intent = Intent(first + number, record.id, account, f"{account}_batch", carried, at, about)

        def write(journal: Journal) -> None:
            for one in range(1, trials + 1):
                journal.add_trial(TrialRow(first + one, f"key {one}", "p@1", "{}", 0))
            journal.add_wave(intent, [print_of(ask) for ask in carried], lambda: None)
            if batch is not None:
                journal.add_receipt(intent.id, Receipt({"batch": batch}))

        self._write(record, write)

    def settle(
        self,
        record: RunRecord,
        wave: int,
        trial: int,
        settlement: Settlement,
        path: str = "0",
        *,
        seconds: float | None = None,
    ) -> None:
        """An ask of a trial ended, in a wave."""
        ask = AskId(record.span[0] + trial, path)
        carried = record.span[0] + wave
        self._write(
            record,
            lambda j: j.add_settlement(ask, print_of(ask), carried, settlement, lambda: None, seconds=seconds),
        )

    def end(self, record: RunRecord, wave: int) -> None:
        """A wave has ended."""
        self._write(record, lambda journal: journal.end_wave(record.span[0] + wave))

    def _write(self, record: RunRecord, write: Callable[[Journal], None]) -> None:
        async def work() -> None:
            store = Store(self.path)
            journal = store.journal(store.runs.get(record.id), lambda error: None)
            write(journal)
            await journal.flush()
            journal.close()
            await store.close()

        asyncio.run(work())


def print_of(ask: AskId) -> bytes:
    """A fingerprint, as if it were that of a request."""
    return f"{ask.trial:16}{ask.path}".encode()[-16:]
