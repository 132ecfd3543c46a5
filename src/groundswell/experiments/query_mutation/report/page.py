"""The page: one file that needs nothing else, in the order in which one reads it."""

from __future__ import annotations

from groundswell.experiments.query_mutation.report import circumstances, findings
from groundswell.experiments.query_mutation.report.examples import chosen, examples
from groundswell.experiments.query_mutation.report.rows import files
from groundswell.experiments.query_mutation.report.told import Told
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.drawing import Drawing
from groundswell.experiments.reporting.frame import Top, card, framed
from groundswell.experiments.reporting.markup import Html, Section


def page(told: Told, plots: dict[str, Drawing]) -> str:
    """The whole page."""
    runs = "Run" if len(told.runs) == 1 else "Runs"
    top = Top("Query mutation", told.title, told.analysis.verdict, _cards(told))
    return framed(top, _sections(told, plots), f"{runs} {', '.join(told.runs)}, written by Groundswell.")


def _sections(told: Told, plots: dict[str, Drawing]) -> list[Section]:
    analysis = told.analysis
    trained = [guard.name for guard in told.settings.task.guards]
    every = [
        findings.verdict(analysis),
        findings.methods(analysis, plots.get("methods")),
        findings.learning(analysis, plots.get("learning")),
        findings.steps(analysis, plots.get("steps")),
        findings.operators(analysis, plots.get("operators")),
        circumstances.masked(told),
        examples(chosen(told.attempts, trained), told.runs),
        circumstances.run(told),
        circumstances.prompts(told),
        files(),
    ]
    return [section for section in every if section is not None]


def _cards(told: Told) -> list[Html]:
    analysis = told.analysis
    cards = [
        card(
            numbers.percent(each.rate),
            f"{each.method} leaks, {each.on}",
            f"{numbers.count(each)}; {numbers.interval(each.low, each.high)}",
        )
        for each in findings.headline(analysis)
    ]
    steps = sum(many for who, many in told.steps.items() if not who.startswith("eval/"))
    return [*cards, card(f"{analysis.masked:,}", "steps masked", f"of {steps:,} in training")]
