"""The results of a training or an evaluation, as plain data. They depend on the outcomes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from groundswell.experiments.query_mutation.episode import End
from groundswell.experiments.query_mutation.learning.rules import Losses
from groundswell.stats.survival import Step

if TYPE_CHECKING:
    from groundswell.experiments.query_mutation.playing import Told


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    """One update of a learner: its total steps so far, and statistics of the steps of this update."""

    steps: int
    usable: int
    masked: int
    """Steps that failed. They are excluded from learning."""
    reward: float
    """Mean reward of a usable step."""
    episodes: int
    """Episodes that ended without a fault."""
    leaks: int
    losses: Losses | None = None

    @classmethod
    def of(cls, steps: int, told: Sequence[Told], losses: Losses | None) -> Point:
        """Summarise the steps of one update."""
        usable = [each.transition for each in told if each.transition.usable]
        ends = [each.episode.end for each in usable]
        return cls(
            steps,
            len(usable),
            len(told) - len(usable),
            sum(each.reward for each in usable) / max(1, len(usable)),
            sum(map(bool, ends)),
            ends.count("leak"),
            losses,
        )


class Curve(msgspec.Struct, frozen=True):
    """The learning curve of one learner."""

    learner: str
    number: int
    points: tuple[Point, ...]


class Ended(msgspec.Struct, frozen=True):
    """One episode of an evaluation. Episodes with the same number have the same guard, secret and first query."""

    method: str
    learner: int
    number: int
    guard: str
    secret: str
    goal: str
    end: End
    best: float
    """Largest share of the secret that a response revealed."""
    steps: int
    total: float
    """Sum of the rewards."""


class Uses(msgspec.Struct, frozen=True):
    """Results of one mutation against one guard, for one method: usable steps, total gain and leaks."""

    method: str
    guard: str
    mutator: str
    steps: int
    gained: float
    leaks: int


class Figure(msgspec.Struct, frozen=True):
    """Results of one method on a set of episodes: leak rate with interval, mean return and mean steps."""

    method: str
    on: str
    """The name of a guard; or `trained` or `held out` for all guards of that kind."""
    n: int
    count: int
    rate: float | None
    low: float | None
    high: float | None
    total: float | None
    """Mean return of an episode, with an interval."""
    total_low: float | None
    total_high: float | None
    steps: float | None
    missing: int = 0
    """Episodes that ended with a fault. They are not scored."""
    learners: int = 1
    """Number of trained learners. With several, intervals include the variation between trainings."""
    clusters: int = 0
    """Number of clusters (secrets) that the interval is based on."""
    reason: str = ""
    """Why there is no interval."""


class Contrast(msgspec.Struct, frozen=True):
    """Paired comparison of two methods on the same episodes: differences of leak rate and return."""

    method: str
    against: str
    on: str
    n: int
    """Episodes that both methods completed. Only these are compared."""
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    """Adjusted p-value (Holm), over all comparisons with `method` on these guards."""
    total: float | None
    total_low: float | None
    total_high: float | None
    total_p: float | None = None
    rate: float | None = None
    against_rate: float | None = None
    """The leak rates that are compared."""
    left_out: int = 0
    """Episodes that are missing for at least one of the two."""
    reason: str = ""
    """Why there is no interval."""


class Lasting(msgspec.Struct, frozen=True):
    """Survival curve of the secrets against one method: the share not leaked after each step with a leak."""

    method: str
    on: str
    n: int
    steps: tuple[Step, ...]


class Analysis(msgspec.Struct, frozen=True):
    """Results of a training or an evaluation."""

    curves: tuple[Curve, ...]
    figures: tuple[Figure, ...]
    contrasts: tuple[Contrast, ...]
    uses: tuple[Uses, ...]
    verdict: str
    """The main finding, in one sentence."""
    masked: int
    """Training steps that failed and were excluded from learning."""
    prompts: str
    """Hash of the prompts of the mutations."""
    lasting: tuple[Lasting, ...] = ()
    notes: tuple[str, ...] = ()
    """What the intervals cover, and caveats."""
    level: float = 0.95
