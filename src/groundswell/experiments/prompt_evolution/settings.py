"""The settings of an evolution."""

from __future__ import annotations

from math import isfinite
from typing import Literal, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.breeding import PARENTS
from groundswell.experiments.prompt_evolution.fitness import PLAIN, Weights
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import SELECTIONS, Selection
from groundswell.experiments.prompt_evolution.problems import Problems, generated
from groundswell.experiments.prompt_evolution.racing import Rules
from groundswell.experiments.prompt_evolution.tokens import CROSSOVERS, MUTATIONS

Baseline = Literal["random", "best_of_n"]
BASELINES: tuple[Baseline, ...] = get_args(Baseline)
OPERATORS: tuple[str, ...] = (*PARENTS, *MUTATIONS, *CROSSOVERS)
MIX: dict[str, float] = {
    "reflect": 3.0,
    "combine": 2.0,
    "paraphrase": 1.0,
    "insert": 1.0,
    "delete": 1.0,
    "swap": 0.5,
    "duplicate": 0.25,
    "neighbour": 1.0,
    "single_point": 0.5,
    "two_point": 0.5,
    "uniform": 1.0,
}
"""Relative frequency of each operator."""
EMULATED = "emulated/gpt-4o-mini"
SEED_PROMPT = "Solve the following word problem and give the number."


class Stops(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that end a search before its last generation. None switches a condition off."""

    target: float | None = None
    """Stop when the best candidate has this fitness."""
    plateau: int | None = 10
    """Stop after this many generations without a new best candidate."""
    least_spread: float | None = None
    """Stop when the mean distance between two members of the population is this or less."""
    asks: int | None = None
    """Stop after this many requests, including those of the writer."""
    usd: float | None = None
    """Stop when the search has cost this many dollars."""


class Evolution(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an evolution, as the driver takes them."""

    models: tuple[str, ...] = (EMULATED,)
    """Models that solve the problems. With several, the mean score counts."""
    writer: str = ""
    """Model that writes prompts. Empty: the first of `models`."""
    problems: Problems = msgspec.field(default_factory=generated)
    metric: str = "number"
    seeds: tuple[Genome, ...] = (Genome(SEED_PROMPT),)
    population_size: int = 50
    max_generations: int = 100
    genome_batch_size: int = 10
    """Genomes evaluated at the same time. Birth n can only use results of births up to n minus this number."""
    rules: Rules = Rules()
    selection: Selection = "tournament"
    tournament: int = 3
    elite: int = 2
    operators: dict[str, float] = msgspec.field(default_factory=lambda: dict(MIX))
    fitness: Weights = PLAIN
    stops: Stops = Stops()
    finalists: int = 10
    """Number of best genomes that are evaluated on the validation set, which chooses the winner."""
    baselines: tuple[Baseline, ...] = BASELINES
    temperature: float | None = 0.0
    max_tokens: int = 300

    def __post_init__(self) -> None:
        for name in (
            "population_size",
            "max_generations",
            "genome_batch_size",
            "tournament",
            "finalists",
            "max_tokens",
        ):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} {getattr(self, name)}: must be at least 1", field=name)
        if not self.models:
            raise SettingsError("models: name at least one model", field="models")
        if not self.seeds:
            raise SettingsError("seeds: give at least one seed prompt", field="seeds")
        if not all(seed.text.strip() for seed in self.seeds):
            raise SettingsError("seeds: a seed prompt is empty; write a prompt", field="seeds")
        if not 0 <= self.elite < self.population_size:
            raise SettingsError(
                f"elite {self.elite}: must be from 0 to {self.population_size - 1}, one less than the population size",
                field="elite",
            )
        if self.selection not in SELECTIONS:
            raise SettingsError(
                f"selection {self.selection!r}: must be one of {', '.join(SELECTIONS)}", field="selection"
            )
        if unknown := [name for name in self.operators if name not in OPERATORS]:
            raise SettingsError(
                f"operators: unknown operator {unknown[0]!r}; choose from {', '.join(OPERATORS)}", field="operators"
            )
        if not any(self.operators.values()) or min(self.operators.values()) < 0:
            raise SettingsError(
                "operators: weights must be 0 or more, and at least one must be more than 0", field="operators"
            )
        if not isfinite(sum(self.operators.values())):
            raise SettingsError("operators: weights must be finite numbers", field="operators")

    @property
    def births(self) -> int:
        """The maximum number of genomes in the search."""
        return self.population_size * self.max_generations

    @property
    def whole(self) -> int:
        """The number of requests for one genome on all training problems."""
        return len(self.problems.train) * len(self.models)

    @property
    def by(self) -> str:
        """The model that writes prompts."""
        return self.writer or self.models[0]
