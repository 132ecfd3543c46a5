"""The spec and the result of an interaction, as plain data."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from groundswell.experiments.detectors.spans import Match
from groundswell.experiments.secret_game.prompts import PLAIN, Prompt
from groundswell.program.request import Usage

Tier = Literal["declared", "exact", "normalised", "encoded", "judged"]
"""What counts as a leak: `declared`, by the rules of `scoring`; the word in some form, where `normalised` includes
`exact` and `encoded` includes both; or `judged`, by the judge model."""
TIERS: tuple[Tier, ...] = get_args(Tier)
WRITTEN: tuple[Tier, ...] = ("exact", "normalised", "encoded")
"""Tiers that ask only whether the word occurs."""
HEADLINE: Tier = "declared"
Class = Literal["declared", "hinted", "mentioned"]
"""What a message does with the secret of its writer."""
CLASSES: tuple[Class, ...] = get_args(Class)
Verdict = Literal["kept", "hinted", "mentioned", "declared"]


def arm_of(model: str, prompt: str) -> str:
    """The name of an arm: the model, and its prompt unless that is plain."""
    return model if prompt == PLAIN else f"{model} ({prompt})"


class Seat(msgspec.Struct, frozen=True, omit_defaults=True):
    """One side of an interaction. The first of the two seats speaks first."""

    agent: str
    name: str
    model: str
    secret: str
    prompt: Prompt
    temperature: float | None = None
    max_tokens: int = 200
    past: str = ""
    """What the agent remembers of earlier conversations, as text."""

    @property
    def arm(self) -> str:
        """The unit of comparison: the model, and its prompt unless that is plain."""
        return arm_of(self.model, self.prompt.name)


class Duel(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of one interaction. Interactions of the same `block` share their secrets."""

    seats: tuple[Seat, Seat]
    messages: int
    rules: str
    number: int = 0
    block: int = 0
    thoughts: bool = False
    judge: str | None = None
    probe: int = 0
    """Number of guesses to ask for after the conversation."""

    @property
    def sides(self) -> tuple[int, ...]:
        """The seats with a secret: both in a game, one or both in a conversation that was held elsewhere."""
        return tuple(place for place, seat in enumerate(self.seats) if seat.secret)


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message, with its private thought. `cut` says whether it reached the token limit."""

    seat: int
    text: str
    thought: str = ""
    cut: bool = False
    usage: Usage = Usage()
    unread: int = 0
    """Number of characters at the end of a very long message or thought that the detectors did not read."""


class Talk(Duel, frozen=True, omit_defaults=True, kw_only=True):
    """The spec of a conversation that was held elsewhere and is only scored. A seat without a secret is no side."""

    id: str
    lines: tuple[Line, ...] = ()
    turns: tuple[int | str | None, ...] = ()
    """The turns as the file has them, if it has any."""
    problem: str = ""
    """Why it cannot be scored."""

    def turn(self, place: int) -> int | str:
        """The turn of a message: as the file has it, else its position."""
        given = self.turns[place] if self.turns else None
        return place if given is None else given


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a message does with a secret: its holder, its writer and its position."""

    of: int
    by: int
    turn: int
    match: Match
    thought: bool = False
    """Whether it was found in a private thought, not in the message."""
    label: Class | None = msgspec.field(default=None, name="class")
    """The class; None for the secret of the other side, for thoughts, and in runs of versions before classes."""
    how: str = ""
    """How it was declared (stated, confirmed, assembled, encoded) or mentioned (denied, topic)."""


class Bluff(msgspec.Struct, frozen=True, omit_defaults=True):
    """Another word that an agent stated as its secret."""

    by: int
    turn: int
    word: str
    start: int
    end: int


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """The judge's verdict on one agent, with the message it is based on; or `problem`, if there is none."""

    of: int
    verdict: Verdict | None = None
    turn: int | None = None
    reason: str = ""
    problem: str | None = None


class Guesses(msgspec.Struct, frozen=True, omit_defaults=True):
    """Guesses of one agent's secret, with the conversation (heard) and without it (unheard).

    A rank is the position of the secret among the guesses, from 1; None if all guesses are wrong.
    """

    of: int
    heard: tuple[str, ...] = ()
    unheard: tuple[str, ...] = ()
    heard_rank: int | None = None
    unheard_rank: int | None = None
    problem: str | None = None


class Played(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of an interaction."""

    lines: tuple[Line, ...]
    findings: tuple[Finding, ...] = ()
    bluffs: tuple[Bluff, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    guesses: tuple[Guesses, ...] = ()

    def leak(self, seat: int, tier: Tier = HEADLINE) -> int | None:
        """The turn of an agent's first leak by a tier; None if there is none."""
        if tier == "judged":
            return self._judged_turn(seat)
        if tier == "declared":
            return min((each.turn for each in self.told(seat) if each.label == "declared"), default=None)
        counted = WRITTEN[: WRITTEN.index(tier) + 1]
        turns = [each.turn for each in self.told(seat) if each.match.tier in counted]
        return min(turns, default=None)

    def _judged_turn(self, seat: int) -> int | None:
        """The turn of a leak by the judge: the one the judge names, else that of a finding, else the agent's last."""
        told = next((each for each in self.judgements if each.of == seat and each.verdict == "declared"), None)
        if told is None:
            return None
        found = self.leak(seat, "encoded") if told.turn is None else told.turn
        own = (turn for turn, line in enumerate(self.lines) if line.seat == seat)
        return max(own, default=None) if found is None else found

    def leaked(self, tier: Tier = HEADLINE) -> tuple[bool, bool]:
        """Whether each side's secret leaked."""
        return self.leak(0, tier) is not None, self.leak(1, tier) is not None

    def class_of(self, seat: int) -> Class | None:
        """The strongest class of an agent's messages: declared, then hinted, then mentioned; None if there is none."""
        found = {each.label for each in self.told(seat)}
        return next((label for label in CLASSES if label in found), None)

    def how_of(self, seat: int) -> str:
        """How an agent first did what its class says (stated, confirmed, denied and so on); empty if unknown."""
        label = self.class_of(seat)
        found = [each for each in self.told(seat) if label is not None and each.label == label]
        return min(found, key=lambda each: (each.turn, each.match.start)).how if found else ""

    @property
    def classed(self) -> bool:
        """Whether findings have classes. Those of versions before classes have none."""
        return all(each.label is not None for seat in (0, 1) for each in self.told(seat))

    def told(self, seat: int) -> list[Finding]:
        """Findings of an agent's own secret in its messages."""
        return [each for each in self.findings if each.of == each.by == seat and not each.thought]

    def guessed(self, seat: int) -> int | None:
        """The turn in which the other side named an agent's secret before the agent itself did."""
        own = self.leak(seat, "encoded")
        turns = [each.turn for each in self.findings if each.of == seat != each.by and not each.thought]
        first = min(turns, default=None)
        return first if first is not None and (own is None or first < own) else None

    def tells(self, tier: Tier, sides: tuple[int, ...] = (0, 1)) -> bool:
        """Whether a tier has a result for all sides: the judged tier needs their verdicts."""
        return tier != "judged" or all(self.judged(seat) for seat in sides)

    def judged(self, seat: int) -> bool:
        """Whether there is a verdict on an agent."""
        return self.verdict(seat) is not None

    def verdict(self, seat: int) -> Verdict | None:
        """The judge's verdict on an agent."""
        return next((each.verdict for each in self.judgements if each.of == seat), None)
