"""`groundswell cache`: stats and clear."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from groundswell.program.request import Reply, Usage, encode_settlement
from groundswell.reporting.words import size
from tests.cli.conftest import CommandLine
from tests.cli.test_signals import started

DAY = 86_400


def keep(cli: CommandLine, *days: float, size: int = 10) -> None:
    """Keep a reply per age in days."""
    with closing(sqlite3.connect(cli.store)) as connection, connection:
        for number, age in enumerate(days):
            settlement = encode_settlement(Reply("x" * size, Usage(1_000, 20)))
            row = (number.to_bytes(16), settlement, time.time() - age * DAY)
            connection.execute("INSERT INTO cache VALUES (?, ?, ?, NULL)", row)


@pytest.mark.parametrize("words", [["stats"], ["clear", "--yes"]], ids=lambda words: words[0])
def test_a_store_that_is_not_there_is_not_created(cli: CommandLine, words: list[str]) -> None:
    assert "there is no store" in cli("cache", *words, status=1).stderr
    assert not cli.store.exists()


def test_stats_of_an_empty_cache(cli: CommandLine) -> None:
    cli.run()
    assert cli("cache", "stats").stdout == f"cache of {cli.store}: 0 replies, 0 bytes\n"
    none = {"replies": 0, "bytes": 0, "oldest": None, "newest": None, "tokens": {"input": 0, "output": 0}}
    assert cli.json("cache", "stats") == none


def test_stats_say_what_is_kept_and_what_it_spares(cli: CommandLine) -> None:
    cli.run()
    keep(cli, 40, 3, 0)
    first, oldest, newest, tokens = cli("cache", "stats").stdout.splitlines()
    assert "3 replies, 2" in first
    assert oldest.endswith(", 40 d ago")
    assert newest.endswith(" s ago")
    assert tokens.split()[1:5] == ["3,000", "in,", "60", "out,"]
    told = cli.json("cache", "stats")
    assert (told["replies"], told["tokens"]) == (3, {"input": 3_000, "output": 60})
    assert told["newest"] - told["oldest"] == pytest.approx(40 * DAY, abs=60)


def test_clear_asks_first_and_says_what_would_go(cli: CommandLine) -> None:
    cli.run()
    keep(cli, 40, 3, 0)
    asked = cli("cache", "clear", "--older-than", "2d", answer="n\n", status=1).stderr
    assert "Remove 2 replies, 1" in asked
    assert "older than 2d from the cache?" in asked
    assert cli.json("cache", "stats")["replies"] == 3
    assert "2 replies removed, 1 kept" in cli("cache", "clear", "--older-than", "2d", answer="y\n").stdout
    assert "Remove 1 reply" in cli("cache", "clear", status=1).stderr
    assert cli.json("cache", "stats")["replies"] == 1


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("age", "left"),
    [("30d", 2), ("2w", 2), ("48h", 1), ("2.5d", 1), ("1440min", 1), ("0s", 0), (" 4 d ", 2), ("9" * 400 + "d", 3)],
    ids=lambda value: str(value)[:8],
)
def test_clear_by_age(cli: CommandLine, age: str, left: int) -> None:
    cli.run()
    keep(cli, 40, 3, 0.5)
    told = cli.json("cache", "clear", "--yes", "--older-than", age)
    assert (told["removed"], told["kept"]) == (3 - left, left)


@pytest.mark.sampled
@pytest.mark.parametrize("age", ["30", "d", "-3d", "30m", "3 months", "", "nan d"], ids=lambda age: age or "nothing")
def test_an_age_that_is_none_is_named(cli: CommandLine, age: str) -> None:
    cli.run()
    keep(cli, 40)
    assert f"--older-than {age}: give a number" in cli("cache", "clear", "-y", f"--older-than={age}", status=2).stderr
    assert cli.json("cache", "stats")["replies"] == 1


def test_clear_gives_the_space_back(cli: CommandLine) -> None:
    cli.run()
    keep(cli, *[1.0] * 100, size=10_000)
    told = cli("cache", "clear", "--yes").stdout
    assert "100 replies removed, 0 kept; the file is " in told
    assert "MB smaller" in told
    again = cli.json("cache", "clear", "--yes")
    assert again == {"removed": 0, "kept": 0, "space": None, "freed_bytes": 0}
    keep(cli, *[1.0] * 100, size=10_000)
    told = cli.json("cache", "clear", "--yes")
    assert (told["removed"], told["space"]) == (100, "freed")
    assert told["freed_bytes"] > 500_000


def test_nothing_to_remove_is_no_question(cli: CommandLine) -> None:
    cli.run()
    assert cli("cache", "clear").stdout == "0 replies removed, 0 kept\n"


def test_runs_are_left_as_they_are(cli: CommandLine) -> None:
    cli.run("trials=3")
    keep(cli, 1, 2)
    before = cli.json("runs", "show", "r") | {"age_seconds": 0}
    exported = cli("runs", "export", "r").stdout
    cli("cache", "clear", "--yes")
    assert cli.json("runs", "show", "r") | {"age_seconds": 0} == before
    assert cli("runs", "export", "r").stdout == exported
    assert cli.json("runs", "verify", "r")["ok"] is True
    assert "Existing runs keep their replies" in cli("cache", "clear", "--help").stdout


@pytest.mark.slow
def test_the_cache_is_cleared_while_another_process_works_on_a_run(cli: CommandLine) -> None:
    with started(cli) as process:
        process.wait_for_asks(4)
        keep(cli, *[1.0] * 100, size=10_000)
        assert cli.json("cache", "stats")["replies"] == 100
        told = cli("cache", "clear", "--yes").stdout
        process.open_gate()
        status, found, _ = process.end()
    assert "100 replies removed, 0 kept; the file keeps its size (the store is in use)" in told
    assert (status, found["status"], found["trials"]["usable"]) == (0, "completed", 4)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (1_234_567, "1.2 MB"), (2_500 * 10**9, "2,500.0 GB")],
    ids=str,
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text
