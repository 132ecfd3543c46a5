"""Points with their intervals, one below the other: what reports compare things with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from groundswell.experiments.reporting.drawing import BLUE, FAINT, GROUND, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.4
"""Of a drawing, in inches."""
LETTER = 0.066
"""About how wide a letter of a label is, in inches."""


class Point(NamedTuple):
    """A figure with its interval: what is not bounded has no end."""

    value: float | None
    low: float | None
    high: float | None
    note: str
    colour: str = BLUE
    marker: str = "o"
    bold: bool = True


class Group(NamedTuple):
    """Points that belong together, one below the other."""

    label: str
    points: Sequence[Point]


def legend(figure: Figure, entries: Sequence[tuple[str, str, str, bool]]) -> None:
    """What marks mean: a word, a colour, a shape, and whether it is filled."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=colour, marker=marker, mfc=colour if bold else GROUND, mec=colour, ms=5, lw=1.4, label=words
        )
        for words, colour, marker, bold in entries
    ]
    figure.legend(handles=handles, loc="upper left", ncols=len(handles), borderaxespad=0.2, handletextpad=0.5)


def forest_height(groups: Sequence[Group]) -> float:
    """How high such a drawing is, in inches."""
    return 0.95 + sum(0.1 + 0.19 * len(group.points) for group in groups)


def forest(figure: Figure, groups: Sequence[Group], height: float, right: float = 1.15) -> Axes:
    """Points with their intervals, row by row, with names to the left and figures to the right."""
    left = 0.25 + LETTER * max((len(group.label) for group in groups), default=0)
    axes = figure.add_axes((left / WIDTH, 0.5 / height, (WIDTH - left - right) / WIDTH, (height - 0.9) / height))
    at, ticks = 0.0, []
    for group in groups:
        ticks.append(at + 0.19 * (len(group.points) - 1) / 2)
        for point in group.points:
            whisker(axes, point, at)
            at += 0.19
        at += 0.1
    axes.set_ylim(at - 0.1, -0.19)
    axes.set_yticks(ticks, [group.label for group in groups], color=INK)
    axes.grid(visible=False, axis="y")
    return axes


def whisker(axes: Axes, point: Point, at: float) -> None:
    """One point with its interval, and its figure to the right."""
    if point.value is not None:
        width = 1.8 if point.bold else 1.0
        if point.low is not None and point.high is not None:
            axes.plot([point.low, point.high], [at, at], color=point.colour, lw=width, solid_capstyle="butt")
        face = point.colour if point.bold else GROUND
        axes.plot([point.value], [at], point.marker, ms=4.6, mfc=face, mec=point.colour, mew=1, clip_on=False)
    colour = INK if point.bold else FAINT
    axes.text(1.02, at, point.note, transform=axes.get_yaxis_transform(), va="center", fontsize=7.5, color=colour)


def nice_end(most: float) -> float:
    """Where an axis of shares ends."""
    return next(end for end in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if most <= end + 1e-9)


def percent_axis(axes: Axes, end: float) -> None:
    """An axis of shares, from nothing to there."""
    steps = 4 if end in (0.2, 0.4, 0.8) else 5 if end in (0.05, 0.1, 1.0) else 6
    ticks = [end * step / steps for step in range(steps + 1)]
    axes.set_xlim(0, end)
    axes.set_xticks(ticks, [f"{100 * tick:.3g}%" for tick in ticks])
