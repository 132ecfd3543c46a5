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
"""How often each operator is drawn."""
EMULATED = "emulated/gpt-4o-mini"
SEED_PROMPT = "Solve the following word problem and give the number."


class Stops(msgspec.Struct, frozen=True, kw_only=True):
    """When an evolution ends before its last generation. None: not for this reason."""

    target: float | None = None
    """The best fitness has reached this."""
    plateau: int | None = 10
    """Generations without a better one."""
    least_spread: float | None = None
    """The members of the population differ by no more."""
    asks: int | None = None
    """So many are spent, those of the writer with them."""
    usd: float | None = None
    """So many dollars are spent."""


class Evolution(msgspec.Struct, frozen=True, kw_only=True):
    """What is evolved, on which problems, by whom, and for how long."""

    models: tuple[str, ...] = (EMULATED,)
    """Who solves the problems: of several, all, and what counts is their mean."""
    writer: str = ""
    """Who writes prompts; the first of the models, unless named."""
    problems: Problems = msgspec.field(default_factory=generated)
    metric: str = "number"
    seeds: tuple[Genome, ...] = (Genome(SEED_PROMPT),)
    population_size: int = 50
    max_generations: int = 100
    genome_batch_size: int = 10
    """Genomes on their way at a time: a birth knows those that were born so many before it, and none after."""
    rules: Rules = Rules()
    selection: Selection = "tournament"
    tournament: int = 3
    elite: int = 2
    operators: dict[str, float] = msgspec.field(default_factory=lambda: dict(MIX))
    fitness: Weights = PLAIN
    stops: Stops = Stops()
    finalists: int = 10
    """So many of the fittest are tried on the validation set, which chooses the winner."""
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
            raise SettingsError("models: at least one is needed", field="models")
        if not self.seeds:
            raise SettingsError("seeds: at least one prompt is needed to begin with", field="seeds")
        if not all(seed.text.strip() for seed in self.seeds):
            raise SettingsError("seeds: one of them is empty; write a prompt", field="seeds")
        if not 0 <= self.elite < self.population_size:
            raise SettingsError(
                f"elite {self.elite}: from 0 to {self.population_size - 1}, one less than the population", field="elite"
            )
        if self.selection not in SELECTIONS:
            raise SettingsError(f"selection {self.selection!r}: there are {', '.join(SELECTIONS)}", field="selection")
        if unknown := [name for name in self.operators if name not in OPERATORS]:
            raise SettingsError(
                f"operators: there is no {unknown[0]!r}; there are {', '.join(OPERATORS)}", field="operators"
            )
        if not any(self.operators.values()) or min(self.operators.values()) < 0:
            raise SettingsError("operators: weights must be positive, for one of them at least", field="operators")
        if not isfinite(sum(self.operators.values())):
            raise SettingsError("operators: weights must be numbers that can be added up", field="operators")

    @property
    def births(self) -> int:
        """The most genomes that are born."""
        return self.population_size * self.max_generations

    @property
    def whole(self) -> int:
        """The asks of a genome that meets all problems."""
        return len(self.problems.train) * len(self.models)

    @property
    def by(self) -> str:
        """Who writes prompts."""
        return self.writer or self.models[0]
