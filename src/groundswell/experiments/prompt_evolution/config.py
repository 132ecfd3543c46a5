"""The configuration of an evolution for Python scripts: one flat struct, with presets for concurrency."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, get_args, get_origin

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.breeding import Writing
from groundswell.experiments.prompt_evolution.fitness import COMPOSITE, PLAIN
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import Selection
from groundswell.experiments.prompt_evolution.problems import Problems, generated
from groundswell.experiments.prompt_evolution.settings import (
    BASELINES,
    EMULATED,
    MIX,
    SEED_PROMPT,
    Auto,
    Baseline,
    Evolution,
    Rules,
    Stops,
)

Preset = Literal["balanced", "conservative", "aggressive"]
PRESETS: tuple[Preset, ...] = get_args(Preset)
Fitness = Literal["accuracy", "composite", "pareto"]
_WEIGHTS = {"accuracy": PLAIN, "composite": COMPOSITE, "pareto": PLAIN}
_POSITIVE = (
    *("population_size", "max_generations", "tournament_size", "finalists", "max_tokens", "plateau_generations"),
    *(
        "max_asks",
        "max_usd",
        "max_seconds",
        "writer_tokens",
        "failures_shown",
        "async_batch_size",
        "genome_batch_size",
        "max_concurrent_requests",
    ),
    *("max_concurrent_genomes", "rate_limit_per_minute", "async_timeout"),
)
_SHARES = ("target_fitness", "min_diversity")
_CALLED = {"elite": "elite_size", "models": "model", "seeds": "seed_prompts", "template": "writer_template"}
"""Settings of the driver that have another name in the configuration."""


class EvolutionConfig(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Configuration of an evolution: model, problems, search and stopping."""

    auto: Auto = "medium"
    """Budget of each search, unless a limit or `max_generations` is given. Sizes that are None follow from the budget.
    """
    population_size: int | None = None
    max_generations: int | None = None
    """Each generation creates `population_size` candidates. None: until the budget is used."""
    model: str | tuple[str, ...] = EMULATED
    """Model that solves the problems. With several, every model solves every problem, and the mean score counts."""
    writer: str = ""
    """Model that writes prompts. Empty: the (first) model that solves the problems."""
    problems: Problems | None = None
    """None: generated word problems of all families."""
    metric: str = "number"
    """Metric that scores a reply: `number`, `text`, `contains`, or `module:name` for your own."""
    about: str = ""
    """What the prompts are for, for the model that writes them."""
    seed_prompts: tuple[str, ...] = (SEED_PROMPT,)
    seed: int = 0
    selection: Selection = "thompson"
    tournament_size: int = 5
    elite_size: int = 2
    operators: dict[str, float] = msgspec.field(default_factory=lambda: dict(MIX))
    writer_temperature: float | None = 1.0
    writer_tokens: int = 2_000
    """Maximum number of tokens in the reply of the writer."""
    writer_template: str = ""
    """Message to the writer, with the fields {prompt}, {failures}, {successes} and {task}. Empty: the built-in one."""
    failures_shown: int = 6
    """Maximum number of failed problems that the writer sees."""
    fitness: Fitness = "accuracy"
    """What selection maximises. `pareto`: accuracy and few tokens, both at once."""
    racing: bool = True
    finalists: int | None = None
    baselines: tuple[Baseline, ...] = BASELINES
    polish: bool = True
    ablation: bool = True
    target_fitness: float | None = None
    plateau_generations: int | None = None
    min_diversity: float | None = None
    max_asks: int | None = None
    """Requests of each search, including those for choosing its winner."""
    max_usd: float | None = None
    """Dollars for the whole run, including baselines and held-out test."""
    max_seconds: float | None = None
    """Seconds for all searches together."""
    temperature: float | None = 0.0
    max_tokens: int = 300
    program: str = ""
    """Program that solves the problems, as `module:name`, instead of one request with the prompt."""
    seed_texts: tuple[dict[str, str], ...] = ()
    """Texts of the program to start from, by name, instead of `seed_prompts`."""

    def __post_init__(self) -> None:
        """Report errors at once, under the field names of this class."""
        for field in msgspec.structs.fields(self):
            _check(field.name, getattr(self, field.name), field.type)
        for name in ("elite_size", "temperature", "writer_temperature"):
            if (value := getattr(self, name)) is not None and not 0 <= value < float("inf"):
                raise SettingsError(f"{name} {value:g}: must be 0 or more", field=name)
        try:
            _ = self.settings
        except SettingsError as error:
            theirs = error.field or ""
            if theirs not in _CALLED:
                raise
            ours = _CALLED[theirs]
            raise SettingsError(f"{ours}{str(error).removeprefix(theirs)}", field=ours) from error

    @property
    def models(self) -> tuple[str, ...]:
        """The models that solve the problems."""
        return (self.model,) if isinstance(self.model, str) else tuple(self.model)

    @property
    def rules(self) -> Rules:
        """The racing rules."""
        return Rules(racing=self.racing)

    @property
    def births_at_once(self) -> int | None:
        """Genomes evaluated at the same time. None: it follows from the budget."""
        return None

    @property
    def most_in_flight(self) -> int | None:
        """Maximum number of requests in flight. None: the limit of the accounts, adjusted while running."""
        return None

    @property
    def account_settings(self) -> dict[str, float]:
        """Settings for the accounts of the models."""
        return {}

    @property
    def logs_evaluations(self) -> bool:
        """Whether one record per evaluated genome is written."""
        return False

    @cached_property
    def settings(self) -> Evolution:
        """The settings for the driver."""
        return Evolution(
            models=self.models,
            writer=self.writer,
            problems=self.problems or generated(seed=self.seed),
            metric=self.metric,
            seeds=tuple(map(Genome.named, self.seed_texts) if self.program else map(Genome.of, self.seed_prompts)),
            task=self.about,
            auto=self.auto,
            population_size=self.population_size,
            max_generations=self.max_generations,
            genome_batch_size=self.births_at_once,
            rules=self.rules,
            selection=self.selection,
            tournament=self.tournament_size,
            elite=self.elite_size if self.population_size is None else min(self.elite_size, self.population_size - 1),
            operators=self.operators,
            writing=Writing(
                temperature=self.writer_temperature,
                max_tokens=self.writer_tokens,
                failures=self.failures_shown,
                template=self.writer_template,
            ),
            fitness=_WEIGHTS[self.fitness],
            pareto=self.fitness == "pareto",
            stops=Stops(
                target=self.target_fitness,
                plateau=self.plateau_generations,
                least_spread=self.min_diversity,
                asks=self.max_asks,
                usd=self.max_usd,
                seconds=self.max_seconds,
            ),
            finalists=self.finalists,
            baselines=tuple(self.baselines),
            polish=self.polish,
            ablation=self.ablation,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            program=self.program or msgspec.UNSET,
        )


