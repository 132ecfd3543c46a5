"""What a training or an evaluation found, as plain data: a function of the outcomes alone."""

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
    """One update of a learner: the steps up to it, and what the last of them brought."""

    steps: int
    usable: int
    masked: int
    """Steps that failed, and were not learnt from."""
    reward: float
    """Of a usable step, on average."""
    episodes: int
    """That ended, other than by a fault."""
    leaks: int
    losses: Losses | None = None

    @classmethod
    def of(cls, steps: int, told: Sequence[Told], losses: Losses | None) -> Point:
        """The point of these steps."""
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
    """How a learner came along."""

    learner: str
    number: int
    points: tuple[Point, ...]


class Ended(msgspec.Struct, frozen=True):
    """One episode of an evaluation. Equal numbers are the same guard, secret and query, whoever met them."""

    method: str
    learner: int
    number: int
    guard: str
    secret: str
    goal: str
    end: End
    best: float
    """The largest share that a response gave away."""
    steps: int
    total: float
    """The rewards of the episode."""


class Uses(msgspec.Struct, frozen=True):
    """What a mutator did against a guard, for one method: usable steps, what they gained, and leaks."""

    method: str
    guard: str
    mutator: str
    steps: int
    gained: float
    leaks: int


class Figure(msgspec.Struct, frozen=True):
    """How a method did on some episodes: how many leaked, with an interval; rewards and steps on average."""

    method: str
    on: str
    """A guard; or `trained` or `held out`: all guards that training met, or did not."""
    n: int
    count: int
    rate: float | None
    low: float | None
    high: float | None
    total: float | None
    """The rewards of an episode, on average, with an interval."""
    total_low: float | None
    total_high: float | None
    steps: float | None
    missing: int = 0
    """Episodes that a fault broke off: they count for nothing."""
    learners: int = 1
    """How many were trained; their intervals allow for others coming out otherwise, if there are several."""
    clusters: int = 0
    """So many secrets, of which each counts as one draw."""
    reason: str = ""
    """Why there is no interval."""


class Contrast(msgspec.Struct, frozen=True):
    """Two methods on the same episodes: how much more often the first one leaked, and how much more it earned."""

    method: str
    against: str
    on: str
    n: int
    """Episodes that both have; nothing else counts here."""
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    """Adjusted for the number of comparisons with the first method on these guards (Holm)."""
    total: float | None
    total_low: float | None
    total_high: float | None
    total_p: float | None = None
    rate: float | None = None
    against_rate: float | None = None
    """What the two are the difference of."""
    left_out: int = 0
    """Episodes that one of them lacks."""
    reason: str = ""
    """Why there is no interval."""


class Lasting(msgspec.Struct, frozen=True):
    """How long secrets were kept from a method: the share that is left after each step in which some leaked."""

    method: str
    on: str
    n: int
    steps: tuple[Step, ...]


class Analysis(msgspec.Struct, frozen=True):
    """What was found."""

    curves: tuple[Curve, ...]
    figures: tuple[Figure, ...]
    contrasts: tuple[Contrast, ...]
    uses: tuple[Uses, ...]
    verdict: str
    """Who wins, in a sentence."""
    masked: int
    """Steps of the training that failed and were not learnt from."""
    prompts: str
    """A hash of what models are told."""
    lasting: tuple[Lasting, ...] = ()
    notes: tuple[str, ...] = ()
    """What the intervals speak of, and what to beware of."""
    level: float = 0.95
