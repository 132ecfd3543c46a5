"""Default keys say what is asked, in which map; not how fast the map was read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import groundswell
from groundswell import Request, Run, RunOptions
from tests.engine.scenario import run_async
from tests.engine.stage import at_rest, one

WORDS = [str(number % 30) for number in range(40)]


async def leave_and_read_again(run: Run, *, rest: bool = False) -> list[tuple[str, str | None]]:
    """Leave a map after five outcomes, and read another of the same specs to its end."""
    heard = 0
    async for _ in run.map(one, WORDS):
        heard += 1
        if rest:
            await at_rest(run)
        if heard == 5:
            break
    return [(outcome.key, outcome.result) async for outcome in run.map(one, WORDS)]


class Sampled:
    """Answers with the number of the sample, after as many ticks as that says."""

    def __init__(self) -> None:
        self.asked: set[int] = set()

    async def __call__(self, request: Request, sample: int) -> str:
        self.asked.add(sample)
        for _ in range(sample % 7):
            await asyncio.sleep(0)
        return str(sample)


def read(store: Path, model: Sampled, window: int | None, *, rest: bool = False) -> list[tuple[str, str | None]]:
    """What a script reads. It is given a limit, so that a hang is a failure."""

    async def main() -> list[tuple[str, str | None]]:
        async with groundswell.open(store, script=model, max_concurrent=4) as engine:
            run = engine.run("story", options=RunOptions(window=window))
            return await leave_and_read_again(run, rest=rest)

    return run_async(main())


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("rest", [False, True], ids=["at once", "after a rest"])
@pytest.mark.parametrize("window", [4, 12, None])
def test_keys_do_not_depend_on_how_far_an_earlier_map_had_read(store: Path, window: int | None, rest: bool) -> None:
    expected = read(store, Sampled(), 2)
    assert read(store.with_name("other.db"), Sampled(), window, rest=rest) == expected
    assert len({key for key, _ in expected}) == len(WORDS)


def test_a_script_that_leaves_a_map_finds_the_same_when_it_is_started_again(store: Path) -> None:
    """The map that is left may read further this time; but nothing that was answered is asked again."""
    before, after = Sampled(), Sampled()
    expected = read(store, before, 8)
    assert read(store, after, None) == expected
    assert not before.asked & after.asked


def test_a_map_that_is_left_passes_its_room_on(store: Path) -> None:
    """It is woken because there is room, and then ended because it was left."""
    assert len(read(store, Sampled(), 1)) == len(WORDS)


def test_a_map_that_is_left_while_it_looks_back_passes_its_room_on(store: Path) -> None:
    read(store, Sampled(), 8)
    assert len(read(store, Sampled(), 3)) == len(WORDS)
