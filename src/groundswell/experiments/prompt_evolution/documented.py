"""Classes for Python scripts, with the names of the Asynchronous Batch Evaluation System.

`EvolutionController` and `AsyncEvolutionController` run the experiment and return its results as a dictionary.
`AsyncLLMInterface` and `AsyncEvaluationPipeline` solve problems without an evolution. Configurations are in config.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar

import msgspec

from groundswell import compose
from groundswell.engine.driver import driver_name
from groundswell.engine.engine import Engine
from groundswell.engine.events import Listener
from groundswell.engine.options import RunOptions
from groundswell.engine.run import Run
from groundswell.engine.summary import Summary
from groundswell.errors import RunError
from groundswell.experiments.named import trust_named
from groundswell.experiments.prompt_evolution.analysis import SEED, Analysis, Gain, mean_of
from groundswell.experiments.prompt_evolution.best import BestPrompt
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig, EvolutionConfig
from groundswell.experiments.prompt_evolution.costs import Costs, added
from groundswell.experiments.prompt_evolution.evaluations import Evaluations
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.examining import Cell, Examiner, lacks, relied_on
from groundswell.experiments.prompt_evolution.fitness import apart, worth
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.limits import accounts_of
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.settings import ABLATED, Evolution
from groundswell.experiments.prompt_evolution.solving import Attempt, Solved, solve
from groundswell.experiments.prompt_evolution.tokens import without_part
from groundswell.experiments.prompt_evolution.verdict import deployed_gains, gains
from groundswell.portal import open_sync
from groundswell.program.request import Fault, canonical

R = TypeVar("R")
CALLED = "evolution"
"""Prefix of generated run names."""
FOLDER = "evaluations"
ELSEWHERE = ("script", "transport", "router", "accounts")
"""Options of `groundswell.open` that replace the configured accounts."""


def engine_options(config: EvolutionConfig, account: Sequence[str], how: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `groundswell.open` for a configuration, plus `account` and `how` of the caller."""
    said = [] if any(how.get(name) is not None for name in ELSEWHERE) else accounts_of(config, account)
    return {"max_concurrent": config.most_in_flight, **how, "account": [*said, *account]}


class Configured:
    """Base of all classes here: a configuration, a store, and options of the engine and the run."""

    _default: type[EvolutionConfig] = AsyncEvolutionConfig

    def __init__(
        self,
        config: EvolutionConfig | None = None,
        *,
        store: str | Path = "groundswell.db",
        name: str | None = None,
        account: Sequence[str] = (),
        listeners: Sequence[Listener] = (),
        options: RunOptions | None = None,
        **how: Any,
    ) -> None:
        self.config = self._default() if config is None else config
        self._store = store
        self._name = name
        self._account = account
        self._listeners = listeners
        self._options = options
        self._how = how

    def _engine_options(self, *listeners: Listener) -> dict[str, Any]:
        return engine_options(self.config, self._account, {**self._how, "listeners": [*self._listeners, *listeners]})

    def _trust(self) -> None:
        """Import metric and program. The user's own code names them, so their modules are trusted."""
        trust_named([self.config.metric, self.config.program])
        relied_on(self.config.settings)


class Performance(msgspec.Struct, frozen=True):
    """Speed and savings of a run. `api_calls` and savings count the evolution itself, without baselines."""

    seconds: float
    """Total time of all sessions of the run."""
    problems: int
    """Number of evaluations of a prompt on a problem, in all searches and on all sets."""
    problems_per_second: float
    api_calls: int
    api_efficiency: float
    """`api_calls` divided by the requests needed without racing and without recognising duplicates."""
    saved_by_racing: int
    saved_as_known: int
    cache_hits: int
    """Requests of the whole run that were answered from the cache."""
    sent: int
    """Requests of the whole run that were sent."""

    def speedup(self, other: Performance) -> float:
        """Problems per second, relative to another run."""
        return self.problems_per_second / other.problems_per_second if other.problems_per_second else float("inf")

    def __str__(self) -> str:
        return (
            f"{self.problems:,} problems in {self.seconds:.1f} s ({self.problems_per_second:,.1f}/s); "
            f"{self.api_calls:,} requests, {self.api_efficiency:.0%} of an evaluation without racing "
            f"({self.saved_by_racing:,} saved by racing, {self.saved_as_known:,} by recognising duplicates); "
            f"{self.cache_hits:,} cache hits"
        )


