"""`PerformanceBenchmark`: runs and measures each method. Read `run_comprehensive_benchmark` first."""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from groundswell import compose
from groundswell.engine.engine import Engine
from groundswell.engine.run import Run
from groundswell.estimate.tokens import request_tokens
from groundswell.experiments.prompt_evolution.benchmark import ways
from groundswell.experiments.prompt_evolution.benchmark.config import BenchmarkConfig, read
from groundswell.experiments.prompt_evolution.benchmark.rows import SEQUENTIAL, Row, compared, judged, sampled, summary
from groundswell.experiments.prompt_evolution.benchmark.server import Server, cpu_of, emulator
from groundswell.experiments.prompt_evolution.benchmark.ways import Plain, Scores, Tally, Workload
from groundswell.program.request import Chat, Usage

BATCHES, OURS, RACED, BARE = "batches", "ours", "ours, with races", "client alone"
AT_ONCE = 100
"""Requests in flight for the additional measurement on the emulator."""
EVERY = 5.0
"""Seconds between progress messages."""
NO_LIMIT = "none (the emulator has no rate limit)"
NO_ACCOUNT = "none (the model runs in this process)"
NOBODY = "the emulator on this machine"

Tell = Callable[[str], None]
Readings = Callable[[], Mapping[str, float]]


class Way(NamedTuple):
    """One method: its requests in flight, its maximum number of requests, and the work itself."""

    name: str
    in_flight: int
    most: int
    work: Callable[[Run, Tally], Awaitable[Scores]]


class PerformanceBenchmark:
    """Measures methods of evaluating genomes. `config` has the keys of `BenchmarkConfig`.

    `tell` receives progress messages; by default they go to stderr. `readings` is called before and after each method,
    and the differences are added to its results.
    """

    def __init__(
        self, config: Mapping[str, Any], *, tell: Tell | None = None, readings: Readings | None = None
    ) -> None:
        self.config: BenchmarkConfig = read(config)
        self.results: Row | None = None
        self._tell = tell or _to_stderr
        self._readings = readings or dict

    async def run_comprehensive_benchmark(self) -> Row:
        """Measure every method, and compare their scores."""
        config = self.config
        async with AsyncExitStack() as stack:
            server = None
            if not config.model:
                self._tell(f"Starting {NOBODY} ({config.latency * 1000:g} ms per reply).")
                most = max(config.in_flight, config.max_in_flight or AT_ONCE)
                server = await stack.enter_async_context(emulator(config.latency, most))
            stage = _Stage(config, server, self._tell, self._readings)
            await stage.look()
            rows, scores = dict[str, Row](), dict[str, Scores]()
            for way in stage.ways():
                rows[way.name], scores[way.name] = await stage.measured(way)
        self.results = {
            "config": msgspec.to_builtins(config),
            "model": config.model or NOBODY,
            "asks": stage.workload.asks,
            "rate_limit": stage.limit,
            **compared(scores),
            "peak_mb": _peak_mb(),
            "ways": judged(rows, stage.workload.asks, None if server is None else config.latency),
        }
        return self.results

    def print_results_summary(self) -> None:
        """Print the results as a table."""
        lines = ["No results yet: await run_comprehensive_benchmark() first."]
        sys.stdout.write("\n".join(lines if self.results is None else summary(self.results)) + "\n")


