"""Map and submit: order, keys, the window, leaving early."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import groundswell
from groundswell import (
    Outcome,
    Reply,
    Request,
    Run,
    RunOptions,
    SettingsError,
)
from groundswell.engine import admission
from groundswell.errors import DuplicateKey
from tests.engine.scenario import counters, run_async
from tests.engine.stage import (
    Gate,
    at_rest,
    echo,
    one,
    repeat,
    trial_keys,
    until,
)


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "as they come"])
def test_map_order(store: Path, ordered: bool) -> None:
    async def main() -> list[str | None]:
        gate = Gate()
        async with groundswell.open(store, script=gate) as engine:
            outcomes: list[Outcome[str]] = []

            async def drive() -> None:
                async for outcome in engine.run().map(one, ["a", "b", "c"], ordered=ordered):
                    outcomes.append(outcome)

            task = asyncio.create_task(drive())
            for number, words in enumerate(["c", "a", "b"], 1):
                await until(lambda words=words: words in gate.waiting)  # type: ignore[misc]
                gate.let(words)
                if not ordered:
                    await until(lambda number=number: len(outcomes) == number)  # type: ignore[misc]
            await task
            return [outcome.result for outcome in outcomes]

    assert run_async(main()) == (["a!", "b!", "c!"] if ordered else ["c!", "a!", "b!"])


def test_replicates_are_trials_of_their_own(store: Path) -> None:
    async def main() -> list[Outcome[str]]:
        async with groundswell.open(store, script=echo) as engine:
            return [outcome async for outcome in engine.run("story").map(one, ["a", "b"], replicates=2)]

    outcomes = run_async(main())
    assert [outcome.result for outcome in outcomes] == ["a!", "a!", "b!", "b!"]
    keys = [outcome.key for outcome in outcomes]
    assert keys[1] == f"{keys[0]}#1"
    assert len(set(keys)) == 4
    assert counters(store).sent == 4


def test_an_empty_map_ends(store: Path) -> None:
    async def main() -> list[Outcome[str]]:
        async with groundswell.open(store, script=echo) as engine:
            return [outcome async for outcome in engine.run().map(one, [])]

    assert run_async(main()) == []


def test_what_the_specs_raise_reaches_the_driver(store: Path) -> None:
    def specs() -> Iterator[str]:
        yield "a"
        raise LookupError("no more specs")

    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            async for _ in engine.run().map(one, specs()):
                pass

    with pytest.raises(LookupError, match="no more specs"):
        run_async(main())


def test_a_spec_that_does_not_fit_names_the_program(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            await engine.run().submit(one, 5)  # type: ignore[misc]

    with pytest.raises(SettingsError, match=r"tests/one@1.*spec"):
        run_async(main())


def test_leaving_a_map_gives_up_what_was_not_sent(store: Path) -> None:
    gate = Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate, max_concurrent=2) as engine:
            run = engine.run("story")

            async def drive() -> None:
                async for _ in run.map(one, [str(number) for number in range(30)]):
                    break

            task = asyncio.create_task(drive())
            await until(lambda: len(gate.waiting) == 2)
            gate.let("0")
            await task
            await until(lambda: not run.open)
            await at_rest(run)
            for words in list(gate.waiting):
                gate.let(words)
            after = asyncio.create_task(run.submit(one, "after"))
            await until(lambda: "after" in gate.waiting)
            gate.let("after")
            await after

    run_async(main())
    assert gate.asked[:2] == ["0", "1"]
    assert set(gate.asked) <= {"0", "1", "2", "after"}
    assert counters(store).planned == counters(store).usable == 2


def test_a_map_that_was_left_replays_for_nothing(store: Path) -> None:
    async def main() -> tuple[list[str | None], str]:
        async with groundswell.open(store, script=echo, max_concurrent=2) as engine:
            run = engine.run("story")
            results = []
            async for outcome in run.map(one, [str(number) for number in range(30)]):
                results.append(outcome.result)
                if len(results) == 3:
                    break
        return results, groundswell.open(store, script=echo).store.runs.get("story").status

    first = run_async(main())
    assert first == (["0!", "1!", "2!"], "completed")
    keys_before = trial_keys(store)
    assert run_async(main()) == first
    assert len(trial_keys(store)) == len(set(trial_keys(store))) >= len(keys_before)


def test_a_key_may_be_given_once(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            run = engine.run()
            assert (await run.submit(one, "a", key="round1/a")).key == "round1/a"
            await run.submit(one, "b", key="round1/a")

    with pytest.raises(DuplicateKey, match="round1/a"):
        run_async(main())


def test_a_key_keeps_its_spec_over_sessions(store: Path) -> None:
    async def main(spec: str) -> Outcome[str]:
        async with groundswell.open(store, script=echo) as engine:
            return await engine.run("story").submit(one, spec, key="k")

    assert run_async(main("a")).result == "a!"
    with pytest.raises(groundswell.ReplayMismatch, match=r"'k'.*another spec"):
        run_async(main("b"))


def test_open_trials_never_exceed_the_window(store: Path) -> None:
    most = 0

    async def main() -> None:
        async with groundswell.open(store, script=watched, max_concurrent=3) as engine:
            runs.append(engine.run(options=RunOptions(window=5)))
            done = [outcome async for outcome in runs[0].map(repeat, [2] * 40, replicates=2)]
            assert len(done) == 80
            await asyncio.gather(*[runs[0].submit(repeat, 1, key=str(number)) for number in range(40)])

    def watched(request: Request) -> Reply:
        nonlocal most
        most = max(most, len(runs[0].open))
        return echo(request)

    runs: list[Run] = []
    run_async(main())
    assert 1 <= most <= 5
    assert runs[0].admission.window == 5


def test_the_window_holds_when_looking_back(store: Path) -> None:
    """Submits of a later session look trials up first; they must not all slip in meanwhile."""

    async def main(count: int) -> int:
        most = 0

        def watched(request: Request) -> Reply:
            nonlocal most
            most = max(most, len(run.open))
            return echo(request)

        async with groundswell.open(store, script=watched) as engine:
            run = engine.run("story", options=RunOptions(window=3))
            await asyncio.gather(*[run.submit(one, str(number), key=str(number)) for number in range(count)])
        return most

    assert run_async(main(2)) <= 3
    assert run_async(main(30)) <= 3


def test_a_slow_driver_does_not_stall_its_map(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two outcomes everything comes to rest: the backlog is full, and no trial is open that could end."""
    monkeypatch.setattr(admission, "MOST_BACKLOG", 4)

    async def main() -> int:
        async with groundswell.open(store, script=echo) as engine:
            run = engine.run(options=RunOptions(window=2))
            taken = 0
            async for _ in run.map(one, [str(number) for number in range(20)]):
                taken += 1
                await at_rest(run)
                await until(lambda: not run.open)
            return taken

    assert run_async(main()) == 20