def performance_of(analysis: Analysis, summary: Summary, settings: Evolution) -> Performance:
    """The performance of a run."""
    main, met = analysis.evolution, _met(analysis, settings)
    return Performance(
        seconds=summary.seconds,
        problems=met,
        problems_per_second=met / summary.seconds if summary.seconds else 0.0,
        api_calls=main.asks,
        api_efficiency=1.0 if main.efficiency is None else main.efficiency,
        saved_by_racing=main.savings.racing,
        saved_as_known=main.savings.known,
        cache_hits=summary.asks.cached,
        sent=summary.asks.sent,
    )


def _met(analysis: Analysis, settings: Evolution) -> int:
    """The number of evaluations of a prompt on a problem. Duplicate prompts count once."""
    trained: dict[str, set[int]] = {}
    for each in (member for search in analysis.searches for member in search.members):
        numbers = trained.setdefault(each.genome.text, set())
        numbers.update(at for at, score in enumerate(each.scores) if score is not None)
    tested = [each.genome for each in analysis.tested]
    validated = [*tested, *(each.genome for search in analysis.searches for each in search.finalists)]
    validated += [] if analysis.polish is None else [analysis.polish.genome]
    ablated = {without_part(analysis.deployed.genome, at) for at in range(len(analysis.parts))} - set(validated)
    most = (analysis.shape or settings.shape).validation
    met = sum(map(len, trained.values())) + len(set(tested)) * len(settings.problems.test)
    return met + len(set(validated)) * most + len(ablated) * min(ABLATED, most)


class Results(TypedDict):
    """The results of an evolution."""

    best_fitness: float
    """The highest fitness on the training problems."""
    best_prompt: str
    """The prompt to deploy. Several texts are joined, each under a heading with its name."""
    best_texts: dict[str, str]
    """The texts to deploy, by name; empty for a prompt."""
    found_by: str
    """The search that found it, for example `evolution`; `seed` if none found a better prompt."""
    validation_accuracy: float | None
    test_accuracy: float | None
    """Accuracy of the best prompt on the held-out test."""
    test_interval: tuple[float | None, float | None]
    gain: Gain
    """Difference between the best prompt and the seed prompt on the held-out test, with interval and p-value."""
    generations: float
    births: int
    """Number of genomes in the evolution."""
    api_calls: int
    """Requests of the evolution, including those of the writer."""
    api_efficiency: float
    """`api_calls` divided by the requests needed without racing and without recognising duplicates."""
    cost: float | None
    """US dollars for the whole run, including the baselines. None if a price is unknown."""
    total_time: float
    """Total time of all sessions of the run, in seconds."""
    stopped: str
    """Why the evolution stopped."""
    run: str
    """The id of the run, as in `groundswell runs list`."""
    evaluations: Path | None
    """The file with one record per evaluated genome, if `detailed_performance_logging` is on."""
    analysis: Analysis


class EvolutionController(Configured):
    """Runs an evolution without `await`, in scripts and notebooks.

        results = EvolutionController(EvolutionConfig(population_size=50)).run_evolution()

    Without `name`, the name of the run is derived from its settings. Running the same configuration again continues the
    run, or reads its results if it is complete. `account` sets account settings, such as
    "openai.rate_limit_per_minute=500". `options` sets budget, retries and cache. `how` is passed to `groundswell.open`.
    """

    performance: Performance | None = None
    """Speed and savings of the last run; None before the first."""
    _default = EvolutionConfig

    @cached_property
    def name(self) -> str:
        """The name of the run: the given one, or one derived from settings and seed."""
        digest = blake2b(canonical([self.config.settings, self.config.seed]), digest_size=4).hexdigest()
        return self._name or f"{CALLED}-{digest}"

    @cached_property
    def _evaluations(self) -> Evaluations:
        return Evaluations(compose.folder_of(self._store) / FOLDER)

    def run_evolution(self) -> Results:
        """Run the evolution, and wait for its results."""
        with closing(self._evaluations), open_sync(self._store, **self._opening()) as engine:
            return engine.work(self._evolved)

    def _opening(self) -> dict[str, Any]:
        """Options for opening the engine. Importing metric and program first lets the engine detect changes."""
        self._trust()
        if not self.config.logs_evaluations:
            return self._engine_options()
        return self._engine_options(self._evaluations, BestPrompt(compose.folder_of(self._store) / FOLDER))

    async def _evolved(self, engine: Engine) -> Results:
        """Start or continue the run. A complete run is only read."""
        settings, seed = self.config.settings, self.config.seed
        record = engine.store.runs.find(self.name)
        wanted = (driver_name(evolve), canonical(settings).decode(), seed)
        if record is not None and (record.driver, record.settings, record.seed) == wanted and self._has_log(record.id):
            return self._results(await engine.resume(self.name, options=self._options))
        return self._results(await engine.drive(evolve, settings, name=self.name, seed=seed, options=self._options))

    def _has_log(self, run: str) -> bool:
        return self._evaluations.path(run).exists() or not self.config.logs_evaluations

    def _results(self, summary: Summary) -> Results:
        if summary.analysis is None:
            why = summary.error or summary.status
            raise RunError(f"run {self.name!r} is not complete: {why}. Run the same configuration again to continue it")
        analysis = msgspec.convert(summary.analysis, Analysis)
        shape = analysis.shape or self.config.settings.shape
        self.performance = performance_of(analysis, summary, self.config.settings)
        main, best = analysis.evolution, analysis.deployed
        path = self._evaluations.path(summary.run_id)
        return Results(
            best_fitness=max(each.train for each in main.finalists),
            best_prompt=best.genome.text,
            best_texts=best.genome.texts,
            found_by=best.name,
            validation_accuracy=best.validation,
            test_accuracy=best.accuracy,
            test_interval=(best.low, best.high),
            gain=_gain(analysis),
            generations=len(main.members) / shape.population_size,
            births=len(main.members),
            api_calls=main.asks,
            api_efficiency=self.performance.api_efficiency,
            cost=None if summary.cost.unknown_asks else summary.cost.usd,
            total_time=summary.seconds,
            stopped=main.why,
            run=summary.run_id,
            evaluations=path if self.config.logs_evaluations and path.exists() else None,
            analysis=analysis,
        )


