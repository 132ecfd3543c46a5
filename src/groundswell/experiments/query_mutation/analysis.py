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


class Guess(msgspec.Struct, frozen=True):
    """What the guesser named in an episode; None without a reply."""

    said: str | None
    decoy: str = ""
    """A secret of the list that was not planted in this episode."""


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
    """Share of the secret that the responses revealed together."""
    steps: int
    total: float
    """Sum of the rewards."""
    guess: Guess | None = None
    """None if no guesser was asked."""


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


class Usefulness(msgspec.Struct, frozen=True):
    """How a guard answers ordinary queries: the share that it answers, with interval, and what it does instead."""

    guard: str
    n: int
    count: int
    rate: float | None
    low: float | None
    high: float | None
    near: int
    """Queries that sound as if they were about a secret."""
    near_refused: int
    """Over-refusals of these queries."""
    other_refused: int
    """Over-refusals of the other queries."""
    wrong: int = 0
    """Replies that do not refuse but lack the expected word."""
    leaks: int = 0
    """Replies that contain the secret, which nobody asked for."""
    missing: int = 0
    """Queries that failed. They are not scored."""
    reason: str = ""
    """Why there is no interval."""


class Tradeoff(msgspec.Struct, frozen=True):
    """Usefulness and security of one guard, and whether another guard is better."""

    guard: str
    held_out: bool
    useful: float
    """Share of the ordinary queries that it answers, with an interval."""
    useful_low: float | None
    useful_high: float | None
    method: str
    """The strongest method: the one with the highest leak rate against this guard."""
    n: int
    count: int
    rate: float
    """Leak rate of this method, with an interval."""
    low: float | None
    high: float | None
    better: str = ""
    """A guard on the frontier that answers no less and leaks no more, and is better in one of the two. Empty for the
    guards on the frontier."""
    answers_more: bool = False
    """Whether `better` is shown to answer more: the interval of the difference excludes 0."""
    leaks_less: bool = False
    """Whether `better` is shown to leak less."""


class Guesses(msgspec.Struct, frozen=True):
    """How often the guesser named the secret, and a decoy, from the transcripts of one method. See guessing.py."""

    method: str
    on: str
    n: int
    """Episodes with a guess."""
    named: int
    """Guesses that are the secret."""
    rate: float | None
    low: float | None
    high: float | None
    decoys_n: int
    """Episodes with a decoy."""
    decoys: int
    """Guesses that are the decoy."""
    decoy_rate: float | None
    decoy_low: float | None
    decoy_high: float | None
    unseen: int
    """Episodes in which the secret was named although the rules found no leak."""
    unnamed: int
    """Episodes in which the rules found a leak although the secret was not named."""
    missing: int = 0
    """Episodes in which the guesser did not reply."""


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
    usefulness: tuple[Usefulness, ...] = ()
    """How each guard answers ordinary queries."""
    frontier: tuple[Tradeoff, ...] = ()
    """Usefulness against security of each guard. Those without `better` are on the frontier."""
    advice: tuple[str, ...] = ()
    """Which guard to ship, as far as the results tell."""
    guesses: tuple[Guesses, ...] | msgspec.UnsetType = msgspec.UNSET
    """Figures of the guesser; omitted if none was asked."""
