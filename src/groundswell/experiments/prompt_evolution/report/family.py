"""The winner's prompt beside the one that everything began with, and who came between them."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.experiments.prompt_evolution.analysis import SEED, Finalist
from groundswell.experiments.prompt_evolution.population import Member
from groundswell.experiments.prompt_evolution.report import saying
from groundswell.experiments.prompt_evolution.report.changes import changed, marked, shortened
from groundswell.experiments.prompt_evolution.report.lineage import ancestors, by_birth, line
from groundswell.experiments.prompt_evolution.report.told import Told, named
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.drawing import Drawing, on_page
from groundswell.experiments.reporting.markup import Html, Section, drawing, joined, paragraph, tag

MOST_STEPS = 12
"""Steps of the line that are shown without being asked for: the last ones."""


def prompt(told: Told) -> Section:
    """The evolved prompt in full, beside the seed prompt."""
    seed, winner = named(told.analysis, SEED).genome.text, told.evolved.genome.text
    pieces = changed(seed, winner)
    which = "The seed prompt" if len(told.settings.seeds) == 1 else "The first seed prompt"
    both = tag(
        "div",
        tag("div", tag("h4", which), tag("pre", marked(pieces, without="new"), dir="auto")),
        tag("div", tag("h4", "The evolved prompt"), tag("pre", marked(pieces, without="gone"), dir="auto")),
        class_="pair",
    )
    about = tag(
        "p",
        "Words that went are ",
        tag("del", "struck out"),
        ", words that came are ",
        tag("ins", "underlined"),
        ". The evolved prompt letter by letter is in best_prompt.txt.",
    )
    others = [_others(each.name, each.genome.text) for each in told.analysis.tested[2:]]
    return Section("prompt", "The evolved prompt", joined([both, about, *others]))


def _others(name: str, text: str) -> Html:
    shown = tag("pre", text, dir="auto")
    return tag("details", tag("summary", f"The prompt that {saying.name_of(name)} came to"), shown)


def tree(told: Told, plot: Drawing | None) -> Section | None:
    """From the seed to the winner, and everybody else."""
    search = told.analysis.evolution
    members = by_birth(search.members)
    main, own = line(members, search.winner.born), ancestors(members, search.winner.born)
    if not main:
        return None
    caption = (
        "Who lived: when each was born and how fit it was, with lines to its parents. The fitness of one who met some "
        "of the training problems is an estimate. Of very many who lived, some are drawn, with all of the line to the "
        "winner. A child need not be fitter than its parents."
    )
    shown = Html("") if plot is None else drawing(on_page(plot), caption)
    steps = [_step(each, before, told) for before, each in zip([None, *main[:-1]], main, strict=True)]
    told_in = tag(
        "p",
        f"The winner is birth {search.winner.born}. It has {numbers.plural(len(own) - 1, 'ancestor')}; each below was "
        "made from the one above it, with what that changed.",
    )
    return Section("family", "From the seed to the winner", joined([shown, told_in, _steps(steps), _rivals(told)]))


def _steps(steps: Sequence[Html]) -> Html:
    early, late = steps[:-MOST_STEPS], steps[-MOST_STEPS:]
    folded = tag("details", tag("summary", f"The first {numbers.plural(len(early), 'step')}"), tag("ul", *early))
    return joined([folded if early else Html(""), tag("ul", *late)])


def _step(each: Member, before: Member | None, told: Told) -> Html:
    others = [f"#{at}" for at in each.parents[1:]]
    by = each.operator if before is not None else "a seed"
    beside = f", with something of {' and '.join(others)}" if others else ""
    worth = saying.fitness(each.fitness, told.settings)
    head = tag("div", tag("b", f"#{each.born}"), tag("span", f" by {by}{beside}; fitness {worth}", class_="small"))
    text = each.genome.text
    words = tag("span", text) if before is None else marked(shortened(changed(before.genome.text, text)))
    return tag("li", head, tag("div", words, class_="said", dir="auto"))


def _rivals(told: Told) -> Html:
    """The other finalists of the evolution."""
    rest = told.analysis.evolution.finalists[1:]
    if not rest:
        return paragraph("Nobody else was tried on the validation set.")
    shown = [tag("li", _rival(each, told), tag("div", each.genome.text, class_="said", dir="auto")) for each in rest]
    return tag("details", tag("summary", f"The other {numbers.plural(len(rest), 'finalist')}"), tag("ul", *shown))


def _rival(each: Finalist, told: Told) -> Html:
    worth = f"fitness {saying.fitness(each.train, told.settings)}, validation {numbers.percent(each.validation)}"
    return tag("div", tag("b", f"#{each.born}"), tag("span", f" {worth}", class_="small"))
