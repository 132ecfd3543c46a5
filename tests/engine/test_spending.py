"""Money while a run goes on: what may be sent, what it costs, and what trials cost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import (
    Engine,
    Limits,
    Reply,
    Request,
    Run,
    RunOptions,
    RunStopped,
    SettingsError,
    Trial,
    Usage,
    program,
)
from groundswell.engine.ports import Prices
from groundswell.engine.spending import forecast
from groundswell.transports.scripted import Scripted
from tests.engine.scenario import counters, run_async

LONG = 100


def cents(model: str, usage: Usage, transport: str) -> float | None:
    """A cent for each token of output; other models have no price."""
    return usage.output_tokens / 100 if model == "any" else None


def short(request: Request) -> Reply:
    return Reply("yes", Usage(1, 2))


@program("purse/talk")
async def talk(trial: Trial, spec: int) -> int:
    """So many asks of two tokens each, of which a hundred are held back."""
    for turn in range(spec):
        await trial.ask("any", f"{spec}.{turn}", max_tokens=LONG)
    return spec


@program("purse/dear")
async def dear(trial: Trial, spec: str) -> str:
    await trial.ask("any", "first", max_tokens=LONG)
    return (await trial.ask(spec, "second", max_tokens=LONG)).text


def opened(store: Path, prices: Prices = cents, **settings: Any) -> Engine:
    return groundswell.open(store, script=short, prices=prices, **settings)


def test_asks_wait_for_those_in_flight_and_the_budget_is_used_up(store: Path) -> None:
    """A dollar is held back for each ask, and two cents are spent: two may be in flight, but sixty can be paid."""

    async def main() -> None:
        async with opened(store, max_concurrent=50) as engine:
            run = engine.run("story", options=RunOptions(limits=Limits(usd=2.2)))
            async for _ in run.map(talk, [1] * 100):
                pass

    with pytest.raises(RunStopped, match=r"\$2\.2 is used up \(\$1\.2\d* spent, \$0\.0000 in flight, and the next"):
        run_async(main())
    found = counters(store)
    assert found.usd == pytest.approx(found.sent * 0.02)
    assert 1.2 <= found.usd < 2.2 - 1.0 + 0.03


@pytest.mark.parametrize("limits", [Limits(usd=1.0), Limits(usd=1.0, calls=9)], ids=["dollars", "and calls"])
def test_a_model_without_a_price_is_not_asked_on_a_budget(store: Path, limits: Limits) -> None:
    async def main() -> None:
        async with opened(store) as engine:
            await engine.run("story", options=RunOptions(limits=limits)).submit(dear, "obscure/model")

    with pytest.raises(SettingsError, match=r"'obscure/model': its price is unknown.*\[prices\].*--max-calls"):
        run_async(main())
    assert counters(store).sent == 1


def test_without_a_budget_in_dollars_it_is_asked(store: Path) -> None:
    async def main() -> None:
        async with opened(store) as engine:
            await engine.run("story", options=RunOptions(limits=Limits(calls=9))).submit(dear, "obscure/model")

    run_async(main())
    assert (counters(store).sent, counters(store).unknown_cost, counters(store).usd) == (2, 1, 0.02)


async def spend(run: Run, settings: int) -> int:
    return len([outcome async for outcome in run.map(talk, [1] * settings)])


def test_a_larger_budget_goes_on_where_the_smaller_one_ended(store: Path) -> None:
    async def main() -> None:
        async with opened(store) as engine:
            ended = await engine.drive(spend, 100, options=RunOptions(limits=Limits(usd=1.5)))
            assert ended.status == "partial"
            assert ended.cost.usd == pytest.approx(0.52, abs=0.03)
            ended = await engine.resume(ended.run_id, options=RunOptions(limits=Limits(usd=1.8)))
            assert ended.status == "partial"
            assert ended.cost.usd == pytest.approx(0.82, abs=0.03)
            ended = await engine.resume(ended.run_id, options=RunOptions(limits=Limits(usd=3.0)))
            assert (ended.status, ended.asks.sent) == ("completed", 100)
            assert ended.cost.usd == pytest.approx(2.0)

    run_async(main())


def test_what_trials_cost_is_told_apart_from_what_was_there_already(store: Path) -> None:
    async def main(specs: list[int]) -> list[float]:
        async with groundswell.open(store, transport=Scripted(short, cached=True), prices=cents) as engine:
            run = engine.run()
            async for _ in run.map(talk, specs):
                pass
            tally = run.dispatch.spending.tally
            return [tally.paid, tally.reused, tally.usd]

    assert run_async(main([1, 2, 3])) == pytest.approx([3, 0, 0.12])
    assert run_async(main([1, 2, 3, 4])) == pytest.approx([1, 3, 0.08])


def test_a_trial_that_went_on_after_a_stop_is_not_taken_for_a_cheap_one(store: Path) -> None:
    async def main(limits: Limits) -> tuple[int, int]:
        async with opened(store) as engine:
            run = engine.run("story", options=RunOptions(limits=limits))
            with suppress(RunStopped):
                async for _ in run.map(talk, [4]):
                    pass
            return run.dispatch.spending.tally.paid, run.dispatch.spending.tally.reused

    assert run_async(main(Limits(calls=2))) == (0, 0)
    assert run_async(main(Limits())) == (0, 1)


def test_the_forecast_of_a_run_that_goes_on(store: Path) -> None:
    async def main() -> None:
        async with opened(store) as engine:
            run = engine.run()
            count, found = 0, None
            async for _ in run.map(talk, [2] * 100):
                count += 1
                if count == 50:
                    begun = sum(trial.usd for trial in run.open.values())
                    left = 100 - run.counters.settled
                    found = forecast(run.counters.usd, begun, left, run.dispatch.spending.tally)
            assert found is not None
            assert [found.low, found.high] == pytest.approx([4.0, 4.0])

    asyncio.run(main())


TURNS, TALKS = 8, 200


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("limits", "share"),
    [
        pytest.param(Limits(usd=TURNS * TALKS * 0.02 / 2), 0.4, id="dollars"),
        pytest.param(Limits(calls=TURNS * TALKS // 2), 0.4, id="calls"),
        pytest.param(Limits(tokens=TURNS * TALKS * 3 // 2), 0.4, id="tokens"),
        pytest.param(Limits(calls=TURNS * TALKS // 2, usd=1000.0), 0.4, id="the one that comes first"),
    ],
)
def test_half_a_budget_brings_nearly_half_of_the_trials_to_an_end(store: Path, limits: Limits, share: float) -> None:
    """Even if all could be under way at once, and would then end with nothing."""

    async def main() -> None:
        async with opened(store, max_concurrent=TALKS) as engine:
            async for _ in engine.run("story", options=RunOptions(limits=limits)).map(chat, range(TALKS)):
                pass

    with pytest.raises(RunStopped):
        run_async(main())
    assert share * TALKS <= counters(store).usable <= TALKS / 2


@pytest.mark.slow
def test_without_a_budget_as_many_trials_are_open_as_can_be(store: Path) -> None:
    most = 0

    async def main(limits: Limits) -> None:
        nonlocal most
        most = 0
        async with opened(store, max_concurrent=TALKS) as engine:
            run = engine.run(None, options=RunOptions(limits=limits))
            async for _ in run.map(chat, range(TALKS)):
                most = max(most, run.admission.window)

    run_async(main(Limits()))
    assert most > TALKS / 2
    run_async(main(Limits(seconds=100.0)))
    assert most > TALKS / 2
    run_async(main(Limits(usd=1000.0)))
    assert most > TALKS / 2, "and with one that will do, once it is known what a trial takes"


@program("purse/chat")
async def chat(trial: Trial, spec: int) -> int:
    """A conversation of equal turns, of which little more is held back than is used."""
    for turn in range(TURNS):
        await trial.ask("any", f"{spec}.{turn}", max_tokens=2)
    return spec
