"""Evolutions for scripts: a configuration in, a dictionary of results out. The driver is that of evolving.py."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from groundswell import compose
from groundswell.engine.driver import driver_name
from groundswell.engine.engine import Engine
from groundswell.engine.events import Listener
from groundswell.engine.options import RunOptions
from groundswell.engine.summary import Summary
from groundswell.errors import RunError, RunNotFound
from groundswell.experiments.named import trust_named
from groundswell.experiments.prompt_evolution.analysis import SEED, Analysis, Gain
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig, EvolutionConfig
from groundswell.experiments.prompt_evolution.evaluations import Evaluations, Performance, performance_of
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.metrics import find_metric
from groundswell.experiments.prompt_evolution.opening import engine_options
from groundswell.portal import SyncEngine, open_sync
from groundswell.program.request import canonical

CALLED = "evolution"
"""How runs are called that nobody gave a name."""
FOLDER = "evaluations"


class Results(TypedDict):
    """What an evolution came to."""

    best_fitness: float
    """The highest that was reached, on the training problems."""
    best_prompt: str
    """Of the fittest the one that the validation set chose."""
    validation_accuracy: float
    test_accuracy: float | None
    """Of the best prompt on the sealed test, which nothing was chosen by."""
    test_interval: tuple[float | None, float | None]
    gain: Gain
    """The best prompt less the seed prompt on the sealed test, with its interval and p."""
    generations: float
    births: int
    api_calls: int
    """Asks of the evolution, those of the writer with them."""
    api_efficiency: float
    """The same over those of a run that tries every genome on every problem, known or not."""
    cost: float | None
    """US dollars for the whole run, what it is compared with included; None where a price is not known."""
    total_time: float
    """Seconds, of all sessions of the run."""
    stopped: str
    """Why the evolution ended."""
    run: str
    """The run's id, as `groundswell runs` has it."""
    evaluations: Path | None
    """The file with a record for each evaluation, if one was wanted."""
    analysis: Analysis


class EvolutionController:
    """Carries out an evolution, without await: also in a notebook.

        results = EvolutionController(EvolutionConfig(population_size=50)).run_evolution()

    A run is called by its settings, unless `name` is given: the same configuration again goes on with its run where it
    was left, and of one that has ended it reads the results. `account` has settings of accounts, as
    "openai.rate_limit_per_minute=500"; `options` budget, retries, cache; `how` is what else `groundswell.open` takes.
    """

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
        self.name = name or _title(self.config)
        self.performance: Performance | None = None
        """How fast the last run was; None before there was one."""
        self._store = store
        self._account = account
        self._listeners = listeners
        self._options = options
        self._how = how
        self._evaluations = Evaluations(compose.store_path(store).parent / FOLDER)

    @staticmethod
    def _default() -> EvolutionConfig:
        return EvolutionConfig()

    def run_evolution(self) -> Results:
        """Evolve, and wait for it."""
        with self._open() as how, open_sync(self._store, **how) as engine:
            if self._is_there(engine):
                return self._results(engine.resume(self.name, options=self._options))
            return self._results(engine.drive(evolve, self.config.settings, **self._driven))

    @contextmanager
    def _open(self) -> Iterator[dict[str, Any]]:
        """What the engine is opened with, as long as it is open."""
        listeners = [*self._listeners, *([self._evaluations] if self.config.logs_evaluations else [])]
        with closing(self._evaluations):
            yield engine_options(self.config, self._account, {**self._how, "listeners": listeners})

    @property
    def _driven(self) -> dict[str, Any]:
        return {"name": self.name, "seed": self.config.seed, "options": self._options}

    def _is_there(self, engine: Engine | SyncEngine) -> bool:
        """Whether the store has this very run: then it is resumed, which takes no time if it has ended."""
        trust_named([self.config.metric])
        find_metric(self.config.metric)  # so that one that has changed is noticed
        try:
            record = engine.stored(self.name).record
        except RunNotFound:
            return False
        wanted = (driver_name(evolve), canonical(self.config.settings).decode(), self.config.seed)
        logged = self._evaluations.path(record.id).exists() or not self.config.logs_evaluations
        return (record.driver, record.settings, record.seed) == wanted and logged

    def _results(self, summary: Summary) -> Results:
        if summary.analysis is None:
            why = summary.error or summary.status
            raise RunError(f"run {self.name!r} has not come to its end: {why}. Run it again to go on with it")
        settings = self.config.settings
        analysis = msgspec.convert(summary.analysis, Analysis)
        self.performance = performance_of(analysis, summary, settings)
        main = analysis.evolution
        tested = next(each for each in analysis.tested if each.name == main.name)
        path = self._evaluations.path(summary.run_id) if self.config.logs_evaluations else None
        return Results(
            best_fitness=max(each.train for each in main.finalists),
            best_prompt=main.winner.genome.text,
            validation_accuracy=main.winner.validation,
            test_accuracy=tested.accuracy,
            test_interval=(tested.low, tested.high),
            gain=next(each for each in analysis.gains if each.over == SEED),
            generations=len(main.members) / settings.population_size,
            births=len(main.members),
            api_calls=main.asks,
            api_efficiency=self.performance.api_efficiency,
            cost=None if summary.cost.unknown_asks else summary.cost.usd,
            total_time=summary.seconds,
            stopped=main.why,
            run=summary.run_id,
            evaluations=path if path is not None and path.exists() else None,
            analysis=analysis,
        )


class AsyncEvolutionController(EvolutionController):
    """The same on a loop of yours.

    controller = AsyncEvolutionController(AsyncEvolutionConfig(population_size=50))
    results = await controller.run_evolution_async()
    """

    @staticmethod
    def _default() -> EvolutionConfig:
        return AsyncEvolutionConfig()

    async def run_evolution_async(self) -> Results:
        """Evolve."""
        with self._open() as how:
            async with compose.open(self._store, **how) as engine:
                if self._is_there(engine):
                    return self._results(await engine.resume(self.name, options=self._options))
                return self._results(await engine.drive(evolve, self.config.settings, **self._driven))

    def run_evolution(self) -> Results:
        """Evolve, where there is no loop: the whole of a script waits for it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return super().run_evolution()
        raise RunError(
            "run_evolution would hold up the event loop that runs here: use `await controller.run_evolution_async()`, "
            "or, where nothing else is to go on meanwhile, EvolutionController"
        )


def _title(config: EvolutionConfig) -> str:
    """The name of a run: one that is the same for the same settings, and another one for any other."""
    return f"{CALLED}-{blake2b(canonical([config.settings, config.seed]), digest_size=4).hexdigest()}"
