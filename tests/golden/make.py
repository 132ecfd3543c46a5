"""Records the golden stores: `python -m tests.golden.make NAME`, or without a name those that are missing.

A store is recorded once and kept: later versions must be able to use it. Record one again only if a program of
Groundswell's own got a new version, or if a decision page says that older stores cannot be used any more.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

from click.testing import CliRunner

import groundswell
from groundswell import Engine, Reply, Request, RunOptions
from groundswell.cli.app import app
from groundswell.program.request import Embedding, Fault
from groundswell.store.copy import copy_store
from groundswell.store.journal import Store
from groundswell.store.open import open_database
from groundswell.testing.batch import ProviderBooks, ScriptedLive
from groundswell.testing.clock import FakeClock
from groundswell.testing.provider import ProviderBatches, TwoWays
from tests.golden.program import DEBATE, NAME, SEED, SPECS, Debates, Rounds, debates, learn, model
from tests.stores import new_database

STORES = Path(__file__).with_name("stores")
RELEASE = "0.0.9"
"""The stores say that an earlier release made them, so that code of Groundswell's own may have changed since."""
Answered = Reply | Embedding | Fault


def answered(request: Request, nth: int) -> Answered:
    return model(request)


async def script(store: Path) -> None:
    """A script's run to its end."""
    async with groundswell.open(store, script=model) as engine:
        async for _ in engine.run(NAME, seed=SEED).map(DEBATE, SPECS):
            pass


async def finished(store: Path) -> None:
    """A driver's run to its end."""
    async with groundswell.open(store, script=model) as engine:
        await engine.drive(debates, Debates(), name=NAME, seed=SEED)


async def unfinished(store: Path) -> None:
    """A driver's run as it is when its process is killed at the tenth request."""
    await _killed(store, 10, lambda engine: engine.drive(debates, Debates(), name=NAME, seed=SEED))


async def checkpoint(store: Path) -> None:
    """The run of a driver that keeps checkpoints, killed at the fourth request."""
    await _killed(store, 4, lambda engine: engine.drive(learn, Rounds(), name=NAME, seed=SEED))


async def _killed(store: Path, at: int, work: Callable[[Engine], object]) -> None:
    seen = 0

    def counting(request: Request) -> Answered:
        nonlocal seen
        seen += 1
        if seen == at:
            _copy(working, store)
        return model(request)

    working = store.with_suffix(".working")
    async with groundswell.open(working, script=counting) as engine:
        await work(engine)  # type: ignore[misc]


def batch(store: Path) -> None:
    """A driver's run whose batch is at the provider, which keeps its own books in a file beside the store."""
    working, clock = store.with_suffix(".working"), FakeClock()

    async def main() -> None:
        held = Store(working)
        clock.watch(held)
        async with Engine(held, provider(store, clock), clock) as engine:
            clock.call_at(100.0, lambda: _copy(working, store))
            await engine.drive(debates, Debates(), name=NAME, seed=SEED, options=RunOptions(via="batch"))

    clock.run(main())
    books = store.with_suffix(".books.jsonl")
    at_that_time = books.read_text().splitlines()[0]
    books.write_text(f"{at_that_time}\n")


def provider(store: Path, clock: FakeClock) -> TwoWays:
    """A provider with a batch API, whose books are beside the store."""
    books = ProviderBooks(store.with_suffix(".books.jsonl"))
    return TwoWays(ScriptedLive(books, answered, clock), ProviderBatches(books, answered, clock, takes=3600.0))


def game(store: Path) -> None:
    """A secret game of Groundswell's own, to its end."""
    models = "emulated/leaker:0.5,emulated/bluffer"
    _command(store, "play", "--models", models, "--interactions", "3", "--messages", "4", "--seed", str(SEED))


def simulation(store: Path) -> None:
    """A simulation of Groundswell's own, to its end."""
    people = ["--entities", "human", "--interaction-size", "2", "--num-simulations", "2", "--n-turns", "2"]
    about = ["--context", "Two neighbours talk about a bridge.", "--model", "emulated/gpt-4o-mini"]
    sampled = CliRunner().invoke(app, ["entities", "sample", "--type", "human", "--count", "4", "--store", str(store)])
    assert sampled.exit_code == 0, sampled.output
    _command(store, "simulate", *people, *about, "--seed", str(SEED))


def _command(store: Path, command: str, *arguments: str) -> None:
    given = [command, *arguments, "--name", NAME, "--store", str(store)]
    result = CliRunner().invoke(app, given + (["--out", str(store.parent / "out")] if command == "play" else []))
    assert result.exit_code == 0, result.output


def _copy(working: Path, store: Path) -> None:
    """What the store holds at this moment, as a kill would leave it."""
    with sqlite3.connect(working) as reading, sqlite3.connect(store) as writing:
        reading.backup(writing)
    reading.close()
    writing.close()


RECORDED: dict[str, Callable[[Path], object]] = {
    each.__name__: each for each in (script, finished, unfinished, checkpoint, batch, game, simulation)
}


def load(name: str, folder: Path, kind: str = "sqlite") -> str | Path:
    """A golden store as a file in a folder or on a server, with the books of its provider in the folder."""
    store = folder / f"{name}.db"
    connection = sqlite3.connect(store)
    connection.executescript((STORES / f"{name}.sql").read_text())
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    books = STORES / f"{name}.books.jsonl"
    if books.exists():
        store.with_suffix(".books.jsonl").write_text(books.read_text())
    if kind == "sqlite":
        return store
    place = new_database()
    with closing(open_database(store)) as source, closing(open_database(place)) as target:
        copy_store(source, target)
    return place


def main(names: list[str]) -> None:
    with (
        patch("groundswell.program.source.__version__", RELEASE),
        patch("groundswell.store.runs.__version__", RELEASE),
    ):
        for name in names or [name for name in RECORDED if not (STORES / f"{name}.sql").exists()]:
            with tempfile.TemporaryDirectory() as folder:
                store = Path(folder, f"{name}.db")
                work = RECORDED[name](store)
                if asyncio.iscoroutine(work):
                    asyncio.run(work)
                connection = sqlite3.connect(store)
                (STORES / f"{name}.sql").write_text("\n".join(connection.iterdump()) + "\n")
                connection.close()
                books = store.with_suffix(".books.jsonl")
                if books.exists():
                    (STORES / books.name).write_text(books.read_text())


if __name__ == "__main__":
    main(sys.argv[1:])
