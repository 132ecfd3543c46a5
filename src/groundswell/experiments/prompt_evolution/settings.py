"""The settings of an evolution, and the sizes that follow from its budget."""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from typing import Literal, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.breeding import PARENTS, Writing
from groundswell.experiments.prompt_evolution.fitness import PLAIN, Weights
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import SELECTIONS, Selection
from groundswell.experiments.prompt_evolution.problems import Problems, generated
from groundswell.experiments.prompt_evolution.tokens import CROSSOVERS, MUTATIONS

Baseline = Literal["random", "best_of_n"]
BASELINES: tuple[Baseline, ...] = get_args(Baseline)
EXAMPLES, SHORTEN = "examples", "shorten"
OPERATORS: tuple[str, ...] = (*PARENTS, EXAMPLES, SHORTEN, *MUTATIONS, *CROSSOVERS)
MIX: dict[str, float] = {"reflect": 10.0, "combine": 0.3, EXAMPLES: 0.3, SHORTEN: 0.2}
"""Relative frequency of each operator at the start. During the search it follows what has worked."""
Auto = Literal["light", "medium", "heavy"]
AUTO: dict[Auto, int] = {"light": 1_500, "medium": 5_000, "heavy": 20_000}
"""Requests of each search."""
EMULATED = "emulated/gpt-4o-mini"
SEED_PROMPT = "Solve the following word problem and give the number."


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How many problems a candidate is evaluated on."""

    racing: bool = True
    """Evaluate candidates on few problems first, and on more when they become parents. False: always on all."""
    block: int | None = None
    """Number of problems at a time. None: it follows from the budget."""

    def __post_init__(self) -> None:
        if self.block is not None and self.block < 1:
            raise SettingsError(f"block {self.block}: must be at least 1", field="block")


class Stops(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that end a search. None switches a condition off."""

    target: float | None = None
    """Stop when the best candidate has this fitness."""
    plateau: int | None = None
    """Stop after this many generations without a new best candidate."""
    least_spread: float | None = None
    """Stop when the mean distance between two members of the population is this or less."""
    asks: int | None = None
    """Requests that each search may use, including those of the writer and those for choosing its winner."""
    usd: float | None = None
    """Dollars that the whole run may cost, including baselines and held-out test."""
    seconds: float | None = None
    """Seconds that all searches together may take."""

    def __post_init__(self) -> None:
        for name in ("plateau", "asks", "usd", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise SettingsError(f"{name} {value:g}: must be more than 0", field=name)


class Shape(msgspec.Struct, frozen=True):
    """The sizes of a search that fit its budget."""

    asks: int | None
    """Requests per search; None for no limit."""
    births: int | None
    population_size: int
    window: int
    """Candidates evaluated at the same time. Birth n can only use results of births up to n minus this number."""
    block: int
    finalists: int
    validation: int
    """Number of validation problems that the finalists are compared on."""


class Evolution(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The settings of an evolution, as the driver takes them. Sizes that are None follow from the budget."""

    models: tuple[str, ...] = (EMULATED,)
    """Models that solve the problems. With several, the mean score counts."""
    writer: str = ""
    """Model that writes prompts. Empty: the first of `models`."""
    problems: Problems = msgspec.field(default_factory=generated)
    metric: str = "number"
    seeds: tuple[Genome, ...] = (Genome(SEED_PROMPT),)
    task: str = ""
    """What the prompts are for, in a sentence or two, for the model that writes them."""
    auto: Auto = "medium"
    """Budget of each search, unless `stops` or `max_generations` sets one."""
    population_size: int | None = None
    max_generations: int | None = None
    """Each generation creates `population_size` candidates. None: until the budget is used."""
    genome_batch_size: int | None = None
    """Genomes evaluated at the same time. Birth n can only use results of births up to n minus this number."""
    rules: Rules = Rules()
    selection: Selection = "thompson"
    tournament: int = 5
    elite: int = 2
    operators: dict[str, float] = msgspec.field(default_factory=lambda: dict(MIX))
    adapt: bool = True
    """Whether operators that have worked are used more often."""
    writing: Writing = Writing()
    fitness: Weights = PLAIN
    pareto: bool = False
    """Search for the Pareto front of accuracy and tokens, instead of for accuracy alone."""
    stops: Stops = Stops()
    finalists: int | None = None
    """Number of best genomes that are evaluated on the validation set, which chooses the winner."""
    baselines: tuple[Baseline, ...] = BASELINES
    polish: bool = True
    """Let the writer shorten and correct the winner, and keep that if the validation score does not drop."""
    ablation: bool = True
    """Measure on the validation set what each sentence of the winner contributes."""
    temperature: float | None = 0.0
    max_tokens: int = 300
    program: str | msgspec.UnsetType = msgspec.UNSET
    """Program that solves the problems with the texts of a genome, as `module:name`. Without one, a genome is a prompt.

    It is not encoded while it is not set, so that runs without a program keep their settings.
    """
    requests_per_problem: float | msgspec.UnsetType = msgspec.UNSET
    """Requests of a model's program and metric for a problem, on average. The driver measures them with a seed."""

    def __post_init__(self) -> None:
        for name in (
            *("population_size", "max_generations", "genome_batch_size", "tournament", "finalists", "max_tokens"),
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"{name} {value}: must be at least 1", field=name)
        if not self.models:
            raise SettingsError("models: name at least one model", field="models")
        if not self.seeds:
            raise SettingsError("seeds: give at least one seed prompt", field="seeds")
        if not all(seed.text.strip() for seed in self.seeds):
            raise SettingsError("seeds: a seed prompt is empty; write a prompt", field="seeds")
        _check_texts(self)
        if self.elite < 0 or (self.population_size is not None and self.elite >= self.population_size):
            most = "" if self.population_size is None else f" to {self.population_size - 1}"
            raise SettingsError(
                f"elite {self.elite}: must be from 0{most}, one less than the population size", field="elite"
            )
        if self.auto not in AUTO:
            raise SettingsError(f"auto {self.auto!r}: must be one of {', '.join(AUTO)}", field="auto")
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

    @cached_property
    def shape(self) -> Shape:
        """The sizes of each search."""
        stops, own = self.stops, self.max_generations is not None
        asks = stops.asks
        if asks is None and not own and stops.usd is None and stops.seconds is None:
            asks = AUTO[self.auto]
        calls = (AUTO[self.auto] if asks is None else asks) / self.each
        population = self.population_size or (50 if own else 20)
        least = min(len(self.problems.validation), VALIDATED)
        share = CHOOSING * calls
        finalists = self.finalists or (10 if own and asks is None else _between(share / least, 2, 10))
        return Shape(
            asks,
            population * self.max_generations if self.max_generations is not None else None,
            population,
            self.genome_batch_size or (10 if own else _between(calls / 2500, 1, 8)),
            self.rules.block or (20 if own else _between(calls**0.5 / 20, 2, 10)),
            finalists,
            len(self.problems.validation)
            if asks is None
            else min(
                len(self.problems.validation),
                max(least, int(share / finalists)),
                max(1, int(calls / 2 / (finalists + 2))),  # at most half of a small budget
            ),
        )

    @property
    def births(self) -> int | None:
        """The number of candidates of the evolution; None if a budget ends it."""
        return self.shape.births

    @property
    def each(self) -> float:
        """The number of requests for one genome on one problem, of all models."""
        return len(self.models) * (1.0 if self.requests_per_problem is msgspec.UNSET else self.requests_per_problem)

    @property
    def races(self) -> bool:
        """Whether candidates are evaluated on few problems first. Without accuracy in the fitness, they are not."""
        return self.rules.racing and self.fitness.accuracy > 0

    @property
    def accuracy_weight(self) -> float:
        """The share of accuracy in the fitness."""
        weights: tuple[float, ...] = msgspec.structs.astuple(self.fitness)
        return self.fitness.accuracy / sum(weights)

    @property
    def whole(self) -> int:
        """The number of requests for one genome on all training problems."""
        return len(self.problems.train) * len(self.models)

    @property
    def reserved(self) -> int:
        """The number of evaluations that choose and polish the winner of a search, counting a written prompt as one."""
        shape = self.shape
        return (shape.finalists + 1 + self.polish) * shape.validation + self.polish

    @property
    def by(self) -> str:
        """The model that writes prompts."""
        return self.writer or self.models[0]


def _check_texts(settings: Evolution) -> None:
    """Check that seeds have texts if there is a program for them, and all of them the same ones."""
    first, own = settings.seeds[0].texts, settings.program is not msgspec.UNSET
    if own and not first:
        raise SettingsError("seeds: a program needs texts with names; use Genome.named", field="seeds")
    if first and not own:
        raise SettingsError("seeds: texts with names need a program that uses them; set program", field="seeds")
    if any(seed.texts.keys() != first.keys() for seed in settings.seeds):
        raise SettingsError("seeds: all seeds must have texts of the same names", field="seeds")


ABLATED, MOST_PARTS = 100, 20
"""An ablation uses at most this many validation problems, and measures at most this many parts of a prompt."""
CHOOSING = 0.1
"""Share of a search's requests that is reserved for comparing its finalists on the validation set."""
VALIDATED = 25
"""Minimum number of validation problems for a finalist, if there are that many."""


def _between(value: float, least: int, most: int) -> int:
    return max(least, min(most, round(value)))
