"""Attributes of the objects that Python users hold: they may grow."""

from __future__ import annotations

from typing import Any

import pytest

import groundswell
from tests.pins.expectations import read_json
from tests.pins.experiment import Settings, Spec, counting, driver
from tests.pins.signatures import describe, lost

SPEC = Spec(0, "scripted/pinned-echo", False)


@pytest.mark.usefixtures("cli")
def test_objects_of_a_session_without_async() -> None:
    with groundswell.open_sync("runs.db") as engine:
        summary = engine.drive(driver, Settings(trials=1), name="driven")
        with engine.run("mapped") as run:
            outcome = run.submit(counting, SPEC)
            held: dict[str, Any] = {
                "open_sync": engine,
                "open_sync.run": run,
                "open_sync.run.submit": outcome,
                "open_sync.run.transcript": run.transcript(outcome),
                "open_sync.drive": summary,
                "open_sync.drive.trials": summary.trials,
                "open_sync.drive.asks": summary.asks,
                "open_sync.drive.cost": summary.cost,
            }
        held["open_sync.stored"] = engine.stored("mapped")
        held["open_sync.verify"] = engine.verify("mapped")
        columns = {name: str(kind) for name, kind in engine.stored("mapped").frame().schema.items()}
    found: dict[str, Any] = {name: attributes(each) for name, each in held.items()}
    found["open_sync.stored.frame"] = columns
    expected = read_json("names/objects.json", found)
    problems = lost(expected, found, "groundswell")
    assert not problems, "\n".join(problems)


def attributes(held: object) -> Any:
    """The public attributes of an object with the parameters of its methods."""
    return describe(type(held))["attributes"]
