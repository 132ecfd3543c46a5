"""The page: one file that needs nothing else, in the order in which one reads it."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.experiments.secret_game.report import circumstances, contests, doings, findings
from groundswell.experiments.secret_game.report.columns import files
from groundswell.experiments.secret_game.report.drawing import Drawing
from groundswell.experiments.secret_game.report.markup import Html, Section, joined, tag, text
from groundswell.experiments.secret_game.report.selection import Selection
from groundswell.experiments.secret_game.report.style import CSS
from groundswell.experiments.secret_game.report.told import Told
from groundswell.experiments.secret_game.report.transcripts import transcripts

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the browser lets the page do: show its own styles. Scripts and requests are refused, whoever wrote them."""


def page(told: Told, plots: dict[str, Drawing], selection: Selection) -> str:
    """The whole page."""
    shown = _sections(told, plots, selection)
    title = told.title or f"Secret game, run {told.run_id}"
    head = joined(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            tag("title", title),
            Html(f"<style>{CSS}</style>"),
        ]
    )
    body = tag("main", _top(told, title), _contents(shown), *(_section(each) for each in shown), _end(told))
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


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


def _top(told: Told, title: str) -> Html:
    cards = [
        tag("div", tag("b", value), tag("span", what), tag("small", more), class_="card")
        for value, what, more in circumstances.key_figures(told)
    ]
    return tag(
        "header",
        tag("p", "The secret game", class_="kicker"),
        tag("h1", title),
        tag("p", circumstances.headline(told.analysis), class_="headline"),
        tag("div", *cards, class_="cards"),
    )


def _contents(sections: Sequence[Section]) -> Html:
    links = [tag("li", tag("a", section.title, href=f"#{section.id}")) for section in sections]
    return tag("nav", tag("ol", *links), aria_label="Contents")


def _section(section: Section) -> Html:
    heading = tag("h2", section.title, id=f"{section.id}-title")
    whole = tag("section", heading, section.body, id=section.id, aria_labelledby=f"{section.id}-title")
    return joined([Html("\n"), whole])


def _end(told: Told) -> Html:
    return tag("footer", text(f"Run {told.run_id}, written by Groundswell."))
