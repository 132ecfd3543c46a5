"""What an evolution came to, on a terminal: verdict, table, a few lines and the prompt. The report has the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from groundswell.cli import output

if TYPE_CHECKING:
    from groundswell.experiments.prompt_evolution.analysis import Analysis, Gain


def print_analysis(analysis: Analysis) -> None:
    """The short version of an analysis."""
    from groundswell.experiments.prompt_evolution.report.saying import headline

    output.line()
    output.line(headline(analysis))
    output.line()
    _print_tested(analysis)
    output.line()
    for line in notes(analysis):
        output.line(line)
    output.line()
    output.line("the evolved prompt:")
    for line in analysis.evolution.winner.genome.text.split("\n"):
        output.line(f"  {line}")


def _print_tested(analysis: Analysis) -> None:
    """How good each prompt is on the sealed test, and what the evolved one gains over it."""
    from rich.table import Table

    from groundswell.experiments.prompt_evolution.report.saying import name_of
    from groundswell.experiments.reporting.numbers import interval, percent

    models = _models(analysis)
    table = Table(box=None, pad_edge=False)
    table.add_column("prompt")
    for column in ("sealed test", "95% interval", "n", "validation", *models, "gain, points", "95% interval", "p"):
        table.add_column(column, justify="right")
    gains = {gain.over: gain for gain in analysis.gains}
    for each in analysis.tested:
        cells = [percent(each.accuracy), interval(each.low, each.high), f"{each.n:,}", percent(each.validation)]
        cells += [percent(each.by_model.get(model)) for model in models]
        table.add_row(name_of(each.name), *cells, *_gained(gains.get(each.name)))
    output.print_table(table)


def _models(analysis: Analysis) -> Sequence[str]:
    """The models, where there are several."""
    return list(dict.fromkeys(model for each in analysis.tested for model in each.by_model))


def _gained(gain: Gain | None) -> Sequence[str]:
    from groundswell.experiments.prompt_evolution.report.saying import between, points
    from groundswell.experiments.reporting.numbers import p_value

    if gain is None:
        return "", "", ""
    return points(gain.value), between(gain.low, gain.high), p_value(gain.p if gain.n else None)


def notes(analysis: Analysis) -> Iterator[str]:
    """Why it stopped, where asks went, and what is missing."""
    from groundswell.experiments.prompt_evolution.report.saying import failed_births, name_of, the_search

    search, savings = analysis.evolution, analysis.evolution.savings
    yield f"it stopped after {len(search.members):,} births: {search.why}"
    cost = f", for {output.cost(search.usd, 0)}" if search.usd else ""
    saved = f"{savings.racing:,} saved by races, {savings.known:,} since the prompt was known"
    yield f"asks of the evolution: {search.asks:,}{cost}; {saved}"
    for other in analysis.searches[1:]:
        yield f"asks of {name_of(other.name)}: {other.asks:,}, for {len(other.members):,} births"
    for each in analysis.searches:
        if failed := failed_births(each):
            why = next(member.why for member in each.members if member.fate == "failed")
            yield f"births of {the_search(each.name)} that failed: {failed:,}; the first: {' '.join(why.split())}"
    if missing := sum(score is None for each in analysis.tested for score in each.scores):
        yield f"scores of the sealed test that are missing, and count for nothing: {missing:,}"
