"""The page: one file that needs nothing else, in the order in which one reads it."""

from __future__ import annotations

from groundswell.experiments.prompt_evolution.report import circumstances, failing, family, findings, saying, spending
from groundswell.experiments.prompt_evolution.report.rows import files
from groundswell.experiments.prompt_evolution.report.told import Told
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.drawing import Drawing
from groundswell.experiments.reporting.frame import Top, card, framed
from groundswell.experiments.reporting.markup import Html, Section
from groundswell.reporting.words import cost


def page(told: Told, plots: dict[str, Drawing]) -> str:
    """The whole page."""
    top = Top("Prompt evolution", told.title, saying.headline(told.analysis), _cards(told))
    return framed(top, _sections(told, plots), f"Run {told.record.id}, written by Groundswell.")


def _sections(told: Told, plots: dict[str, Drawing]) -> list[Section]:
    every = [
        findings.verdict(told, plots.get("accuracies"), plots.get("gains")),
        family.prompt(told),
        findings.searches(told, plots.get("curves")),
        family.tree(told, plots.get("genealogy")),
        findings.front(told, plots.get("front")),
        spending.spending(told),
        findings.models(told),
        failing.failing(told),
        circumstances.beware(told),
        circumstances.run(told),
        files(told),
    ]
    return [section for section in every if section is not None]


def _cards(told: Told) -> list[Html]:
    analysis, evolved, search = told.analysis, told.evolved, told.analysis.evolution
    test = card(
        numbers.percent(evolved.accuracy),
        "evolved prompt, sealed test",
        f"n {evolved.n:,}; {numbers.interval(evolved.low, evolved.high)}",
    )
    gains = [
        card(
            saying.points(each.value),
            f"points over {saying.name_of(each.over)}",
            f"{saying.between(each.low, each.high)}; {saying.standing(analysis, each.over)}",
        )
        for each in analysis.gains
    ]
    gap = saying.gap(told.validated.get(evolved.name, ()), evolved)
    apart = card(saying.points(gap.value), "points, validation less test", saying.between(gap.low, gap.high))
    spent = card(f"{search.asks:,}", "asks of the evolution", f"{len(search.members):,} births; {cost(search.usd, 0)}")
    return [test, *gains, apart, spent]
