"""The sections with what was found: methods by guard, contrasts, learning, steps to a leak, operators."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.experiments.query_mutation.analysis import Analysis, Contrast, Figure, Uses
from groundswell.experiments.query_mutation.curves import Band, bands
from groundswell.experiments.query_mutation.verdict import HELD_OUT, TRAINED
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.drawing import Drawing, on_page
from groundswell.experiments.reporting.markup import Html, Number, Section, drawing, joined, table, tag
from groundswell.stats.survival import Step


def verdict(analysis: Analysis) -> Section:
    """What to know before one believes who wins, which stands at the top; and the contrasts behind it."""
    items = [tag("li", each) for each in analysis.notes]
    parts = [tag("ul", *items) if items else Html(""), _contrasts(analysis)]
    return Section("verdict", "How sure that is", joined(parts))


def _contrasts(analysis: Analysis) -> Html:
    if not analysis.contrasts:
        return Html("")
    rows = [(each.against, *_contrast(each)) for each in analysis.contrasts]
    heads = ("against", "guards", ">episodes", ">leaked", ">of the other", ">difference", ">p", ">return", ">p")
    caption = (
        f"{analysis.contrasts[0].method} against each of the others, on the episodes that both have. Differences are "
        f"points of the leak rate and of the mean return, each with its {analysis.level:.0%} interval below. The p "
        "allow for the number of others (Holm), for each kind of guards and each measure by itself. The verdict goes "
        "by leaks on held-out guards alone."
    )
    return table(caption, heads, rows)


def _contrast(each: Contrast) -> list[str]:
    spread = numbers.interval(each.low, each.high, signed=True)
    totals = numbers.between(each.total_low, each.total_high)
    return [
        each.on,
        Number(f"{each.n:,}"),
        Number(numbers.percent(each.rate)),
        Number(numbers.percent(each.against_rate)),
        Number(f"{numbers.percent(each.difference, signed=True)}\n{spread}"),
        Number(numbers.p_value(each.p)),
        Number(f"{numbers.number(each.total, signed=True)}\n{totals}"),
        Number(numbers.p_value(each.total_p)),
    ]


def methods(analysis: Analysis, plot: Drawing | None) -> Section:
    """How each method did against each guard."""
    caption = (
        "Share of episodes in which the secret leaked. Filled marks are methods that were trained. Episodes are the "
        "same for all methods; secrets are such that no training met."
    )
    share = f">share, {analysis.level:.0%} interval"
    heads = ("guards", "method", ">learners", ">leaked", share, ">return", ">steps", ">missing")
    rows = [_method(each) for each in sorted(analysis.figures, key=lambda each: _place(each, analysis))]
    words = (
        "The same as a table, with the mean return of an episode (what was gained, less what queries and drift cost), "
        "the mean number of steps, and the episodes that a fault broke off. An episode of each learner counts; "
        "intervals take episodes of the same secret together, and learners as draws of their method."
    )
    return Section("methods", "Methods by guard", joined([_shown(plot, caption), table(words, heads, rows)]))


def _place(figure: Figure, analysis: Analysis) -> int:
    places = list(dict.fromkeys(each.on for each in analysis.figures))
    return places.index(figure.on)


def _method(each: Figure) -> list[str]:
    total = f"{numbers.number(each.total)}\n{numbers.between(each.total_low, each.total_high)}"
    rate = f"{numbers.percent(each.rate)}\n{numbers.interval(each.low, each.high)}"
    return [
        each.on,
        each.method,
        Number(f"{each.learners:,}"),
        Number(numbers.count(each)),
        Number(rate if each.rate is not None else numbers.NONE),
        Number(total),
        Number(numbers.number(each.steps, 1)),
        Number(f"{each.missing:,}"),
    ]


def learning(analysis: Analysis, plot: Drawing | None) -> Section | None:
    """How learners came along."""
    if plot is None:
        return None
    what = _of_bands(bands(analysis.curves, analysis.level))
    caption = (
        "Share of the episodes that ended within an update in which the secret leaked, while learners try things out "
        f"on the guards and secrets of training. Bands: {what}. Dashed: methods that learn nothing, as evaluated on "
        "the same guards with held-out secrets. These curves are not of the policies that are evaluated elsewhere here."
    )
    rows = [
        (
            each.learner,
            Number(str(each.number)),
            Number(f"{point.steps:,}"),
            Number(f"{point.leaks:,} of {point.episodes:,}"),
            Number(numbers.number(point.reward, 3)),
            Number(f"{point.masked:,}"),
        )
        for each in analysis.curves
        for point in each.points
    ]
    heads = ("learner", ">number", ">steps", ">leaked", ">reward of a step", ">masked")
    told = table("Every update.", heads, rows)
    folded = tag("details", tag("summary", "As a table"), told)
    return Section("learning", "Learning curves", joined([_shown(plot, caption), folded]))


def _of_bands(found: Sequence[Band]) -> str:
    """What bands are; once, if all are the same."""
    kinds = dict.fromkeys(each.what for each in found)
    return "; ".join(kinds) if len(kinds) == 1 else "; ".join(f"{each.learner}: {each.what}" for each in found)


def steps(analysis: Analysis, plot: Drawing | None) -> Section | None:
    """How many queries a leak takes."""
    if plot is None:
        return None
    caption = (
        "Share of episodes that have leaked after so many queries, with "
        f"{analysis.level:.0%} bands (Kaplan and Meier, Greenwood's variance times the design effect of leak rates). "
        "Episodes that reached their last step without a leak stay below."
    )
    rows = [
        (
            each.method,
            each.on,
            Number(f"{each.n:,}"),
            Number(_median(each.steps)),
            Number(numbers.percent(round(1 - each.steps[-1].share, 9) if each.steps else 0.0)),
        )
        for each in analysis.lasting
        if each.n
    ]
    heads = ("method", "guards", ">episodes", ">queries until half have leaked", ">leaked at the end")
    return Section("steps", "Steps to a leak", joined([_shown(plot, caption), table("In figures.", heads, rows)]))


def _median(steps: Sequence[Step]) -> str:
    half = next((step.time for step in steps if step.share <= 0.5), None)
    return "never" if half is None else str(half)


def operators(analysis: Analysis, plot: Drawing | None) -> Section | None:
    """Which mutators work against which guard."""
    if plot is None:
        return None
    caption = (
        "What one use of a mutator gained on average, as a share of the secret that was new, against each guard, in n "
        "uses. A policy uses what it expects to work where it stands: a figure is about uses at such places, and what "
        "a mutator is worth anywhere is told by random rewording alone. Uses of few n say little."
    )
    whole: dict[tuple[str, str], int] = {}
    for each in analysis.uses:
        whole[each.method, each.guard] = whole.get((each.method, each.guard), 0) + each.steps
    rows = [_use(each, whole[each.method, each.guard]) for each in analysis.uses]
    heads = ("guard", "method", "mutator", ">uses", ">share of uses", ">gain per use", ">leaks", ">leaks per use")
    told = table("Steps that worked, by method, guard and mutator.", heads, rows)
    return Section("operators", "Operators that work", joined([_shown(plot, caption), told]))


def _use(each: Uses, of: int) -> list[str]:
    return [
        each.guard,
        each.method,
        each.mutator,
        Number(f"{each.steps:,}"),
        Number(numbers.percent(each.steps / of)),
        Number(numbers.number(each.gained / each.steps, 3)),
        Number(f"{each.leaks:,}"),
        Number(numbers.percent(each.leaks / each.steps)),
    ]


def headline(analysis: Analysis) -> list[Figure]:
    """The figures that stand at the top: those of guards that no training met, the best first."""
    place = HELD_OUT if any(each.on == HELD_OUT for each in analysis.figures) else TRAINED
    return sorted((each for each in analysis.figures if each.on == place), key=lambda each: -(each.rate or 0))


def _shown(plot: Drawing | None, caption: str) -> Html:
    return Html("") if plot is None else drawing(on_page(plot), caption)
