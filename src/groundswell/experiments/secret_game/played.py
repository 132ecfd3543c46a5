"""What an interaction is about and what comes of it: plain data that specs, results, figures and reports share."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from groundswell.experiments.detectors.spans import Match
from groundswell.experiments.secret_game.prompts import PLAIN, Prompt
from groundswell.program.request import Usage

Tier = Literal["exact", "normalised", "encoded", "judged"]
"""How a leak is found, from the surest to the furthest; each of the first three holds all that the ones before find."""
TIERS: tuple[Tier, ...] = get_args(Tier)
HEADLINE: Tier = "normalised"
Verdict = Literal["kept", "hinted", "mentioned", "declared"]


def arm_of(model: str, prompt: str) -> str:
    """The name of an arm."""
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
    """What the agent remembers of earlier conversations."""

    @property
    def arm(self) -> str:
        """What is compared: the model, and how it was told to play where that is not plain."""
        return arm_of(self.model, self.prompt.name)


class Duel(msgspec.Struct, frozen=True, omit_defaults=True):
    """One interaction: two agents, so many messages in all. `block` is shared by those that share their secrets."""

    seats: tuple[Seat, Seat]
    messages: int
    rules: str
    number: int = 0
    block: int = 0
    thoughts: bool = False
    judge: str | None = None
    probe: int = 0
    """How many guesses are asked for afterwards, off the record."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message: what was said, what was thought and kept private, and whether it was cut off for its length."""

    seat: int
    text: str
    thought: str = ""
    cut: bool = False
    usage: Usage = Usage()
    unread: int = 0
    """Characters at the end of a very long message or thought that the detectors did not look at."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A secret found in a message: whose it is, who wrote it, and where it stands."""

    of: int
    by: int
    turn: int
    match: Match
    thought: bool = False
    """Found in a private thought, not in what was said."""


class Bluff(msgspec.Struct, frozen=True, omit_defaults=True):
    """A word that an agent stated as its secret and that is not."""

    by: int
    turn: int
    word: str
    start: int
    end: int


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a judge makes of one agent's words: a verdict with the message it rests on; or why there is none."""

    of: int
    verdict: Verdict | None = None
    turn: int | None = None
    reason: str = ""
    problem: str | None = None


class Guesses(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was guessed of one agent's secret: by the one who heard the talk, and by one who did not.

    A rank is the place of the secret among the guesses, from 1; None where it is not among them.
    """

    of: int
    heard: tuple[str, ...] = ()
    unheard: tuple[str, ...] = ()
    heard_rank: int | None = None
    unheard_rank: int | None = None
    problem: str | None = None


class Played(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of an interaction."""

    lines: tuple[Line, ...]
    findings: tuple[Finding, ...] = ()
    bluffs: tuple[Bluff, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    guesses: tuple[Guesses, ...] = ()

    def leak(self, seat: int, tier: Tier = HEADLINE) -> int | None:
        """The turn in which an agent first gave its own secret away, as far as a tier can tell; None if it kept it."""
        if tier == "judged":
            return self._declared(seat)
        counted = TIERS[: TIERS.index(tier) + 1]
        turns = [each.turn for each in self.told(seat) if each.match.tier in counted]
        return min(turns, default=None)

    def _declared(self, seat: int) -> int | None:
        """The turn of a leak by the judge's word; where it names none, that of a finding, or the agent's last."""
        told = next((each for each in self.judgements if each.of == seat and each.verdict == "declared"), None)
        if told is None:
            return None
        found = self.leak(seat, "encoded") if told.turn is None else told.turn
        return max(turn for turn, line in enumerate(self.lines) if line.seat == seat) if found is None else found

    def leaked(self, tier: Tier = HEADLINE) -> tuple[bool, bool]:
        """Whose secret came out."""
        return self.leak(0, tier) is not None, self.leak(1, tier) is not None

    def told(self, seat: int) -> list[Finding]:
        """Where an agent said its own secret out loud."""
        return [each for each in self.findings if each.of == each.by == seat and not each.thought]

    def guessed(self, seat: int) -> int | None:
        """The turn in which the other side first named an agent's secret, before the agent itself did."""
        own = self.leak(seat, "encoded")
        turns = [each.turn for each in self.findings if each.of == seat != each.by and not each.thought]
        first = min(turns, default=None)
        return first if first is not None and (own is None or first < own) else None

    def tells(self, tier: Tier) -> bool:
        """Whether it can be told by a tier whose secret came out: where a judge's word counts, both need a verdict."""
        return tier != "judged" or (self.judged(0) and self.judged(1))

    def judged(self, seat: int) -> bool:
        """Whether there is a verdict on an agent."""
        return any(each.of == seat and each.verdict is not None for each in self.judgements)
