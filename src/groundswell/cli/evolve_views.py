"""What an evolution came to, on a terminal: a verdict, a table, a few lines and the prompt. The report has the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from groundswell.cli import output

if TYPE_CHECKING:
    from groundswell.experiments.prompt_evolution.analysis import Analysis, Gain, Tested


def print_analysis(analysis: Analysis) -> None:
    """The short version of an analysis."""
    output.line()
    for sentence in verdict(analysis):
        output.line(sentence)
    output.line()
    _print_tested(analysis)
    output.line()
    for line in notes(analysis):
        output.line(line)
    output.line()
    output.line("the best prompt:")
    for line in analysis.evolution.winner.genome.text.splitlines():
        output.line(f"  {line}")


def verdict(analysis: Analysis) -> Iterator[str]:
    """What the sealed test says; what it does not show is told as open."""
    from groundswell.experiments.reporting.numbers import interval, percent

    evolved = _evolved(analysis)
    if evolved.accuracy is None:
        yield "The evolved prompt could not be tried on the sealed test: nothing is shown."
        return
    where = f"95% interval {interval(evolved.low, evolved.high)}, n = {evolved.n:,}"
    yield f"The evolved prompt solves {percent(evolved.accuracy)} of the sealed test ({where})."
    for gain in analysis.gains:
        yield _compared(gain, analysis.standing(gain.over))


def _compared(gain: Gain, standing: str) -> str:
    from groundswell.experiments.reporting.numbers import interval, percent, plural

    over = f"the {gain.over} prompt" if gain.over == "seed" else f"what {gain.over} found at the same budget"
    if gain.value is None:
        return f"Against {over} nothing is shown: there is no problem that both met."
    by = f"{percent(gain.value, signed=True)} ({interval(gain.low, gain.high, signed=True)}, {_p(gain.p)})"
    if standing == "open":
        return f"Against {over} no difference is shown: {by} on {plural(gain.n, 'problem')}."
    return f"It is {standing} {'of' if standing == 'ahead' else ''} {over}: {by}.".replace("  ", " ")


def _p(p: float) -> str:
    from groundswell.experiments.reporting.numbers import p_value

    shown = p_value(p)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def _evolved(analysis: Analysis) -> Tested:
    return next(each for each in analysis.tested if each.name == analysis.evolution.name)


def _print_tested(analysis: Analysis) -> None:
    from rich.table import Table

    from groundswell.experiments.reporting.numbers import interval, p_value, percent

    table = Table(box=None, pad_edge=False)
    table.add_column("prompt")
    models = list(_evolved(analysis).by_model)
    columns = ("sealed test", "95% interval", "n", "validation", *models, "evolution gains", "95% interval", "p")
    for column in columns:
        table.add_column(column, justify="right")
    gains = {gain.over: gain for gain in analysis.gains}
    for each in analysis.tested:
        by_model = [percent(each.by_model.get(model)) for model in models]
        cells = [percent(each.accuracy), interval(each.low, each.high), f"{each.n:,}", percent(each.validation)]
        gain = gains.get(each.name)
        compared = ["", "", ""]
        if gain is not None:
            compared = [percent(gain.value, signed=True), interval(gain.low, gain.high, signed=True), p_value(gain.p)]
        table.add_row(each.name, *cells, *by_model, *compared)
    output.print_table(table)


def notes(analysis: Analysis) -> Iterator[str]:
    """The gap between validation and test, where asks went, and why it stopped."""
    from groundswell.experiments.reporting.numbers import percent

    evolved, search = _evolved(analysis), analysis.evolution
    if evolved.accuracy is not None and evolved.validation is not None:
        gap = percent(evolved.validation - evolved.accuracy, signed=True)
        yield f"validation less test: {gap} ({percent(evolved.validation)} where it was chosen)"
    births = f"{len(search.members):,} were born, and it stopped since {search.why}"
    yield births
    savings = search.savings
    cost = "" if not search.usd else f", for ${search.usd:,.4f}"
    yield f"asks: {search.asks:,} of the evolution{cost}; {savings.racing:,} saved by races, {savings.known:,} as known"
    for other in analysis.searches[1:]:
        yield f"asks: {other.asks:,} of {other.name}, in {len(other.members):,} births"
    missing = sum(score is None for each in analysis.tested for score in each.scores)
    if missing:
        yield f"of the sealed test {missing:,} scores are missing, which count for nothing"
