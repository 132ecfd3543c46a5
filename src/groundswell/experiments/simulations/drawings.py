"""How the figures of a report on simulations are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groundswell.experiments.simulations.tabulation import ScaleFigures
from groundswell.reporting import numbers
from groundswell.reporting.figures import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    PINK,
    RED,
    WIDTH,
    Group,
    Point,
    forest,
    legend,
    nice_end,
    percent_axis,
    whisker,
)
from groundswell.stats.clusters import Figure as Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = ((BLUE, "o"), (RED, "s"), (GREEN, "D"), (PINK, "^"), (FAINT, "v"))
"""Colours and markers of groups, in order."""
BEFORE = "before"
TIMES = [("after the conversation", BLUE, "o", True), (BEFORE, FAINT, "o", False)]
STEPS_HEIGHT = 2.9


def share_point(value: Value, note: str = "", look: tuple[str, str] = LOOKS[0], *, before: bool = False) -> Point:
    """A share with its interval; answers before the conversation are hollow."""
    colour = FAINT if before else look[0]
    words = f"{numbers.percent(value.value)}  {note}".rstrip()
    interval = numbers.interval(value.low, value.high)
    name = BEFORE if before else ""
    return Point(value.value, value.low, value.high, words, colour, look[1], not before, interval, name)


def mean_point(value: Value, note: str = "", *, before: bool = False) -> Point:
    """A mean with its interval."""
    words = f"{numbers.number(value.value)}  {note}".rstrip()
    colour, name = (FAINT, BEFORE) if before else (BLUE, "")
    interval = numbers.between(value.low, value.high)
    return Point(value.value, value.low, value.high, words, colour, "o", not before, interval, name)


def shares(figure: Figure, *, groups: Sequence[Group], height: float, label: str, twice: bool) -> None:
    """Shares with their intervals as a forest plot."""
    right = 0.35 + 0.062 * max(len(point.note) for group in groups for point in group.points)
    axes = forest(figure, groups, height, right)
    ends = [end for group in groups for point in group.points for end in (point.value, point.high) if end is not None]
    percent_axis(axes, nice_end(max(ends, default=1)))
    axes.set_xlabel(label)
    if twice:
        legend(figure, TIMES)


def means(
    figure: Figure,
    *,
    groups: Sequence[Group],
    height: float,
    label: str,
    ends: tuple[float | None, float | None],
    twice: bool,
) -> None:
    """Means with their intervals, on the whole scale."""
    axes = forest(figure, groups, height, right=1.3)
    low, high = ends
    if low is not None and high is not None:
        axes.set_xlim(*(_padded(low, high) if high - low >= 2 else (low - 0.05, high + 0.05)))
    axes.set_xlabel(label)
    if twice:
        legend(figure, TIMES)


def steps(figure: Figure, *, scale: ScaleFigures, label: str) -> None:
    """A bar per step of the scale, and above them the mean with its interval."""
    left, height = 0.75, STEPS_HEIGHT
    wide = (WIDTH - left - 1.3) / WIDTH
    twice = scale.before is not None
    above = 0.42 if twice else 0.25
    top = figure.add_axes((left / WIDTH, (height - 0.35 - above) / height, wide, above / height))
    points = [mean_point(scale.mean)]
    points += [mean_point(scale.before, before=True)] if scale.before is not None else []
    for at, point in enumerate(points):
        whisker(top, point, at, "mean")
    assert scale.low is not None
    assert scale.high is not None
    top.set(xlim=_padded(scale.low, scale.high), ylim=(len(points) - 0.4, -0.6))
    top.set_yticks(range(len(points)), ["mean", "before"][: len(points)], color=INK)
    top.tick_params(labelbottom=False)
    top.grid(visible=False, axis="y")
    axes = figure.add_axes((left / WIDTH, 0.45 / height, wide, (height - 0.95 - above) / height), sharex=top)
    whole = sum(each.count for each in scale.steps) or 1
    axes.bar(
        [each.step for each in scale.steps],
        [each.count / whole for each in scale.steps],
        color=BLUE,
        alpha=0.6,
        width=0.7,
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    if len(scale.steps) <= 21:
        axes.set_xticks([each.step for each in scale.steps])
    axes.tick_params(labelbottom=True)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel(label)
    axes.set_ylabel("share of answers")
    if twice:
        legend(figure, TIMES)


def _padded(low: float, high: float) -> tuple[float, float]:
    """Axis limits with room for markers at the ends of the scale."""
    room = max(0.5, 0.03 * (high - low)) if high - low < 15 else 0.03 * (high - low)
    return low - room, high + room


def differences(figure: Figure, *, groups: Sequence[Group], height: float, label: str) -> None:
    """Differences with their intervals, and a line at zero."""
    axes = forest(figure, groups, height, right=1.5)
    axes.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xlabel(label)
