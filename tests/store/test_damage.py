"""One flipped bit anywhere in a store: what is read is right, or an error says that the store is damaged."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Fault, FaultKind, Reply, Request, Trial, program
from groundswell.errors import GroundswellError, StoreCorrupt, StoreError
from groundswell.program.request import Chat
from groundswell.store.cache import Cache
from groundswell.store.check import check_store
from groundswell.store.checksum import AskRow, checksum
from groundswell.store.journal import Store
from groundswell.store.open import open_database
from groundswell.store.runs import CHECKED, run_record

QUICK, THOROUGH = 40, 300
NAME = "watched"


@program("damage/pair")
async def pair(trial: Trial, number: int) -> dict[str, Any]:
    first = await trial.ask("m", f"first of {number}")
    second = await trial.ask("m", f"second of {number} after {first.text}")
    return {"number": number, "said": [first.text, second.text]}


def model(request: Request) -> Reply | Fault:
    assert isinstance(request, Chat)
    text = str(request.messages[-1].content)
    if "second of 3" in text:
        return Fault(FaultKind.BAD_REQUEST, "this model refuses")
    return Reply(f"a reply to {text}, with an é in it")


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with a run that has ended, what it kept, and two documents."""
    path = tmp_path_factory.mktemp("intact") / "s.db"

    async def main() -> None:
        async with groundswell.open(path, script=model) as engine:
            run = engine.run(NAME, seed=3)
            async for _ in run.map(pair, range(8)):
                pass
            await run.keep("checkpoint", '{"weights": [1, 2, 3]}')

    asyncio.run(main())
    store = Store(path)
    store.documents.add(("entity", "anna", '{"id": "anna"}'), ("entity", "ben", '{"id": "ben"}'))
    store.close_reading()
    return path.read_bytes()


def contents(path: Path) -> dict[str, Any]:
    """Everything that commands and the server read of a store, without figures that every commit changes."""
    store = Store(path)
    try:
        found: dict[str, Any] = {}
        for record in store.runs.list():
            results = store.results(record)
            rows = list(results)
            found[record.id] = {
                "settings": (record.name, record.seed, record.driver, record.settings, record.options, record.analysis),
                "state": store.runs.state(store.runs.get(record.id)) in ("completed", "partial"),
                "trials": [(row.key, row.program, row.spec(), row.result(), row.fault) for row in rows],
                "asks": [sorted(results.recorded(row.row).items()) for row in rows],
                "faults": results.fault_counts(),
                "replies": results.reply_counts(),
                "kept": results.kept("checkpoint"),
                "waves": (store.waves.of(record), store.waves.came(record)),
                "lines": results.write(io.BytesIO(), "jsonl") + results.write(io.BytesIO(), "csv"),
            }
        found["open"] = store.waves.open(), store.waves.batches()
        found["documents"] = [(each.kind, each.id, each.body) for each in store.documents.list("entity")]
    finally:
        store.close_reading()
    database = open_database(path)
    found["cached"] = Cache(database).kept().replies
    database.close()
    return found


async def replayed(path: Path) -> Any:
    """What `runs verify` finds, and a resumed run of a script."""
    async with groundswell.open(path, script=model) as engine:
        found = await engine.verify(NAME)
        async with asyncio.timeout(30):
            outcomes = [outcome async for outcome in engine.run(NAME, seed=3).map(pair, range(8))]
        return found.ok, [(outcome.key, outcome.result, outcome.fault) for outcome in outcomes]


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def read_after(content: bytes, bit: int, folder: Path) -> Any:
    """What is found in a store with one bit changed, or the error."""
    path = folder / f"{bit}.db"
    path.write_bytes(flipped(content, bit))
    try:
        found = contents(path)
        return found, asyncio.run(replayed(path))
    except GroundswellError as error:
        return error
    finally:
        for each in folder.iterdir():
            each.unlink()


def check_flips(content: bytes, bits: Iterator[int], folder: Path) -> list[GroundswellError]:
    path = folder / "intact.db"
    path.write_bytes(content)
    right = contents(path), asyncio.run(replayed(path))
    errors = []
    for bit in bits:
        found = read_after(content, bit, folder)
        if isinstance(found, GroundswellError):
            errors.append(found)
        elif found != right:
            path.write_bytes(flipped(content, bit))
            assert check_store(path).problems, f"bit {bit}: wrong content, and nobody notices: {found}"
            path.unlink()
    return errors


def bits(content: bytes, seed: int, count: int) -> Iterator[int]:
    """Bits of bytes that are in use: most of a page is empty."""
    used = [at for at, byte in enumerate(content) if byte]
    chosen = random.Random(seed)
    return (chosen.choice(used) * 8 + chosen.randrange(8) for _ in range(count))


def test_a_flipped_bit_is_an_error_or_changes_nothing(intact: bytes, tmp_path: Path) -> None:
    errors = check_flips(intact, bits(intact, 7, QUICK), tmp_path)
    assert len(errors) > QUICK // 4
    assert [error for error in errors if not isinstance(error, StoreError)] == []


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(8))
def test_thousands_of_flipped_bits(intact: bytes, tmp_path: Path, seed: int) -> None:
    check_flips(intact, bits(intact, 100 + seed, THOROUGH), tmp_path)


def place(content: bytes, text: bytes) -> int:
    """The first bit of a text that is in a store once or more."""
    return content.rindex(text) * 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"SQLite format 3", "not a valid database"),
        (b"CREATE TABLE asks", "is damaged"),
        (b'"text":"a reply to first of 5', "is damaged (ask "),
        (b'"number":5', "is damaged (the outcome of trial"),
        (b'{"id": "ben"}', "is damaged (document 'ben'"),
        (b'{"weights"', "is damaged (document"),
    ],
    ids=["header", "schema", "reply", "outcome", "document", "checkpoint"],
)
def test_the_error_says_what_is_damaged_and_what_to_do(intact: bytes, tmp_path: Path, text: bytes, said: str) -> None:
    found = read_after(intact, place(intact, text) + 16, tmp_path)
    assert isinstance(found, StoreCorrupt)
    assert said in str(found)
    assert f"`groundswell doctor --store {tmp_path}" in str(found)


@pytest.mark.parametrize("lost", [{"settlement": None}, {"path": None}, {"trial": None}], ids=str)
def test_an_ask_that_lost_columns_with_its_checksum_is_damaged(lost: dict[str, Any]) -> None:
    row = AskRow(1, "0", b"fingerprint", None, None, '{"reply":{}}', None)
    assert row.checked() is row
    with pytest.raises(msgspec.DecodeError):
        row._replace(**lost).decoded()


@pytest.mark.parametrize("seconds", [None, 2.25, "text", b"2.5"], ids=repr)
def test_the_seconds_of_an_ask_are_covered_by_its_checksum(seconds: Any) -> None:
    row = AskRow(1, "0", b"fingerprint", None, None, '{"reply":{}}', None, 2.5)
    row = row._replace(checksum=checksum(*row[:5], (2.5).hex(), row.settlement))
    assert row.checked() is row
    with pytest.raises(msgspec.DecodeError, match="was changed"):
        row._replace(seconds=seconds).checked()


def test_a_run_whose_columns_are_of_another_table_is_damaged() -> None:
    row = {"id": 1, "uid": 4294967304, "checksum": None, "options": 5, "sources": "{}", "counters": "{}", "cancel": 0}
    with pytest.raises(msgspec.DecodeError, match="not text"):
        run_record(dict.fromkeys(CHECKED) | row)
