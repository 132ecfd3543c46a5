"""Drivers, carried through from start or resume to the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import (
    Run,
    RunError,
    Trial,
    program,
    together,
)
from groundswell.program.trial import function
from tests.engine.scenario import run_async
from tests.engine.stage import (
    echo,
    one,
)


class Wanted(msgspec.Struct, frozen=True):
    words: list[str]


async def collect_all(run: Run, settings: Wanted) -> list[str | None]:
    return [outcome.result async for outcome in run.map(one, settings.words)]


async def stop_itself(run: Run, settings: Wanted) -> list[str | None]:
    if settings.words:
        await run.submit(one, settings.words[0])
        run.stop("budget", "spent")
    return [outcome.result async for outcome in run.map(one, settings.words[1:])]


def test_a_driver_is_carried_through_and_its_summary_kept(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            done = await engine.drive(collect_all, Wanted(["a", "b"]), name="story", seed=3)
            assert (done.status, done.analysis, done.exit_code) == ("completed", ["a!", "b!"], 0)
            assert (done.trials.planned, done.asks.sent) == (2, 2)
            assert await engine.resume("story") == done
            again = await engine.drive(collect_all, Wanted(["a", "b"]), name="story", seed=3)
            assert (again.analysis, again.asks.sent, again.trials) == (done.analysis, 2, done.trials)
            with pytest.raises(RunError, match="another driver, settings or seed"):
                await engine.drive(collect_all, Wanted(["c"]), name="story", seed=3)

    run_async(main())


def test_a_stopped_driver_gives_a_summary_and_can_be_resumed_twice(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            for _ in range(3):
                done = await engine.drive(stop_itself, Wanted(["a", "b"]), name="story")
                assert (done.status, done.error, done.exit_code) == ("partial", "spent", 3)
                assert (done.trials.planned, done.trials.usable, done.asks.sent) == (1, 1, 1)

    run_async(main())


def test_a_run_of_a_script_is_not_resumed_by_name(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            await engine.run("story").submit(one, "a")
        async with groundswell.open(store, script=echo) as engine:
            await engine.resume("story")

    with pytest.raises(RunError, match="run the script again"):
        run_async(main())


@function("tests/where")
def where(word: str) -> list[str]:
    return [word, word]


@function("tests/where_async")
async def where_async(word: str, *, times: int = 1) -> tuple[str, ...]:
    return (word,) * times


@program("tests/calling")
async def calling(trial: Trial, spec: str) -> list[Any]:
    return list(await together(trial.call(where, spec), trial.call(where_async, spec, times=3)))


def test_functions_plain_and_async_are_called_once(store: Path) -> None:
    async def main() -> list[Any] | None:
        async with groundswell.open(store, script=echo) as engine:
            return (await engine.run("story").submit(calling, "x")).result

    assert run_async(main()) == [["x", "x"], ["x", "x", "x"]]
    assert run_async(main()) == [["x", "x"], ["x", "x", "x"]]
