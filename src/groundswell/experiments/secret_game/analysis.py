"""What an experiment with the game finds, as one object: the same for a terminal, a report, JSON and a driver."""

from __future__ import annotations

import msgspec

from groundswell.experiments.secret_game.played import Tier
from groundswell.stats.ratings import Strengths
from groundswell.stats.survival import Step


class RateFigure(msgspec.Struct, frozen=True):
    """So many of n, as a share with its interval; no share of nothing."""

    count: int
    n: int
    rate: float | None
    low: float
    high: float


class AgentFigures(msgspec.Struct, frozen=True):
    """One agent: how often it revealed its secret, obtained the other's, and did the second without the first."""

    id: str
    name: str
    model: str
    interactions: int
    revealed: RateFigure
    obtained: RateFigure
    optimal: RateFigure
    points: float
    score: float
    """What the mode makes of it in the end; in the standard mode, the sum of the points."""


class ProbeFigures(msgspec.Struct, frozen=True):
    """How often a model's secret was guessed off the record, by those who heard the talk and by those who did not.

    `bits` is what the talk gave away: the logarithm of how much likelier the first are to name it at once.
    """

    heard: RateFigure
    unheard: RateFigure
    heard_first: RateFigure
    unheard_first: RateFigure
    bits: float | None
    bits_low: float | None
    bits_high: float | None
    p: float
    """By McNemar's test on naming it at all."""
    missing: int


class ModelFigures(msgspec.Struct, frozen=True):
    """One model, over all interactions that it took part in; two sides of one count as two, which hang together."""

    model: str
    sides: int
    revealed: RateFigure
    tiers: dict[Tier, RateFigure]
    obtained: RateFigure
    optimal: RateFigure
    bluffed: RateFigure
    guessed: RateFigure
    """The other side named the secret first."""
    thought: RateFigure
    """The secret stood in a private thought."""
    verdicts: dict[str, int]
    survival: list[Step]
    """Who has kept the secret after so many messages of its own."""
    probe: ProbeFigures | None = None


class PairFigures(msgspec.Struct, frozen=True):
    """Two models, by seat: who leaked to whom."""

    first: str
    second: str
    interactions: int
    both: int
    first_only: int
    second_only: int
    neither: int
    first_revealed: RateFigure
    second_revealed: RateFigure


class Comparison(msgspec.Struct, frozen=True):
    """Whether one model leaks more often than another, on rows that they share. Those of a block may hang together."""

    first: str
    second: str
    basis: str
    """`same opponent`: with the same secret, seat and opponent, alike but for the model; `facing each other`: in the
    same interactions, each being the other's opponent, so that it is also about who asks better."""
    pairs: int
    first_only: int
    second_only: int
    difference: float | None
    low: float
    high: float
    p: float
    p_holm: float
    p_bh: float


class SeatFigures(msgspec.Struct, frozen=True):
    """Whether speaking first matters: how often the first and the second speaker leak."""

    first: RateFigure
    second: RateFigure
    difference: float | None
    low: float
    high: float
    p: float
    apart: bool = True
    """Whether seats can be told from models: whoever met did so in both orders."""


class Overall(msgspec.Struct, frozen=True):
    """All interactions together. Secrets count, of which every usable interaction has two."""

    total_interactions: int
    total_secrets_revealed: int
    secrets_revealed: RateFigure
    both_revealed: RateFigure
    one_sided: RateFigure
    none_revealed: RateFigure
    correlation: float | None
    odds_ratio: float | None
    odds_low: float | None
    odds_high: float | None
    association_p: float
    """Whether one side's leak goes with the other's among interactions of the same two models in the same seats."""


class Missing(msgspec.Struct, frozen=True):
    """Interactions that could not be played to the end, by who was to play."""

    first: str
    second: str
    planned: int
    missing: int
    kinds: dict[str, int]


class Watched(msgspec.Struct, frozen=True):
    """A leak rate as the stopping rule sees it: the mean over interactions of the share of a model's secrets."""

    interactions: int
    rate: float | None
    low: float
    high: float


class Stopping(msgspec.Struct, frozen=True):
    """The rule that may end a run early, and where it stood; intervals hold whenever one looks."""

    width: float
    reached: bool
    interactions: int
    """How many usable interactions it took."""
    arms: dict[str, Watched]


class TurnFigures(msgspec.Struct, frozen=True):
    """What the messages of one turn took, by model."""

    turn: int
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int


class Interactions(msgspec.Struct, frozen=True):
    """How many there are: planned, usable, missing, and those that were stopped before their end."""

    planned: int
    usable: int
    missing: int
    unfinished: int


class Analysis(msgspec.Struct, frozen=True):
    """Everything that was found."""

    mode: str
    tier: Tier
    level: float
    prompts: dict[str, str]
    """The variants of the prompt that were used, with the hash of their words."""
    messages_per_interaction: int
    interactions: Interactions
    overall: Overall
    agents: list[AgentFigures]
    models: list[ModelFigures]
    pairs: list[PairFigures]
    tiers: dict[Tier, RateFigure]
    comparisons: list[Comparison]
    seats: SeatFigures
    strengths: Strengths | None
    survival_p: float | None
    """Whether all models keep their secrets equally long, by the log-rank test."""
    forms: dict[str, int]
    """In how many interactions a secret was found in which form."""
    missing: list[Missing]
    turns: list[TurnFigures]
    cut: int
    """Messages that were cut off for their length."""
    stopping: Stopping | None = None
