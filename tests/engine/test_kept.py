"""What a driver keeps with its run, and what it reports."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell import Fault, FaultKind, Reply, Run, Trial, program
from groundswell.engine.events import DriverReported, Event


class Sum(msgspec.Struct, frozen=True):
    """How many trials there are."""

    trials: int


@program("tests/kept/say")
async def say(trial: Trial, spec: int) -> str:
    return (await trial.ask("any", f"say {spec}", temperature=0.0)).text


async def adding(run: Run, settings: Sum) -> list[str]:
    """Goes on after the trials that it has already taken account of, and stops half way the first time."""
    kept = run.kept("so far")
    found = msgspec.json.decode(kept, type=list[str]) if kept is not None else []
    for number in range(len(found), settings.trials):
        found.append((await run.submit(say, number, key=str(number))).unwrap())
        await run.keep("so far", msgspec.json.encode(found).decode())
        run.report(number + 1, {"found": float(len(found))}, f"{number + 1} said")
        if number == 1 and kept is None:
            run.stop("interrupted", "half way")
    return found


def echo(request: groundswell.Request, sample: int = 0) -> Reply:
    assert isinstance(request, groundswell.Chat)
    return Reply(str(request.messages[-1].content).removeprefix("say "))


def test_a_driver_goes_on_from_what_it_kept(tmp_path: Path) -> None:
    events: list[Event] = []

    async def main() -> None:
        async with groundswell.open(tmp_path / "a.db", script=echo, listeners=[events.append]) as engine:
            first = await engine.drive(adding, Sum(4), name="sum")
            assert first.status == "interrupted"
            events.clear()
            second = await engine.resume("sum")
            assert (second.status, second.analysis) == ("completed", ["0", "1", "2", "3"])
            assert second.trials.usable == 4
            assert second.asks.sent == 4
            assert engine.stored("sum").kept("so far") == '["0","1","2","3"]'

    asyncio.run(main())
    told = [(each.done, each.figures) for each in events if isinstance(each, DriverReported)]
    assert told == [(3, {"found": 3.0}), (4, {"found": 4.0})]


def test_what_is_kept_belongs_to_its_run_and_goes_with_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "a.db", script=echo) as engine:
            one, other = engine.run("one"), engine.run("other")
            await one.keep("a", "1")
            await one.keep("a", "2")
            await one.keep("b", "3")
            await other.keep("a", "4")
            assert [run.kept(name) for run in (one, other) for name in "abc"] == ["2", "3", None, "4", None, None]
            await one.end()
            engine.store.runs.delete(one.record)
            assert (one.kept("a"), other.kept("a")) == (None, "4")

    asyncio.run(main())


@pytest.mark.parametrize("changes", [True, False], ids=["changes", "missing"])
def test_what_was_kept_does_not_outlive_what_it_follows_from(tmp_path: Path, changes: bool) -> None:
    """A run that is scored anew, or gets new attempts, begins with the outcomes that the journal holds."""

    def first_fails(request: groundswell.Request, sample: int = 0) -> Reply | Fault:
        return Fault(FaultKind.FILTERED, "no") if failing and "say 0" in str(request) else echo(request)

    async def main() -> None:
        async with groundswell.open(tmp_path / "a.db", script=first_fails) as engine:
            assert (await engine.drive(counting, Sum(2), name="sum")).analysis == 1
            failing.clear()
            kept = engine.stored("sum").kept("count")
            again = await engine.resume("sum", accept_changes=changes, retry_missing=not changes)
            assert (kept, again.analysis) == ("1", 1 if changes else 2)
            assert len(COUNTED) == 2

    failing = [True]
    COUNTED.clear()
    asyncio.run(main())


COUNTED: list[str] = []


async def counting(run: Run, settings: Sum) -> int:
    """How many trials are usable; does not look again at what it counted."""
    if (kept := run.kept("count")) is not None:
        return int(kept)
    COUNTED.append(run.record.title)
    found = [(await run.submit(say, number, key=str(number))).ok for number in range(settings.trials)]
    await run.keep("count", str(sum(found)))
    return sum(found)
