"""The configuration of an evolution by the names that scripts know: `EvolutionConfig`, and `AsyncEvolutionConfig`."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.fitness import PLAIN, Weights
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import Selection
from groundswell.experiments.prompt_evolution.problems import Problems, Sizes, generated
from groundswell.experiments.prompt_evolution.racing import Rules
from groundswell.experiments.prompt_evolution.settings import (
    BASELINES,
    MIX,
    SEED_PROMPT,
    Baseline,
    Evolution,
    Stops,
)

Preset = Literal["balanced", "conservative", "aggressive"]
PRESETS: dict[Preset, dict[str, int]] = {
    "balanced": {
        "async_batch_size": 20,
        "max_concurrent_requests": 10,
        "genome_batch_size": 10,
        "max_concurrent_genomes": 5,
        "rate_limit_per_minute": 3500,
    },
    "conservative": {
        "async_batch_size": 10,
        "max_concurrent_requests": 5,
        "genome_batch_size": 5,
        "max_concurrent_genomes": 3,
        "rate_limit_per_minute": 2000,
    },
    "aggressive": {
        "async_batch_size": 30,
        "max_concurrent_requests": 15,
        "genome_batch_size": 15,
        "max_concurrent_genomes": 8,
        "rate_limit_per_minute": 3500,
    },
}


class EvolutionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is evolved, and for how long. One genome at a time, one problem after the other."""

    population_size: int = 50
    max_generations: int = 100
    model: str | tuple[str, ...] = "emulated/gpt-4o-mini"
    """Who solves the problems; of several, all."""
    writer: str = ""
    """Who writes prompts; the first model, unless named."""
    problems: Problems | None = None
    """None: word problems, made for the occasion."""
    metric: str = "number"
    seed_prompts: tuple[str, ...] = (SEED_PROMPT,)
    seed: int = 0
    selection: Selection = "tournament"
    tournament_size: int = 3
    elite_size: int = 2
    operators: dict[str, float] = msgspec.field(default_factory=lambda: dict(MIX))
    fitness: Weights = PLAIN
    racing: bool = True
    finalists: int = 5
    baselines: tuple[Baseline, ...] = BASELINES
    target_fitness: float | None = None
    plateau_generations: int | None = 10
    min_diversity: float | None = None
    max_asks: int | None = None
    max_usd: float | None = None
    temperature: float | None = 0.0
    max_tokens: int = 300

    @property
    def settings(self) -> Evolution:
        """The evolution that this describes."""
        return self._settings(1, 20)

    @property
    def most_in_flight(self) -> int:
        """The most requests at a time."""
        return 1

    def _settings(self, window: int, block: int) -> Evolution:
        models = (self.model,) if isinstance(self.model, str) else tuple(self.model)
        return Evolution(
            models=models,
            writer=self.writer,
            problems=self.problems or generated(sizes=Sizes(), seed=self.seed),
            metric=self.metric,
            seeds=tuple(map(Genome.of, self.seed_prompts)),
            population_size=self.population_size,
            max_generations=self.max_generations,
            genome_batch_size=window,
            rules=Rules(racing=self.racing, block=block),
            selection=self.selection,
            tournament=self.tournament_size,
            elite=min(self.elite_size, self.population_size - 1),
            operators=self.operators,
            fitness=self.fitness,
            stops=Stops(
                target=self.target_fitness,
                plateau=self.plateau_generations,
                least_spread=self.min_diversity,
                asks=self.max_asks,
                usd=self.max_usd,
            ),
            finalists=self.finalists,
            baselines=self.baselines,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
        )


class AsyncEvolutionConfig(EvolutionConfig, frozen=True, kw_only=True):
    """The same, with many genomes and many problems at a time."""

    enable_async_evaluation: bool = True
    """Otherwise one after the other, as with `EvolutionConfig`."""
    async_batch_size: int = 20
    """Problems of the first block of a race."""
    max_concurrent_requests: int = 10
    """Requests in flight for each genome that is evaluated: so many times `max_concurrent_genomes` in all."""
    genome_batch_size: int = 10
    """Genomes on their way at a time; what is born knows those that were born so many before it."""
    max_concurrent_genomes: int = 5
    rate_limit_per_minute: int | None = 3500
    """Requests a minute of the account that is asked; None: what its provider allows."""
    async_timeout: float | None = None
    """Seconds for each attempt at a request; None: as the account has it."""
    detailed_performance_logging: bool = False
    """Write one record for each evaluation."""

    def __post_init__(self) -> None:
        for name in ("async_batch_size", "max_concurrent_requests", "genome_batch_size", "max_concurrent_genomes"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} {getattr(self, name)}: must be at least 1", field=name)
        for name in ("rate_limit_per_minute", "async_timeout"):
            if getattr(self, name) is not None and getattr(self, name) <= 0:
                raise SettingsError(f"{name} {getattr(self, name):g}: must be more than 0", field=name)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> AsyncEvolutionConfig:
        """A configuration by its name, with changes."""
        if name not in PRESETS:
            raise SettingsError(f"preset {name!r}: there are {', '.join(get_args(Preset))}", field="preset")
        return cls(**{**PRESETS[name], **changes})

    @property
    def settings(self) -> Evolution:
        window = max(self.genome_batch_size, self.max_concurrent_genomes)
        return self._settings(window if self.enable_async_evaluation else 1, self.async_batch_size)

    @property
    def most_in_flight(self) -> int:
        return self.max_concurrent_requests * self.max_concurrent_genomes if self.enable_async_evaluation else 1
