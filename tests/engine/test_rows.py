"""Rows of data that programs record: stored with the outcome, in the order of the program, and read with the run."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Fault, FaultKind, Request, Run, StoreError, Trial, program, together
from groundswell.store.check import check_store
from tests.engine.stage import said


@program("tests/rows/side")
async def side(trial: Trial, name: str) -> str:
    reply = await trial.ask("any", name)
    trial.row(who=name, said=reply.text)
    return reply.text


@program("tests/rows/game")
async def game(trial: Trial, spec: int) -> int:
    trial.row(who="start", number=spec)
    await together(side(trial, f"{spec}a"), side(trial, f"{spec}b"))
    trial.row(who="middle", won=spec % 2 == 0)
    if spec == 3:
        await trial.ask("any", "fail")
    trial.row(who="end", number=1.5, nothing=None)
    return spec


async def play(run: Run, settings: int) -> int:
    return len([outcome async for outcome in run.map(game, range(settings))])


def reply(request: Request) -> Any:
    return Fault(FaultKind.FILTERED, "no") if said(request) == "fail" else f"<{said(request)}>"


def rows_of(store: Path, count: int = 5) -> list[dict[str, Any]]:
    with groundswell.open_sync(store, script=reply) as engine:
        engine.drive(play, count, name="games")
        return [dict(row) for row in engine.stored("games").rows]


def test_rows_come_in_the_order_of_the_program_and_of_trials(tmp_path: Path) -> None:
    found = rows_of(tmp_path / "runs.db", 2)
    first = [{name: value for name, value in row.items() if name != "trial"} for row in found[:5]]
    assert first == [
        {"row": 1, "replicate": 1, "who": "start", "number": 0},
        {"row": 2, "replicate": 1, "who": "0a", "said": "<0a>"},
        {"row": 3, "replicate": 1, "who": "0b", "said": "<0b>"},
        {"row": 4, "replicate": 1, "who": "middle", "won": True},
        {"row": 5, "replicate": 1, "who": "end", "number": 1.5, "nothing": None},
    ]
    assert len({row["trial"] for row in found}) == 2


class Case(msgspec.Struct):
    condition: str
    model: str = "any"
    seat: Any = None


@program("tests/rows/labelled")
async def labelled(trial: Trial, spec: Case) -> None:
    trial.row(x=1)
    trial.row(x=2, model="other")


async def label(run: Run, settings: int) -> None:
    _ = [outcome async for outcome in run.map(labelled, [Case("a"), Case("b", seat=[1])], replicates=settings)]
    await run.submit(labelled, Case("c", seat=2), key="mine#7")


def test_rows_have_what_the_spec_and_the_key_say_of_the_trial(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "runs.db", script=reply) as engine:
        engine.drive(label, 2, name="cases")
        rows = engine.stored("cases").rows
    first = {name: value for name, value in rows[0].items() if name != "trial"}
    assert first == {"row": 1, "condition": "a", "model": "any", "replicate": 1, "x": 1}
    assert [(row["condition"], row.get("replicate"), row["model"], row.get("seat")) for row in rows] == [
        *(("a", 1, "any", None), ("a", 1, "other", None), ("a", 2, "any", None), ("a", 2, "other", None)),
        *(("b", 1, "any", None), ("b", 1, "other", None), ("b", 2, "any", None), ("b", 2, "other", None)),
        *(("c", None, "any", 2), ("c", None, "other", 2)),
    ]
    assert rows.frame().columns == ["trial", "row", "condition", "model", "replicate", "x", "seat"]


def test_rows_do_not_depend_on_which_reply_comes_first(tmp_path: Path) -> None:
    async def drive(store: Path, slow: str) -> list[dict[str, Any]]:
        async def late(request: Request) -> str:
            await asyncio.sleep(0.02 if said(request).endswith(slow) else 0)
            return f"<{said(request)}>"

        async with groundswell.open(store, script=late) as engine:
            await engine.drive(play, 2, name="games")
            return [dict(row) for row in engine.stored("games").rows]

    one, other = (asyncio.run(drive(tmp_path / f"{slow}.db", slow)) for slow in "ab")
    assert one == other


def test_a_trial_that_is_missing_has_no_rows(tmp_path: Path) -> None:
    found = rows_of(tmp_path / "runs.db", 5)
    assert [row["number"] for row in found if row["who"] == "start"] == [0, 1, 2, 4]


def test_a_run_that_is_resumed_has_the_same_rows(tmp_path: Path) -> None:
    whole = rows_of(tmp_path / "whole.db")
    store = tmp_path / "cut.db"
    with groundswell.open_sync(store, script=reply) as engine:
        limits = groundswell.RunOptions(limits=groundswell.Limits(calls=4))
        engine.drive(play, 5, name="games", options=limits)
        assert len(engine.stored("games").rows) < len(whole)
        engine.resume("games", options=groundswell.RunOptions())
        assert [dict(row) for row in engine.stored("games").rows] == whole


def test_a_run_has_its_rows_while_it_goes_on(tmp_path: Path) -> None:
    async def look() -> list[int]:
        async with groundswell.open(tmp_path / "runs.db", script=reply) as engine:
            run = engine.run("games")
            return [len(run.rows) async for _ in run.map(game, range(2))]

    assert asyncio.run(look())[-1] == 10


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"x": [1]}, "row: x is a list; give a str, int"),
        ({"x": float("nan")}, "row: x is nan; use None"),
        ({"trial": "t"}, "row: the column name 'trial' is reserved"),
        ({"x": "\ud800"}, "row: 'x' cannot be stored"),
        ({"\ud800": 1}, "cannot be stored"),
        ({"x": 10**5000}, "row: 'x' cannot be stored"),
    ],
)
def test_a_value_that_no_table_holds_is_refused(values: dict[str, Any], problem: str) -> None:
    trial = Trial("key", 0)
    with pytest.raises((TypeError, ValueError), match=problem):
        trial.row(**values)


def test_rows_that_were_changed_in_the_store_are_noticed(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    rows_of(store, 1)
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE outcomes SET rows = replace(rows, '<0a>', '<9z>')")
    assert any("rows" in problem for problem in check_store(store).problems)
    with groundswell.open_sync(store, script=reply) as engine, pytest.raises((StoreError, msgspec.DecodeError)):
        list(engine.stored("games").rows)
