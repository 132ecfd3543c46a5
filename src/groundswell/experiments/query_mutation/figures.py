"""Statistics of an evaluation: results of each method, and paired comparisons on the same episodes.

Episodes with the same secret may be correlated, so a secret is a cluster. If a method was trained several times, its
learners are a second sample (stats/crossed.py). Episodes that ended with a fault are missing; they do not count as kept
secrets. Rates and means are Kaplan-Meier estimates, because long episodes, which did not leak, are missing more often
than short ones. Paired comparisons use the episodes that both methods completed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

import msgspec

from groundswell.experiments.query_mutation import mutators
from groundswell.experiments.query_mutation.analysis import Analysis, Contrast, Curve, Ended, Figure, Lasting, Uses
from groundswell.experiments.query_mutation.frontier import advice, tradeoffs, unprompted
from groundswell.experiments.query_mutation.guessing import guess_figures, guess_notes
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.usefulness import OrdinaryAnswer, usefulness_of
from groundswell.experiments.query_mutation.verdict import HELD_OUT, SUBJECT, TRAINED, notes, verdict
from groundswell.stats.clusters import ENOUGH
from groundswell.stats.compare import holm
from groundswell.stats.crossed import Cells, cells, difference, difference_of_shares, mean, share, spread_of
from groundswell.stats.survival import curve

CHANCE = "random"
"""The method that compares mutations fairly: learners use a mutation where they expect it to work."""
FEWEST = 5
"""Mutations with fewer uses are omitted."""
DIGITS = 12
"""Digits after the point of weighted values. Rounding must not take a share above 1."""


def analysed(
    curves: Sequence[Curve],
    ended: Sequence[Ended],
    uses: Sequence[Uses],
    task: Task,
    answers: Sequence[OrdinaryAnswer] = (),
    *,
    met: Set[str] | None = None,
) -> Analysis:
    """The analysis of these episodes, and of the answers to ordinary queries.

    `met` are the names of the guards that were used in the training: by default those of the task.
    """
    met = {guard.name for guard in task.guards} if met is None else met
    places = _places(ended, met)
    clusters = Clusters(ended)
    methods = list(dict.fromkeys(each.method for each in ended))
    figures = [_figure(method, on, of(some, method), clusters) for method in methods for on, some in places.items()]
    wide = {on: some for on, some in places.items() if on in (HELD_OUT, TRAINED)}
    contrasts = [each for on, some in wide.items() for each in contrasts_of(on, some, methods, clusters)]
    useful = usefulness_of(answers)
    frontier = tradeoffs(useful, figures, met)
    guesses = tuple(guess_figures(wide, clusters.of))
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
        notes=(*notes(figures, contrasts, by_secret=clusters.by_secret), *guess_notes(guesses)),
        usefulness=tuple(useful),
        frontier=tuple(frontier),
        advice=(*advice(frontier, len(methods)), *unprompted(useful)),
        guesses=guesses or msgspec.UNSET,
    )


class Clusters:
    """Numbers the clusters of episodes: by secret, or with few secrets by guard, secret and query."""

    def __init__(self, ended: Iterable[Ended]) -> None:
        every = list(ended)
        self.by_secret = len({each.secret for each in every}) >= ENOUGH
        self._numbers = {name: at for at, name in enumerate(dict.fromkeys(map(self._name, every)))}

    def number(self, each: Ended) -> int:
        """The cluster of an episode."""
        return self._numbers[self._name(each)]

    def _name(self, each: Ended) -> tuple[str, ...]:
        return (each.secret,) if self.by_secret else (each.guard, each.secret, each.goal)

    def leaks(self, ended: Sequence[Ended]) -> Cells:
        """Whether each episode leaked."""
        return self.of(ended, [float(each.end == "leak") for each in ended])

    def totals(self, ended: Sequence[Ended]) -> Cells:
        """The return of each episode."""
        return self.of(ended, [each.total for each in ended])

    def of(self, ended: Sequence[Ended], values: Sequence[float]) -> Cells:
        """Values whose mean is that of episodes of which none is missing.

        With missing ones, each value is the mean plus the weighted distance from it, so it has the right variance too.
        """
        parts = weights(ended)
        if any(part != 1 for part in parts):
            middle = round(weighted_mean(values, parts), DIGITS)
            there = [at for at, part in enumerate(parts) if part]
            scale = len(there) / len(parts)
            values = [round(middle + scale * parts[at] * (values[at] - middle), DIGITS) for at in there]
            ended = [ended[at] for at in there]
        return cells(values, [each.learner for each in ended], [self.number(each) for each in ended])


def _places(ended: Sequence[Ended], met: Set[str]) -> dict[str, list[Ended]]:
    """Episodes by guard, and of all held-out and all trained guards together."""
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
    """The episodes that did not end with a fault."""
    return [each for each in ended if each.end != "fault"]


def weights(ended: Sequence[Ended]) -> list[float]:
    """How many episodes each one stands for: a missing one passes its weight on to those that lasted longer.

    The weighted share of leaks is the Kaplan-Meier estimate: B. Efron, The two sample problem with censored data, Proc.
    5th Berkeley Symp. Math. Stat. Prob. 4 (1967) 831-853. If none lasted longer, a missing episode counts as it is: as
    one without a leak. Without missing episodes all weights are 1.
    """
    found = [1.0] * len(ended)
    for steps in sorted({each.steps for each in ended if each.end == "fault"}):
        broken = [at for at, each in enumerate(ended) if each.end == "fault" and each.steps == steps]
        longer = [at for at, each in enumerate(ended) if each.steps > steps]
        for at in longer:
            found[at] *= 1 + len(broken) / len(longer)
        for at in broken:
            found[at] *= not longer
    return found


def weighted_mean(values: Sequence[float], parts: Sequence[float]) -> float:
    """The mean with these weights, which sum to their number."""
    return sum(part * value for part, value in zip(parts, values, strict=True)) / len(values)


def _figure(method: str, on: str, ended: Sequence[Ended], clusters: Clusters) -> Figure:
    there = usable(ended)
    counted = ended if there else []
    leaks, total = share(clusters.leaks(counted)), mean(clusters.totals(counted))
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
        weighted_mean([each.steps for each in ended], weights(ended)) if there else None,
        len(ended) - len(there),
        len({each.learner for each in ended}),
        leaks.clusters,
        leaks.reason,
    )


def contrasts_of(
    on: str, ended: Sequence[Ended], methods: Sequence[str], clusters: Clusters, subject: str = SUBJECT
) -> list[Contrast]:
    """The subject compared with every other method, with adjusted p-values."""
    if subject not in methods:
        return []
    others = [method for method in methods if method != subject]
    found = [_contrast(subject, other, on, ended, clusters) for other in others]
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
        leak_rate(one),
        leak_rate(other),
        len(every) - len(shared),
        leaks.reason,
    )


def leak_rate(ended: Sequence[Ended]) -> float | None:
    """The share of episodes that ended with a leak."""
    return sum(each.end == "leak" for each in ended) / len(ended) if ended else None


def _lasting(method: str, on: str, ended: Sequence[Ended], clusters: Clusters) -> Lasting:
    there = usable(ended)
    leaked = Counter(each.steps for each in ended if each.end == "leak")
    kept = Counter(each.steps for each in ended if each.end != "leak")
    return Lasting(method, on, len(there), tuple(curve(leaked, kept, effect=_effect(there, clusters))))


def _effect(ended: Sequence[Ended], clusters: Clusters) -> float:
    """The design effect of the leak rate."""
    rate = leak_rate(ended)
    spread = spread_of([clusters.leaks(ended)]) if ended else None
    if spread is None or spread.reason or not rate or rate == 1:
        return 1.0
    return max(1.0, spread.variance * len(ended) / (rate * (1 - rate)))


class Gain(NamedTuple):
    """The mean gain per use of a mutation."""

    mutator: str
    gain: float
    uses: int


def chance_gains(uses: Sequence[Uses]) -> dict[str, list[Gain]]:
    """The gains of mutations in random rewording, by guard, highest first. Mutations with few uses are omitted."""
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
