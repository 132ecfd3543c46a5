"""Live runs that are stopped, cancelled, resumed, or share an account."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from groundswell import Run, RunOptions, RunStopped, Trial, program
from groundswell.emulator.faults import Rule
from groundswell.emulator.latency import Latency
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.engine.events import EndpointChanged, Event, TrialEnded
from tests.patience import PATIENCE
from tests.transports.little import closed_port
from tests.transports.scene import EMBEDDERS, MODELS, Bench, Talk, Texts, environment, talk, vectors


def specs(count: int, provider: str = "openai", turns: int = 1) -> list[Talk]:
    return [Talk(MODELS[provider], f"stone {n}", turns=turns) for n in range(count)]


def test_a_run_can_be_stopped_while_its_server_is_down(tmp_path: Path) -> None:
    """It does not wait for the server."""

    async def main() -> None:
        async with bench.open(listeners=[stop]) as engine:
            run = engine.run("waiting")
            runs.append(run)
            with pytest.raises(RunStopped, match="enough"):
                await run.submit(talk, specs(1, "ollama")[0])

    def stop(event: Event) -> None:
        if type(event) is EndpointChanged:
            runs[0].stop("interrupted", "enough")

    with closed_port() as port:
        bench = Bench(tmp_path, {"OLLAMA_HOST": f"http://127.0.0.1:{port}"})
        runs: list[Run] = []
        asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_what_is_cancelled_in_flight_is_asked_again_and_the_rest_is_not(tmp_path: Path) -> None:
    slow = Settings(latency=Latency(0.02), limits=RateLimits(ollama_parallel=64))

    async def main(bench: Bench) -> None:
        ended: list[Event] = []

        def cancel(event: Event) -> None:
            ended.append(event)
            if sum(type(one) is TrialEnded for one in ended) == 10:
                task.cancel()

        async def work() -> None:
            async with bench.open(listeners=[cancel], max_concurrent=8) as engine:
                _ = [outcome async for outcome in engine.run("cut").map(talk, specs(40, "ollama"))]

        task = asyncio.get_running_loop().create_task(work())
        with pytest.raises(asyncio.CancelledError):
            await task

    with running(slow) as emulator:
        bench = Bench(tmp_path, environment(emulator.url))
        asyncio.run(main(bench))
        outcomes = bench.run(talk, specs(40, "ollama"), "cut")
        assert not [outcome.fault for outcome in outcomes if outcome.fault]
        books = emulator.ledger()["totals"]
        assert 40 <= books["requests"] <= 48
        assert books["paid_again"] <= 8


def test_both_schedules_give_the_same(bench: Bench, emulator: Threaded) -> None:
    wanted = [Talk(MODELS["openai"], f"stone {n}", turns=3, temperature=0.0) for n in range(20)]
    emulator.set_faults(Rule(fault="500", rate=0.1))
    streamed, waved = (
        [outcome.result for outcome in bench.run(talk, wanted, options=options)]
        for options in (
            RunOptions(retry=bench.options.retry, cache=False),
            RunOptions(retry=bench.options.retry, cache=False, schedule="waves"),
        )
    )
    assert streamed == waved
    assert all(streamed)


def test_embeddings_are_spread_over_the_endpoints(tmp_path: Path) -> None:
    with running(Settings()) as one, running(Settings()) as other:
        bench = Bench(tmp_path, {"OLLAMA_HOST": f"{one.url},{other.url}"})
        bench.run(vectors, [Texts(EMBEDDERS["ollama"], (f"stone {n}",)) for n in range(60)])
        calls = [emulator.ledger()["totals"]["received"] for emulator in (one, other)]
    assert all(1 <= count <= 4 for count in calls)


@program("tests/live/later")
async def later(trial: Trial, spec: tuple[str, str, str]) -> int:
    """A chat, and what is embedded after it: trials come to that one after the other."""
    model, embedder, about = spec
    said = await trial.ask(model, about, max_tokens=5)
    return (await trial.embed(embedder, [f"{about}: {said.text}"])).width


@pytest.mark.sampled
@pytest.mark.parametrize("endpoints", [1, 2])
@pytest.mark.parametrize("provider", EMBEDDERS)
def test_texts_that_come_up_one_after_the_other_still_share_calls(
    tmp_path: Path, provider: str, endpoints: int
) -> None:
    """As many calls as may be under way go out at once; what comes up meanwhile waits for the next.

    Which endpoint gets a call depends on how fast each one has answered, so one of them may get none.
    """
    settings = Settings(latency=Latency(0.2), limits=RateLimits(ollama_parallel=64))
    with ExitStack() as stack:
        emulators = [stack.enter_context(running(settings)) for _ in range(endpoints)]
        flags = [f"{provider}.base_url={','.join(address(provider, emulator.url) for emulator in emulators)}"]
        bench = Bench(tmp_path, environment(emulators[0].url), *flags)
        outcomes = bench.run(later, [(MODELS[provider], EMBEDDERS[provider], f"stone {n}") for n in range(32)])
        calls = [received(emulator, EMBEDDERS[provider]) for emulator in emulators]
    assert all(outcome.result for outcome in outcomes)
    assert 1 <= sum(calls) <= 12


def address(provider: str, url: str) -> str:
    return f"{url}/v1" if provider == "openai" else url


def received(emulator: Threaded, model: str) -> int:
    """How many requests to a model an emulator got."""
    books = emulator.ledger()["accounts"].values()
    return sum(models[model.partition("/")[2]]["received"] for models in books if model.partition("/")[2] in models)


def test_engines_of_one_process_share_the_slots_of_an_account(tmp_path: Path) -> None:
    flag = "openai.max_concurrent_requests=3"
    with running(Settings(latency=Latency(0.005))) as emulator:
        benches = [Bench(tmp_path / name, environment(emulator.url), flag) for name in ("one", "two")]

        async def work(bench: Bench) -> None:
            bench.folder.mkdir()
            async with bench.open() as engine:
                assert all([outcome.result async for outcome in engine.run().map(talk, specs(20))])

        async def main() -> None:
            await asyncio.gather(*map(work, benches))

        asyncio.run(main())
        (books,) = [models["gpt-4o-mini"] for models in emulator.ledger()["accounts"].values()]
    assert (books["requests"], books["peak_in_flight"]) == (40, 3)


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_limit_that_the_provider_tells_is_kept(tmp_path: Path, provider: str) -> None:
    """60 a second, in a bucket of a fifth of that: at most what is sent before anything is known is refused."""
    with running(Settings(limits=RateLimits(requests_per_minute=3600, burst=0.2))) as emulator:
        bench = Bench(tmp_path, environment(emulator.url))
        outcomes = bench.run(talk, specs(80, provider))
        books = emulator.ledger()["totals"]
    assert not [outcome.fault for outcome in outcomes if outcome.fault]
    assert books["requests"] == 80
    assert books["refused"] <= 32