def _gain(analysis: Analysis) -> Gain:
    """The best prompt, compared with the seed prompt; with itself, if it is the seed prompt."""
    if analysis.shipped == SEED:
        return gains(analysis.deployed.scores, {SEED: analysis.deployed.scores})[0]
    return next(each for each in deployed_gains(analysis) if each.over == SEED)


class AsyncEvolutionController(EvolutionController):
    """Runs an evolution in async code.

    controller = AsyncEvolutionController(AsyncEvolutionConfig(population_size=50))
    results = await controller.run_evolution_async()
    """

    _default = AsyncEvolutionConfig

    async def run_evolution_async(self) -> Results:
        """Run the evolution."""
        with closing(self._evaluations):
            async with compose.open(self._store, **self._opening()) as engine:
                return await self._evolved(engine)

    def run_evolution(self) -> Results:
        """Run the evolution, and wait for its results. Raises `RunError` inside a running event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return super().run_evolution()
        raise RunError(
            "run_evolution would block the running event loop. Use `await controller.run_evolution_async()`, or "
            "EvolutionController if blocking is acceptable"
        )


class Opened(Configured):
    """Base of the context managers here: opens an engine and one run on it.

    Without a `name` the run is new: it uses cached replies and retries earlier failures. With a `name` it continues the
    run of that name, where failed requests stay failed. `how` is passed to `groundswell.open`.
    """

    _begun: dict[str, asyncio.Future[Any]]
    _stack: AsyncExitStack | None = None
    _run: Run | None = None

    @property
    def run(self) -> Run:
        """The run that sends the requests."""
        if self._run is None:
            raise RunError(f"{type(self).__name__} is not open: use it as `async with {type(self).__name__}(...)`")
        return self._run

    async def _begin(self, run: Run) -> None:
        """Hook for subclasses, called when the run is open."""

    async def _once(self, asked: Any, work: Callable[[str], Coroutine[Any, Any, R]]) -> R:
        """Start this work, or wait for it if it has already been started. `work` takes the key of its trial.

        Cancelling one caller does not cancel the work for the others.
        """
        key = blake2b(canonical(asked), digest_size=12).hexdigest()
        if key not in self._begun:
            self._begun[key] = asyncio.ensure_future(work(key))
        found: R = await asyncio.shield(self._begun[key])
        return found

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise RunError(f"{type(self).__name__} is already open")
        self._trust()
        how = self._engine_options()
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(compose.open(self._store, **how))
            run = engine.run(self._name, seed=self.config.seed, options=self._options)
            await stack.enter_async_context(run)
            run.relies_on(*relied_on(self.config.settings))
            await self._begin(run)
            self._run, self._stack, self._begun = run, stack.pop_all(), {}
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack, self._run = self._stack, None, None
        for each in self._begun.values():
            each.cancel()
        if stack is not None:
            await stack.__aexit__(kind, error, trace)


class AsyncLLMInterface(Opened):
    """Lets one model solve many problems concurrently.

        async with AsyncLLMInterface(config, store="runs.db") as llm:
            found = await llm.solve("Solve it step by step.", problems)

    `model` defaults to the first model of the configuration. A request that fails for good gives a `Fault` in place of
    a solution.
    """

    def __init__(self, config: EvolutionConfig | None = None, *, model: str | None = None, **how: Any) -> None:
        super().__init__(config, **how)
        self.model = self.config.models[0] if model is None else model

    async def solve(self, prompt: str | Genome, problems: Sequence[Problem]) -> list[Solved | Fault]:
        """Solve these problems with this prompt. The results are in the order of the problems."""
        return list(await asyncio.gather(*(self.solve_one(prompt, problem) for problem in problems)))

    async def solve_one(self, prompt: str | Genome, problem: Problem) -> Solved | Fault:
        """Solve one problem."""
        settings, run = self.config.settings, self.run
        spec = Attempt(self.model, str(prompt), problem, settings.metric, settings.temperature, settings.max_tokens)
        outcome = await self._once(spec, lambda key: run.submit(solve, spec, key=key))
        return outcome.unwrap() if outcome.fault is None else outcome.fault


class Evaluated(msgspec.Struct, frozen=True):
    """The evaluation of a prompt. Accuracy and fitness are None if too many problems are missing; `why` says why."""

    genome: Genome
    fitness: float | None
    accuracy: float | None
    scores: tuple[float | None, ...]
    """One score per problem; None if it is missing."""
    missing: int
    tokens: float
    """Tokens of prompt and reply, per problem."""
    usd: float | None
    """Cost of all problems; None if a price is unknown."""
    why: str = ""


class AsyncEvaluationPipeline(Opened):
    """Evaluates prompts as an evolution does, but on all problems, without racing.

    async with AsyncEvaluationPipeline(config, store="runs.db") as pipeline:
        found = await pipeline.evaluate_population(["Solve it.", "Solve it step by step."])
    """

    _examiner: Examiner

    async def evaluate_population(
        self, genomes: Sequence[str | Genome], problems: Sequence[Problem] | None = None
    ) -> list[Evaluated]:
        """Evaluate prompts on these problems, or on the training problems of the configuration."""
        those = self.config.settings.problems.train if problems is None else problems
        prompts = [each if isinstance(each, Genome) else Genome.of(each) for each in genomes]
        met = await asyncio.gather(*(self._met(genome, those) for genome in prompts))
        return [
            self._evaluated(genome, cells, [other for other in prompts if other != genome])
            for genome, cells in zip(prompts, met, strict=True)
        ]

    async def evaluate_genome(self, genome: str | Genome, problems: Sequence[Problem] | None = None) -> Evaluated:
        """Evaluate one prompt."""
        (found,) = await self.evaluate_population([genome], problems)
        return found

    async def _begin(self, run: Run) -> None:
        settings, costs = self.config.settings, Costs(run)
        await costs.learn(settings.models)
        self._examiner = Examiner(run, settings, costs)

    async def _met(self, genome: Genome, problems: Sequence[Problem]) -> list[Cell]:
        return list(await asyncio.gather(*(self._cell(genome, problem) for problem in problems)))

    async def _cell(self, genome: Genome, problem: Problem) -> Cell:
        _ = self.run  # raises if the pipeline is not open
        settings, examiner = self.config.settings, self._examiner
        asked = [genome.text, problem, settings.models, settings.metric, settings.temperature, settings.max_tokens]
        return await self._once(asked, lambda key: examiner.tried(key, genome, problem))

    def _evaluated(self, genome: Genome, cells: Sequence[Cell], others: Sequence[Genome]) -> Evaluated:
        there = [cell for cell in cells if cell.score is not None]
        missing, count = len(cells) - len(there), max(1, len(there))
        said = sum(cell.output_tokens for cell in there) / count
        settings = self.config.settings
        found = worth(genome, [cell.score or 0.0 for cell in there], said, settings.max_tokens, apart(genome, others))
        usd: float | None = 0.0
        for cell in cells:
            usd = added(added(usd, cell.usd), cell.judged.usd)
        fit = bool(there) and not lacks(cells)
        return Evaluated(
            genome,
            found.fitness(settings.fitness) if fit else None,
            mean_of([cell.score for cell in there]) if fit else None,
            tuple(cell.score for cell in cells),
            missing,
            said + sum(cell.input_tokens for cell in there) / count,
            usd,
            next((cell.why for cell in cells if cell.why), ""),
        )
