"""A folder whose runs have batches in flight at an emulator, as an interrupted command leaves them."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import groundswell
from groundswell import RunOptions
from groundswell.engine.driver import decode_settings, load_driver
from groundswell.engine.events import BatchSent, Event
from groundswell.errors import RunStopped
from groundswell.providers.accounts.config import load
from tests.shows.desk import Desk

DRIVER = f"{Path(__file__).parents[1] / 'shows' / 'exchange.py'}:exchange"
OFTEN = ["--account", "openai.batch_poll=0.02", "--account", "anthropic.batch_poll=0.02"]
A_DAY = 86_400.0


class Office(Desk):
    """Commands that ask the emulator, and runs that were left while their batches were in flight."""

    def leave(self, name: str | None, talks: int = 4, batches: int = 2) -> str:
        """Begin a run whose first messages go to both providers, and stop it once they have them; gives its id."""
        sent: list[Event] = []

        def hear(event: Event) -> None:
            sent.extend([event] * isinstance(event, BatchSent))
            if len(sent) == batches:
                for run in engine.runs:
                    run.stop("interrupted", "interrupted")

        driver = load_driver(DRIVER)
        settings = decode_settings(driver, b'{"talks": %d, "messages": 1, "balanced": true}' % talks)
        accounts = load(self.variables, self.folder, self.folder)
        options = RunOptions(via="batch")
        engine = groundswell.open(self.folder / "runs.db", accounts=accounts, options=options, listeners=[hear])

        async def main() -> str:
            async with engine:
                with suppress(RunStopped):
                    await engine.drive(driver, settings, name=name)
                assert engine.latest is not None
                return engine.latest

        return asyncio.run(main())

    def batches(self, *words: str) -> dict[str, dict[str, Any]]:
        """What `batches list` says, by account."""
        return {row["account"]: row for row in self.json("batches", "list", *words)["batches"]}

    def partly_done(self) -> dict[str, dict[str, Any]]:
        """Let some lines of OpenAI's batch be done. When a line is due depends on its id, which is drawn."""
        while not (rows := self.batches())["openai"]["done"]:
            self.emulator.advance(60)
        return rows

    def change(self, sql: str, *values: object) -> None:
        """Do something to the store behind everybody's back."""
        with closing(sqlite3.connect(self.folder / "runs.db")) as store, store:
            store.execute(sql, values)

    def lose_receipt(self, account: str) -> None:
        """What a kill leaves between a batch and its receipt."""
        self.change("UPDATE waves SET receipt = NULL WHERE account = ?", account)

    def change_owner(self, account: str) -> None:
        """As if a wave had been sent with another key of the same organisation."""
        self.change("UPDATE waves SET about = json_set(about, '$.owner', 'another') WHERE account = ?", account)

    def resume(self, run: str, status: int = 0) -> Any:
        """Go on with a run."""
        return self.json("runs", "resume", run, *OFTEN, status=status)

    def finish_cheaply(self, run: str) -> None:
        """A day later the run is resumed, collects its four replies, and nothing is paid for twice."""
        self.emulator.advance(A_DAY)
        assert self.resume(run)["status"] == "completed"
        assert (self.books["batch_requests"], self.books["paid_again"], self.books["requests"]) == (4, 0, 0)
