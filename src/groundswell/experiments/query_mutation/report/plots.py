"""Figures as drawings. Each says in words what it shows, for those who cannot see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groundswell.experiments.query_mutation.analysis import Analysis, Figure, Lasting, Uses
from groundswell.experiments.query_mutation.curves import Band, bands
from groundswell.experiments.query_mutation.verdict import HELD_OUT, TRAINED, UNTRAINED
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.dots import (
    LETTER,
    WIDTH,
    Group,
    Point,
    forest,
    forest_height,
    legend,
    percent_axis,
)
from groundswell.experiments.reporting.drawing import (
    BLUE,
    FAINT,
    GREEN,
    GRID,
    HEAT,
    INK,
    PINK,
    RED,
    Drawing,
    drawn,
    name_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

NAMES = ("methods", "learning", "steps", "operators")
"""Every drawing that a report may have."""
LOOK = {"noop": (FAINT, "x"), "random": (GREEN, "D"), "bandit": (RED, "s"), "ppo": (BLUE, "o")}
OTHER = (PINK, "^")
WIDE = {HELD_OUT: "all held out", TRAINED: "all trained"}
PAST = 0.3
"""How far a curve goes on after the last query, so that its end can be seen."""
PERCENTS = ([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])


def look(method: str) -> tuple[str, str]:
    """The colour and the mark of a method."""
    return LOOK.get(method, OTHER)


def places(analysis: Analysis) -> list[str]:
    """Where figures are of, in the order in which they are shown."""
    return list(dict.fromkeys(each.on for each in analysis.figures))


def methods(analysis: Analysis, trained: Sequence[str]) -> Drawing | None:
    """The leak rate of every method against every guard."""
    shown = [each for each in analysis.figures if each.rate is not None]
    if not shown:
        return None
    order = _ordered(analysis, trained)
    groups = [Group(WIDE.get(on, name_of(on)), [_point(each) for each in shown if each.on == on]) for on in order]
    names = list(dict.fromkeys(each.method for each in shown))
    height = forest_height(groups)

    def paint(figure: Sheet) -> None:
        axes = forest(figure, groups, height)
        percent_axis(axes, 1.0)
        axes.set_xlabel(f"share of episodes with a leak, with {analysis.level:.0%} intervals")
        legend(figure, [(name, *look(name), name not in UNTRAINED) for name in names])

    told = [f"{each.method} on {each.on} {numbers.rate(each)}" for each in shown if each.on in WIDE]
    return drawn("methods", "Leak rates: " + "; ".join(told), (WIDTH, height), paint)


def _ordered(analysis: Analysis, trained: Sequence[str]) -> list[str]:
    """Guards that were held out below their sum, then those that were met."""
    every = places(analysis)
    new = [on for on in every if on not in WIDE and on not in trained]
    met = [on for on in every if on in trained]
    order = [HELD_OUT, *new, TRAINED, *met]
    return [on for on in order if on in every]


def _point(figure: Figure) -> Point:
    note = f"{numbers.percent(figure.rate)}  {figure.count:,}/{figure.n:,}"
    return Point(figure.rate, figure.low, figure.high, note, *look(figure.method), figure.method not in UNTRAINED)


def learning(analysis: Analysis) -> Drawing | None:
    """The leak rate of each kind of learner while it learns, with its band."""
    found = [each for each in bands(analysis.curves, analysis.level) if each.points]
    if not found:
        return None
    still = [
        each for each in analysis.figures if each.on == TRAINED and each.method in UNTRAINED and each.rate is not None
    ]

    def paint(figure: Sheet) -> None:
        axes = figure.add_axes((0.07, 0.15, 0.76, 0.8))
        for band in found:
            _curve(axes, band)
        last = max(band.points[-1].steps for band in found)
        ends = [(band.points[-1].rate, band.learner, look(band.learner)[0]) for band in found]
        for each in still:
            assert each.rate is not None
            axes.axhline(each.rate, color=look(each.method)[0], lw=1, ls=(0, (4, 3)))
            ends.append((each.rate, f"{each.method}, evaluated", look(each.method)[0]))
        axes.set(xlim=(0, last), ylim=(0, 1.02), xlabel="environment steps of one learner")
        axes.set_yticks(*PERCENTS)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _named(axes, ends)

    told = [
        f"{band.learner} from {numbers.percent(band.points[0].rate)} to {numbers.percent(band.points[-1].rate)}"
        for band in found
    ]
    return drawn("learning", "Leak rates while learning: " + "; ".join(told), (WIDTH, 3.1), paint)


def _curve(axes: Axes, band: Band) -> None:
    colour, steps = look(band.learner)[0], [each.steps for each in band.points]
    axes.fill_between(
        steps, [each.low for each in band.points], [each.high for each in band.points], color=colour, alpha=0.18, lw=0
    )
    axes.plot(steps, [each.rate for each in band.points], color=colour, lw=1.8)


def _named(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Names at the ends of lines, apart from each other."""
    at = -1.0
    for rate, name, colour in sorted(ends):
        at = max(rate, at + 0.065)
        axes.annotate(
            name, (1, at), (6, 0), "axes fraction", textcoords="offset points", color=colour, va="center", fontsize=8
        )


