"""The page: one file that needs nothing else, in the order in which one reads it."""

from __future__ import annotations

from groundswell.experiments.reporting.drawing import Drawing
from groundswell.experiments.reporting.frame import Top, card, framed
from groundswell.experiments.reporting.markup import Html, Section
from groundswell.experiments.secret_game.report import circumstances, contests, doings, findings
from groundswell.experiments.secret_game.report.columns import files
from groundswell.experiments.secret_game.report.selection import Selection
from groundswell.experiments.secret_game.report.told import Told
from groundswell.experiments.secret_game.report.transcripts import transcripts


def page(told: Told, plots: dict[str, Drawing], selection: Selection) -> str:
    """The whole page."""
    shown = _sections(told, plots, selection)
    title = told.title or f"Secret game, run {told.run_id}"
    top = Top("The secret game", title, circumstances.headline(told.analysis), _cards(told))
    return framed(top, shown, f"Run {told.run_id}, written by Groundswell.")


def _sections(told: Told, plots: dict[str, Drawing], selection: Selection) -> list[Section]:
    analysis = told.analysis
    every = [
        circumstances.run(told),
        findings.overall(analysis),
        circumstances.stopping(analysis),
        findings.agents(analysis),
        findings.models(analysis, plots.get("leak-rates")),
        findings.pairs(analysis, plots.get("pairs")),
        findings.together(analysis),
        findings.survival(analysis, plots.get("survival")),
        contests.comparisons(analysis, plots.get("comparisons")),
        contests.strengths(analysis, plots.get("strengths")),
        doings.behaviour(analysis),
        doings.verdicts(analysis),
        doings.probes(analysis),
        circumstances.missing(analysis),
        circumstances.costs(told, plots.get("tokens"), plots.get("waves")),
        circumstances.prompts(selection.prompts.values()),
        transcripts(selection.chosen(), selection.playable, told.run_id, analysis.tier),
        files(),
    ]
    return [section for section in every if section is not None]


def _cards(told: Told) -> list[Html]:
    return [card(value, what, more) for value, what, more in circumstances.key_figures(told)]
