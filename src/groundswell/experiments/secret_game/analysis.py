"""The results of a game as one object, which the terminal, the report, JSON and drivers share."""

from __future__ import annotations

from typing import Literal

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
    classes: dict[str, RateFigure] = {}
    """Sides by the strongest class of their messages: declared, hinted, mentioned or none. Empty without classes."""
    how: dict[str, dict[str, int]] = {}
    """How sides declared (stated, confirmed, assembled, encoded) or mentioned (denied, topic) their secret."""
    by_message: list[RateFigure] = []
    """By own message, from the first: of the sides that wrote it and had not leaked before, those that leaked in it."""


class WordFigures(msgspec.Struct, frozen=True):
    """One secret word: how often it leaked, over all its holders."""

    word: str
    leaked: RateFigure


class JudgeAgreement(msgspec.Struct, frozen=True):
    """Sides with a verdict: leaks by the rules (a tier other than judged), and leaks by the judge."""

    tier: Tier
    both: int
    rules_only: int
    judge_only: int
    neither: int


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


Basis = Literal["standardised", "same opponent", "facing each other"]
"""What a comparison of two models is based on:

standardised        pairs with the same secret, seat and opponent, so only the model differs; each shared opponent has
                    the same weight
same opponent       the same pairs, against one of several shared opponents (in earlier versions: against all, pooled)
facing each other   both models in the same interaction, so the result also depends on which of them attacks better
"""


class Comparison(msgspec.Struct, frozen=True):
    """A paired comparison of the leak rates of two models. Pairs of the same block may be correlated."""

    first: str
    second: str
    basis: Basis
    pairs: int
    first_only: int
    second_only: int
    difference: float | None
    low: float
    high: float
    p: float
    p_holm: float | None
    """Adjusted for the number of headline comparisons, one per two models; None for other rows."""
    p_bh: float | None
    opponents: list[str] = []
    """The opponents that both models faced. Empty if they faced each other, and in runs of earlier versions."""
    odds_ratio: float | None = None
    """The conditional odds ratio: pairs in which only the first leaked over pairs in which only the second did."""
    odds_low: float | None = None
    odds_high: float | None = None
    cohens_h: float | None = None

    @property
    def is_headline(self) -> bool:
        """Whether this is the main comparison of its two models."""
        return self.p_holm is not None


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
    classes: dict[str, RateFigure] = {}
    """Sides by the strongest class of their messages: declared, hinted, mentioned or none. Empty without classes."""
    how: dict[str, dict[str, int]] = {}


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
    """The stopping rule and its state. Its intervals include all usable interactions and are valid at any time."""

    width: float
    reached: bool
    interactions: int
    """Number of usable interactions."""
    arms: dict[str, Watched]
    cohorts: list[int] = []
    """Number of interactions that were released at a time."""
    met_after: int | None = None
    """Number of usable interactions after which all intervals were narrow enough for the first time, at block ends."""


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
    """p-value of the log-rank test that all models keep their secrets equally long, with blocks as clusters. None for
    one model or too few blocks. In runs without `blocks`, of earlier versions, it assumes independent sides."""
    forms: dict[str, int]
    """Number of interactions by form in which a secret was found."""
    missing: list[Missing]
    turns: list[TurnFigures]
    cut: int
    """Number of messages that were cut off at the token limit."""
    unread: int = 0
    """Number of messages of which the detectors read only the beginning."""
    stopping: Stopping | None = None
    blocks: int = 0
    """Number of blocks: groups of interactions that share their secrets."""
    words: list[WordFigures] = []
    """Secrets, most leaked first."""
    judge_agreement: JudgeAgreement | None = None
    """Agreement of the judge with the rules, if a judge was asked."""
