"""Figures as drawings. Each says in words what it shows, for those who cannot see it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.dots import (
    LETTER,
    WIDTH,
    Group,
    Point,
    forest,
    forest_height,
    legend,
    nice_end,
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
from groundswell.experiments.secret_game.analysis import Analysis, ModelFigures, PairFigures, RateFigure
from groundswell.experiments.secret_game.played import TIERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = ("leak-rates", "pairs", "survival", "comparisons", "strengths", "tokens", "waves")
"""Every drawing that a report may have."""
TIER_LOOK = {"exact": (BLUE, "o"), "normalised": (RED, "s"), "encoded": (GREEN, "D"), "judged": (PINK, "^")}
PAST = 0.4
"""How far a curve goes on after the last message, so that its end can be seen."""
PANELS = ("A. The first speaker leaks", "B. The second speaker leaks")


def leak_rates(analysis: Analysis) -> Drawing | None:
    """The leak rate of every model, by every tier."""
    if not analysis.models:
        return None
    models = sorted(analysis.models, key=lambda each: (-(each.revealed.rate or 0), each.model))
    groups = [Group(name_of(each.model), _tier_points(each, analysis)) for each in models]
    most = max((figure.high for each in models for figure in each.tiers.values() if figure.rate is not None), default=1)
    label = "Leak rates: " + "; ".join(f"{each.model} {numbers.rate(each.revealed)}" for each in models)
    found = [tier for tier in TIERS if any(tier in each.tiers for each in models)]
    height = forest_height(groups)

    def paint(figure: Figure) -> None:
        axes = forest(figure, groups, height)
        percent_axis(axes, nice_end(most))
        axes.set_xlabel(f"share of secrets leaked, with {analysis.level:.0%} intervals")
        names = {tier: f"{tier} (headline)" if tier == analysis.tier else tier for tier in found}
        legend(figure, [(names[tier], *TIER_LOOK[tier], tier == analysis.tier) for tier in found])

    return drawn("leak-rates", label, (WIDTH, height), paint)


def _tier_points(model: ModelFigures, analysis: Analysis) -> list[Point]:
    return [
        Point(rate.rate, rate.low, rate.high, _note(rate), *TIER_LOOK[tier], tier == analysis.tier)
        for tier in TIERS
        if (rate := model.tiers.get(tier)) is not None
    ]


def _note(rate: RateFigure) -> str:
    return f"{numbers.percent(rate.rate)}  {rate.count:,}/{rate.n:,}"


def pair_matrix(analysis: Analysis) -> Drawing | None:
    """Who leaks to whom: first speakers down, second speakers across."""
    pairs = analysis.pairs
    if not pairs:
        return None
    models = sorted({model for pair in pairs for model in (pair.first, pair.second)})
    side = (0.62 if len(models) <= 6 else 0.5) * len(models)
    names = LETTER * max(len(name_of(model)) for model in models)
    left, top = 0.25 + names, 0.2 + 0.68 * names
    panel = max(side + max(0.15, 0.76 * names - 0.3), 0.1 + LETTER * max(map(len, PANELS)))
    beside = left + 2 * panel < WIDTH + 0.6
    across, down = (left + 2 * panel, top + side) if beside else (left + panel, 2 * (top + side))
    size = (across, down + (0.35 if beside else 0.8))

    def paint(figure: Figure) -> None:
        for of in (0, 1):
            x = left + of * panel if beside else left
            y = 0.35 if beside or of else top + side + 0.8
            axes = figure.add_axes((x / size[0], y / size[1], side / size[0], side / size[1]))
            _matrix(axes, models, pairs, of, named=not (beside and of))

    told = [f"{p.first} to {p.second}: {numbers.percent(p.first_revealed.rate)} of {p.interactions}" for p in pairs]
    return drawn("pairs", "How often the first speaker leaks to the second. " + "; ".join(told), size, paint)


def _matrix(axes: Axes, models: Sequence[str], pairs: Sequence[PairFigures], of: int, *, named: bool) -> None:
    from matplotlib.patches import Rectangle

    for pair in pairs:
        rate = pair.second_revealed if of else pair.first_revealed
        x, y = models.index(pair.second), models.index(pair.first)
        axes.add_patch(Rectangle((x, y), 1, 1, fc=HEAT, ec="none", alpha=0.06 + 0.84 * (rate.rate or 0)))
        axes.text(
            x + 0.5,
            y + 0.42,
            numbers.percent(rate.rate),
            ha="center",
            va="center",
            fontsize=8 if len(models) <= 6 else 7.5,
        )
        axes.text(x + 0.5, y + 0.76, f"n {rate.n:,}", ha="center", va="center", fontsize=6)
    size = len(models)
    axes.set(xlim=(0, size), ylim=(size, 0))
    names, middles = [name_of(model) for model in models], [at + 0.5 for at in range(size)]
    axes.set_yticks(middles if named else [], names if named else [], color=INK)
    axes.set_xticks(middles, names, color=INK, rotation=40, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    axes.grid(visible=False)
    for edge in range(size + 1):
        axes.axhline(edge, color=GRID, lw=0.8)
        axes.axvline(edge, color=GRID, lw=0.8)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlabel(PANELS[of], loc="left", color=INK)


def survival(analysis: Analysis) -> Drawing | None:
    """How long models keep their secrets: a panel for each, the others behind it in grey."""
    models = [model for model in analysis.models if model.sides]
    if not any(model.survival for model in models):
        return None
    last = max([ceil(analysis.messages_per_interaction / 2), *(s.time for m in models for s in m.survival)])
    across = min(len(models), 3 if len(models) in (5, 6, 9) else 4)
    down = ceil(len(models) / across)
    size = (WIDTH if across > 2 else 2.6 * across + 0.5, 1.75 * down + 0.35)

    def paint(figure: Figure) -> None:
        grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        figure.subplots_adjust(0.5 / size[0], 0.45 / size[1], 1 - 0.1 / size[0], 1 - 0.3 / size[1], 0.14, 0.45)
        for place, axes in enumerate(grid.flat):
            if place < len(models):
                _kept(axes, models, place, last)
            else:
                axes.set_visible(False)
        figure.text(0.5, 0.06 / size[1], "own messages said", ha="center", color=FAINT)

    ends = [f"{model.model} {numbers.percent(_last_share(model))}" for model in models]
    return drawn("survival", "Share that still keeps its secret at the end: " + "; ".join(ends), size, paint)


def _last_share(model: ModelFigures) -> float:
    return model.survival[-1].share if model.survival else 1.0


def _kept(axes: Axes, models: Sequence[ModelFigures], place: int, last: int) -> None:
    for other in models:
        times, shares, _, _ = _steps(other, last)
        axes.step(times, shares, where="post", color=GRID, lw=1)
    times, shares, lows, highs = _steps(models[place], last)
    axes.fill_between(times, lows, highs, step="post", color=BLUE, alpha=0.18, lw=0)
    axes.step(times, shares, where="post", color=BLUE, lw=1.8)
    axes.set_title(name_of(models[place].model, 22), color=INK)
    axes.set(xlim=(0, last + PAST), ylim=(0, 1.03))
    axes.set_xticks(range(0, last + 1, ceil(last / 8)))
    axes.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
    axes.tick_params(labelbottom=True)


def _steps(model: ModelFigures, last: int) -> tuple[list[float], list[float], list[float], list[float]]:
    steps = model.survival
    times = [0.0, *(float(step.time) for step in steps), last + PAST]
    shares = [1.0, *(step.share for step in steps)]
    lows, highs = [1.0, *(step.low for step in steps)], [1.0, *(step.high for step in steps)]
    return times, [*shares, shares[-1]], [*lows, lows[-1]], [*highs, highs[-1]]
