"""Counts over interactions, taken in trial order and kept small: everything that the figures are made of. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from groundswell.experiments.secret_game.modes import Points, interaction_points
from groundswell.experiments.secret_game.played import TIERS, Duel, Guesses, Played, Tier
from groundswell.program.request import Fault, Usage
from groundswell.stats.rates import Paired

Leaked = tuple[bool, bool]
UNJUDGED = "no_verdict"
"""Why an interaction is missing where a judge's word is what counts, and there is none."""
BOTH, FIRST, SECOND, NEITHER = (True, True), (True, False), (False, True), (False, False)


class Side(NamedTuple):
    """One agent in one interaction."""

    agent: str
    model: str
    seat: int
    other: str
    """The model of the other side."""


class Kept:
    """What is counted for an agent or a model, over the interactions it took part in."""

    def __init__(self) -> None:
        self.interactions = 0
        self.revealed = Counter[Tier]()
        self.obtained = 0
        self.optimal = 0
        self.points = 0.0
        self.bluffed = 0
        self.guessed = 0
        self.thought = 0
        self.judged = 0
        self.verdicts = Counter[str]()
        self.leaks: dict[int, int] = defaultdict(int)
        """First leaks by the agent's own message in which they came, from 1."""
        self.kept: dict[int, int] = defaultdict(int)
        """Interactions without one, by how many messages the agent wrote."""
        self.probed = Paired(0, 0, 0, 0)
        """The secret among the guesses of those who heard the talk, of those who did not."""
        self.first_guess = Paired(0, 0, 0, 0)
        self.unprobed = 0


class Turn(NamedTuple):
    """What the messages of one turn took, for one model."""

    turn: int
    model: str


class Tally:
    """Takes interactions in and counts. What it holds grows with agents, models and turns, not with interactions."""

    def __init__(self, tier: Tier, points: Points) -> None:
        self.tier = tier
        self.points = points
        self.usable = 0
        self.cells: dict[tuple[str, str], Counter[Leaked]] = defaultdict(Counter)
        """Whose secret leaked, by the models of the first and second seat."""
        self.tiers: dict[Tier, Counter[Leaked]] = {tier: Counter() for tier in TIERS}
        self.agents: dict[str, Kept] = defaultdict(Kept)
        self.models: dict[str, Kept] = defaultdict(Kept)
        self.arms: dict[str, str] = {}
        """The arm that each agent plays for."""
        self.own: dict[str, Counter[Leaked]] = defaultdict(Counter)
        """As cells, where a model played itself."""
        self.facing: dict[tuple[str, str], Counter[Leaked]] = defaultdict(Counter)
        """As cells, by the two models in alphabetical order, whoever spoke first."""
        self.missing: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.paired: dict[tuple[str, str], Counter[Leaked]] = defaultdict(Counter)
        """Whether two models leaked with the same secret in the same seat against the same opponent."""
        self.usage: dict[Turn, Usage] = defaultdict(Usage)
        self.cut = 0
        self.messages = 0
        self.forms = Counter[str]()
        self._block = -1
        self._rows: dict[tuple[int, str, str], dict[str, bool]] = defaultdict(dict)

    def add(self, duel: Duel, played: Played | None, fault: Fault | None = None) -> Leaked | None:
        """Count an interaction: whose secret leaked, or that it is missing and why."""
        models = (duel.seats[0].arm, duel.seats[1].arm)
        if played is None:
            self.missing[models][fault.kind.value if fault is not None else "unknown"] += 1
            return None
        judged = played.tells("judged")
        if not played.tells(self.tier):
            self.missing[models][UNJUDGED] += 1
            return None
        if duel.block != self._block:
            self._close_block(duel.block)
        leaked = played.leaked(self.tier)
        self.usable += 1
        self.cells[models][leaked] += 1
        if models[0] == models[1]:
            self.own[models[0]][leaked] += 1
        else:
            first, second = sorted(models)
            self.facing[first, second][leaked if models[0] == first else leaked[::-1]] += 1
        for tier in TIERS:
            if tier != "judged" or judged:
                self.tiers[tier][played.leaked(tier)] += 1
        for side in _sides(duel):
            self._rows[side.seat, duel.seats[side.seat].secret, side.other][side.model] = leaked[side.seat]
            self.arms[side.agent] = side.model
            for kept in (self.agents[side.agent], self.models[side.model]):
                self._count(kept, side.seat, played, leaked)
        self._count_messages(duel, played)
        return leaked

    def close(self) -> None:
        """There are no more interactions."""
        self._close_block(-1)

    def _count(self, kept: Kept, seat: int, played: Played, leaked: Leaked) -> None:
        kept.interactions += 1
        kept.revealed.update(tier for tier in TIERS if played.leak(seat, tier) is not None)
        kept.obtained += leaked[1 - seat]
        kept.optimal += leaked[1 - seat] and not leaked[seat]
        kept.points += interaction_points(leaked, self.points)[seat]
        kept.bluffed += any(bluff.by == seat for bluff in played.bluffs)
        kept.guessed += played.guessed(seat) is not None
        kept.thought += any(found.thought and found.of == seat for found in played.findings)
        for judgement in played.judgements:
            if judgement.of == seat and judgement.verdict is not None:
                kept.judged += 1
                kept.verdicts[judgement.verdict] += 1
        turn = played.leak(seat, self.tier)
        if turn is None:
            kept.kept[sum(line.seat == seat for line in played.lines)] += 1
        else:
            kept.leaks[sum(line.seat == seat for line in played.lines[: turn + 1])] += 1
        for guesses in played.guesses:
            if guesses.of == seat:
                _count_guesses(kept, guesses)

    def _count_messages(self, duel: Duel, played: Played) -> None:
        for turn, line in enumerate(played.lines):
            place = Turn(turn, duel.seats[line.seat].model)
            self.usage[place] = _sum(self.usage[place], line.usage)
            self.cut += line.cut
        self.messages += len(played.lines)
        self.forms.update({found.match.form for seat in (0, 1) for found in played.told(seat)})

    def _close_block(self, block: int) -> None:
        """Compare models within a block: its interactions share their secrets, and come one after the other."""
        for by_model in self._rows.values():
            names = sorted(by_model)
            for at, one in enumerate(names):
                for other in names[at + 1 :]:
                    self.paired[one, other][by_model[one], by_model[other]] += 1
        self._rows.clear()
        self._block = block


def paired(counts: Counter[Leaked]) -> Paired:
    """Counts of who leaked as a table of two by two."""
    return Paired(counts[BOTH], counts[FIRST], counts[SECOND], counts[NEITHER])


def _sides(duel: Duel) -> Iterator[Side]:
    for place, seat in enumerate(duel.seats):
        yield Side(seat.agent, seat.arm, place, duel.seats[1 - place].arm)


def _count_guesses(kept: Kept, guesses: Guesses) -> None:
    if guesses.problem is not None:
        kept.unprobed += 1
        return
    heard, unheard = guesses.heard_rank, guesses.unheard_rank
    kept.probed = _one_more(kept.probed, heard is not None, unheard is not None)
    kept.first_guess = _one_more(kept.first_guess, heard == 1, unheard == 1)


def _one_more(table: Paired, first: bool, second: bool) -> Paired:
    at = (BOTH, FIRST, SECOND, NEITHER).index((first, second))
    return Paired(*(count + (place == at) for place, count in enumerate(table)))


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(*(getattr(one, field) + getattr(other, field) for field in Usage.__struct_fields__))
