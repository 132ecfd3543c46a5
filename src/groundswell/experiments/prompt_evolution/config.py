"""An evolution as one configures it: everything in one flat place, with presets for how hard a provider is asked."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.fitness import COMPOSITE, PLAIN
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import Selection
from groundswell.experiments.prompt_evolution.problems import Problems, generated
from groundswell.experiments.prompt_evolution.racing import Rules
from groundswell.experiments.prompt_evolution.settings import (
    BASELINES,
    EMULATED,
    MIX,
    SEED_PROMPT,
    Baseline,
    Evolution,
    Stops,
)

Preset = Literal["balanced", "conservative", "aggressive"]
PRESETS: tuple[Preset, ...] = get_args(Preset)
Fitness = Literal["accuracy", "composite"]
_WEIGHTS = {"accuracy": PLAIN, "composite": COMPOSITE}


class EvolutionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is evolved, on which problems, and for how long."""

    population_size: int = 50
    max_generations: int = 100
    model: str | tuple[str, ...] = EMULATED
    """Who solves the problems; of several, all do, and their mean counts."""
    writer: str = ""
    """Who writes prompts; the model, or the first of them, unless named."""
    problems: Problems | None = None
    """None: fresh ones of all families."""
    metric: str = "number"
    seed_prompts: tuple[str, ...] = (SEED_PROMPT,)
    seed: int = 0
    selection: Selection = "tournament"
    tournament_size: int = 3
    elite_size: int = 2
    operators: dict[str, float] = msgspec.field(default_factory=lambda: dict(MIX))
    fitness: Fitness = "accuracy"
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

    def __post_init__(self) -> None:
        if self.fitness not in _WEIGHTS:
            raise SettingsError(f"fitness {self.fitness!r}: there are {', '.join(_WEIGHTS)}", field="fitness")
        _ = self.settings  # what is wrong with them is told now

    @property
    def models(self) -> tuple[str, ...]:
        """Who solves the problems."""
        return (self.model,) if isinstance(self.model, str) else tuple(self.model)

    @property
    def rules(self) -> Rules:
        """How races are run."""
        return Rules(racing=self.racing)

    @property
    def births_at_once(self) -> int:
        """Genomes that are on their way at a time."""
        return 10

    @property
    def settings(self) -> Evolution:
        """The same, as the driver takes it."""
        return Evolution(
            models=self.models,
            writer=self.writer,
            problems=self.problems or generated(seed=self.seed),
            metric=self.metric,
            seeds=tuple(map(Genome.of, self.seed_prompts)),
            population_size=self.population_size,
            max_generations=self.max_generations,
            genome_batch_size=self.births_at_once,
            rules=self.rules,
            selection=self.selection,
            tournament=self.tournament_size,
            elite=min(self.elite_size, self.population_size - 1),
            operators=self.operators,
            fitness=_WEIGHTS[self.fitness],
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
    """And how fast: how much is asked at a time. None of the latter changes what is found, but for the first two."""

    async_batch_size: int = 20
    """Problems of the first block of a race: a genome that is plainly behind meets no more."""
    genome_batch_size: int = 10
    """Genomes on their way at a time: a birth knows those that were born so many before it, and none after."""
    max_concurrent_requests: int = 10
    """Asks in flight for each genome; so many times `max_concurrent_genomes` in all."""
    max_concurrent_genomes: int = 5
    rate_limit_per_minute: int | None = None
    """Requests a minute that the accounts allow. None: what they are known to, and what the provider says."""
    async_timeout: float | None = None
    """Seconds for one attempt. None: as the accounts have it."""
    enable_async_evaluation: bool = True
    """Without it one ask is in flight at a time."""
    detailed_performance_logging: bool = False
    """Write one record for each evaluation of a genome."""

    def __post_init__(self) -> None:
        for name in (
            "async_batch_size",
            "genome_batch_size",
            "max_concurrent_requests",
            "max_concurrent_genomes",
            "rate_limit_per_minute",
            "async_timeout",
        ):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SettingsError(f"{name} {value:g}: must be more than 0", field=name)
        EvolutionConfig.__post_init__(self)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> AsyncEvolutionConfig:
        """One of the presets, with what you would have otherwise."""
        if name not in _PRESETS:
            raise SettingsError(f"preset {name!r}: there are {', '.join(_PRESETS)}", field="preset")
        return cls(**{**_PRESETS[name], **changes})

    @property
    def rules(self) -> Rules:
        """How races are run."""
        return Rules(racing=self.racing, block=self.async_batch_size)

    @property
    def births_at_once(self) -> int:
        """Genomes that are on their way at a time."""
        return self.genome_batch_size

    @property
    def most_in_flight(self) -> int:
        """Asks in flight, at the most."""
        return self.max_concurrent_requests * self.max_concurrent_genomes if self.enable_async_evaluation else 1


_HOW = (
    *("async_batch_size", "max_concurrent_requests", "genome_batch_size", "max_concurrent_genomes"),
    "rate_limit_per_minute",
)
_PRESETS: dict[str, dict[str, int]] = {
    "balanced": dict(zip(_HOW, (20, 10, 10, 5, 3500), strict=True)),
    "conservative": dict(zip(_HOW, (10, 5, 5, 3, 2000), strict=True)),
    "aggressive": dict(zip(_HOW, (30, 15, 15, 8, 3500), strict=True)),
}
