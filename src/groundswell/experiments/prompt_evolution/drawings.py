"""How the figures of an evolution's report are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING

from groundswell.experiments.prompt_evolution.analysis import SEED, Analysis, Finalist, Gain, Part, Searched, Tested
from groundswell.experiments.prompt_evolution.lineage import ancestors, by_birth, line
from groundswell.experiments.prompt_evolution.population import Member
from groundswell.experiments.prompt_evolution.reading import (
    NO_DIFFERENCE,
    Evolved,
    Stored,
    points,
    points_between,
    prompt_name,
    search_name,
    standing,
)
from groundswell.reporting import numbers
from groundswell.reporting.figures import (
    BLUE,
    FAINT,
    GREEN,
    GRID,
    GROUND,
    INK,
    LETTER,
    PINK,
    RED,
    WIDTH,
    Group,
    Point,
    forest,
    hover,
    legend,
    percent_axis,
)
from groundswell.reporting.words import clipped, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

LEVEL = "95%"
LOOK = {SEED: (FAINT, "x"), "evolution": (BLUE, "o"), "random": (GREEN, "D"), "best_of_n": (RED, "s")}
OTHER = (PINK, "^")
SIDE = {"better": GREEN, "worse": RED}
LEAST_SPAN = 0.05
"""Minimum span of an axis that is fitted to its values."""
APART = 0.14
"""Minimum distance between the numbers of points, in inches."""
APART_ON_LINE = 0.2
"""Minimum vertical distance between the numbers of candidates, in inches."""
MOST_NUMBERED = 15
"""On a longer line only the ends are numbered."""
DASHED = (0, (3, 2))
MOST_OF_PROMPT = 160
"""Characters of a prompt in the text of its point."""
LONGEST_LABEL = 34
"""Characters of a sentence beside its point."""


def look(name: str) -> tuple[str, str]:
    """The colour and the marker of a search or of the seed prompt."""
    return LOOK.get(name, OTHER)


def accuracy_groups(tested: Sequence[Tested]) -> list[Group]:
    """Each prompt with its scores on the held-out test and on the validation set."""
    return [Group(prompt_name(each.name), _scores(each)) for each in tested]


def _scores(each: Tested) -> list[Point]:
    colour, _ = look(each.name)
    interval, words = numbers.interval(each.low, each.high), f"{numbers.percent(each.accuracy)}  n {each.n:,}"
    test = Point(each.accuracy, each.low, each.high, words, colour, interval=interval, name="held-out test")
    if each.validation is None:
        return [test]
    words = numbers.percent(each.validation)
    return [test, Point(each.validation, None, None, words, colour, bold=False, name="validation")]


def accuracies(figure: Figure, *, groups: Sequence[Group], height: float) -> None:
    """Every prompt on the held-out test with its interval, and on the validation set."""
    axes = forest(figure, groups, height, right=1.3)
    percent_axis(axes, 1.0)
    axes.set_xlabel(f"mean score, with {LEVEL} intervals for the held-out test")
    legend(figure, [("held-out test", INK, "o", True), ("validation", FAINT, "o", False)])


def gain_groups(analysis: Analysis, gains: Sequence[Gain]) -> list[Group]:
    """The gain of the evolved prompt over each of the others."""
    return [Group(f"over {prompt_name(each.over)}", [_gain(analysis, each)]) for each in gains]


def _gain(analysis: Analysis, gain: Gain) -> Point:
    side = SIDE.get(standing(analysis, gain.over))
    note = f"{points(gain.value)}  {numbers.p_equals(gain.p)}"
    interval = points_between(gain.low, gain.high)
    return Point(gain.value, gain.low, gain.high, note, side or INK, bold=side is not None, interval=interval)


def gains(figure: Figure, *, groups: Sequence[Group], height: float) -> None:
    """The gains as points with intervals, around a line at zero."""
    _differences(figure, groups, height, "gain on the held-out test in percentage points")
    marks = [("better", GREEN, "o", True), ("worse", RED, "o", True), (NO_DIFFERENCE, INK, "o", False)]
    legend(figure, marks)


def _differences(figure: Figure, groups: Sequence[Group], height: float, label: str) -> None:
    """Differences of scores as points with intervals, around a line at zero."""
    every = [end for group in groups for each in group.points for end in (each.value, each.low, each.high)]
    axes = forest(figure, groups, height, right=1.3)
    axes.axvline(0, color=INK, lw=0.9)
    axes.set_xlim(*padded([0.0, *(end for end in every if end is not None)]))
    axes.xaxis.set_major_formatter(lambda value, _: points(value).removesuffix(".0"))
    axes.set_xlabel(f"{label}, with paired {LEVEL} intervals")


def part_groups(parts: Sequence[Part]) -> list[Group]:
    """What each part of a prompt contributes."""
    return [Group(f"{at}. {_short(each.text)}", [_part(each)]) for at, each in enumerate(parts, 1)]


def _short(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(visible(text).split())
    return line if len(line) <= LONGEST_LABEL else f"{line[: LONGEST_LABEL - 1]}…"


def _part(each: Part) -> Point:
    clear = each.low is not None and each.high is not None and not each.low <= 0 <= each.high
    colour = INK if not clear else GREEN if (each.value or 0.0) > 0 else RED
    note, interval = f"{points(each.value)}  n {each.n:,}", points_between(each.low, each.high)
    return Point(each.value, each.low, each.high, note, colour, bold=clear, interval=interval)


def parts(figure: Figure, *, groups: Sequence[Group], height: float) -> None:
    """What each part of a prompt contributes, as points with intervals around a line at zero."""
    _differences(figure, groups, height, "contribution in percentage points")
    legend(figure, [("helps", GREEN, "o", True), ("harms", RED, "o", True), ("unclear", INK, "o", False)])


def padded(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """The limits of an axis with room for all of these values."""
    low, high = min(values), max(values)
    more = max(share * (high - low), LEAST_SPAN / 2)
    return low - more, high + more


def curves(figure: Figure, *, found: Stored, searches: Sequence[Searched]) -> None:
    """The best and the mean fitness of each search by requests, and its spread below."""
    upper = figure.add_axes((0.09, 0.42, 0.88, 0.5))
    lower = figure.add_axes((0.09, 0.11, 0.88, 0.24))
    for each in searches:
        _curve(upper, lower, each, found)
    last = max(each.asks for each in searches)
    for axes in (upper, lower):
        axes.set(xlim=(0, last), ylim=(0, 1.02))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    upper.set_ylabel(f"{fitness_word(found)} in training")
    upper.yaxis.set_major_formatter(lambda value, _: _tick(value, found))
    upper.tick_params(labelbottom=False)
    lower.set(xlabel="requests used", ylabel="spread")
    entries = [_entry(search_name(each.name), color=look(each.name)[0], lw=2.4) for each in searches]
    entries += [_entry("best so far", color=INK, lw=1.8)]
    _legend(figure, [*entries, _entry("population mean", color=INK, lw=1.1, ls=DASHED)])


def fitness_word(found: Stored) -> str:
    """The word for fitness: accuracy if it is nothing else."""
    return "accuracy" if found.is_accuracy else "fitness"


def _tick(value: float, found: Stored) -> str:
    return f"{100 * value:.0f}%" if found.is_accuracy else f"{value:.1f}"


def _curve(upper: Axes, lower: Axes, search: Searched, found: Stored) -> None:
    colour, _ = look(search.name)
    asks = [each.asks for each in search.curve]
    best = [each.best for each in search.curve]
    (top,) = upper.step([*asks, search.asks], [*best, best[-1]], where="post", color=colour, lw=1.8)
    (middle,) = upper.plot(asks, [each.mean for each in search.curve], color=colour, lw=1.1, ls=DASHED)
    (spread,) = lower.plot(asks, [each.spread for each in search.curve], color=colour, lw=1.4)
    start = [f"{search_name(search.name)}, {numbers.plural(each.asks, 'request')}:" for each in search.curve]
    rows = list(zip(start, search.curve, strict=True))
    bests = [f"{words} best {found.fitness(each.best)}" for words, each in rows]
    hover(top, [*bests, bests[-1]])
    hover(middle, [f"{words} mean {found.fitness(each.mean)}" for words, each in rows])
    hover(spread, [f"{words} spread {each.spread:.2f}" for words, each in rows])


def _entry(label: str, **style: object) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)  # type: ignore[arg-type]  # what lines take


def _legend(figure: Figure, entries: Sequence[Line2D]) -> None:
    figure.legend(handles=entries, loc="upper left", ncols=len(entries), borderaxespad=0.2, handletextpad=0.5)


def genealogy(figure: Figure, *, found: Evolved, shown: Sequence[Member]) -> None:
    """The family tree: the winner's line, its other ancestors, and other survivors."""
    search = found.analysis.evolution
    members = by_birth(search.members)
    own, main = ancestors(members, search.winner.born), line(members, search.winner.born)
    axes = figure.add_axes((0.09, 0.14, 0.88, 0.76))
    rest, near = ([each for each in shown if (each.born in own) == is_near] for is_near in (False, True))
    _lines(axes, rest, members, GRID, 0.5)
    _dots(axes, rest, FAINT, 2.2, found)
    _lines(axes, near, members, BLUE, 0.6)
    (thick,) = axes.plot([each.born for each in main], [each.fitness for each in main], color=BLUE, lw=2.2)
    hover(thick, ())
    others = {each.born for each in main}
    _dots(axes, [each for each in near if each.born not in others], BLUE, 3.0, found)
    _dots(axes, main, BLUE, 4.6, found)
    last = max((each.born for each in search.members), default=1)
    more = max(0.6, 0.02 * last)
    axes.set_xlim(-more, last + more)
    axes.set_ylim(*padded([each.fitness for each in shown], 0.1))
    axes.yaxis.set_major_formatter(lambda value, _: _tick(value, found) if 0 <= value <= 1 else "")
    axes.set(xlabel="candidate", ylabel=f"{fitness_word(found)} in training")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 0 else "")
    _number_births(axes, main)
    _legend(
        figure,
        [
            _entry("from the seed to the winner", color=BLUE, marker="o", ms=4.6, lw=2.2),
            _entry("other ancestors", color=BLUE, marker="o", ms=3.0, lw=0.6),
            _entry("other candidates", color=GRID, mfc=FAINT, mec=FAINT, marker="o", ms=2.2, lw=0.8),
        ],
    )


