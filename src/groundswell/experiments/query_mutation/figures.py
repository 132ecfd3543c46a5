"""Statistics of an evaluation: how each method did, and against the others on the same episodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundswell.experiments.query_mutation import mutators
from groundswell.experiments.query_mutation.analysis import Analysis, Contrast, Curve, Ended, Figure, Uses
from groundswell.experiments.query_mutation.task import Task
from groundswell.stats.rates import wilson

TRAINED, HELD_OUT = "trained", "held out"


def analysed(curves: Sequence[Curve], ended: Sequence[Ended], uses: Sequence[Uses], task: Task) -> Analysis:
    """What was found."""
    met = {guard.name for guard in task.guards}
    figures = [_figure(method, on, some) for method, on, some in _groups(ended, met)]
    contrasts: list[Contrast] = []
    return Analysis(
        curves=tuple(curves),
        figures=tuple(figures),
        contrasts=tuple(contrasts),
        uses=tuple(uses),
        verdict="",
        masked=sum(point.masked for curve in curves for point in curve.points),
        prompts=mutators.digest(),
    )


def _groups(ended: Sequence[Ended], met: set[str]) -> Iterable[tuple[str, str, list[Ended]]]:
    methods = list(dict.fromkeys(each.method for each in ended))
    guards = list(dict.fromkeys(each.guard for each in ended))
    for method in methods:
        own = [each for each in ended if each.method == method]
        yield method, HELD_OUT, [each for each in own if each.guard not in met]
        yield method, TRAINED, [each for each in own if each.guard in met]
        for guard in guards:
            yield method, guard, [each for each in own if each.guard == guard]


def _figure(method: str, on: str, ended: Sequence[Ended]) -> Figure:
    there = [each for each in ended if each.end != "fault"]
    count = sum(each.end == "leak" for each in there)
    found = wilson(count, len(there))
    mean = sum(each.total for each in there) / len(there) if there else None
    steps = sum(each.steps for each in there) / len(there) if there else None
    return Figure(
        method,
        on,
        len(there),
        count,
        count / len(there) if there else None,
        found.low,
        found.high,
        mean,
        None,
        None,
        steps,
        len(ended) - len(there),
    )
