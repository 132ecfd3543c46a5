"""What an evolution came to, for a terminal: verdict, table, a few lines and the prompt. The report has the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from groundswell.experiments.prompt_evolution.analysis import Analysis, Gain
from groundswell.experiments.prompt_evolution.report.saying import (
    between,
    failed_births,
    headline,
    name_of,
    points,
    the_search,
)
from groundswell.experiments.reporting.numbers import interval, p_value, percent
from groundswell.reporting.words import cost


def summary(analysis: Analysis) -> Iterator[str | Table]:
    """The short version of an analysis."""
    yield ""
    yield headline(analysis)
    yield ""
    yield _tested(analysis)
    yield ""
    yield from notes(analysis)
    yield ""
    yield "the evolved prompt:"
    yield from (f"  {line}" for line in analysis.evolution.winner.genome.text.split("\n"))


def _tested(analysis: Analysis) -> Table:
    """How good each prompt is on the sealed test, and what the evolved one gains over it."""

    models = list(dict.fromkeys(model for each in analysis.tested for model in each.by_model))
    table = Table(box=None, pad_edge=False)
    table.add_column("prompt")
    columns = (
        "sealed test",
        "95% interval",
        "n",
        "validation",
        *map(escape, models),
        "gain, points",
        "95% interval",
        "p",
    )
    for column in columns:
        table.add_column(column, justify="right")
    gains = {gain.over: gain for gain in analysis.gains}
    for each in analysis.tested:
        cells = [percent(each.accuracy), interval(each.low, each.high), f"{each.n:,}", percent(each.validation)]
        cells += [percent(each.by_model.get(model)) for model in models]
        table.add_row(name_of(each.name), *cells, *_gained(gains.get(each.name)))
    return table


def _gained(gain: Gain | None) -> Sequence[str]:
    if gain is None:
        return "", "", ""
    return points(gain.value), between(gain.low, gain.high), p_value(gain.p if gain.n else None)


def notes(analysis: Analysis) -> Iterator[str]:
    """Why it stopped, where asks went, and what is missing."""
    search, savings = analysis.evolution, analysis.evolution.savings
    yield f"it stopped after {len(search.members):,} births: {search.why}"
    paid = f", for {cost(search.usd, 0)}" if search.usd else ""
    saved = f"{savings.racing:,} saved by races, {savings.known:,} since the prompt was known"
    yield f"asks of the evolution: {search.asks:,}{paid}; {saved}"
    for other in analysis.searches[1:]:
        yield f"asks of {name_of(other.name)}: {other.asks:,}, for {len(other.members):,} births"
    for each in analysis.searches:
        if failed := failed_births(each):
            why = next(member.why for member in each.members if member.fate == "failed")
            yield f"births of {the_search(each.name)} that failed: {failed:,}; the first: {' '.join(why.split())}"
    if missing := sum(score is None for each in analysis.tested for score in each.scores):
        yield f"scores of the sealed test that are missing, and count for nothing: {missing:,}"
