"""Counts over interactions, from which all figures are computed. Interactions come in trial order. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from groundswell.experiments.secret_game.modes import Points, interaction_points
from groundswell.experiments.secret_game.played import TIERS, Duel, Guesses, Played, Tier
from groundswell.program.request import Fault, Usage
from groundswell.stats.clusters import Clusters
from groundswell.stats.rates import Paired

Leaked = tuple[bool, bool]
UNJUDGED = "no_verdict"
"""The kind of missing interactions whose headline tier is judged and which have no verdict."""
ENOUGH_BLOCKS = 5
"""Minimum number of blocks to estimate the correlation within blocks. With fewer, the estimate is mostly noise."""
BOTH, FIRST, SECOND, NEITHER = (True, True), (True, False), (False, True), (False, False)


class Share:
    """A share of sides. Sides of an interaction are correlated, and those of a block may be."""

    def __init__(self) -> None:
        self._talks = Clusters()
        self._blocks = Clusters()

    def add(self, duel: Duel, *happened: bool) -> None:
        """Add the sides of one interaction."""
        self._talks.add(duel.number, *happened)
        self._blocks.add(duel.block, *happened)

    @property
    def n(self) -> int:
        """Number of sides."""
        return self._talks.n

    @property
    def count(self) -> int:
        """Number of sides to which it happened."""
        return round(self._talks.total)

    @property
    def interactions(self) -> int:
        """Number of interactions."""
        return self._talks.count

    @property
    def effect(self) -> float:
        """The design effect: how many sides carry the information of one independent side, at least 1.

        If it cannot be estimated, the sides of an interaction count as one.
        """
        talks = self._talks.effect
        together = self.n / max(1, self.interactions) if talks is None else talks
        return max(1.0, together, _of_blocks(self._blocks))


class Contrast:
    """Two paired binary outcomes, with their correlation within blocks."""

    def __init__(self) -> None:
        self._counts = Counter[Leaked]()
        self._blocks = Clusters()

    def add(self, block: int, first: bool, second: bool) -> None:
        """Add a pair."""
        self._counts[first, second] += 1
        self._blocks.add(block, first - second)

    @property
    def table(self) -> Paired:
        """The pairs as a 2x2 table."""
        return paired(self._counts)

    @property
    def effect(self) -> float:
        """The design effect: how many pairs carry the information of one independent pair, at least 1."""
        return max(1.0, _of_blocks(self._blocks))


class Kept:
    """Counts for an agent or a model over its interactions."""

    def __init__(self) -> None:
        self.revealed: dict[Tier, Share] = defaultdict(Share)
        """The judged tier counts only sides with a verdict."""
        self.obtained = Share()
        self.optimal = Share()
        self.bluffed = Share()
        self.guessed = Share()
        self.thought = Share()
        self.points = 0.0
        self.verdicts = Counter[str]()
        self.leaks: dict[int, int] = defaultdict(int)
        """Number of first leaks, by the agent's own message in which they occurred, from 1."""
        self.kept: dict[int, int] = defaultdict(int)
        """Number of interactions without a leak, by the number of messages the agent wrote."""
        self.probed = Paired(0, 0, 0, 0)
        """Whether the secret is among the guesses with the conversation, and without it."""
        self.first_guess = Paired(0, 0, 0, 0)
        self.unprobed = 0


class Cell:
    """Counts of leaks in some interactions, jointly and by seat."""

    def __init__(self) -> None:
        self.leaked = Counter[Leaked]()
        self.first = Share()
        self.second = Share()


class Turn(NamedTuple):
    """A turn and a model, as a key."""

    turn: int
    model: str


