"""`groundswell map`, killed again and again: the same command writes in the end what a run left alone writes."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from groundswell.emulator.server import Threaded
from tests.shows.desk import ANTHROPIC, OPENAI, Desk, graded

CAP = 16
CALM = ["--temperature", "0"]
"""What is paid for again is another sample, unless it is asked for at a temperature of 0."""


class Case(NamedTuple):
    """A command over so many rows, which asks so often of so many accounts, at the least."""

    words: list[str]
    rows: int
    models: tuple[str, ...]
    accounts: int
    asks: int


PLAIN = ["map", "t.csv", "-p", "Say {word}", "--check", 'small: contains "small"', *CALM]
CASES = {
    "a thousand rows": Case([*PLAIN, "-m", OPENAI], 1000, (OPENAI,), 1, 1000),
    "two providers": Case([*PLAIN, "-m", f"{OPENAI},{ANTHROPIC}"], 400, (OPENAI, ANTHROPIC), 2, 800),
    "with a schema and a judge": Case([*graded(), *CALM], 150, (OPENAI, ANTHROPIC), 2, 450),
}


def moments(asks: int) -> list[int]:
    """After how many replies to kill: early on, in the middle and late, and never twice before anything is durable."""
    chance, apart = Random(asks), asks // 3
    return [max(10, part * apart) + chance.randrange(apart * 2 // 3) for part in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[pytest.mark.slow] * (name == "two providers"))  # it is in the last one too
        for name, case in CASES.items()
    ],
)
def test_a_run_that_is_killed_writes_the_same_file_and_pays_hardly_anything_twice(
    case: Case, tmp_path: Path, emulator: Threaded
) -> None:
    words = [*case.words, "--max-concurrent", str(CAP)]
    whole = Desk(tmp_path / "whole", emulator, case.rows)
    whole(*words)
    alone = whole.books
    emulator.reset()

    killed = Desk(tmp_path / "killed", emulator, case.rows)
    kills = moments(case.asks)
    for requests in kills:
        killed.kill_when_paid(requests, *words)
        assert not (killed.folder / "t.replies.csv").exists()
    found = killed.finish(*words)

    assert killed.written == whole.written
    each = [(str(number), model) for number in range(case.rows) for model in case.models]
    assert [(row["id"], row["model"]) for row in killed.rows] == each
    assert {row["status"] for row in killed.rows} == {"usable"}
    assert not list(killed.folder.glob("*.part"))
    books = killed.books
    assert books["requests"] - books["paid_again"] == alone["requests"]
    assert books["paid_again"] <= found["asks"]["resent"]
    assert books["paid_again"] <= len(kills) * case.accounts * (1.5 * CAP + 2)
    assert [run["status"] for run in killed.runs] == ["completed"]


def test_a_run_that_is_killed_when_its_file_is_there_but_nobody_has_noted_it(
    tmp_path: Path, emulator: Threaded
) -> None:
    desk = Desk(tmp_path / "desk", emulator, 20)
    words = [*PLAIN, "-m", OPENAI]
    desk(*words)
    before, paid = desk.written, desk.books
    with sqlite3.connect(desk.folder / "runs.db") as store:  # what a kill between the two steps leaves
        store.execute("UPDATE runs SET analysis = NULL, status = 'running', checksum = NULL")
    store.close()
    desk(*words)
    assert desk.written == before
    assert desk.books == paid
    assert [run["status"] for run in desk.runs] == ["completed"]


@pytest.mark.slow
def test_a_file_that_somebody_else_wrote_meanwhile_is_not_replaced(tmp_path: Path, emulator: Threaded) -> None:
    desk = Desk(tmp_path / "desk", emulator, 200)
    words = [*PLAIN, "-m", OPENAI, "--max-concurrent", "4"]
    desk.kill_when_paid(20, *words)
    (desk.folder / "t.replies.csv").write_text("mine\n")
    paid = desk.books
    told = desk(*words, status=2).stderr
    assert "error: --out" in told
    assert "it was not written by this run" in told
    assert desk.written == b"mine\n"
    assert desk.books == paid
