"""The figures of a report. Each is one function with title, caption, data and drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from groundswell.experiments.query_mutation.analysis import Analysis, Figure, Lasting, Tradeoff, Uses
from groundswell.experiments.query_mutation.curves import At, bands
from groundswell.experiments.query_mutation.figures import CHANCE, chance_gains
from groundswell.experiments.query_mutation.frontier import on_frontier
from groundswell.experiments.query_mutation.reading import ReportData
from groundswell.experiments.query_mutation.verdict import HELD_OUT, TRAINED, UNTRAINED
from groundswell.reporting import blocks, numbers
from groundswell.reporting.blocks import Estimate
from groundswell.reporting.figures import (
    BLUE,
    FAINT,
    GREEN,
    GROUND,
    INK,
    LETTER,
    PINK,
    RED,
    WIDTH,
    Group,
    Point,
    forest,
    forest_height,
    heat_cell,
    heat_grid,
    hover,
    legend,
    line_names,
    name_of,
    percent_axis,
    rate_point,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

LOOK = {
    **{"ppo": (BLUE, "o"), "ppo-blind": (BLUE, "s"), "sequence": (RED, "^"), "single": (RED, "v")},
    **{"contextual": (GREEN, "D"), "bandit": (GREEN, "s"), "q-learning": (GREEN, "P")},
    **{"noop": (FAINT, "x"), "random": (FAINT, "D"), "best-of-n": (FAINT, "+")},
    **{"pair": (PINK, "o"), "tap": (PINK, "^"), "crescendo": (PINK, "D")},
}
"""Colour and marker of each method."""
OTHER = (INK, "*")
GUARDS = {HELD_OUT: "held-out guards", TRAINED: "guards of the training"}
MARKED = 8
"""About the number of markers on a learning curve."""
PAST = 0.3
"""How far a curve extends beyond the last query."""
PERCENTS = ([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])


def figures(data: ReportData) -> Iterator[blocks.Figure]:
    """The figures for which there is data."""
    analysis = data.analysis
    if any(each.rate is not None for each in analysis.figures):
        yield methods(data)
    if len(analysis.frontier) > 1:
        yield frontier(analysis)
    if any(each.points for each in bands(analysis.curves, analysis.level)):
        yield learning(analysis)
    if any(each.n for each in analysis.lasting):
        yield steps(analysis)
    if any(each.method != "noop" for each in analysis.uses):
        yield mutators(analysis)


def headline(analysis: Analysis) -> list[Figure]:
    """Results of the methods on held-out guards, if there are any, else on guards of the training; the best first."""
    place = HELD_OUT if any(each.on == HELD_OUT for each in analysis.figures) else TRAINED
    return sorted((each for each in analysis.figures if each.on == place), key=lambda each: -(each.rate or 0))


def methods(data: ReportData) -> blocks.Figure:
    """The leak rate of every method against every guard."""
    analysis = data.analysis
    rows = [each for on in _in_order(data) for each in analysis.figures if each.on == on]
    drawn = [each for each in rows if each.rate is not None]
    groups = [
        Group(
            f"all {GUARDS[on]}" if on in GUARDS else name_of(on),
            [
                _named(rate_point(each, *_look(each.method), each.method not in UNTRAINED), each.method)
                for each in drawn
                if each.on == on
            ],
        )
        for on in dict.fromkeys(each.on for each in drawn)
    ]
    height = forest_height(groups)

    def draw(figure: Canvas) -> None:
        axes = forest(figure, groups, height, right=1.9)
        percent_axis(axes, 1.0)
        axes.set_xlabel(f"leak rate, with {analysis.level:.0%} confidence intervals")

    return blocks.Figure(
        id="methods",
        title=_best(headline(analysis)),
        caption=f"Share of episodes in which the secret leaked, with {analysis.level:.0%} confidence intervals and "
        "counts. Filled markers are trained methods. All methods play the same episodes, with held-out secrets. "
        "Intervals treat the episodes of one secret as a cluster, and learners as a sample of their method. The data "
        "also contain the mean return (gain minus the costs of queries and drift), the mean number of steps, and the "
        "number of episodes that are missing because of a fault.",
        columns={
            **{"guards": "text", "method": "text", "learners": "count", "leaked": "share", "mean return": "change"},
            **{"steps": "number.1", "missing": "count"},
        },
        rows=[
            (
                *(each.on, each.method, each.learners, blocks.estimate(each)),
                Estimate(each.total, each.total_low, each.total_high),
                *(each.steps, each.missing),
            )
            for each in rows
        ],
        size=(WIDTH, height),
        draw=draw,
    )


def _named(point: Point, method: str) -> Point:
    """The point with the name of its method."""
    return point._replace(name=method, note=f"{method}  {point.note}")


def _height(names: int, least: float) -> float:
    """The height of a figure with so many names beside it."""
    return max(least, 0.6 + 0.22 * names)


def _look(method: str) -> tuple[str, str]:
    return LOOK.get(method, OTHER)


def _in_order(data: ReportData) -> list[str]:
    """The order of the rows: all held-out guards together, each of them, then the same for guards of the training."""
    places = list(dict.fromkeys(each.on for each in data.analysis.figures))
    guards = [on for on in places if on not in GUARDS]
    new, met = ([on for on in guards if data.held_out(on) is out] for out in (True, False))
    return [on for on in (HELD_OUT, *new, TRAINED, *met) if on in places]


def _best(found: Sequence[Figure]) -> str:
    """A title that names the method with the highest leak rate."""
    place, rates = GUARDS[found[0].on], [each.rate for each in found if each.rate is not None]
    if not rates:
        return f"No usable episodes on {place}"
    best = max(rates)
    if not best:
        return f"No method caused a leak on {place}"
    names = [each.method for each in found if each.rate == best]
    more = "Leak rate of" if len(rates) == 1 else "Highest leak rate:"
    return f"{more} {' and '.join(names)} on {place}, {numbers.percent(best)}"


def frontier(analysis: Analysis) -> blocks.Figure:
    """Usefulness against the leak rate of the strongest method, one point per guard."""
    every, best = analysis.frontier, sorted(on_frontier(analysis.frontier), key=lambda each: (each.useful, each.rate))

    def draw(figure: Canvas) -> None:
        axes = figure.add_axes((0.08, 0.13, 0.9, 0.77))
        if len(best) > 1:
            (line,) = axes.step(
                [each.useful for each in best], [each.rate for each in best], where="pre", color=GREEN, lw=1.2
            )
            hover(line, [])
        for each in every:
            _draw_guard(axes, each, each in best)
        _name_guards(axes, every)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="ordinary queries answered", ylabel="leak rate")
        axes.set_xticks(*PERCENTS)
        axes.set_yticks(*PERCENTS)
        kinds = {_kind(each): each.held_out for each in every}
        named = [(f"{'held-out' if out else 'training'} guard", INK, kind, False) for kind, out in kinds.items()]
        both = [("on the frontier", GREEN, "", True), ("dominated", FAINT, "", False)]
        legend(figure, [*named * (len(kinds) > 1), *both])

    return blocks.Figure(
        id="frontier",
        title=f"Guards on the frontier of usefulness and security: {', '.join(each.guard for each in best)}",
        caption="Each point is a guard: the share of ordinary queries that it answers, and the leak rate of the "
        f"strongest method against it, with {analysis.level:.0%} confidence intervals. Further right and further down "
        "is better. A guard is dominated if another one answers no less and leaks no more, and is better in one of the "
        "two. Where intervals overlap, the order may be chance. The strongest method is chosen by its observed rate, "
        "so that rate is more likely too high than too low.",
        columns={
            **{"guard": "text", "held out": "text", "answered": "share", "leaked": "share", "strongest method": "text"},
            **{"on the frontier": "text", "better guard": "text"},
        },
        rows=[
            (
                *(each.guard, "yes" if each.held_out else "no"),
                Estimate(each.useful, each.useful_low, each.useful_high),
                Estimate(each.rate, each.low, each.high, each.count, each.n),
                *(each.method, "no" if each.better else "yes", each.better),
            )
            for each in every
        ],
        size=(WIDTH, 4.2),
        draw=draw,
    )


def _kind(each: Tradeoff) -> str:
    """The marker of a guard: a circle if it was held out, a square if the methods were trained against it."""
    return "o" if each.held_out else "s"


def _draw_guard(axes: Axes, each: Tradeoff, best: bool) -> None:
    colour = GREEN if best else FAINT
    for low, high, across in ((each.useful_low, each.useful_high, True), (each.low, each.high, False)):
        if low is not None and high is not None:
            ends = ([low, high], [each.rate] * 2) if across else ([each.useful] * 2, [low, high])
            (line,) = axes.plot(*ends, color=colour, lw=1, alpha=0.6, solid_capstyle="butt")
            hover(line, [])
    (dot,) = axes.plot(
        [each.useful],
        [each.rate],
        _kind(each),
        ms=6,
        mfc=colour if best else GROUND,
        mec=colour,
        clip_on=False,
        zorder=3,
    )
    answers, leaks = (
        f"{numbers.percent(value)} ({numbers.interval(low, high)})" if low is not None else numbers.percent(value)
        for value, low, high in ((each.useful, each.useful_low, each.useful_high), (each.rate, each.low, each.high))
    )
    hover(dot, [f"{each.guard}: answers {answers}, leaks {leaks} to {each.method}"])


def _name_guards(axes: Axes, every: Sequence[Tradeoff]) -> None:
    """The names of guards, right of their points or left of those at the right edge, without overlap."""
    names: dict[tuple[float, float], list[str]] = {}
    for each in every:
        names.setdefault((each.rate, each.useful), []).append(name_of(each.guard))
    placed: list[tuple[float, float]] = []
    for (rate, useful), here in sorted(names.items()):
        up = 1 if rate < 0.75 else -1
        height = rate + up * 0.03
        while any(abs(useful - x) < 0.25 and abs(height - y) < 0.045 for x, y in placed):
            height += up * 0.045
        placed.append((useful, height))
        right = useful > 0.8
        axes.annotate(
            ", ".join(here), (useful, height), (-6 if right else 6, 0), textcoords="offset points",
            ha="right" if right else "left", va="center", fontsize=8, color=INK, annotation_clip=False,
        )  # fmt: skip


def learning(analysis: Analysis) -> blocks.Figure:
    """The leak rate of each kind of learner during training, with its band."""
    found = [each for each in bands(analysis.curves, analysis.level) if each.points]
    baselines = [
        (each.rate, each.method)
        for each in analysis.figures
        if each.on == TRAINED and each.method in UNTRAINED and each.rate is not None
    ]
    kinds = dict.fromkeys(each.what for each in found)
    what = "; ".join(kinds if len(kinds) == 1 else [f"{each.learner}: {each.what}" for each in found])
    changes = [
        f"{band.learner} from {numbers.percent(band.points[0].rate)} to {numbers.percent(band.points[-1].rate)}"
        for band in found
    ]

    def draw(figure: Canvas) -> None:
        axes = figure.add_axes((0.07, 0.15, 0.76, 0.8))
        ends = []
        for band in found:
            (colour, marker), steps = _look(band.learner), [each.steps for each in band.points]
            lows, highs = [each.low for each in band.points], [each.high for each in band.points]
            axes.fill_between(steps, lows, highs, color=colour, alpha=0.18, lw=0)
            rates, some = [each.rate for each in band.points], max(1, len(steps) // MARKED)
            (line,) = axes.plot(steps, rates, color=colour, lw=1.8, marker=marker, ms=4, markevery=some)
            hover(line, [_learned_text(band.learner, each) for each in band.points])
            ends.append((band.points[-1].rate, band.learner, colour))
        for rate, method in baselines:
            axes.axhline(rate, color=_look(method)[0], lw=1, ls=(0, (4, 3)))
            ends.append((rate, method, _look(method)[0]))
        last = max(band.points[-1].steps for band in found)
        axes.set(xlim=(0, last), ylim=(0, 1.02), xlabel="environment steps of one learner")
        axes.set_yticks(*PERCENTS)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        line_names(axes, ends)

    return blocks.Figure(
        id="learning",
        title=f"Leak rates during training: {', '.join(changes)}",
        caption="Share of the episodes ending in each update in which the secret leaked, on the guards and secrets of "
        f"the training. Bands: {what}. Dashed: methods without training, evaluated on the same guards with held-out "
        "secrets. Learners change with every update, so these rates differ from those of the final policies in the "
        "other figures. updates.csv contains every update.",
        columns={
            "learner": "text",
            "learners": "count",
            "steps": "count",
            "leaked": "share",
            "mean reward": "number.3",
        },
        rows=[
            (band.learner, band.learners, each.steps, Estimate(each.rate, each.low, each.high), each.reward)
            for band in found
            for each in band.points
        ],
        size=(WIDTH, _height(len(found) + len(baselines), 3.1)),
        draw=draw,
    )


def _learned_text(learner: str, at: At) -> str:
    interval = numbers.interval(at.low, at.high)
    return f"{learner}, {at.steps:,} steps: {numbers.percent(at.rate)} ({interval})"


def half_leaked(found: Lasting) -> int | None:
    """The number of queries after which half of the episodes have leaked."""
    return next((step.time for step in found.steps if step.share <= 0.5), None)


def steps(analysis: Analysis) -> blocks.Figure:
    """The share of episodes that have leaked after each query."""
    there = [each for each in analysis.lasting if each.n]
    places = [on for on in GUARDS if any(each.on == on for each in there)]
    last = max((step.time for each in there for step in each.steps), default=1)

    def draw(figure: Canvas) -> None:
        panels = figure.subplots(1, len(places), squeeze=False, sharey=True)[0]
        figure.subplots_adjust(0.07, 0.16, 0.88 if len(places) > 1 else 0.7, 0.9, 0.34)
        for axes, on in zip(panels, places, strict=True):
            _draw_leaked(axes, [each for each in there if each.on == on], last)
            axes.set_title(GUARDS[on], color=INK)

    return blocks.Figure(
        id="steps",
        title=_fastest([each for each in there if each.on == places[0]]),
        caption=f"Share of episodes that have leaked after each number of queries, with {analysis.level:.0%} bands "
        "(Kaplan-Meier; Greenwood's variance times the design effect of the leak rate). The curve stays below 100% "
        "where episodes reached their last step without a leak.",
        columns={
            **{"method": "text", "guards": "text", "query": "count", "not leaked before": "count", "leaks": "count"},
            "leaked by then": "share",
        },
        rows=[
            (
                *(each.method, each.on, step.time, step.at_risk, step.events),
                Estimate(round(1 - step.share, 9), round(1 - step.high, 9), round(1 - step.low, 9)),
            )
            for each in there
            for step in each.steps
        ],
        size=(WIDTH, _height(len({each.method for each in there}), 2.8)),
        draw=draw,
    )


def _fastest(found: Sequence[Lasting]) -> str:
    """A title that names the method with the fewest queries until half of its episodes have leaked."""
    place = GUARDS[found[0].on]
    halves = [(many, each.method) for each in found if (many := half_leaked(each)) is not None]
    if not halves:
        return f"No method causes a leak in half of the episodes on {place}"
    first = min(many for many, _ in halves)
    names = [method for many, method in halves if many == first]
    need = f"{'needs' if len(names) == 1 else 'need'} {'1 query' if first == 1 else f'{first} queries'}"
    return f"{' and '.join(names)} {need} until half of the episodes have leaked on {place}"


def _draw_leaked(axes: Axes, found: Sequence[Lasting], last: int) -> None:
    ends = []
    for each in found:
        colour, marker = _look(each.method)
        times = [0.0, *(float(step.time) for step in each.steps), last + PAST]
        shares = [0.0, *(1 - step.share for step in each.steps)]
        lows, highs = [0.0, *(1 - step.high for step in each.steps)], [0.0, *(1 - step.low for step in each.steps)]
        axes.fill_between(times, [*lows, lows[-1]], [*highs, highs[-1]], step="post", color=colour, alpha=0.12, lw=0)
        (line,) = axes.step(times, [*shares, shares[-1]], where="post", color=colour, lw=1.8, marker=marker, ms=4)
        texts = [_leaked_text(each.method, *step) for step in zip(times, shares, lows, highs, strict=False)]
        hover(line, [*texts, texts[-1]])
        ends.append((shares[-1], each.method, colour))
    axes.set(xlim=(0, last + PAST), ylim=(0, 1.02), xlabel="queries sent")
    axes.set_yticks(*PERCENTS)
    axes.set_xticks(range(0, last + 1, max(1, last // 5)))
    line_names(axes, ends)


def _leaked_text(method: str, time: float, share: float, low: float, high: float) -> str:
    queries = "1 query" if time == 1 else f"{time:.0f} queries"
    return f"{method}, after {queries}: {numbers.percent(share)} leaked ({numbers.interval(low, high)})"


def mutators(analysis: Analysis) -> blocks.Figure:
    """The mean gain per use of each mutation against each guard, one panel per method."""
    used = {each.method for each in analysis.uses} - {"noop"}
    names = [name for name in dict.fromkeys(each.method for each in analysis.figures) if name in used]
    across = sorted({each.mutator for each in analysis.uses})
    down = [on for on in dict.fromkeys(each.on for each in analysis.figures) if on not in GUARDS]
    most = max(each.gained / each.steps for each in analysis.uses if each.method in used) or 1.0
    whole = Counter[tuple[str, str]]()
    for each in analysis.uses:
        whole[each.method, each.guard] += each.steps
    left = 0.3 + LETTER * max(len(name_of(guard)) for guard in down)
    inner, row, top = WIDTH - left - 0.1, 0.33, 0.62
    panel = top + row * len(down)
    size = (WIDTH, panel * len(names) + 0.1)

    def draw(figure: Canvas) -> None:
        for place, name in enumerate(names):
            bottom = size[1] - panel * (place + 1)
            axes = figure.add_axes((left / WIDTH, bottom / size[1], inner / WIDTH, row * len(down) / size[1]))
            for each in [each for each in analysis.uses if each.method == name]:
                gain, cell = each.gained / each.steps, (across.index(each.mutator), down.index(each.guard))
                heat_cell(axes, cell, gain / most, f"{gain:.2f}", each.steps)
            heat_grid(axes, [name_of(guard) for guard in down], [name_of(each, 14) for each in across])
            axes.tick_params(axis="x", labelsize=7.5)
            axes.set_title(name, color=_look(name)[0], pad=6, fontweight="bold")

    return blocks.Figure(
        id="mutators",
        title=_best_mutator(analysis.uses),
        caption="Mean gain per use of a mutation against each guard: the share of the secret that the response "
        "revealed for the first time in the episode. n is the number of uses. Only random rewording compares mutations "
        "fairly, because learners use a mutation where they expect it to work. Cells with few uses are unreliable.",
        columns={
            **{"guard": "text", "method": "text", "mutator": "text", "uses": "count", "share of uses": "share"},
            **{"gain per use": "number.3", "leaks": "count", "leaks per use": "share"},
        },
        rows=[
            (
                *(each.guard, each.method, each.mutator, each.steps, each.steps / whole[each.method, each.guard]),
                *(each.gained / each.steps, each.leaks, each.leaks / each.steps),
            )
            for each in analysis.uses
        ],
        size=size,
        draw=draw,
    )


def _best_mutator(uses: Sequence[Uses]) -> str:
    """A title that names the mutation with the highest gain in random rewording."""
    gains = [(each, guard) for guard, found in chance_gains(uses).items() for each in found]
    if not gains:
        return f"Too few uses in {CHANCE} rewording to compare mutations"
    best, guard = max(gains, key=lambda each: each[0].gain)
    if best.gain <= 0:
        return f"No mutation gained anything in {CHANCE} rewording"
    return f"Best mutation in {CHANCE} rewording: {best.mutator}, {best.gain:.2f} of the secret per use against {guard}"
