"""The summary of a run: a function of what the store holds."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from groundswell.engine.records import Counters, RunRecord, Spent, Status
from groundswell.engine.summary import Summary, summarise


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
        spent={"m": Spent(15, 300, 200, 0.1234567891), "n": Spent(4, 3, 2, 0.0, 4)},
    )
    assert msgspec.to_builtins(summarise(record("partial", counters, '{"wins": 3}'))) == {
        "run_id": "abc",
        "status": "partial",
        "trials": {"planned": 9, "usable": 5, "missing": 1},
        "asks": {"sent": 20, "resent": 2, "cached": 3, "replayed": 4, "failed": 1},
        "cost": {"usd": 0.123456789, "unknown_asks": 0},
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
