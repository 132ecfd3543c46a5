"""The sections with what was found: the sealed test, how searches went, the front, and models by themselves."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.experiments.prompt_evolution.analysis import Analysis, Finalist, Gain, Tested
from groundswell.experiments.prompt_evolution.report import saying
from groundswell.experiments.prompt_evolution.report.told import Told
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.drawing import Drawing, on_page
from groundswell.experiments.reporting.markup import Html, Number, Section, drawing, joined, paragraph, table, tag
from groundswell.reporting.words import cost


def verdict(told: Told, tests: Drawing | None, differences: Drawing | None) -> Section:
    """The sealed test: how good each prompt is, and by how much the evolved one is better."""
    analysis = told.analysis
    budget = (
        f"Others searched until they had {analysis.evolution.asks:,} asks too, or no new prompt was born. Whatever a "
        "search asked for counts: problems, prompts, and judgements."
    )
    caption = (
        f"Mean scores on the {numbers.plural(len(told.settings.problems.test), 'problem')} of the sealed test, which "
        f"no search saw, with {saying.LEVEL} intervals; hollow: on the validation set, which chose them. {budget}"
    )
    parts = [_shown(tests, caption), _scores(told), _shown(differences, _of_gains()), _gains(analysis)]
    return Section("verdict", "The sealed test", joined(parts))


def _scores(told: Told) -> Html:
    heads = ("prompt", f">sealed test, {saying.LEVEL} interval", ">problems", ">missing", ">validation", ">gap, points")
    rows = [_score(each, saying.gap(told.validated.get(each.name, ()), each)) for each in told.analysis.tested]
    caption = (
        "The same as a table. The gap is validation less test: winners were chosen for doing well on validation, and "
        "some of that was luck. A gap whose interval holds 0 may be chance alone."
    )
    return table(caption, heads, rows)


def _score(each: Tested, gap: saying.Gap) -> list[str]:
    where = f"{numbers.percent(each.accuracy)}\n{numbers.interval(each.low, each.high)}"
    apart = saying.points(gap.value) + (f"\n{saying.between(gap.low, gap.high)}" if gap.low is not None else "")
    return [
        saying.name_of(each.name),
        Number(where if each.accuracy is not None else numbers.NONE),
        Number(f"{each.n:,}"),
        Number(f"{len(each.scores) - each.n:,}"),
        Number(numbers.percent(each.validation)),
        Number(apart),
    ]


def _of_gains() -> str:
    return (
        "The evolved prompt less each of the others, problem by problem. It is called better or worse where p is "
        "below 0.05 and the interval leaves out 0; everything else is open, which does not mean equal."
    )


def _gains(analysis: Analysis) -> Html:
    if not analysis.gains:
        return Html("")
    heads = ("over", f">gain, points, {saying.LEVEL} interval", ">p", ">problems of both", "the evolved prompt is")
    caption = (
        "Intervals are paired, each for itself. The p are McNemar's, exact; where scores lie between 0 and 1, how "
        "often chance gives so large a mean difference that gives each problem's its sign. They allow for the number "
        "of comparisons (Holm), which the verdict goes by: an interval may end short of 0 where it is open."
    )
    return table(caption, heads, [_gain(analysis, each) for each in analysis.gains])


def _gain(analysis: Analysis, each: Gain) -> list[str]:
    where = f"{saying.points(each.value)}\n{saying.between(each.low, each.high)}"
    return [
        saying.name_of(each.over),
        Number(where if each.value is not None else numbers.NONE),
        Number(numbers.p_value(each.p if each.n else None)),
        Number(f"{each.n:,}"),
        saying.standing(analysis, each.over),
    ]


def searches(told: Told, plot: Drawing | None) -> Section | None:
    """How searches went."""
    if plot is None:
        return None
    caption = (
        "Above: the fitness of the best so far and the mean of those who live, on the training problems. Below: the "
        "spread, which is the mean distance of two who live, from 0 (the same words) to 1 (no word in common). The "
        f"evolution keeps {numbers.plural(told.settings.population_size, 'genome')}; random search and best of N keep "
        "all who lived, so that their mean and spread are of all of them. The best in training is the luckiest too: "
        "who is better is for the sealed test to say."
    )
    rows = [
        (
            saying.search_of(search.name),
            Number(f"{each.births:,}"),
            Number(f"{each.asks:,}"),
            Number(saying.fitness(each.best, told.settings)),
            Number(saying.fitness(each.mean, told.settings)),
            Number(numbers.number(each.spread)),
            Number(cost(each.usd, 0)),
        )
        for search in told.analysis.searches
        for each in search.curve
    ]
    heads = ("search", ">births", ">asks", ">best", ">mean", ">spread", ">cost")
    folded = tag("details", tag("summary", "As a table"), table("Moments of every search.", heads, rows))
    return Section("searches", "How the searches went", joined([_shown(plot, caption), folded]))


def grouped(analysis: Analysis) -> list[list[Finalist]]:
    """Those on the front with the same prompt taken together, the best on validation first."""
    found: dict[str, list[Finalist]] = {}
    for each in analysis.front:
        found.setdefault(each.genome.text, []).append(each)
    return sorted(found.values(), key=lambda group: (-group[0].validation, group[0].tokens, group[0].born))


def front(told: Told, plot: Drawing | None) -> Section | None:
    """Which prompts nobody beats in everything at once."""
    groups = grouped(told.analysis)
    if not groups:
        return None
    priced = any(each.usd for group in groups for each in group)
    caption = (
        "Finalists of all searches: the mean score on the validation set, and the tokens of prompt and reply that a "
        "problem took in training. Filled and numbered: the front, those whom no other beats in score, tokens and cost "
        "at once. Whoever wants to pay less chooses here; scores on validation are those of the chosen, and a little "
        "too high."
    )
    if not priced:
        caption += " Nothing is known to have cost anything, so cost plays no part."
    rows = [_finalist(number, group, told, priced) for number, group in enumerate(groups, 1)]
    cost_head = (">cost of 1,000 problems",) if priced else ()
    heads = (">no.", ">validation", ">training", ">tokens", *cost_head, "found by", "prompt")
    return Section("front", "Good and cheap: the front", joined([_shown(plot, caption), table("", heads, rows)]))


def _finalist(number: int, group: Sequence[Finalist], told: Told, priced: bool) -> list[str]:
    each = group[0]
    usd = None if each.usd is None else 1_000 * each.usd
    return [
        Number(str(number)),
        Number(numbers.percent(each.validation)),
        Number(saying.fitness(each.train, told.settings)),
        Number(numbers.number(each.tokens, 1)),
        *([Number(cost(usd, 0))] if priced else []),
        ", ".join(_finders(group, told.analysis)),
        each.genome.text,
    ]


def _finders(group: Sequence[Finalist], analysis: Analysis) -> list[str]:
    """Which searches came to a prompt, and in which birth."""
    return [
        f"{saying.search_of(search.name)} #{each.born}"
        for search in analysis.searches
        for each in search.finalists
        if each.genome == group[0].genome
    ]


def models(told: Told) -> Section | None:
    """Each model by itself, where there are several."""
    names = list(told.settings.models)
    if len(names) < 2:
        return None
    heads = ("prompt", *(f">{name}" for name in names), ">all")
    rows = [
        (
            saying.name_of(each.name),
            *(Number(numbers.percent(each.by_model.get(name))) for name in names),
            Number(numbers.percent(each.accuracy)),
        )
        for each in told.analysis.tested
    ]
    caption = "Mean scores of each model on the sealed test. Prompts were chosen for the mean of all models."
    return Section("models", "Model by model", table(caption, heads, rows))


def _shown(plot: Drawing | None, caption: str) -> Html:
    return paragraph(caption) if plot is None else drawing(on_page(plot), caption)
