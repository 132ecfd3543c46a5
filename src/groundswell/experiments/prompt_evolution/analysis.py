"""What an evolution came to: pure data, that reports and tables are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import Member

SEED = "seed"
"""What the seed prompt is called among those that are compared."""


class Moment(msgspec.Struct, frozen=True):
    """How a search stood after so many births."""

    births: int
    asks: int
    best: float
    mean: float
    spread: float
    usd: float | None = None


class Finalist(msgspec.Struct, frozen=True, omit_defaults=True):
    """One who was tried on the validation set. `usd` is per problem, None where a price is not known."""

    born: int
    genome: Genome
    train: float
    validation: float
    tokens: float
    usd: float | None = None


class Savings(msgspec.Struct, frozen=True):
    """Asks that a search could do without: races that ended early, and prompts that were known already."""

    racing: int = 0
    known: int = 0


class Searched(msgspec.Struct, frozen=True):
    """A search: who was born, how it went, why it ended, and who came of it, the winner first."""

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
        """Asks made over those that it would have taken without races, and asking again for prompts that were known."""
        whole = self.asks + self.savings.racing + self.savings.known
        return self.asks / whole if whole else None

    @property
    def winner(self) -> Finalist:
        """Whom the validation set chose."""
        return self.finalists[0]


class Tested(msgspec.Struct, frozen=True):
    """Somebody on the sealed test: the mean score, and where it lies."""

    name: str
    genome: Genome
    accuracy: float | None
    low: float | None
    high: float | None
    n: int
    validation: float | None
    scores: tuple[float | None, ...]
    by_model: dict[str, float | None] = {}
    """The mean score of each model, where there are several."""


class Gain(msgspec.Struct, frozen=True):
    """The evolved prompt less another, on the problems of the sealed test that both met."""

    over: str
    value: float | None
    low: float | None
    high: float | None
    p: float
    """Adjusted for all that it is compared with, by Holm's method."""
    n: int


Ahead = Literal["ahead", "behind", "open"]


class Analysis(msgspec.Struct, frozen=True):
    """Everything that a report tells."""

    searches: tuple[Searched, ...]
    tested: tuple[Tested, ...]
    gains: tuple[Gain, ...]
    front: tuple[Finalist, ...]
    """Of all finalists those that nobody beats in accuracy, tokens and cost at once."""

    @property
    def evolution(self) -> Searched:
        """The search that the others are there to be compared with."""
        return self.searches[0]

    def standing(self, over: str, level: float = 0.05) -> Ahead:
        """Whether the evolved prompt is shown to be ahead of another, or behind it: p and interval must both say so."""
        gain = next(each for each in self.gains if each.over == over)
        unclear = gain.low is not None and gain.high is not None and gain.low <= 0 <= gain.high
        if gain.value is None or gain.p >= level or unclear:
            return "open"
        return "ahead" if gain.value > 0 else "behind"


def mean_of(scores: Sequence[float | None]) -> float | None:
    """The mean of what is there."""
    there = [score for score in scores if score is not None]
    return sum(there) / len(there) if there else None
