"""Drawings of searches: how fit and how varied they were as asks were spent, and who descends from whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from groundswell.experiments.prompt_evolution.analysis import Analysis, Searched
from groundswell.experiments.prompt_evolution.population import Member
from groundswell.experiments.prompt_evolution.report.lineage import ancestors, by_birth, line
from groundswell.experiments.prompt_evolution.report.lineage import drawn as chosen
from groundswell.experiments.prompt_evolution.report.plots import inches, look, padded
from groundswell.experiments.prompt_evolution.report.saying import fitness, is_accuracy, search_of
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.experiments.reporting.dots import LETTER, WIDTH
from groundswell.experiments.reporting.drawing import BLUE, FAINT, GRID, GROUND, INK, Drawing, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

APART = 0.2
"""Inches between numbers, one above the other."""
MOST_NUMBERED = 15
"""On a longer line only its ends have numbers."""


def curves(analysis: Analysis, settings: Evolution) -> Drawing | None:
    """The best and the mean fitness of every search by asks, and below them how much its members differ."""
    shown = [each for each in analysis.searches if each.curve]
    if not shown:
        return None

    def paint(figure: Sheet) -> None:
        upper = figure.add_axes((0.09, 0.42, 0.88, 0.5))
        lower = figure.add_axes((0.09, 0.11, 0.88, 0.24))
        for each in shown:
            _curve(upper, lower, each)
        last = max(each.asks for each in shown)
        for axes in (upper, lower):
            axes.set(xlim=(0, last), ylim=(0, 1.02))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        upper.set_ylabel("accuracy in training" if is_accuracy(settings) else "fitness in training")
        upper.yaxis.set_major_formatter(lambda value, _: _tick(value, settings))
        upper.tick_params(labelbottom=False)
        lower.set(xlabel="asks spent", ylabel="spread")
        _legend(figure, shown)

    told = [
        f"{search_of(each.name)} {fitness(each.curve[-1].best, settings)} after {each.asks:,} asks" for each in shown
    ]
    return drawn("curves", "The best fitness at the end: " + "; ".join(told), (WIDTH, 4.2), paint)


def _tick(value: float, settings: Evolution) -> str:
    return f"{100 * value:.0f}%" if is_accuracy(settings) else f"{value:.1f}"


def _curve(upper: Axes, lower: Axes, search: Searched) -> None:
    colour, _ = look(search.name)
    asks = [each.asks for each in search.curve]
    best = [each.best for each in search.curve]
    upper.step([*asks, search.asks], [*best, best[-1]], where="post", color=colour, lw=1.8)
    upper.plot(asks, [each.mean for each in search.curve], color=colour, lw=1.1, ls=(0, (3, 2)))
    lower.plot(asks, [each.spread for each in search.curve], color=colour, lw=1.4)


def _legend(figure: Sheet, shown: Sequence[Searched]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=look(each.name)[0], lw=2.4, label=search_of(each.name)) for each in shown]
    handles += [
        Line2D([], [], color=INK, lw=1.8, label="the best so far"),
        Line2D([], [], color=INK, lw=1.1, ls=(0, (3, 2)), label="mean of the living"),
    ]
    figure.legend(handles=handles, loc="upper left", ncols=len(handles), borderaxespad=0.2, handletextpad=0.5)


def genealogy(search: Searched, settings: Evolution) -> Drawing | None:
    """Who descends from whom: all who lived, or some of them, and the winner's ancestors."""
    members = by_birth(search.members)
    winner = search.winner.born
    if winner not in members:
        return None
    own, main = ancestors(members, winner), line(members, winner)
    shown = chosen(search.members, {each.born for each in main})

    def paint(figure: Sheet) -> None:
        axes = figure.add_axes((0.09, 0.14, 0.88, 0.76))
        rest, near = ([each for each in shown if (each.born in own) == is_near] for is_near in (False, True))
        _lines(axes, rest, members, GRID, 0.5)
        _dots(axes, rest, FAINT, 2.2)
        _lines(axes, near, members, BLUE, 0.6)
        axes.plot([each.born for each in main], [each.fitness for each in main], color=BLUE, lw=2.2)
        _dots(axes, near, BLUE, 3.0)
        _dots(axes, main, BLUE, 4.6)
        axes.set_xlim(*_births(search.members))
        axes.set_ylim(*padded([each.fitness for each in shown], 0.1))
        axes.yaxis.set_major_formatter(lambda value, _: _tick(value, settings) if 0 <= value <= 1 else "")
        what = "accuracy in training" if is_accuracy(settings) else "fitness in training"
        axes.set(xlabel="birth", ylabel=what)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 0 else "")
        _numbered(axes, main)
        _key(figure)

    generations = len(main) - 1
    said = f"From birth {main[0].born} to the winner, birth {winner}, in {generations} steps; {len(shown):,} are drawn"
    return drawn("genealogy", said, (WIDTH, 3.6), paint)


def _births(members: Sequence[Member]) -> tuple[float, float]:
    last = max((each.born for each in members), default=1)
    more = max(0.6, 0.02 * last)
    return -more, last + more


def _lines(axes: Axes, some: Sequence[Member], members: Mapping[int, Member], colour: str, width: float) -> None:
    """From each to its parents."""
    from matplotlib.collections import LineCollection

    pairs = [(members[at], each) for each in some for at in each.parents if at in members]
    ends = [[(one.born, one.fitness), (other.born, other.fitness)] for one, other in pairs]
    axes.add_collection(LineCollection(ends, colors=colour, linewidths=width, alpha=0.6, zorder=1), autolim=False)


def _dots(axes: Axes, some: Sequence[Member], colour: str, size: float) -> None:
    xs, ys = [each.born for each in some], [each.fitness for each in some]
    axes.plot(xs, ys, "o", ms=size, mfc=colour, mec=GROUND, mew=0.4, ls="none", zorder=3)


def _numbered(axes: Axes, main: Sequence[Member]) -> None:
    """Numbers of births on the winner's line: its ends, and as many between as there is room for."""
    put = list[tuple[float, float]]()
    for each in (main[-1], *(main[:-1] if len(main) <= MOST_NUMBERED else main[:1])):
        x, y = inches(axes, each.born, each.fitness)
        wide = LETTER * (1 + len(f"#{main[-1].born}"))
        if any(abs(x - one) < wide and abs(y - other) < APART for one, other in put):
            continue
        put.append((x, y))
        weight = "bold" if each is main[-1] else "normal"
        place = (each.born, each.fitness)
        axes.annotate(
            f"#{each.born}",
            place,
            (0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color=INK,
            fontweight=weight,
        )


def _key(figure: Sheet) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=BLUE, marker="o", ms=4.6, lw=2.2, label="from the seed to the winner"),
        Line2D([], [], color=BLUE, marker="o", ms=3.0, lw=0.6, label="its other ancestors"),
        Line2D([], [], color=GRID, mfc=FAINT, mec=FAINT, marker="o", ms=2.2, lw=0.8, label="others who lived"),
    ]
    figure.legend(handles=handles, loc="upper left", ncols=3, borderaxespad=0.2, handletextpad=0.5)
