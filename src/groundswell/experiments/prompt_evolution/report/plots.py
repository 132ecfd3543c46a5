"""Figures as drawings: the sealed test, and the front. Each says in words what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groundswell.experiments.prompt_evolution.analysis import SEED, Analysis, Finalist, Gain, Tested
from groundswell.experiments.prompt_evolution.report.saying import (
    LEVEL,
    between,
    name_of,
    p_of,
    points,
    search_of,
    standing,
)
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.dots import WIDTH, Group, Point, forest, forest_height, legend, percent_axis
from groundswell.experiments.reporting.drawing import BLUE, FAINT, GREEN, INK, PINK, RED, Drawing, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

NAMES = ("accuracies", "gains", "curves", "genealogy", "front")
"""Every drawing that a report may have."""
LOOK = {SEED: (FAINT, "x"), "evolution": (BLUE, "o"), "random": (GREEN, "D"), "best_of_n": (RED, "s")}
OTHER = (PINK, "^")
SIDE = {"better": GREEN, "worse": RED}
LEAST_SPAN = 0.05
"""Of an axis of shares that ends where the figures do."""

APART = 0.14
"""Inches between numbers in a drawing."""


def look(name: str) -> tuple[str, str]:
    """The colour and the mark of a search, or of the seed."""
    return LOOK.get(name, OTHER)


def accuracies(analysis: Analysis) -> Drawing | None:
    """Every prompt on the sealed test with its interval, and on the validation set."""
    shown = [each for each in analysis.tested if each.accuracy is not None]
    if not shown:
        return None
    groups = [Group(name_of(each.name), _accuracy(each)) for each in shown]
    height = forest_height(groups)

    def paint(figure: Sheet) -> None:
        axes = forest(figure, groups, height, right=1.3)
        percent_axis(axes, 1.0)
        axes.set_xlabel(f"mean score, with {LEVEL} intervals of the sealed test")
        legend(figure, [("sealed test", INK, "o", True), ("validation", FAINT, "o", False)])

    told = [f"{name_of(each.name)} {numbers.percent(each.accuracy)}" for each in shown]
    return drawn("accuracies", "Scores on the sealed test: " + "; ".join(told), (WIDTH, height), paint)


def _accuracy(each: Tested) -> list[Point]:
    colour, _ = look(each.name)
    test = Point(each.accuracy, each.low, each.high, f"{numbers.percent(each.accuracy)}  n {each.n:,}", colour)
    if each.validation is None:
        return [test]
    return [test, Point(each.validation, None, None, numbers.percent(each.validation), colour, bold=False)]


def gains(analysis: Analysis) -> Drawing | None:
    """The evolved prompt less each of the others, on the same problems."""
    shown = [each for each in analysis.gains if each.value is not None]
    if not shown:
        return None
    groups = [Group(f"over {name_of(each.over)}", [_gain(analysis, each)]) for each in shown]
    ends = [0.0, *(end for each in shown for end in (each.value, each.low, each.high) if end is not None)]
    low, high = padded(ends)
    height = forest_height(groups)

    def paint(figure: Sheet) -> None:
        axes = forest(figure, groups, height, right=1.3)
        axes.axvline(0, color=INK, lw=0.9)
        axes.set_xlim(low, high)
        axes.xaxis.set_major_formatter(lambda value, _: points(value).removesuffix(".0"))
        axes.set_xlabel(f"gain on the sealed test in percentage points, with paired {LEVEL} intervals")
        legend(figure, [("better", GREEN, "o", True), ("worse", RED, "o", True), ("open", INK, "o", False)])

    told = [f"over {name_of(each.over)} {points(each.value)} ({between(each.low, each.high)})" for each in shown]
    return drawn("gains", "Gains of the evolved prompt, in points: " + "; ".join(told), (WIDTH, height), paint)


def _gain(analysis: Analysis, gain: Gain) -> Point:
    side = SIDE.get(standing(analysis, gain.over))
    note = f"{points(gain.value)}  {p_of(gain.p)}"
    return Point(gain.value, gain.low, gain.high, note, side or INK, bold=side is not None)


def padded(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """Where an axis begins and ends that has room for all of these."""
    low, high = min(values), max(values)
    more = max(share * (high - low), LEAST_SPAN / 2)
    return low - more, high + more


def front(analysis: Analysis, groups: Sequence[Sequence[Finalist]]) -> Drawing | None:
    """Every finalist by tokens and validation score; `groups` are those on the front, in the order of their table."""
    every = [(search.name, each) for search in analysis.searches for each in search.finalists]
    if not every:
        return None
    names = list(dict.fromkeys(name for name, _ in every))
    best = {each.genome.text for group in groups for each in group}

    def paint(figure: Sheet) -> None:
        axes = figure.add_axes((0.09, 0.15, 0.88, 0.73))
        for name, each in reversed(every):
            colour, marker = look(name)
            on = each.genome.text in best
            face = colour if on else "none"
            axes.plot([each.tokens], [each.validation], marker, ms=6.5 if on else 4.5, mfc=face, mec=colour, mew=1)
        axes.set_xlim(*_room([each.tokens for _, each in every]))
        axes.set_ylim(*padded([each.validation for _, each in every], 0.12))
        _numbered(axes, [group[0] for group in groups])
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%" if 0 <= value <= 1 else "")
        axes.set(xlabel="tokens per problem, of prompt and reply", ylabel="mean score on validation")
        shapes = [(search_of(name), *look(name), True) for name in names]
        legend(figure, [*shapes, ("not on the front", FAINT, "o", False)])

    told = [f"{numbers.percent(group[0].validation)} at {group[0].tokens:.0f} tokens" for group in groups]
    return drawn("front", "The front, by validation score and tokens: " + "; ".join(told), (WIDTH, 3.3), paint)


def _room(values: Sequence[float]) -> tuple[float, float]:
    """An axis of tokens with room for all."""
    more = max(0.06 * (max(values) - min(values)), 1.0)
    return min(values) - more, max(values) + more


def inches(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """Where a point lies on the sheet."""
    across, up = axes.transData.transform((x, y)) / axes.figure.dpi
    return float(across), float(up)


def _numbered(axes: Axes, points: Sequence[Finalist]) -> None:
    """Numbers beside points; where two would meet, the second goes to the other side."""
    before: list[tuple[float, float]] = []
    for number, each in enumerate(points, 1):
        x, y = inches(axes, each.tokens, each.validation)
        near = any(abs(x - one) < APART and abs(y - other) < APART for one, other in before)
        off = (7, -9) if near else (-12, 4)
        before.append((x, y))
        axes.annotate(
            str(number), (each.tokens, each.validation), off, textcoords="offset points", color=INK, fontsize=8
        )