class AsyncEvolutionConfig(EvolutionConfig, frozen=True, kw_only=True):
    """`EvolutionConfig` plus concurrency and rate limits.

    `async_batch_size` and `genome_batch_size` influence which prompts are found. The other fields change only the
    speed.
    """

    async_batch_size: int | None = None
    """Problems that a genome is evaluated on at a time, with racing."""
    genome_batch_size: int | None = None
    """Genomes evaluated at the same time. Birth n can only use results of births up to n minus this number."""
    max_concurrent_requests: int = 10
    """Multiplied by `max_concurrent_genomes`, the maximum number of requests in flight."""
    max_concurrent_genomes: int = 5
    rate_limit_per_minute: float | None = None
    """Maximum number of requests per minute and account. None: the known limit of the account."""
    async_timeout: float | None = None
    """Timeout of one attempt in seconds. None: the timeout of the account."""
    enable_async_evaluation: bool = True
    """False: one request in flight at a time."""
    detailed_performance_logging: bool = False
    """Write one record per evaluated genome to a JSON Lines file."""

    @classmethod
    def preset(cls, name: str, **changes: Any) -> AsyncEvolutionConfig:
        """A preset (balanced, conservative or aggressive), with some fields changed."""
        if name not in _PRESETS:
            raise SettingsError(f"preset {name!r}: must be one of {', '.join(_PRESETS)}", field="preset")
        return cls(**{**_PRESETS[name], **changes})

    @property
    def rules(self) -> Rules:
        """The racing rules."""
        return Rules(racing=self.racing, block=self.async_batch_size)

    @property
    def births_at_once(self) -> int | None:
        """Genomes evaluated at the same time."""
        return self.genome_batch_size

    @property
    def most_in_flight(self) -> int:
        """Maximum number of requests in flight."""
        return self.max_concurrent_requests * self.max_concurrent_genomes if self.enable_async_evaluation else 1

    @property
    def account_settings(self) -> dict[str, float]:
        """Settings for the accounts of the models."""
        said = {"rate_limit_per_minute": self.rate_limit_per_minute, "timeout": self.async_timeout}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def logs_evaluations(self) -> bool:
        """Whether one record per evaluated genome is written."""
        return self.detailed_performance_logging


def _check(name: str, value: Any, wanted: Any) -> None:
    """Check the type and the range of a value."""
    if get_origin(wanted) is Literal and value not in get_args(wanted):
        raise SettingsError(f"{name} {value!r}: must be one of {', '.join(get_args(wanted))}", field=name)
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{name} {value!r}: {_plain(error)}", field=name) from error
    if value is not None and name in _POSITIVE and not 0 < value < float("inf"):
        raise SettingsError(f"{name} {value:g}: must be more than 0", field=name)
    if value is not None and name in _SHARES and not 0 <= value <= 1:
        raise SettingsError(f"{name} {value:g}: must be from 0 to 1", field=name)


def _plain(error: msgspec.ValidationError) -> str:
    return str(error).replace("`", "").replace("Expected", "expected", 1).replace(" | null", "")


_HOW = (
    *("async_batch_size", "max_concurrent_requests", "genome_batch_size", "max_concurrent_genomes"),
    "rate_limit_per_minute",
)
_PRESETS: dict[str, dict[str, int | bool]] = {
    "balanced": {
        **dict(zip(_HOW, (20, 10, 10, 5, 3500), strict=True)),
        "population_size": 50,
        "max_generations": 100,
        "enable_async_evaluation": True,
        "detailed_performance_logging": True,
    },
    "conservative": dict(zip(_HOW, (10, 5, 5, 3, 2000), strict=True)),
    "aggressive": dict(zip(_HOW, (30, 15, 15, 8, 3500), strict=True)),
}