class Tally:
    """Counts interactions. Its memory grows with agents, models and turns, not with interactions."""

    def __init__(self, tier: Tier, points: Points) -> None:
        self.tier = tier
        self.points = points
        self.usable = 0
        self.cells: dict[tuple[str, str], Cell] = defaultdict(Cell)
        """Leaks, by the models of the first and second seat."""
        self.whole = Cell()
        """All interactions."""
        self.revealed: dict[Tier, Share] = defaultdict(Share)
        """Both sides of every interaction, by tier."""
        self.both, self.one_sided, self.none = Share(), Share(), Share()
        self.seats = Contrast()
        """Whether the first speaker leaked, whether the second did."""
        self.agents: dict[str, Kept] = defaultdict(Kept)
        self.models: dict[str, Kept] = defaultdict(Kept)
        self.arms: dict[str, str] = {}
        """The arm of each agent."""
        self.facing: dict[tuple[str, str], Contrast] = defaultdict(Contrast)
        """Leaks of two models that met, in alphabetical order, in either seat."""
        self.missing: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.paired: dict[tuple[str, str], Contrast] = defaultdict(Contrast)
        """Leaks of two models with the same secret, in the same seat, against the same opponent."""
        self.usage: dict[Turn, Usage] = defaultdict(Usage)
        self.cut = 0
        self.messages = 0
        self.forms = Counter[str]()
        self._block = -1
        self._rows: dict[tuple[int, str, str], dict[str, bool]] = defaultdict(dict)

    def add(self, duel: Duel, played: Played | None, fault: Fault | None = None) -> Leaked | None:
        """Count an interaction and return whose secrets leaked; None if it is missing."""
        models = (duel.seats[0].arm, duel.seats[1].arm)
        if played is None:
            self.missing[models][fault.kind.value if fault is not None else "unknown"] += 1
            return None
        if not played.tells(self.tier):
            self.missing[models][UNJUDGED] += 1
            return None
        if duel.block != self._block:
            self._close_block(duel.block)
        leaked = played.leaked(self.tier)
        self.usable += 1
        self._count_interaction(duel, models, leaked)
        _count_revealed(self.revealed, duel, (0, 1), played)
        for who, name in ((self.agents, "agent"), (self.models, "arm")):
            names = [getattr(seat, name) for seat in duel.seats]
            for each in dict.fromkeys(names):
                self._count(who[each], duel, [seat for seat in (0, 1) if names[seat] == each], played)
        self._count_messages(duel, played)
        return leaked

    def _count_interaction(self, duel: Duel, models: tuple[str, str], leaked: Leaked) -> None:
        for cell in (self.cells[models], self.whole):
            cell.leaked[leaked] += 1
            cell.first.add(duel, leaked[0])
            cell.second.add(duel, leaked[1])
        self.seats.add(duel.block, *leaked)
        self.both.add(duel, leaked == BOTH)
        self.one_sided.add(duel, leaked in (FIRST, SECOND))
        self.none.add(duel, leaked == NEITHER)
        if models[0] != models[1]:
            first, second = sorted(models)
            self.facing[first, second].add(duel.block, *(leaked if models[0] == first else leaked[::-1]))
        for place, seat in enumerate(duel.seats):
            self._rows[place, seat.secret, models[1 - place]][models[place]] = leaked[place]
            self.arms[seat.agent] = models[place]

    def close(self) -> None:
        """Finish counting, after the last interaction."""
        self._close_block(-1)

    def _count(self, kept: Kept, duel: Duel, seats: Sequence[int], played: Played) -> None:
        leaked = played.leaked(self.tier)
        _count_revealed(kept.revealed, duel, seats, played)
        kept.obtained.add(duel, *(leaked[1 - seat] for seat in seats))
        kept.optimal.add(duel, *(leaked[1 - seat] and not leaked[seat] for seat in seats))
        kept.bluffed.add(duel, *(any(bluff.by == seat for bluff in played.bluffs) for seat in seats))
        kept.guessed.add(duel, *(played.guessed(seat) is not None for seat in seats))
        kept.thought.add(duel, *(any(each.thought and each.of == seat for each in played.findings) for seat in seats))
        for seat in seats:
            kept.points += interaction_points(leaked, self.points)[seat]
            self._count_side(kept, seat, played)

    def _count_side(self, kept: Kept, seat: int, played: Played) -> None:
        for judgement in played.judgements:
            if judgement.of == seat and judgement.verdict is not None:
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
        """Compare models within a block, whose consecutive interactions share their secrets."""
        for by_model in self._rows.values():
            names = sorted(by_model)
            for at, one in enumerate(names):
                for other in names[at + 1 :]:
                    self.paired[one, other].add(self._block, by_model[one], by_model[other])
        self._rows.clear()
        self._block = block


def _of_blocks(blocks: Clusters) -> float:
    """The design effect of blocks; 1 if there are too few."""
    return (blocks.effect or 1.0) if blocks.count >= ENOUGH_BLOCKS else 1.0


def paired(counts: Counter[Leaked]) -> Paired:
    """Counts of leaks as a 2x2 table."""
    return Paired(counts[BOTH], counts[FIRST], counts[SECOND], counts[NEITHER])


def _count_revealed(shares: dict[Tier, Share], duel: Duel, seats: Sequence[int], played: Played) -> None:
    """Count by every tier; the judged tier only for sides with a verdict."""
    for tier in TIERS:
        known = [seat for seat in seats if tier != "judged" or played.judged(seat)]
        if known:
            shares[tier].add(duel, *(played.leak(seat, tier) is not None for seat in known))


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