def steps(analysis: Analysis) -> Drawing | None:
    """How many queries it takes: the share of episodes that have leaked after each step."""
    wide = [on for on in WIDE if any(each.on == on and each.n for each in analysis.lasting)]
    if not wide:
        return None
    last = max((step.time for each in analysis.lasting for step in each.steps), default=1)

    def paint(figure: Sheet) -> None:
        panels = figure.subplots(1, len(wide), squeeze=False, sharey=True)[0]
        figure.subplots_adjust(0.07, 0.16, 0.88 if len(wide) > 1 else 0.7, 0.9, 0.34)
        for axes, on in zip(panels, wide, strict=True):
            _leaked(axes, [each for each in analysis.lasting if each.on == on and each.n], last)
            axes.set_title({HELD_OUT: "held-out guards", TRAINED: "trained guards"}[on], color=INK)

    told = [
        f"{each.method} on {each.on} {numbers.percent(1 - each.steps[-1].share if each.steps else 0)}"
        for each in analysis.lasting
        if each.n
    ]
    return drawn("steps", "Share that has leaked after the last step: " + "; ".join(told), (WIDTH, 2.8), paint)


def _leaked(axes: Axes, some: Sequence[Lasting], last: int) -> None:
    ends = []
    for each in some:
        colour = look(each.method)[0]
        times = [0.0, *(float(step.time) for step in each.steps), last + PAST]
        shares = [0.0, *(1 - step.share for step in each.steps)]
        lows, highs = [0.0, *(1 - step.high for step in each.steps)], [0.0, *(1 - step.low for step in each.steps)]
        axes.fill_between(times, [*lows, lows[-1]], [*highs, highs[-1]], step="post", color=colour, alpha=0.12, lw=0)
        axes.step(times, [*shares, shares[-1]], where="post", color=colour, lw=1.8)
        ends.append((shares[-1], each.method, colour))
    axes.set(xlim=(0, last + PAST), ylim=(0, 1.02), xlabel="queries asked")
    axes.set_yticks(*PERCENTS)
    axes.set_xticks(range(0, last + 1, max(1, last // 5)))
    _named(axes, ends)


def operators(analysis: Analysis) -> Drawing | None:
    """What a use of each mutator gained against each guard: a panel for each method that chose among them."""
    used = [each for each in analysis.uses if each.steps]
    named = {each.method for each in used}
    order = list(dict.fromkeys(each.method for each in analysis.figures))
    names = [name for name in reversed(order) if name in named and name != "noop"]
    if not names:
        return None
    mutators = list(dict.fromkeys(each.mutator for each in sorted(used, key=lambda each: each.mutator)))
    guards = [on for on in places(analysis) if on not in WIDE]
    most = max(each.gained / each.steps for each in used if each.method in names) or 1.0
    left = 0.3 + LETTER * max(len(name_of(guard)) for guard in guards)
    cell, row, top = (WIDTH - left - 0.1) / len(mutators), 0.33, 0.62
    panel = top + row * len(guards)
    size = (WIDTH, panel * len(names) + 0.1)

    def paint(figure: Sheet) -> None:
        for place, name in enumerate(names):
            bottom = size[1] - panel * place - panel
            box = (left / WIDTH, bottom / size[1], cell * len(mutators) / WIDTH, row * len(guards) / size[1])
            own = [each for each in used if each.method == name]
            _heat(figure.add_axes(box), name, own, (guards, mutators), most)

    best = [max((each for each in used if each.method == name), key=lambda each: each.leaks) for name in names]
    told = [f"{each.method} leaks most by {each.mutator} against {each.guard}, {each.leaks}" for each in best]
    return drawn("operators", "What mutators gain: " + "; ".join(told), size, paint)


def _heat(axes: Axes, name: str, uses: Sequence[Uses], sides: tuple[list[str], list[str]], most: float) -> None:
    from matplotlib.patches import Rectangle

    guards, mutators = sides
    for each in uses:
        x, y, gain = mutators.index(each.mutator), guards.index(each.guard), each.gained / each.steps
        axes.add_patch(Rectangle((x, y), 1, 1, fc=HEAT, ec="none", alpha=0.04 + 0.86 * max(0.0, gain / most)))
        axes.text(x + 0.5, y + 0.36, f"{gain:.2f}", ha="center", va="center", fontsize=8)
        axes.text(x + 0.5, y + 0.76, f"n {each.steps:,}", ha="center", va="center", fontsize=6)
    axes.set(xlim=(0, len(mutators)), ylim=(len(guards), 0))
    axes.set_yticks([at + 0.5 for at in range(len(guards))], [name_of(guard) for guard in guards], color=INK)
    axes.set_xticks(
        [at + 0.5 for at in range(len(mutators))], [name_of(each, 14) for each in mutators], color=INK, fontsize=7.5
    )
    axes.xaxis.tick_top()
    axes.grid(visible=False)
    for edge in range(len(guards) + 1):
        axes.axhline(edge, color=GRID, lw=0.8)
    for edge in range(len(mutators) + 1):
        axes.axvline(edge, color=GRID, lw=0.8)
    axes.spines["bottom"].set_visible(False)
    axes.set_title(name, color=look(name)[0], pad=6, fontweight="bold")
