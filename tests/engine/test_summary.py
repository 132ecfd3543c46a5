"""The summary of a run: a function of what the store holds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import get_args

import msgspec
import pytest

import groundswell
from groundswell.cli import output
from groundswell.engine.records import Counters, Possible, RunRecord, Spent, Status
from groundswell.engine.summary import Summary, figures, summarise
from tests.engine.stage import echo, one


def record(status: Status = "completed", counters: Counters | None = None, analysis: str | None = None) -> RunRecord:
    return RunRecord(
        number=1,
        id="abc",
        name="tuesday",
        status=status,
        seed=0,
        driver=None,
        settings=None,
        options={},
        sources={},
        parent=None,
        cut=None,
        counters=counters or Counters(),
        analysis=analysis,
        error=None,
        cancel=False,
        created_at=0.0,
        updated_at=0.0,
    )


def paid(replies: int, into: int, out: int, usd: float | None, unknown: int) -> dict[str, object]:
    cost = {"usd": usd, "unknown_asks": unknown}
    return {"replies": replies, "input_tokens": into, "output_tokens": out, "cost": cost}


def test_the_object_that_is_printed() -> None:
    counters = Counters(
        planned=9,
        usable=5,
        missing=1,
        sent=20,
        resent=2,
        cached=3,
        replayed=4,
        failed=1,
        usd=0.1234567891,
        seconds=1.23456,
        possible=Possible(asks=7, calls=5, tokens=99, usd=0.0456, unknown=1),
        spent={"m": Spent(15, 300, 200, 0.1234567891), "n": Spent(4, 3, 2, 0.0, 4)},
    )
    assert msgspec.to_builtins(summarise(record("partial", counters, '{"wins": 3}'))) == {
        "run_id": "abc",
        "status": "partial",
        "trials": {"planned": 9, "usable": 5, "missing": 1},
        "asks": {"sent": 20, "resent": 2, "cached": 3, "replayed": 4, "failed": 1},
        "cost": {
            "usd": 0.123456789,
            "unknown_asks": 0,
            "possible_usd": 0.0456,
            "possible_asks": 7,
            "possible_unknown_asks": 1,
        },
        "seconds": 1.235,
        "analysis": {"wins": 3},
        "name": "tuesday",
        "error": None,
        "models": {
            "m": paid(15, 300, 200, 0.123456789, 0),
            "n": paid(4, 3, 2, None, 4),
        },
    }


COSTS = [
    pytest.param(Counters(), 0.0, id="nothing was asked"),
    pytest.param(Counters(unknown_cost=3), None, id="no price is known"),
    pytest.param(Counters(usd=0.5, unknown_cost=3), 0.5, id="some are known"),
    pytest.param(Counters(usd=0.5), 0.5, id="all are known"),
]


@pytest.mark.parametrize(("counters", "usd"), COSTS)
def test_costs(counters: Counters, usd: float | None) -> None:
    assert summarise(record(counters=counters)).cost.usd == usd


LOST = [
    pytest.param(Possible(), "$0.5000", id="nothing"),
    pytest.param(Possible(4), "$0.5000", id="free"),
    pytest.param(
        Possible(50, usd=0.0023), "$0.5000, plus up to $0.0023 more for 50 requests whose replies were lost", id="some"
    ),
    pytest.param(
        Possible(1, usd=2), "$0.5000, plus up to $2.00 more for 1 request whose reply was lost", id="only one"
    ),
    pytest.param(
        Possible(3, unknown=3),
        "$0.5000, plus an unknown amount more for 3 requests whose replies were lost",
        id="of unknown price",
    ),
    pytest.param(
        Possible(3, usd=0.1, unknown=2),
        "$0.5000, plus up to $0.1000 more for 3 requests whose replies were lost (2 of unknown price)",
        id="some of unknown price",
    ),
]


@pytest.mark.parametrize(("lost", "shown"), LOST)
def test_what_people_read_of_lost_replies(lost: Possible, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    summary = summarise(record(counters=Counters(usd=0.5, possible=lost)))
    assert dict(figures(summary))["cost"] == shown
    assert f">{shown}</td>" in summary._repr_html_()
    output.print_summary(summary)
    assert f"cost      {shown}\n" in capsys.readouterr().out


def test_counters_of_an_earlier_version_are_read() -> None:
    text = '{"sent":3,"usd":0.5,"flying":-8,"spent":{"m":{"replies":3,"usd":0.5}}}'
    counters = msgspec.json.decode(text, type=Counters)
    assert (counters.possible, counters.at_risk, counters.spent["m"].longest) == (Possible(), {}, 0)


EXITS = {
    "completed": 0,
    "partial": 3,
    "stopped": 3,
    "interrupted": 130,
    "failed": 1,
    "pending": 1,
    "running": 1,
}


@pytest.mark.parametrize("status", get_args(Status))
def test_exit_codes(status: Status) -> None:
    assert summarise(record(status)).exit_code == EXITS[status]


def test_a_summary_survives_json() -> None:
    summary = summarise(record(analysis="[1]"))
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


def test_a_run_that_is_open_and_done_is_not_shown_as_running(tmp_path: Path) -> None:
    async def look() -> tuple[str, str]:
        async with groundswell.open(tmp_path / "runs.db", script=echo) as engine:
            run = engine.run("story")
            before = run._repr_html_()
            async for _ in run.map(one, ["a", "b"]):
                pass
            return before, run._repr_html_()

    before, after = asyncio.run(look())
    assert "running" in before
    assert "all trials done" in after