def _lines(axes: Axes, some: Sequence[Member], members: Mapping[int, Member], colour: str, width: float) -> None:
    """Lines to the parents, as one path: separate paths would make the page several times larger."""
    pairs = [(members[at], each) for each in some for at in each.parents if at in members]
    xs = [x for one, other in pairs for x in (one.born, other.born, nan)]
    ys = [y for one, other in pairs for y in (one.fitness, other.fitness, nan)]
    (lines,) = axes.plot(xs, ys, color=colour, lw=width, alpha=0.6, zorder=1)
    hover(lines, ())


def _dots(axes: Axes, some: Sequence[Member], colour: str, size: float, found: Stored) -> None:
    xs, ys = [each.born for each in some], [each.fitness for each in some]
    (dots,) = axes.plot(xs, ys, "o", ms=size, mfc=colour, mec=GROUND, mew=0.4, ls="none", zorder=3)
    hover(dots, [f"#{each.born}, {found.fitness(each.fitness)}\n{_prompt(each.genome.text)}" for each in some])


def _prompt(text: str) -> str:
    """The beginning of a prompt, on one line."""
    return clipped(" ".join(text.split()), MOST_OF_PROMPT)


def _number_births(axes: Axes, main: Sequence[Member]) -> None:
    """Number the winner's line: its ends, and as many candidates between as there is room for."""
    before = list[tuple[float, float]]()
    wide = LETTER * (1 + len(f"#{main[-1].born}"))
    for each in (main[-1], *(main[:-1] if len(main) <= MOST_NUMBERED else main[:1])):
        x, y = _inches(axes, each.born, each.fitness)
        if any(abs(x - one) < wide and abs(y - other) < APART_ON_LINE for one, other in before):
            continue
        before.append((x, y))
        axes.annotate(
            f"#{each.born}",
            (each.born, each.fitness),
            (0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color=INK,
            fontweight="bold" if each is main[-1] else "normal",
        )


def _inches(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """The position of a point on the figure, in inches."""
    across, up = axes.transData.transform((x, y)) / axes.figure.dpi
    return float(across), float(up)


def front(figure: Figure, *, searches: Sequence[Searched], best: Sequence[Finalist]) -> None:
    """Every finalist by tokens and validation score. Those on the front are filled and numbered."""
    every = [(search.name, each) for search in searches for each in search.finalists]
    prompts = {each.genome.text for each in best}
    axes = figure.add_axes((0.09, 0.15, 0.88, 0.73))
    for name, each in reversed(every):
        colour, marker = look(name)
        on = each.genome.text in prompts
        size, face = (6.5, colour) if on else (4.5, "none")
        (dot,) = axes.plot([each.tokens], [each.validation], marker, ms=size, mfc=face, mec=colour, mew=1)
        words = f"{search_name(name)}: {numbers.percent(each.validation)} at {each.tokens:,.0f} tokens"
        hover(dot, [f"{words}\n{_prompt(each.genome.text)}"])
    tokens = [each.tokens for _, each in every]
    more = max(0.06 * (max(tokens) - min(tokens)), 1.0)
    axes.set_xlim(min(tokens) - more, max(tokens) + more)
    axes.set_ylim(*padded([each.validation for _, each in every], 0.12))
    _number_points(axes, best)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%" if 0 <= value <= 1 else "")
    axes.set(xlabel="tokens per problem, of prompt and reply", ylabel="mean score on validation")
    shapes = [(search_name(name), *look(name), True) for name in dict.fromkeys(name for name, _ in every)]
    legend(figure, [*shapes, ("not on the front", FAINT, "o", False)])


def _number_points(axes: Axes, best: Sequence[Finalist]) -> None:
    """Write numbers next to points. If two would overlap, the second goes to the other side."""
    before = list[tuple[float, float]]()
    for number, each in enumerate(best, 1):
        x, y = _inches(axes, each.tokens, each.validation)
        near = any(abs(x - one) < APART and abs(y - other) < APART for one, other in before)
        off = (7, -9) if near else (-12, 4)
        before.append((x, y))
        place = (each.tokens, each.validation)
        axes.annotate(str(number), place, off, textcoords="offset points", color=INK, fontsize=8)


def spending(figure: Figure, *, searches: Sequence[Searched], height: float) -> None:
    """Bars: requests made and requests saved."""
    left = 0.25 + LETTER * max(len(search_name(each.name)) for each in searches)
    axes = figure.add_axes((left / WIDTH, 0.45 / height, (WIDTH - left - 0.35) / WIDTH, (height - 0.8) / height))
    places, before = range(len(searches)), [0] * len(searches)
    parts = {
        "made": (BLUE, [each.asks for each in searches]),
        "saved by racing": (GREEN, [each.savings.racing for each in searches]),
        "saved by skipping duplicates": (PINK, [each.savings.known for each in searches]),
    }
    for label, (colour, many) in parts.items():
        alpha = 1 if label == "made" else 0.4
        axes.barh(places, many, left=before, height=0.6, color=colour, alpha=alpha, label=label)
        before = [one + other for one, other in zip(before, many, strict=True)]
    axes.set_yticks(places, [search_name(each.name) for each in searches], color=INK)
    axes.set_ylim(len(searches) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("requests")
    figure.legend(loc="upper left", ncols=3, borderaxespad=0.2)
