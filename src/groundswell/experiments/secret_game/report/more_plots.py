"""More figures as drawings: strengths, comparisons, tokens by turn, and waves."""

from __future__ import annotations

from collections.abc import Sequence
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
    whisker,
)
from groundswell.experiments.reporting.drawing import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    RED,
    Drawing,
    drawn,
    name_of,
)
from groundswell.experiments.secret_game.analysis import Analysis, Comparison
from groundswell.experiments.secret_game.report.told import WaveFigures
from groundswell.reporting.words import duration
from groundswell.stats.ratings import Standing, Strength, Strengths

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = {"facing each other": "o", "same opponent": "D"}
MOST_COMPARED = 60
"""With more comparisons, the table is clearer than a drawing."""
MOST_WAVES = 60
"""So many waves are drawn one by one; more are in the table."""


def strengths(found: Strengths) -> Drawing | None:
    """How well models attack and defend, with the ranks that they may have."""
    models = [each for each in found.models if each.overall.value is not None]
    if not models:
        return None
    parts = ["overall", "attack", "defence"] if found.apart else ["overall"]
    left = 0.25 + LETTER * max(len(name_of(each.model)) for each in models)
    height, panel = 0.8 + 0.26 * len(models), (WIDTH - left) / len(parts)

    def paint(figure: Figure) -> None:
        for at, part in enumerate(parts):
            box = ((left + at * panel) / WIDTH, 0.45 / height, (panel - 0.62) / WIDTH, (height - 0.75) / height)
            axes = figure.add_axes(box)
            _strength(axes, part, models, labelled=at == 0)

    told = [f"{each.model} rank {_ranks(each.overall)}" for each in models]
    return drawn("strengths", "Overall strength, the strongest first: " + "; ".join(told), (WIDTH, height), paint)


def _strength(axes: Axes, part: str, models: Sequence[Strength], *, labelled: bool) -> None:
    axes.axvline(0, color=FAINT, lw=0.8)
    for at, model in enumerate(models):
        standing: Standing = getattr(model, part)
        bounded = standing.low is not None and standing.high is not None
        whisker(axes, Point(standing.value, standing.low, standing.high, _ranks(standing), bold=bounded), at)
    axes.set_ylim(len(models) - 0.4, -0.6)
    names = [name_of(model.model) for model in models] if labelled else []
    axes.set_yticks(range(len(models)) if labelled else [], names, color=INK)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.08)
    axes.set_title(part)
    axes.set_xlabel("log odds")
    axes.text(1.02, -0.75, "rank", transform=axes.get_yaxis_transform(), fontsize=7, color=FAINT, va="bottom")


def _ranks(standing: Standing) -> str:
    return str(standing.best) if standing.best == standing.worst else f"{standing.best}–{standing.worst}"


def in_order(analysis: Analysis) -> list[Comparison]:
    """Comparisons; among more than two models those that are alike but for the model come first."""
    if len(analysis.models) <= 2:
        return list(analysis.comparisons)
    return sorted(analysis.comparisons, key=lambda each: each.basis != "same opponent")


def comparisons(analysis: Analysis) -> Drawing | None:
    """The difference of the leak rates of every two models."""
    rows = [each for each in in_order(analysis) if each.difference is not None]
    if not 0 < len(rows) <= MOST_COMPARED:
        return None
    pairs: dict[str, list[Point]] = {}
    for each in rows:
        name = f"{name_of(each.first, 20)} − {name_of(each.second, 20)}"
        pairs.setdefault(name, []).append(_compared(each, 1 - analysis.level))
    groups = [Group(name, points) for name, points in pairs.items()]
    height = forest_height(groups)
    bases = dict.fromkeys(each.basis for each in rows)

    def paint(figure: Figure) -> None:
        axes = forest(figure, groups, height, right=1.3)
        axes.axvline(0, color=FAINT, lw=0.8)
        end = max(0.1, *(abs(edge) for each in rows for edge in (each.low, each.high)))
        axes.set_xlim(-end * 1.03, end * 1.03)
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:+.3g}".replace("+0", "0").replace("-", "−"))
        axes.set_xlabel("difference of leak rates in percentage points")
        legend(figure, [(basis, FAINT, MARKERS[basis], True) for basis in bases])

    told = [f"{e.first} minus {e.second} {numbers.percent(e.difference, signed=True)}" for e in rows]
    return drawn("comparisons", "Differences of leak rates: " + "; ".join(told), (WIDTH, height), paint)


