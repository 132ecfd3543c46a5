"""Counts over interactions, from which all figures are computed. Interactions come in trial order. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from groundswell.experiments.secret_game.modes import Points, interaction_points
from groundswell.experiments.secret_game.played import CLASSES, HEADLINE, TIERS, Duel, Guesses, Played, Tier
from groundswell.program.request import Fault, Usage
from groundswell.stats.clusters import ENOUGH, Clusters, ClusterTotals
from groundswell.stats.rates import Paired
from groundswell.stats.survival import ClusteredLogrank

Leaked = tuple[bool, bool]
UNJUDGED = "no_verdict"
"""The kind of missing interactions whose headline tier is judged and which have no verdict."""
NO_CLASS = "none"
"""The class of sides whose messages do nothing with their secret."""
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
    """Two paired binary outcomes against some opponents, which have equal weights. Pairs of a block are correlated."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[Leaked]] = defaultdict(Counter)
        self._blocks = ClusterTotals[tuple[str, str]]()

    def add(self, block: int, first: bool, second: bool, opponent: str = "") -> None:
        """Add a pair. Pairs of one block must be added consecutively."""
        self._counts[opponent][first, second] += 1
        self._blocks.add(block, (opponent, "pairs"))
        self._blocks.add(block, (opponent, "difference"), first - second)

    @property
    def opponents(self) -> list[str]:
        """The opponents, sorted."""
        return sorted(self._counts)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self._blocks.count

    @property
    def counts(self) -> Paired:
        """All pairs as a 2x2 table."""
        return paired(sum(self._counts.values(), Counter[Leaked]()))

    @property
    def table(self) -> Paired:
        """A 2x2 table in which each opponent has the same weight. Counts need not be integers.

        Its size is such that the variance of the mean of independent pairs is the same as in this table.
        """
        tables = [paired(each) for each in self._counts.values()]
        n = len(tables) / sum(1 / each.n for each in tables) if tables else 0
        return Paired(*(sum(n * each[cell] / each.n for each in tables) for cell in range(4)))  # type: ignore[arg-type]

    @property
    def variance(self) -> float | None:
        """The variance of the difference, from the differences between blocks.

        None with too few blocks, or if all blocks have the same difference.
        """
        if self.blocks < ENOUGH:
            return None
        weights = np.zeros((len(self._blocks.keys), 1))
        for opponent, table in ((name, paired(each)) for name, each in self._counts.items()):
            weight = 1 / table.n / len(self._counts)
            weights[self._blocks.keys[opponent, "difference"]] = weight
            weights[self._blocks.keys[opponent, "pairs"]] = -weight * (table.difference or 0)
        variance = float(self._blocks.covariance(weights)[0, 0])
        return variance if variance > 1e-12 else None

    @property
    def effect(self) -> float:
        """The design effect: how many pairs carry the information of one independent pair, at least 1."""
        variance, independent = self.variance, 0.0
        for table in map(paired, self._counts.values()):
            differ = table.first + table.second - table.n * (table.difference or 0) ** 2
            independent += differ / table.n / max(1, table.n - 1) / len(self._counts) ** 2
        return max(1.0, variance / independent) if variance is not None and independent > 0 else 1.0


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
        self.classes: dict[str, Share] = {label: Share() for label in (*CLASSES, NO_CLASS)}
        self.how: dict[str, Counter[str]] = defaultdict(Counter)
        """How sides did what their class says, by class."""
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

    def __init__(self, tier: Tier, points: Points, *, classed: bool = True) -> None:
        self.tier = tier
        self.points = points
        self.usable = 0
        self.cells: dict[tuple[str, str], Cell] = defaultdict(Cell)
        """Leaks, by the models of the first and second seat."""
        self.whole = Cell()
        """All interactions."""
        self.revealed: dict[Tier, Share] = defaultdict(Share)
        """Both sides of every interaction, by tier."""
        self.everybody = Kept()
        """Classes of all sides."""
        self.classed = classed
        """Whether all findings have a class. Those of earlier versions have none."""
        self.agreement = Counter[Leaked]()
        """Sides with a verdict: whether the rules find a leak, whether the judge does."""
        self.lives = ClusteredLogrank()
        """When each model's secrets leaked, for the log-rank test."""
        self.words: dict[str, Share] = defaultdict(Share)
        """Leaks, by secret."""
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
        self.against: dict[tuple[str, str, str], Contrast] = defaultdict(Contrast)
        """The same for each opponent by itself."""
        self.usage: dict[Turn, Usage] = defaultdict(Usage)
        self.cut = 0
        self.unread = 0
        self.played = Counter[tuple[str, str]]()
        """Number of usable interactions, by the models of the first and second seat."""
        self.messages = 0
        self.forms = Counter[str]()
        self._block = -1
        self._rows: dict[tuple[int, str, str], dict[str, list[bool]]] = defaultdict(dict)

    def add(self, duel: Duel, played: Played | None, fault: Fault | None = None) -> Leaked | None:
        """Count an interaction and return whose secrets leaked; None if it is missing."""
        models = (duel.seats[0].arm, duel.seats[1].arm)
        if played is None:
            self.missing[models][fault.kind.value if fault is not None else "unknown"] += 1
            return None
        if not played.tells(self.tier, duel.sides):
            self.missing[models][UNJUDGED] += 1
            return None
        if duel.block != self._block:
            self._close_block(duel.block)
        leaked = played.leaked(self.tier)
        self.usable += 1
        self.played[models] += 1
        if len(duel.sides) == 2:
            self._count_interaction(duel, models, leaked)
        for place in duel.sides:
            self.arms[duel.seats[place].agent] = models[place]
            self.words[duel.seats[place].secret].add(duel, leaked[place])
        self._count_judged(duel, played)
        self.classed = self.classed and played.classed
        _count_revealed(self.revealed, duel, duel.sides, played)
        _count_classes(self.everybody, duel, duel.sides, played)
        for who, name in ((self.agents, "agent"), (self.models, "arm")):
            names = {place: getattr(duel.seats[place], name) for place in duel.sides}
            for each in dict.fromkeys(names.values()):
                self._count(who[each], duel, [seat for seat in duel.sides if names[seat] == each], played)
        for seat in duel.sides:
            time, ended = self._time(seat, played)
            self.lives.add(duel.block, models[seat], time, ended=ended)
        for model in dict.fromkeys(models[seat] for seat in duel.sides):
            _count_classes(self.models[model], duel, [seat for seat in duel.sides if models[seat] == model], played)
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
            self._rows[place, seat.secret, models[1 - place]].setdefault(models[place], []).append(leaked[place])

    def _count_judged(self, duel: Duel, played: Played) -> None:
        tier = HEADLINE if self.tier == "judged" else self.tier
        for seat in duel.sides:
            if played.judged(seat):
                self.agreement[played.leak(seat, tier) is not None, played.leak(seat, "judged") is not None] += 1

    def close(self) -> None:
        """Finish counting, after the last interaction."""
        self._close_block(-1)

    def _count(self, kept: Kept, duel: Duel, seats: Sequence[int], played: Played) -> None:
        leaked = played.leaked(self.tier)
        _count_revealed(kept.revealed, duel, seats, played)
        if len(duel.sides) == 2:
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
        time, leaked = self._time(seat, played)
        (kept.leaks if leaked else kept.kept)[time] += 1
        for guesses in played.guesses:
            if guesses.of == seat:
                _count_guesses(kept, guesses)

    def _time(self, seat: int, played: Played) -> tuple[int, bool]:
        """The agent's own message, from 1, in which its secret leaked; else the number of messages that it wrote."""
        turn = played.leak(seat, self.tier)
        said = played.lines if turn is None else played.lines[: turn + 1]
        return sum(line.seat == seat for line in said), turn is not None

    def _count_messages(self, duel: Duel, played: Played) -> None:
        for turn, line in enumerate(played.lines):
            place = Turn(turn, duel.seats[line.seat].model)
            self.usage[place] = _sum(self.usage[place], line.usage)
            self.cut += line.cut
            self.unread += line.unread > 0
        self.messages += len(played.lines)
        self.forms.update(sorted({found.match.form for seat in (0, 1) for found in played.told(seat)}))

    def _close_block(self, block: int) -> None:
        """Compare models within a block, whose consecutive interactions share their secrets."""
        for (_, _, opponent), by_model in self._rows.items():
            names = sorted(by_model)
            for at, one in enumerate(names):
                for other in names[at + 1 :]:
                    for leaked in zip(reversed(by_model[one]), reversed(by_model[other]), strict=False):
                        self.paired[one, other].add(self._block, *leaked, opponent)
                        self.against[one, other, opponent].add(self._block, *leaked, opponent)
        self._rows.clear()
        self._block = block


def _of_blocks(blocks: Clusters) -> float:
    """The design effect of blocks; 1 if there are too few."""
    return (blocks.effect or 1.0) if blocks.count >= ENOUGH else 1.0


def paired(counts: Counter[Leaked]) -> Paired:
    """Counts of leaks as a 2x2 table."""
    return Paired(counts[BOTH], counts[FIRST], counts[SECOND], counts[NEITHER])


def _count_revealed(shares: dict[Tier, Share], duel: Duel, seats: Sequence[int], played: Played) -> None:
    """Count by every tier; the judged tier only for sides with a verdict."""
    for tier in TIERS:
        known = [seat for seat in seats if tier != "judged" or played.judged(seat)]
        if known:
            shares[tier].add(duel, *(played.leak(seat, tier) is not None for seat in known))


def _count_classes(kept: Kept, duel: Duel, seats: Sequence[int], played: Played) -> None:
    found = [played.class_of(seat) or NO_CLASS for seat in seats]
    for label, share in kept.classes.items():
        share.add(duel, *(each == label for each in found))
    for label, seat in zip(found, seats, strict=True):
        if how := played.how_of(seat):
            kept.how[label][how] += 1


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
