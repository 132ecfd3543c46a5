"""How the figures of a game's report are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from groundswell.experiments.secret_game.analysis import Analysis, Comparison, ModelFigures, PairFigures, TurnFigures
from groundswell.experiments.secret_game.played import TIERS, Tier
from groundswell.experiments.secret_game.reading import WaveFigures
from groundswell.reporting import numbers
from groundswell.reporting.figures import (
    BLUE,
    FAINT,
    GREEN,
    GRID,
    INK,
    LETTER,
    PINK,
    RED,
    WIDTH,
    Group,
    Point,
    forest,
    heat_cell,
    heat_grid,
    hover,
    legend,
    name_of,
    nice_end,
    percent_axis,
    rate_point,
    whisker,
)
from groundswell.stats.ratings import Standing, Strength

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TIER_LOOK: dict[Tier, tuple[str, str]] = {
    "declared": (INK, "o"),
    "exact": (BLUE, "v"),
    "normalised": (RED, "s"),
    "encoded": (GREEN, "D"),
    "judged": (PINK, "^"),
}
MARKERS = {"standardised": "D", "same opponent": "s", "facing each other": "o"}
NAMES = {"standardised": "shared opponents", "same opponent": "one opponent"}
PAST = 0.4
"""How far a curve extends beyond the last message, so its end is visible."""
PANELS = ("A. The first speaker leaks", "B. The second speaker leaks")


def tier_groups(models: Sequence[ModelFigures], headline: Tier) -> list[Group]:
    """Leak rates by tier, grouped by model."""
    return [
        Group(
            name_of(model.model),
            [
                rate_point(model.tiers[t], *TIER_LOOK[t], t == headline)._replace(name=t)
                for t in TIERS
                if t in model.tiers
            ],
        )
        for model in models
    ]


def leak_rates(
    figure: Figure, *, groups: Sequence[Group], height: float, tiers: Sequence[Tier], analysis: Analysis
) -> None:
    """One row per model, with its tiers side by side."""
    axes = forest(figure, groups, height)
    ends = [point.high for group in groups for point in group.points if point.value is not None]
    percent_axis(axes, nice_end(max((end for end in ends if end is not None), default=1)))
    axes.set_xlabel(f"share of secrets leaked, with {analysis.level:.0%} intervals")
    names = {tier: f"{tier} (headline)" if tier == analysis.tier else tier for tier in tiers}
    legend(figure, [(names[tier], *TIER_LOOK[tier], tier == analysis.tier) for tier in tiers])


class PairLayout:
    """Two heat maps: leaks of the first speaker and of the second speaker."""

    def __init__(self, pairs: Sequence[PairFigures]) -> None:
        self._pairs = pairs
        self._models = sorted({model for pair in pairs for model in (pair.first, pair.second)})
        self._side = (0.62 if len(self._models) <= 6 else 0.5) * len(self._models)
        names = LETTER * max(len(name_of(model)) for model in self._models)
        self._left, self._top = 0.25 + names, 0.2 + 0.68 * names
        self._panel = max(self._side + max(0.15, 0.76 * names - 0.3), 0.1 + LETTER * max(map(len, PANELS)))
        self._beside = self._left + 2 * self._panel < WIDTH + 0.6
        one = self._top + self._side
        across, down = (self._left + 2 * self._panel, one) if self._beside else (self._left + self._panel, 2 * one)
        self.size = (across, down + (0.35 if self._beside else 0.8))

    def draw(self, figure: Figure) -> None:
        """Draw the maps side by side if there is room, else one below the other."""
        for of in (0, 1):
            x = self._left + of * self._panel if self._beside else self._left
            y = 0.35 if self._beside or of else self._top + self._side + 0.8
            box = (x / self.size[0], y / self.size[1], self._side / self.size[0], self._side / self.size[1])
            self._matrix(figure.add_axes(box), of, named=not (self._beside and of))

    def _matrix(self, axes: Axes, of: int, *, named: bool) -> None:
        for pair in self._pairs:
            rate = pair.second_revealed if of else pair.first_revealed
            place = self._models.index(pair.second), self._models.index(pair.first)
            heat_cell(axes, place, rate.rate or 0, numbers.percent(rate.rate), rate.n)
        names = [name_of(model) for model in self._models]
        heat_grid(axes, names, names)
        axes.set_xticks(axes.get_xticks(), names, color=INK, rotation=40, ha="left", rotation_mode="anchor")
        if not named:
            axes.set_yticks([])
        axes.set_xlabel(PANELS[of], loc="left", color=INK)


class MessageLayout:
    """A heat map: models in rows, their own messages in columns."""

    def __init__(self, models: Sequence[ModelFigures]) -> None:
        self._models = [model for model in models if model.by_message]
        self._last = max(len(model.by_message) for model in self._models)
        left = 0.25 + LETTER * max(len(name_of(model.model)) for model in self._models)
        across, down = 0.6 * self._last, 0.5 * len(self._models)
        self.size = (max(3.0, left + across + 0.1), down + 0.65)
        self._box = (left / self.size[0], 0.1 / self.size[1], across / self.size[0], down / self.size[1])

    def draw(self, figure: Figure) -> None:
        """Draw the map."""
        axes = figure.add_axes(self._box)
        for row, model in enumerate(self._models):
            for column, rate in enumerate(model.by_message):
                heat_cell(axes, (column, row), rate.rate or 0, numbers.percent(rate.rate), rate.n)
        heat_grid(axes, [name_of(model.model) for model in self._models], [str(at + 1) for at in range(self._last)])
        axes.xaxis.set_label_position("top")
        axes.set_xlabel("own message", loc="left")


def last_share(model: ModelFigures) -> float:
    """The share that kept its secret to the end."""
    return model.survival[-1].share if model.survival else 1.0


class SurvivalLayout:
    """Survival curves: one panel per model, with the other models in grey."""

    def __init__(self, models: Sequence[ModelFigures], messages: int) -> None:
        self._models = models
        self._last = max([ceil(messages / 2), *(step.time for model in models for step in model.survival)])
        self._across = min(len(models), 3 if len(models) in (5, 6, 9) else 4)
        self._down = ceil(len(models) / self._across)
        self.size = (WIDTH if self._across > 2 else 2.6 * self._across + 0.5, 1.75 * self._down + 0.35)

    def draw(self, figure: Figure) -> None:
        """Draw all panels."""
        size = self.size
        grid = figure.subplots(self._down, self._across, squeeze=False, sharex=True, sharey=True)
        figure.subplots_adjust(0.5 / size[0], 0.45 / size[1], 1 - 0.1 / size[0], 1 - 0.3 / size[1], 0.14, 0.45)
        for place, axes in enumerate(grid.flat):
            if place < len(self._models):
                self._kept(axes, place)
            else:
                axes.set_visible(False)
        figure.text(0.5, 0.06 / size[1], "own messages written", ha="center", color=FAINT)

    def _kept(self, axes: Axes, place: int) -> None:
        last = self._last
        for other in self._models:
            times, shares, _, _ = self._steps(other)
            (line,) = axes.step(times, shares, where="post", color=GRID, lw=1)
            hover(line, ())
        times, shares, lows, highs = self._steps(self._models[place])
        axes.fill_between(times, lows, highs, step="post", color=BLUE, alpha=0.18, lw=0)
        (line,) = axes.step(times, shares, where="post", color=BLUE, lw=1.8)
        steps = zip(times, shares, lows, highs, strict=True)
        hover(line, [self._text(self._models[place].model, *step) for step in steps])
        axes.set_title(name_of(self._models[place].model, 22), color=INK)
        axes.set(xlim=(0, last + PAST), ylim=(0, 1.03))
        axes.set_xticks(range(0, last + 1, ceil(last / 8)))
        axes.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
        axes.tick_params(labelbottom=True)

    def _text(self, model: str, time: float, share: float, low: float, high: float) -> str:
        messages = numbers.plural(int(time), "own message")
        kept = f"{numbers.percent(share)} kept ({numbers.interval(low, high)})"
        return f"{name_of(model)}, after {messages}: {kept}"

    def _steps(self, model: ModelFigures) -> tuple[list[float], list[float], list[float], list[float]]:
        steps = model.survival
        times = [0.0, *(float(step.time) for step in steps), self._last + PAST]
        shares = [1.0, *(step.share for step in steps)]
        lows, highs = [1.0, *(step.low for step in steps)], [1.0, *(step.high for step in steps)]
        return times, [*shares, shares[-1]], [*lows, lows[-1]], [*highs, highs[-1]]


def difference_groups(rows: Sequence[Comparison], clear: float) -> list[Group]:
    """Differences, grouped by pair of models."""
    pairs: dict[str, list[Point]] = {}
    for each in rows:
        headline = each.p_holm is not None
        p = each.p if each.p_holm is None else each.p_holm
        note = f"{numbers.percent(each.difference, signed=True)}  p {numbers.p_value(p)}"
        colour = RED if headline and p < clear else BLUE
        interval, name = numbers.interval(each.low, each.high, signed=True), NAMES.get(each.basis, each.basis)
        look = (colour, MARKERS[each.basis], headline)
        point = Point(each.difference, each.low, each.high, note, *look, interval, name)
        pairs.setdefault(f"{name_of(each.first, 20)} − {name_of(each.second, 20)}", []).append(point)
    return [Group(name, points) for name, points in pairs.items()]


def comparisons(figure: Figure, *, rows: Sequence[Comparison], groups: Sequence[Group], height: float) -> None:
    """Forest plot of differences."""
    axes = forest(figure, groups, height, right=1.3)
    axes.axvline(0, color=FAINT, lw=0.8)
    end = max(0.1, *(abs(edge) for each in rows for edge in (each.low, each.high)))
    axes.set_xlim(-end * 1.03, end * 1.03)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:+.3g}".replace("+0", "0").replace("-", "−"))
    axes.set_xlabel("difference in leak rate, percentage points")
    bases = {each.basis: each.p_holm is not None for each in reversed(rows)}
    order = [basis for basis in MARKERS if basis in bases]
    legend(figure, [(NAMES.get(basis, basis), FAINT, MARKERS[basis], bases[basis]) for basis in order])


def ranks(standing: Standing) -> str:
    """The range of possible ranks."""
    return str(standing.best) if standing.best == standing.worst else f"{standing.best}–{standing.worst}"


def strengths(figure: Figure, *, models: Sequence[Strength], parts: Sequence[str], height: float) -> None:
    """One panel each for overall, attack and defence."""
    left = 0.25 + LETTER * max(len(name_of(each.model)) for each in models)
    panel = (WIDTH - left) / len(parts)
    for at, part in enumerate(parts):
        box = ((left + at * panel) / WIDTH, 0.45 / height, (panel - 0.62) / WIDTH, (height - 0.75) / height)
        _strength(figure.add_axes(box), part, models, labelled=at == 0)


def _strength(axes: Axes, part: str, models: Sequence[Strength], *, labelled: bool) -> None:
    axes.axvline(0, color=FAINT, lw=0.8)
    for at, model in enumerate(models):
        standing: Standing = getattr(model, part)
        bounded = standing.low is not None and standing.high is not None
        words = f"{name_of(model.model)}: {numbers.number(standing.value)}"
        interval = numbers.between(standing.low, standing.high)
        point = Point(standing.value, standing.low, standing.high, ranks(standing), bold=bounded)
        whisker(axes, point, at, f"{words} ({interval}), rank")
    axes.set_ylim(len(models) - 0.4, -0.6)
    names = [name_of(model.model) for model in models] if labelled else []
    axes.set_yticks(range(len(models)) if labelled else [], names, color=INK)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.08)
    axes.set_title(part)
    axes.set_xlabel("log odds")
    axes.text(1.02, -0.75, "rank", transform=axes.get_yaxis_transform(), fontsize=7, color=FAINT, va="bottom")


class Tokens:
    """Tokens by position of the message, over all models."""

    def __init__(self, turns: Sequence[TurnFigures]) -> None:
        last = max(each.turn for each in turns)
        self._read, self._cached, self._written = ([0] * (last + 1) for _ in range(3))
        for each in turns:
            self._read[each.turn] += each.input_tokens - each.cached_tokens
            self._cached[each.turn] += each.cached_tokens
            self._written[each.turn] += each.output_tokens
        self.places = range(1, last + 2)

    def whole(self, place: int) -> int:
        """All tokens of the messages at a position, from 1."""
        return self._read[place - 1] + self._cached[place - 1] + self._written[place - 1]

    def draw(self, figure: Figure) -> None:
        """Stacked bars: input, cached input, output."""
        left = 0.32 + LETTER * len(f"{1.05 * max(map(self.whole, self.places)):,.0f}")
        axes = figure.add_axes((left / WIDTH, 0.42 / 2.3, (WIDTH - left - 0.1) / WIDTH, 1.5 / 2.3))
        axes.bar(self.places, self._read, color=BLUE, width=0.7, label="input")
        if any(self._cached):
            axes.bar(
                self.places, self._cached, bottom=self._read, color=BLUE, alpha=0.35, width=0.7, label="input, cached"
            )
        below = [one + other for one, other in zip(self._read, self._cached, strict=True)]
        axes.bar(self.places, self._written, bottom=below, color=RED, width=0.7, label="output")
        _counted(axes, self.places)
        axes.set_xlabel("message")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_ylabel("tokens")
        figure.legend(loc="upper left", ncols=3, borderaxespad=0.2)


def waves(figure: Figure, *, found: Sequence[WaveFigures], priced: bool) -> None:
    """Bars: seconds, and dollars if prices are known."""
    height, places = 3.5 if priced else 2.0, range(1, len(found) + 1)
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


def _counted(axes: Axes, places: Sequence[int]) -> None:
    axes.set_xticks(places[:: -(-len(places) // 20)])
    axes.set_xlim(0.4, len(places) + 0.6)
    axes.grid(visible=False, axis="x")
