"""Commands on a store that is damaged, gone, or on a disk that is full: one line that says so, and no traceback."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from groundswell.cli.app import app
from tests.cli.conftest import DRIVER, CommandLine

COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("runs", "list"),
    "show": ("runs", "show", "r"),
    "show as JSON": ("runs", "show", "r", "--json"),
    "show a trial": ("runs", "show", "r", "--trial", "KEY"),
    "resume": ("runs", "resume", "r"),
    "verify": ("runs", "verify", "r"),
    "export": ("runs", "export", "r"),
    "export as CSV": ("runs", "export", "r", "--format", "csv"),
    "cancel": ("runs", "cancel", "r"),
    "fork": ("runs", "fork", "r", "--name", "s"),
    "delete": ("runs", "delete", "r", "--yes"),
    "batches": ("batches", "list"),
    "cache": ("cache", "stats"),
    "clear": ("cache", "clear", "--yes"),
    "entities": ("entities", "list"),
    "entity types": ("entities", "types", "list"),
    "run": ("run", DRIVER, "--name", "another"),
    "doctor": ("doctor",),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """A store with a run that has ended and an entity, and the key of one of its trials."""
    cli = CommandLine(tmp_path_factory.mktemp("made"))
    cli.run("faulty=[2]", status=3)
    cli("entities", "types", "add", "--template", "human")
    with closing(sqlite3.connect(cli.store)) as connection:
        (key,) = connection.execute("SELECT key FROM trials LIMIT 1").fetchone()
    return cli.store.read_bytes(), key


def call(store: Path, words: tuple[str, ...], key: str) -> Result:
    given = [key if word == "KEY" else word for word in words]
    return CliRunner().invoke(app, given, env={"GROUNDSWELL_STORE": str(store)})


def check_told(result: Result, words: tuple[str, ...]) -> None:
    """An error is one line, and ends with status 1 or 2."""
    assert isinstance(result.exception, SystemExit | None), f"{words}: {result.exception!r}"
    assert "Traceback" not in result.stderr
    if "error: " in result.stderr:
        assert result.exit_code in (1, 2), result.stderr


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_reply_and_a_run_that_were_changed(tmp_path: Path, made: tuple[bytes, str], words: tuple[str, ...]) -> None:
    store = tmp_path / "s.db"
    store.write_bytes(made[0])
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE runs SET settings = replace(settings, 'hello', 'hellp')")
        connection.commit()
    result = call(store, words, made[1])
    check_told(result, words)
    assert result.exit_code == (1 if words[0] in ("runs", "doctor") else 0), result.output
    if words[0] == "runs":
        assert f"error: store {store} is damaged (run " in result.stderr
        assert f"Check it with `groundswell doctor --store {store}`" in result.stderr


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_file_that_is_no_database(tmp_path: Path, made: tuple[bytes, str], words: tuple[str, ...]) -> None:
    store = tmp_path / "s.db"
    store.write_bytes(b"\0" + made[0][1:])
    result = call(store, words, made[1])
    check_told(result, words)
    assert result.exit_code == 1
    assert "not a valid database" in result.output


def flip(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_a_flipped_bit_never_ends_a_command_in_a_traceback(tmp_path: Path, made: tuple[bytes, str], seed: int) -> None:
    chosen = random.Random(seed)
    content, key = made
    used = [at for at, byte in enumerate(content) if byte]
    for _ in range(100):
        bit = chosen.choice(used) * 8 + chosen.randrange(8)
        words = chosen.choice([*COMMANDS.values()])
        store = tmp_path / f"{bit}.db"
        store.write_bytes(flip(content, bit))
        check_told(call(store, words, key), (f"bit {bit}", *words))
        for each in tmp_path.iterdir():
            each.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB, where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    with (folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert shutil.disk_usage(folder).free == 0


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_full_disk(small_disk: Path, made: tuple[bytes, str], words: tuple[str, ...]) -> None:
    store = small_disk / "s.db"
    store.write_bytes(made[0])
    fill(small_disk)
    result = call(store, words, made[1])
    check_told(result, words)
    if result.exit_code:
        assert f"error: no space left for {store}" in result.stderr or words[0] == "doctor", result.output


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_disk_that_cannot_be_written(small_disk: Path, made: tuple[bytes, str], words: tuple[str, ...]) -> None:
    store = small_disk / "s.db"
    store.write_bytes(made[0])
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    result = call(store, words, made[1])
    check_told(result, words)
    assert result.exit_code == 0 or str(store) in result.output, result.output


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "export", "r", "--output", "FILE"),
        ("runs", "export", "r", "--format", "parquet", "--output", "FILE"),
        ("entities", "export", "FILE", "--format", "json"),
    ],
    ids=["export", "parquet", "entities"],
)
def test_a_disk_that_is_full_for_a_file(
    tmp_path: Path, small_disk: Path, made: tuple[bytes, str], words: tuple[str, ...]
) -> None:
    store, file = tmp_path / "s.db", small_disk / "out"
    store.write_bytes(made[0])
    fill(small_disk)
    result = call(store, tuple(str(file) if word == "FILE" else word for word in words), made[1])
    check_told(result, words)
    assert result.exit_code in (1, 2)
    assert str(file) in result.stderr
    assert "No space left on device" in result.stderr
    assert not file.exists()


@pytest.mark.parametrize("at", [100, 400], ids=["in the middle", "at the end"])
def test_a_store_that_is_deleted_while_a_run_goes_on(cli: CommandLine, at: int) -> None:
    source = f"""
import os
from groundswell import Run, Trial, program

@program("deleting/{at}")
async def deleting(trial: Trial, number: int) -> str:
    return (await trial.ask("emulated/echo", f"What is {{number}}?")).text

async def driver(run: Run, settings: dict[str, int]) -> int:
    count = 0
    async for outcome in run.map(deleting, range(400)):
        count += 1
        if count == {at}:
            os.unlink({str(cli.store)!r})
    return count
"""
    (cli.folder / "deleting.py").write_text(source)
    result = cli("run", f"{cli.folder / 'deleting.py'}:driver", "--set", "x=0", status=1)
    assert "Traceback" not in result.stderr
    assert f"error: {cli.store} or its folder was removed" in result.stderr
    assert "recorded replies were saved in" in result.stderr


def test_doctor_repairs_into_a_new_store(cli: CommandLine) -> None:
    cli.run()
    with closing(sqlite3.connect(cli.store)) as connection:
        connection.execute("UPDATE asks SET settlement = replace(settlement, 'you', 'You') WHERE id = 1")
        connection.commit()
    assert "PROBLEM   table asks: ask " in cli("doctor", status=1).stdout
    new = cli.folder / "new.db"
    told = cli("doctor", "--repair", str(new)).stdout
    assert "table asks: 1 damaged rows were left out" in told
    assert f"groundswell runs list --store {new}" in told
    assert cli("runs", "resume", "r", "--store", str(new)).exit_code == 0
    assert cli.json("doctor", "--store", str(new))["ok"]
    assert cli.json("doctor", "--repair", str(cli.folder / "other.db"))["tables"]["asks"]["damaged"] == 1
