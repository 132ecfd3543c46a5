"""Bad weather at small scale: a storm of refusals, a server that dies and comes back, stragglers, faults at random.

What switches the weather are events of the run, and it is judged by the books and the journal. `bench/storm.py` does
the same at full scale, and looks at the time it takes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from groundswell import RetryPolicy, Run, RunOptions, RunStopped
from groundswell.emulator.faults import Rule
from groundswell.emulator.latency import Latency
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from groundswell.engine.events import AskRetried, EndpointChanged, Event, TrialEnded
from groundswell.reporting.progress import Meter, describe
from tests.patience import PATIENCE
from tests.transports.little import answer, serving
from tests.transports.scene import MODELS, Bench, Talk, environment, talk

ASKS = 600
MODEL = MODELS["openai"].partition("/")[2]
CALM = Settings(latency=Latency(0.02), limits=RateLimits(requests_per_minute=12_000, burst=1.0))
STORM = Rule(fault="429", rate=0.9, times=40)
AT_RANDOM = tuple(
    Rule(fault=name, rate=0.008) for name in ("500", "503", "429", "429-bare", "drop", "truncated", "malformed")
)
ROUGH = Settings(
    latency=Latency(0.02, stragglers=0.02, factor=20),
    limits=CALM.limits,
    faults=(*AT_RANDOM, Rule(fault="hang", rate=0.1, times=2)),
)


class Weather:
    """Listens to a run: a storm, then the server is gone until that was noticed, then it is back in bad shape."""

    def __init__(self, open_: ExitStack) -> None:
        self._open = open_
        self._server = self._open.enter_context(running(CALM))
        self._ended = 0
        self.url = self._server.url
        self.books: list[dict[str, Any]] = []
        self.seen: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        if isinstance(event, TrialEnded):
            self._ended += 1
            if self._ended == 100:
                self._server.set_faults(STORM)
            elif self._ended >= 250 and not self.books and self._storm_is_over():
                self.end()
        elif isinstance(event, EndpointChanged) and event.what.startswith("down") and len(self.books) == 1:
            port = urlsplit(self.url).port
            assert port is not None
            self._server = self._open.enter_context(running(ROUGH, port=port))
        elif isinstance(event, AskRetried):
            self.seen[event.kind] += 1

    def end(self) -> None:
        """Keep the books, and close the server."""
        self.books += self._read_books()
        self._open.close()

    def _storm_is_over(self) -> bool:
        return [books["faults"] for books in self._read_books()] == [{"429": STORM.times}]

    def _read_books(self) -> list[dict[str, Any]]:
        accounts = self._server.ledger(each=True)["accounts"].values()
        return [models[MODEL] for models in accounts if MODEL in models]


@pytest.fixture
def weather() -> Iterator[Weather]:
    with ExitStack() as open_:
        yield Weather(open_)


@pytest.mark.slow
def test_nothing_is_lost_in_bad_weather_and_limits_are_kept(tmp_path: Path, weather: Weather) -> None:
    bench = Bench(tmp_path, environment(weather.url), "openai.timeout=3")
    bench.options = RunOptions(retry=RetryPolicy(first_wait=0.05, longest_wait=0.2))
    outcomes = bench.run(talk, [Talk(MODELS["openai"], f"stone {n}") for n in range(ASKS)], listeners=[weather])
    weather.end()
    before, after = weather.books
    assert not [outcome.fault for outcome in outcomes if outcome.fault]
    assert len({outcome.key for outcome in outcomes if outcome.result}) == ASKS
    assert len(before["paid"].keys() | after["paid"].keys()) == ASKS
    assert before["faults"] == {"429": 40}
    assert {"server", "connection", "garbled", "rate_limited", "timeout"} <= weather.seen.keys()
    received = before["received"] + after["received"]
    assert sum(before["limits_broken"].values()) + sum(after["limits_broken"].values()) <= 0.03 * received
    most_paid_again = 60  # what was in flight when the server died, and what was charged and did not arrive
    assert before["requests"] + after["requests"] <= ASKS + most_paid_again


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "flags"),
    [("1200", ()), ("60_000", ("ollama.rate_limit_per_minute=1200",))],
    ids=["groundswell.toml", "a flag wins"],
)
def test_a_rate_that_is_set_is_kept_where_the_provider_tells_of_none(
    tmp_path: Path, written: str, flags: tuple[str, ...]
) -> None:
    """20 a second, from the first one on: the 32 that would leave at once otherwise are more than are let in."""
    (tmp_path / "groundswell.toml").write_text(f"[accounts.ollama]\nrate_limit_per_minute = {written}\n")
    limits = RateLimits(requests_per_minute=1200, burst=1.0, ollama_parallel=64)
    with running(Settings(limits=limits)) as emulator:
        bench = Bench(tmp_path, environment(emulator.url), *flags)
        outcomes = bench.run(talk, [Talk(MODELS["ollama"], f"stone {n}") for n in range(40)])
        books = emulator.ledger()["totals"]
    assert all(outcome.result for outcome in outcomes)
    assert (books["requests"], books["limits_broken"]) == (40, 0)


def test_of_slots_set_twice_the_flag_wins(tmp_path: Path) -> None:
    (tmp_path / "groundswell.toml").write_text("[accounts.openai]\nmax_concurrent_requests = 7\n")
    with running(Settings(latency=Latency(0.01))) as emulator:
        for flags, most in (((), 7), (("openai.max_concurrent_requests=3",), 3)):
            emulator.reset()
            bench = Bench(tmp_path, environment(emulator.url), *flags)
            bench.run(talk, [Talk(MODELS["openai"], f"stone {n}, at most {most}") for n in range(40)])
            (books,) = [models[MODEL] for models in emulator.ledger()["accounts"].values()]
            assert (books["requests"], books["peak_in_flight"]) == (40, most)


LIES = {
    "nothing is left": ("100", "0", "1ms"),
    "everything is left": ("999999999999", "999999999999", "0s"),
    "less than nothing": ("-5", "-10", "-1s"),
    "words": ("many", "some", "soon"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_headers_that_lie_stop_nothing(tmp_path: Path, lie: tuple[str, str, str]) -> None:
    limit, remaining, reset = lie
    said = {
        "x_ratelimit_limit_requests": limit,
        "x_ratelimit_remaining_requests": remaining,
        "x_ratelimit_reset_requests": reset,
    }
    message = {"role": "assistant", "content": "hello"}
    body = {"model": MODEL, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    with serving(lambda got: answer(msgspec.json.encode(body), content_type="application/json", **said)) as little:
        outcomes = Bench(tmp_path, environment(little.url)).run(
            talk, [Talk(MODELS["openai"], f"stone {n}") for n in range(4)]
        )
    assert [outcome.result for outcome in outcomes] == [["hello"]] * 4
    assert len(little.got) == 4


def test_a_run_that_is_to_wait_for_an_hour_stops_and_says_so(tmp_path: Path) -> None:
    """As with a limit by the day."""

    async def main() -> None:
        async with bench.open() as engine:
            with pytest.raises(RunStopped, match="The provider asks to wait 1 h 00 min: resume the run after that"):
                _ = [outcome async for outcome in engine.run("daily").map(talk, specs)]

    specs = [Talk(MODELS["openai"], f"stone {n}") for n in range(40)]
    with running(Settings(faults=(Rule(fault="429", retry_after=3600.0),))) as emulator:
        bench = Bench(tmp_path, environment(emulator.url))
        asyncio.run(asyncio.wait_for(main(), PATIENCE))
        assert emulator.ledger()["totals"]["requests"] == 0


def test_a_run_that_is_to_wait_for_ten_minutes_says_so_and_can_be_stopped(tmp_path: Path) -> None:
    shown: list[str] = []

    async def main() -> None:
        async with bench.open(listeners=[stop]) as engine:
            run = engine.run("busy")
            runs.append(run)
            with pytest.raises(RunStopped, match="enough"):
                _ = [outcome async for outcome in run.map(talk, specs)]

    def stop(event: Event) -> None:
        if isinstance(event, AskRetried) and not shown:
            waits = describe(Meter(runs[0], 0.0).read(1.0))
            if "waiting " in waits:
                shown.append(waits)
                runs[0].stop("interrupted", "enough")

    specs = [Talk(MODELS["openai"], f"stone {n}") for n in range(40)]
    with running(Settings(faults=(Rule(fault="429", retry_after=600.0),))) as emulator:
        bench = Bench(tmp_path, environment(emulator.url))
        runs: list[Run] = []
        asyncio.run(asyncio.wait_for(main(), PATIENCE))
        assert emulator.ledger()["totals"]["requests"] == 0
    assert "openai waiting  9 min" in shown[0] or "10 min" in shown[0]