class _Stage:
    """The model and the account on which the methods are measured."""

    def __init__(self, config: BenchmarkConfig, server: Server | None, tell: Tell, readings: Readings) -> None:
        model = config.model if server is None else server.model
        self.workload = Workload(model, config.population_size, config.num_problems, config.seed)
        self.limit = NO_LIMIT
        self._config = config
        self._server = server
        self._tell = tell
        self._readings = readings
        self._account: tuple[str, ...] = () if server is None else server.account
        self._per_minute: int | None = None

    async def look(self) -> None:
        """Find the account and its limits, and report the expected use."""
        config, model = self._config, self.workload.model
        if compose.provider_of(model, account=self._account) in compose.IN_PROCESS:
            account, self.limit = None, NO_ACCOUNT
        else:
            async with self._opened(1) as (_, run):
                account = run.lane_of(Chat(model, ())).account
        if account is not None and self._server is None:
            self._per_minute = limit = config.rate_limit_per_minute
            self.limit = "none given" if limit is None else f"{limit:,} requests per minute"
        if account is not None:
            said = {"rate_limit_per_minute": self._per_minute, "timeout": config.async_timeout}
            self._account += tuple(f"{account}.{name}={value}" for name, value in said.items() if value is not None)
        if self._server is None:
            async with self._opened(1) as (engine, _):
                self._tell(self._announced(engine))

    def _announced(self, engine: Engine) -> str:
        """The message on the maximum number of requests and their cost."""
        work, asks = self.workload, sum(way.most for way in self.ways())
        sizes = [
            request_tokens(work.request(genome.text, each)).high for genome in work.genomes for each in work.problems
        ]
        usd = engine.cost(work.model, Usage(round(sum(sizes) / len(sizes)), ways.MAX_TOKENS))
        price = "price unknown" if usd is None else f"cost at most ${usd * asks:,.2f}"
        return f"{work.model}: at most {asks:,} requests, {price}. Rate limit: {self.limit}."

    def ways(self) -> list[Way]:
        """All methods, in order."""
        config, work = self._config, self.workload
        asks, cap, sample = work.asks, config.in_flight, sampled(work.places, config.sample)
        more = config.max_in_flight or (cap if self._server is None else AT_ONCE)
        full, races = (
            work.settings(config.async_batch_size, config.genome_batch_size, racing=racing) for racing in (False, True)
        )
        found = [
            Way(SEQUENTIAL, 1, len(sample), lambda run, tally: ways.sequential(self._plain(run, tally), sample)),
            Way(BATCHES, cap, asks, lambda run, tally: ways.batches(self._plain(run, tally), work, config.sheet)),
            Way(OURS, cap, asks, lambda run, _: ways.engine(run, work, full)),
        ]
        if more != cap:
            found.append(found[-1]._replace(name=f"{OURS}, at {more:,}", in_flight=more))
        if self._server is not None:
            name = f"{BARE}, at {more:,}"
            found.append(
                Way(name, more, asks, lambda run, tally: ways.pooled(self._plain(run, tally), work.places, more))
            )
        return [*found, Way(RACED, cap, asks, lambda run, _: ways.raced(run, work, races))]

    def _plain(self, run: Run, tally: Tally) -> Plain:
        return Plain(run, self.workload, tally, self._per_minute)

    async def measured(self, way: Way) -> tuple[Row, Scores]:
        """Measure a method; returns its figures and its scores."""
        tally = Tally()
        async with self._opened(way.in_flight) as (engine, run):
            if self._server is not None:
                async with engine.run("warming up") as warming:
                    await ways.warmed_up(warming, self.workload, way.in_flight)
            before, start = self._read(), time.perf_counter()
            async with self._watched(way, lambda: tally.met or run.counters.settled):
                scores = await way.work(run, tally)
            seconds = time.perf_counter() - start
            spent = {name: value - before[name] for name, value in self._read().items()}
            calls = tally.calls or run.counters.sent
        each = 1000 / len(scores)
        self._tell(f"{way.name}: {len(scores):,} problems in {seconds:.1f} s")
        return {
            "in_flight": way.in_flight,
            "seconds": seconds,
            "asked": len(scores),
            "calls": round(spent.pop("calls", calls)),
            "failed": sum(score is None for score in scores.values()),
            "cpu_ms": spent.pop("cpu") * each,
            "server_cpu_ms": spent.pop("server") * each if "server" in spent else None,
            **spent,
        }, scores

    def _read(self) -> dict[str, float]:
        """Counters that are read before and after each method."""
        found = {**self._readings(), "cpu": time.process_time()}
        if self._server is not None:
            found["calls"] = self._server.calls()
            if (cpu := cpu_of(self._server.pid)) is not None:
                found["server"] = cpu
        return found

    @asynccontextmanager
    async def _opened(self, in_flight: int) -> AsyncIterator[tuple[Engine, Run]]:
        """An engine with a store of its own, so that methods do not share a cache, and a run."""
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "benchmark.db"
            async with compose.open(store, account=self._account, max_concurrent=in_flight) as engine:
                yield engine, engine.run("benchmark")

    @asynccontextmanager
    async def _watched(self, way: Way, met: Callable[[], int]) -> AsyncIterator[None]:
        """Report the progress of a method every few seconds."""

        async def watch() -> None:
            while True:
                await asyncio.sleep(EVERY)
                self._tell(f"{way.name}: {met():,} of {way.most:,} problems")

        self._tell(f"{way.name}: {way.most:,} problems")
        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _peak_mb() -> float:
    """The peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
