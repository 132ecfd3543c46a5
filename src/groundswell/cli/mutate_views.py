"""What a training or an evaluation came to, on a terminal: a table and a few lines. The report has the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from groundswell.cli import output

if TYPE_CHECKING:
    from groundswell.experiments.query_mutation.analysis import Analysis, Figure, Uses

MOST_SHOWN = 3
"""So many operators are named for a guard."""
CHANCE = "random"
"""The method whose uses say what an operator is worth."""
FEWEST = 5
"""An operator that was used less often is not named."""


def print_analysis(analysis: Analysis) -> None:
    """The short version of an analysis."""
    output.line()
    _print_methods(analysis)
    if analysis.verdict:
        output.line()
        output.line(analysis.verdict)
    if working := list(_operators(analysis)):
        output.line()
        output.line(f"operators that work, by what a use gained on average in {CHANCE} rewording, of 1:")
        for line in working:
            output.line(f"  {line}")
    if notes := list(_notes(analysis)):
        output.line()
        for line in notes:
            output.line(line)


def _print_methods(analysis: Analysis) -> None:
    from rich.table import Table

    from groundswell.experiments.query_mutation.verdict import HELD_OUT, TRAINED

    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    table.add_column("guards")
    for column in ("episodes", "leaked", "95% interval", "mean return", "steps"):
        table.add_column(column, justify="right")
    for on in (HELD_OUT, TRAINED):
        for figure in _by_rate([each for each in analysis.figures if each.on == on]):
            table.add_row(figure.method, on, *_cells(figure))
    output.print_table(table)


def _by_rate(figures: Sequence[Figure]) -> list[Figure]:
    return sorted(figures, key=lambda each: -1.0 if each.rate is None else each.rate, reverse=True)


def _cells(figure: Figure) -> list[str]:
    rate = "" if figure.rate is None else f"{figure.rate:.1%}"
    between = "" if figure.low is None or figure.high is None else f"{figure.low:.1%} to {figure.high:.1%}"
    total = "" if figure.total is None else f"{figure.total:+.2f}"
    return [f"{figure.n:,}", rate, between, total, "" if figure.steps is None else f"{figure.steps:.1f}"]


def _operators(analysis: Analysis) -> Iterator[str]:
    """For each guard the mutators that gained most a use; by chance alone, since others use them where it pays."""
    drawn = [each for each in analysis.uses if each.method == CHANCE]
    for guard in dict.fromkeys(each.guard for each in drawn):
        found = _gains([each for each in drawn if each.guard == guard])
        best = [(name, gain, uses) for name, gain, uses in found if gain > 0][:MOST_SHOWN]
        told = ", ".join(f"{name} {gain:.2f} ({uses:,} uses)" for name, gain, uses in best)
        yield f"{guard}: {told or ('none gained anything' if found else 'too few uses to tell')}"


def _gains(uses: Sequence[Uses]) -> list[tuple[str, float, int]]:
    """What each mutator gained a use, most first; those that were hardly used are left out."""
    steps: dict[str, int] = {}
    gained: dict[str, float] = {}
    for each in uses:
        steps[each.mutator] = steps.get(each.mutator, 0) + each.steps
        gained[each.mutator] = gained.get(each.mutator, 0.0) + each.gained
    found = [(name, gained[name] / count, count) for name, count in steps.items() if count >= FEWEST]
    return sorted(found, key=lambda each: (-each[1], each[0]))


def _notes(analysis: Analysis) -> Iterator[str]:
    """What is missing, and what to beware of."""
    from groundswell.experiments.query_mutation.verdict import HELD_OUT, TRAINED

    steps = sum(point.usable + point.masked for curve in analysis.curves for point in curve.points)
    if analysis.masked:
        yield f"{analysis.masked:,} of {steps:,} steps of the training failed: they were masked, and not learnt from"
    elif steps:
        yield f"no step of the training was masked ({steps:,} steps)"
    missing = {each.method: 0 for each in analysis.figures}
    for each in analysis.figures:
        if each.on in (HELD_OUT, TRAINED):
            missing[each.method] += each.missing
    if told := ", ".join(f"{method} {count:,}" for method, count in missing.items() if count):
        yield f"episodes that a fault broke off, which count for nothing: {told}"
    yield from analysis.notes
