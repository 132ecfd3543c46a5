"""Verifying a run: what it finds the same, and what it leaves open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import FaultKind, Outcome, Run, Trial, program
from tests.engine.editions import edition
from tests.engine.scenario import run_async
from tests.engine.stage import echo, one


@program("tests/verified/nan")
async def no_number(trial: Trial, spec: int) -> float:
    await trial.ask("any", str(spec))
    return float("nan")


async def ask_three(run: Run, settings: int) -> int:
    return len([outcome async for outcome in run.map(one, ["a", "b", "c"])])


def test_a_result_that_json_cannot_hold_is_verified(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            outcome = await engine.run("story").submit(no_number, 1)
            assert outcome.fault is not None
            found = await engine.verify("story")
            assert (found.ok, found.trials, found.same) == (True, 1, 1)

    run_async(main())


def test_verifying_leaves_nothing_open(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            await engine.drive(ask_three, 1, name="story")
            writer: Any = engine.store.writer  # type: ignore[attr-defined]
            told = len(writer.failed)
            for _ in range(3):
                assert (await engine.verify("story")).ok
            assert len(writer.failed) == told == 0

    run_async(main())


RAISES = "async def raises(trial, spec):\n    raise ValueError('no')\n"


@pytest.mark.parametrize("above", ["# a comment\n", "\n\n# two\n# comments\n"], ids=["one line", "four lines"])
def test_a_comment_above_a_program_that_raises_changes_nothing(
    store: Path, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    def defined(source: str) -> Any:
        names: dict[str, Any] = {}
        exec(compile(source, "/somewhere/raises.py", "exec"), names)
        return edition(monkeypatch, "tests/verified/raises", names["raises"])

    async def main() -> Outcome[Any]:
        async with groundswell.open(store, script=echo) as engine:
            outcome = await engine.run("story").submit(defined(RAISES), 1)
            made = defined(above + RAISES)
            found = await engine.verify("story")
            assert (found.ok, found.same) == (True, 1)
            again = await engine.run("other").submit(made, 1)
            assert again.fault == outcome.fault
            return outcome

    fault = run_async(main()).fault
    assert fault is not None
    assert (fault.kind, fault.message) == (FaultKind.PROGRAM, "ValueError: no (in raises, raises.py)")
