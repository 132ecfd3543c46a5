"""The result of an evolution as plain data, for reports and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import Member
from groundswell.experiments.prompt_evolution.settings import Shape

SEED = "seed"
"""The name of the seed prompt in comparisons."""
LEVEL = 0.05
"""Level of significance."""


class Moment(msgspec.Struct, frozen=True):
    """The state of a search after a number of births."""

    births: int
    asks: int
    best: float
    mean: float
    spread: float
    usd: float | None = None


class Finalist(msgspec.Struct, frozen=True, omit_defaults=True):
    """A genome with its validation score. `usd` is the cost per problem; None if a price is unknown."""

    born: int
    genome: Genome
    train: float
    validation: float
    tokens: float
    usd: float | None = None


class Savings(msgspec.Struct, frozen=True):
    """Requests that racing saved, and that recognising duplicate prompts saved."""

    racing: int = 0
    known: int = 0


class Searched(msgspec.Struct, frozen=True):
    """A search: all its genomes, its curve, why it stopped, and its finalists, the winner first."""

    name: str
    why: str
    asks: int
    usd: float | None
    savings: Savings
    members: tuple[Member, ...]
    curve: tuple[Moment, ...]
    finalists: tuple[Finalist, ...]

    @property
    def efficiency(self) -> float | None:
        """Requests made, divided by those needed without racing and without recognising duplicates."""
        whole = self.asks + self.savings.racing + self.savings.known
        return self.asks / whole if whole else None

    @property
    def winner(self) -> Finalist:
        """The finalist with the best validation score."""
        return self.finalists[0]


class Tested(msgspec.Struct, frozen=True):
    """A prompt on the held-out test: the mean score with its interval."""

    name: str
    genome: Genome
    accuracy: float | None
    low: float | None
    high: float | None
    n: int
    validation: float | None
    scores: tuple[float | None, ...]
    by_model: dict[str, float | None] = {}
    """The mean score of each model, if there are several."""


Ahead = Literal["ahead", "behind", "open"]


class Gain(msgspec.Struct, frozen=True):
    """The score of a prompt minus that of another, on the held-out problems with both scores."""

    over: str
    value: float | None
    low: float | None
    high: float | None
    p: float
    """The p-value, adjusted for the number of comparisons (Holm)."""
    n: int

    @property
    def is_clear(self) -> bool:
        """Whether the difference is significant: both p-value and interval must agree."""
        unclear = self.low is not None and self.high is not None and self.low <= 0 <= self.high
        return self.value is not None and self.p < LEVEL and not unclear

    @property
    def standing(self) -> Ahead:
        """Whether the prompt is significantly better or worse than the other."""
        if not self.is_clear:
            return "open"
        return "ahead" if (self.value or 0.0) > 0 else "behind"


class Polish(msgspec.Struct, frozen=True):
    """The attempt to shorten the chosen prompt and to correct its language."""

    genome: Genome
    before: float
    """Validation score of the chosen prompt."""
    after: float | None
    """Validation score of the corrected prompt; None if it is missing."""
    kept: bool


class Part(msgspec.Struct, frozen=True):
    """A sentence or an example of the shipped prompt, and what it contributes.

    `value` is the validation score of the prompt minus its score without this part, on the same problems.
    """

    text: str
    value: float | None
    low: float | None
    high: float | None
    n: int


class Analysis(msgspec.Struct, frozen=True):
    """The result of an evolution with its baselines and the held-out test."""

    searches: tuple[Searched, ...]
    tested: tuple[Tested, ...]
    gains: tuple[Gain, ...]
    """The evolved prompt, compared with each other prompt."""
    front: tuple[Finalist, ...]
    """The Pareto front of all finalists over accuracy, tokens and cost."""
    shipped: str = "evolution"
    """The prompt to deploy, by its name in `tested`: seed, or the search that found it."""
    why_shipped: str = ""
    polish: Polish | None = None
    parts: tuple[Part, ...] = ()
    """What each sentence of the shipped prompt contributes."""
    why_no_parts: str = ""
    cut: int = 0
    """Replies of the whole run that were cut off at the token limit."""
    shape: Shape | None = None
    """The sizes of each search; None in runs of earlier versions."""

    @property
    def deployed(self) -> Tested:
        """The prompt to deploy on the held-out test."""
        return next(each for each in self.tested if each.name == self.shipped)

    @property
    def evolution(self) -> Searched:
        """The evolution itself."""
        return self.searches[0]

    def standing(self, over: str) -> Ahead:
        """Whether the evolved prompt is significantly better or worse."""
        return next(each for each in self.gains if each.over == over).standing


def mean_of(scores: Sequence[float | None]) -> float | None:
    """The mean of the scores that are not missing."""
    there = [score for score in scores if score is not None]
    return sum(there) / len(there) if there else None