def _compared(found: Comparison, clear: float) -> Point:
    note = f"{numbers.percent(found.difference, signed=True)}  p {numbers.p_value(found.p_holm)}"
    colour = RED if found.p_holm < clear else BLUE
    return Point(found.difference, found.low, found.high, note, colour, MARKERS[found.basis])


def turns(analysis: Analysis) -> Drawing | None:
    """What the messages of each turn took, over all models."""
    last = max((each.turn for each in analysis.turns), default=-1)
    if last < 0 or not any(each.input_tokens or each.output_tokens for each in analysis.turns):
        return None
    read, cached, written = ([0] * (last + 1) for _ in range(3))
    for each in analysis.turns:
        read[each.turn] += each.input_tokens - each.cached_tokens
        cached[each.turn] += each.cached_tokens
        written[each.turn] += each.output_tokens
    places = range(1, last + 2)
    most = max(map(sum, zip(read, cached, written, strict=True)))
    left = 0.32 + LETTER * len(f"{1.05 * most:,.0f}")

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((left / WIDTH, 0.42 / 2.3, (WIDTH - left - 0.1) / WIDTH, 1.5 / 2.3))
        axes.bar(places, read, color=BLUE, width=0.7, label="input")
        if any(cached):
            axes.bar(places, cached, bottom=read, color=BLUE, alpha=0.35, width=0.7, label="input, cached")
        below = [one + other for one, other in zip(read, cached, strict=True)]
        axes.bar(places, written, bottom=below, color=RED, width=0.7, label="output")
        _counted(axes, places)
        axes.set_xlabel("message")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_ylabel("tokens")
        figure.legend(loc="upper left", ncols=3, borderaxespad=0.2)

    told = [f"message {at}: {a + b:,} in, {c:,} out" for at, a, b, c in zip(places, read, cached, written, strict=True)]
    return drawn("tokens", "Tokens by message: " + "; ".join(told), (WIDTH, 2.3), paint)


def waves(found: Sequence[WaveFigures]) -> Drawing | None:
    """How long each wave took and what it cost."""
    if not 0 < len(found) <= MOST_WAVES:
        return None
    priced = any(wave.usd for wave in found)
    height = 3.5 if priced else 2.0
    places = range(1, len(found) + 1)

    def paint(figure: Figure) -> None:
        figure.subplots_adjust(0.75 / WIDTH, 0.45 / height, 1 - 0.1 / WIDTH, 1 - 0.1 / height, hspace=0.3)
        panels = figure.subplots(2 if priced else 1, 1, squeeze=False, sharex=True)[:, 0]
        panels[0].bar(places, [wave.seconds for wave in found], color=BLUE, width=0.7)
        panels[0].set_ylabel("seconds")
        if priced:
            panels[1].bar(places, [wave.usd or 0 for wave in found], color=GREEN, width=0.7)
            panels[1].set_ylabel("US dollars")
        for panel in panels:
            _counted(panel, places)
        panels[-1].set_xlabel("wave, in the order of sending")

    told = [f"{wave.number}: {wave.size} requests in {duration(wave.seconds)}" for wave in found]
    return drawn("waves", "Waves: " + "; ".join(told), (WIDTH, height), paint)


def _counted(axes: Axes, places: Sequence[int]) -> None:
    axes.set_xticks(places[:: -(-len(places) // 20)])
    axes.set_xlim(0.4, len(places) + 0.6)
    axes.grid(visible=False, axis="x")
