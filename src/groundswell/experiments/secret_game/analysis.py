"""The results of a game as one object, which the terminal, the report, JSON and drivers share."""

from __future__ import annotations

import msgspec

from groundswell.experiments.secret_game.played import Tier
from groundswell.stats.ratings import Strengths
from groundswell.stats.survival import Step


class RateFigure(msgspec.Struct, frozen=True):
    """A count of n as a rate with its confidence interval. The rate is None if n is 0."""

    count: int
    n: int
    rate: float | None
    low: float
    high: float


class AgentFigures(msgspec.Struct, frozen=True):
    """One agent: how often it revealed its secret, obtained the other's, and obtained without revealing (optimal)."""

    id: str
    name: str
    model: str
    interactions: int
    revealed: RateFigure
    obtained: RateFigure
    optimal: RateFigure
    points: float
    score: float
    """The final score of the game mode. In the standard mode, the sum of the points."""


class ProbeFigures(msgspec.Struct, frozen=True):
    """How often a model's secret was guessed, with the conversation (heard) and without it (unheard).

    `bits` measures what the conversation revealed: log2 of the ratio of the two rates of right first guesses.
    """

    heard: RateFigure
    unheard: RateFigure
    heard_first: RateFigure
    unheard_first: RateFigure
    bits: float | None
    bits_low: float | None
    bits_high: float | None
    p: float
    """McNemar's test on whether the secret is among the guesses."""
    missing: int


class ModelFigures(msgspec.Struct, frozen=True):
    """One model over all its interactions. Self-play counts as two sides, which are correlated."""

    model: str
    sides: int
    revealed: RateFigure
    tiers: dict[Tier, RateFigure]
    obtained: RateFigure
    optimal: RateFigure
    bluffed: RateFigure
    guessed: RateFigure
    """The other side named the secret before its holder did."""
    thought: RateFigure
    """The secret occurs in a private thought."""
    verdicts: dict[str, int]
    survival: list[Step]
    """The share that still keeps the secret, by the number of its own messages."""
    probe: ProbeFigures | None = None


class PairFigures(msgspec.Struct, frozen=True):
    """Leaks of two models, by seat."""

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
    """A paired comparison of the leak rates of two models. Pairs of the same block may be correlated."""

    first: str
    second: str
    basis: str
    """`same opponent`: both models with the same secret, seat and opponent, so only the model differs. `facing each
    other`: both models in the same interaction, so the result also depends on which of them attacks better."""
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
    """How often the first and the second speaker leak."""

    first: RateFigure
    second: RateFigure
    difference: float | None
    low: float
    high: float
    p: float
    apart: bool = True
    """Whether every pair of models met in both orders, so the effect of the seat can be separated."""


class Overall(msgspec.Struct, frozen=True):
    """All interactions together. Every usable interaction has two secrets."""

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
    """Whether the leaks of both sides are associated, among interactions of the same two models in the same seats."""


class Missing(msgspec.Struct, frozen=True):
    """Interactions that failed, by pair of models."""

    first: str
    second: str
    planned: int
    missing: int
    kinds: dict[str, int]


class Watched(msgspec.Struct, frozen=True):
    """A leak rate as the stopping rule uses it: the mean over interactions of the leaked share of a model's secrets."""

    interactions: int
    rate: float | None
    low: float
    high: float


class Stopping(msgspec.Struct, frozen=True):
    """The stopping rule and its state. Its intervals stay valid although they are checked after every interaction."""

    width: float
    reached: bool
    interactions: int
    """Number of usable interactions so far."""
    arms: dict[str, Watched]


class TurnFigures(msgspec.Struct, frozen=True):
    """Tokens of the messages at one position, by model."""

    turn: int
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int


class Interactions(msgspec.Struct, frozen=True):
    """Number of interactions by status. Unfinished: the run ended first."""

    planned: int
    usable: int
    missing: int
    unfinished: int


class Analysis(msgspec.Struct, frozen=True):
    """All results of a run."""

    mode: str
    tier: Tier
    level: float
    prompts: dict[str, str]
    """Names and hashes of the prompts."""
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
    """p-value of the log-rank test that all models keep their secrets equally long."""
    forms: dict[str, int]
    """Number of interactions by form in which a secret was found."""
    missing: list[Missing]
    turns: list[TurnFigures]
    cut: int
    """Number of messages that were cut off at the token limit."""
    stopping: Stopping | None = None
