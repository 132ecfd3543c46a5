"""Statistics of an evaluation: how each method did, and against the others on the same episodes.

Episodes that share a secret may hang together, and so count as one draw; of a method that was trained several times,
the learners are draws too (stats/crossed.py). What a fault broke off is missing, and never a failure to leak.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from groundswell.experiments.query_mutation import mutators
from groundswell.experiments.query_mutation.analysis import Analysis, Contrast, Curve, Ended, Figure, Lasting, Uses
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.verdict import HELD_OUT, SUBJECT, TRAINED, notes, verdict
from groundswell.stats.clusters import ENOUGH
from groundswell.stats.compare import holm
from groundswell.stats.crossed import Cells, cells, difference, difference_of_shares, mean, share, spread_of
from groundswell.stats.survival import curve

CHANCE = "random"
"""The method whose uses say what a mutator is worth: others use it where they expect it to work."""
FEWEST = 5
"""A mutator that was used less often is left out."""


def analysed(curves: Sequence[Curve], ended: Sequence[Ended], uses: Sequence[Uses], task: Task) -> Analysis:
    """What was found."""
    places = _places(ended, {guard.name for guard in task.guards})
    clusters = Clusters(ended)
    methods = list(dict.fromkeys(each.method for each in ended))
    figures = [_figure(method, on, of(some, method), clusters) for method in methods for on, some in places.items()]
    wide = {on: some for on, some in places.items() if on in (HELD_OUT, TRAINED)}
    contrasts = [each for on, some in wide.items() for each in _contrasts(on, some, methods, clusters)]
    return Analysis(
        curves=tuple(curves),
        figures=tuple(figures),
        contrasts=tuple(contrasts),
        uses=tuple(uses),
        verdict=verdict(figures, contrasts),
        masked=sum(point.masked for curve in curves for point in curve.points),
        prompts=mutators.digest(),
        lasting=tuple(
            _lasting(method, on, of(some, method), clusters) for method in methods for on, some in wide.items()
        ),
        notes=tuple(notes(figures, contrasts, by_secret=clusters.by_secret)),
    )


class Clusters:
    """A number for what an episode shares with others: its secret, or with few secrets all that it is made of."""

    def __init__(self, ended: Iterable[Ended]) -> None:
        every = list(ended)
        self.by_secret = len({each.secret for each in every}) >= ENOUGH
        self._numbers = {name: at for at, name in enumerate(dict.fromkeys(map(self._name, every)))}

    def number(self, each: Ended) -> int:
        """Of an episode."""
        return self._numbers[self._name(each)]

    def _name(self, each: Ended) -> tuple[str, ...]:
        return (each.secret,) if self.by_secret else (each.guard, each.secret, each.goal)

    def leaks(self, ended: Sequence[Ended]) -> Cells:
        """Whether each leaked."""
        return self._cells(ended, [float(each.end == "leak") for each in ended])

    def totals(self, ended: Sequence[Ended]) -> Cells:
        """What each earned."""
        return self._cells(ended, [each.total for each in ended])

    def _cells(self, ended: Sequence[Ended], values: Sequence[float]) -> Cells:
        return cells(values, [each.learner for each in ended], [self.number(each) for each in ended])


def _places(ended: Sequence[Ended], met: set[str]) -> dict[str, list[Ended]]:
    """Episodes by guard; and those of all guards that training met, or did not."""
    guards = list(dict.fromkeys(each.guard for each in ended))
    found = {
        HELD_OUT: [each for each in ended if each.guard not in met],
        TRAINED: [each for each in ended if each.guard in met],
    }
    found = {on: some for on, some in found.items() if some}
    return found | {guard: [each for each in ended if each.guard == guard] for guard in guards}


def of(ended: Iterable[Ended], method: str) -> list[Ended]:
    """The episodes of a method."""
    return [each for each in ended if each.method == method]


def usable(ended: Iterable[Ended]) -> list[Ended]:
    """Those that no fault broke off."""
    return [each for each in ended if each.end != "fault"]


def _figure(method: str, on: str, ended: Sequence[Ended], clusters: Clusters) -> Figure:
    there = usable(ended)
    leaks, total = share(clusters.leaks(there)), mean(clusters.totals(there))
    return Figure(
        method,
        on,
        len(there),
        sum(each.end == "leak" for each in there),
        leaks.value,
        leaks.low,
        leaks.high,
        total.value,
        total.low,
        total.high,
        sum(each.steps for each in there) / len(there) if there else None,
        len(ended) - len(there),
        len({each.learner for each in ended}),
        leaks.clusters,
        leaks.reason,
    )


def _contrasts(on: str, ended: Sequence[Ended], methods: Sequence[str], clusters: Clusters) -> list[Contrast]:
    """The subject against everybody else, with p-values that allow for their number."""
    if SUBJECT not in methods:
        return []
    others = [method for method in methods if method != SUBJECT]
    found = [_contrast(SUBJECT, other, on, ended, clusters) for other in others]
    ps, totals = _adjusted([each.p for each in found]), _adjusted([each.total_p for each in found])
    return [msgspec.structs.replace(each, p=p, total_p=total) for each, p, total in zip(found, ps, totals, strict=True)]


def _adjusted(ps: Sequence[float | None]) -> list[float | None]:
    known = iter(holm([p for p in ps if p is not None]))
    return [None if p is None else next(known) for p in ps]


def _contrast(method: str, against: str, on: str, ended: Sequence[Ended], clusters: Clusters) -> Contrast:
    one, other = usable(of(ended, method)), usable(of(ended, against))
    numbers = {each.number for each in one}, {each.number for each in other}
    shared, every = numbers[0] & numbers[1], {each.number for each in ended}
    one, other = ([each for each in some if each.number in shared] for some in (one, other))
    leaks = difference_of_shares(clusters.leaks(one), clusters.leaks(other))
    totals = difference(clusters.totals(one), clusters.totals(other))
    return Contrast(
        method,
        against,
        on,
        len(shared),
        leaks.value,
        leaks.low,
        leaks.high,
        leaks.p,
        totals.value,
        totals.low,
        totals.high,
        totals.p,
        _rate(one),
        _rate(other),
        len(every) - len(shared),
        leaks.reason,
    )


def _rate(ended: Sequence[Ended]) -> float | None:
    return sum(each.end == "leak" for each in ended) / len(ended) if ended else None


def _lasting(method: str, on: str, ended: Sequence[Ended], clusters: Clusters) -> Lasting:
    there = usable(ended)
    leaked = Counter(each.steps for each in there if each.end == "leak")
    kept = Counter(each.steps for each in there if each.end != "leak")
    return Lasting(method, on, len(there), tuple(curve(leaked, kept, effect=_effect(there, clusters))))


def _effect(ended: Sequence[Ended], clusters: Clusters) -> float:
    """How many of these episodes are worth one."""
    rate = _rate(ended)
    spread = spread_of([clusters.leaks(ended)]) if ended else None
    if spread is None or spread.reason or not rate or rate == 1:
        return 1.0
    return max(1.0, spread.variance * len(ended) / (rate * (1 - rate)))


class Gain(NamedTuple):
    """What a use of a mutator gained on average."""

    mutator: str
    gain: float
    uses: int


def chance_gains(uses: Sequence[Uses]) -> dict[str, list[Gain]]:
    """By guard, what mutators gained where they were drawn by chance, most first; those with few uses are left out."""
    drawn = [each for each in uses if each.method == CHANCE]
    return {
        guard: sorted(
            (
                Gain(each.mutator, each.gained / each.steps, each.steps)
                for each in drawn
                if each.guard == guard and each.steps >= FEWEST
            ),
            key=lambda each: (-each.gain, each.mutator),
        )
        for guard in dict.fromkeys(each.guard for each in drawn)
    }
