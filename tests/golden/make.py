"""Writes the golden journal: `python -m tests.golden.make`. Only for a change that old journals cannot survive."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from pathlib import Path

import groundswell
from tests.golden.program import DEBATE, NAME, SEED, SPECS, model

JOURNAL = Path(__file__).with_name("journal.sql")
TIMES = (
    "UPDATE runs SET created_at = 0, updated_at = 0, uid = 'golden', checksum = NULL, "
    "counters = json_remove(counters, '$.seconds', '$.waves')"
)


async def perform(store: Path) -> None:
    """Run the golden program from the start."""
    async with groundswell.open(store, script=model) as engine:
        async for _ in engine.run(NAME, seed=SEED).map(DEBATE, SPECS):
            pass


def dump(store: Path) -> str:
    """A store as SQL text, without what differs from one time to the next."""
    connection = sqlite3.connect(store)
    connection.execute(TIMES)
    connection.execute("UPDATE runs SET sources = '{}'")
    connection.execute("DELETE FROM waves")
    connection.execute("UPDATE asks SET wave = NULL, checksum = NULL")
    connection.commit()
    text = "\n".join(connection.iterdump())
    connection.close()
    return f"{text}\n"


def load(store: Path) -> None:
    """A store from the SQL text."""
    connection = sqlite3.connect(store)
    connection.executescript(JOURNAL.read_text())
    connection.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "golden.db")
        asyncio.run(perform(store))
        JOURNAL.write_text(dump(store))


if __name__ == "__main__":
    main()
