"""The figures of a batch on a terminal: a few lines, and a table for every question. The file has the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from groundswell.cli import output
from groundswell.shown.words import also, visible

if TYPE_CHECKING:
    from groundswell.experiments.simulations.analysis import Analysis, LineFigures
    from groundswell.experiments.simulations.tabulation import Asked, DimensionFigures, QuestionFigures, ScaleFigures
    from groundswell.stats.means import Figure

MOST_QUESTIONS = 6
MOST_ROWS = 12
MOST_OPTIONS = 5
"""So many questions, rows of a table, and options beside each other are shown; of free answers, so many too."""
SHOWN = 100
"""So much of a text."""


def print_figures(analysis: Analysis, file: Path | str) -> None:
    """The short version of an analysis; `file` has the whole."""
    output.line()
    if not analysis.simulations.usable:
        output.line("no simulation is usable, so there are no figures")
        return
    output.line(_of_lines(analysis.lines))
    if analysis.lines.short:
        output.line(f"{analysis.lines.short:,} simulations have fewer turns than planned")
    clipped = len(analysis.questions) > MOST_QUESTIONS
    for question in analysis.questions[:MOST_QUESTIONS]:
        output.line()
        clipped |= _print_question(question, analysis.level)
    if clipped:
        output.line(f"there is more: {file}")


def _of_lines(lines: LineFigures) -> str:
    words = "" if lines.words_per_line is None else f", {lines.words_per_line:.1f} words each"
    more = {
        "cut off": lines.cut,
        "that went on to speak for others": lines.overrun,
        "without a thought": lines.thoughtless or 0,
        "more left out": lines.left,
    }
    return f"{lines.count:,} lines{words}{also(**more)}"


def _print_question(question: QuestionFigures, level: float) -> bool:
    """One question; returns whether anything of it is left out."""
    output.line(f"{question.id}: {_short(question.text)}", "bold")
    clipped = len(question.dimensions) > 1
    if question.scale is not None:
        _print_scale(question, question.scale, level)
    elif question.free is not None:
        clipped |= question.after.answered > min(MOST_OPTIONS, len(question.free.examples))
        words = "" if question.free.words is None else f", {question.free.words:.1f} words each"
        output.line(f"{_answered(question.after)}{words}")
        for example in question.free.examples[:MOST_OPTIONS]:
            output.line(f"  {example.name}: {_short(example.text)}")
    else:
        clipped |= _print_choice(question, level)
    strongest = min(
        (each for each in question.dimensions if each.p_holm is not None),
        key=lambda each: (each.p_holm, each.p),
        default=None,
    )
    if strongest is not None:
        clipped |= _print_dimension(strongest, question, level)
    return clipped


def _print_scale(question: QuestionFigures, scale: ScaleFigures, level: float) -> None:
    spread = "" if scale.sd is None else f", sd {scale.sd:.2f}"
    output.line(
        f"mean {_told(scale.mean, level)}{spread}, from {scale.low} to {scale.high}; {_answered(question.after)}"
    )
    if scale.before is not None and scale.change is not None:
        output.line(f"before {_told(scale.before, level)}; change {_told(scale.change, level, signed=True)}")
    if len(scale.steps) <= MOST_ROWS:
        output.line("answers: " + ", ".join(f"{each.step} x {each.count:,}" for each in scale.steps))


def _print_choice(question: QuestionFigures, level: float) -> bool:
    options = sorted(question.options, key=lambda each: -each.count)
    before = any(each.before is not None for each in options)
    heads = ["option", ">answers", ">share", f">{_interval(level)}", *([">before", ">change"] if before else [])]
    rows: list[list[str]] = []
    for each in options[:MOST_ROWS]:
        row = [each.option, f"{each.count:,}", _share(each.share), _between(each.share, share=True)]
        if before and each.before is not None and each.change is not None:
            row += [_share(each.before), _points(each.change)]
        rows.append(row)
    _print_table(heads, rows)
    reason = next((each.share.reason for each in options if each.share.reason), "")
    output.line(f"{_answered(question.after)}{f'; no interval: {reason}' if reason else ''}")
    return len(options) > MOST_ROWS


def _print_dimension(found: DimensionFigures, question: QuestionFigures, level: float) -> bool:
    """A question by the attribute that has most bearing on it."""
    assert found.p is not None
    assert found.p_holm is not None
    among = len([each for each in question.dimensions if each.p is not None])
    tested = f"p {_pvalue(found.p)}" + (f", Holm {_pvalue(found.p_holm)} among {among}" if among > 1 else "")
    if found.p_holm < 0.05:
        output.line(f"{found.name} makes a difference ({tested}):")
    else:
        output.line(f"no attribute makes a difference that can be told; {found.name} comes nearest ({tested}):")
    if question.scale is not None:
        _print_means(found, level)
    else:
        _print_shares(found, question)
    return len(found.groups) > MOST_ROWS or len(question.options) > MOST_OPTIONS


def _print_means(found: DimensionFigures, level: float) -> None:
    heads = [found.name, ">entities", ">answers", ">mean", f">{_interval(level)}", ">less the others"]
    rows: list[list[str]] = []
    for each in found.groups[:MOST_ROWS]:
        row = [each.value, f"{each.entities:,}", f"{each.answered:,}"]
        if each.mean is not None and each.difference is not None:
            row += [_number(each.mean.value), _between(each.mean), _number(each.difference.value, signed=True)]
        rows.append(row)
    _print_table(heads, rows)
    reasons = dict.fromkeys(each.mean.reason for each in found.groups if each.mean is not None and each.mean.reason)
    if reasons:
        output.line(f"no interval, for some: {', '.join(reasons)}")


def _print_shares(found: DimensionFigures, question: QuestionFigures) -> None:
    shown = [each.option for each in sorted(question.options, key=lambda each: -each.count)[:MOST_OPTIONS]]
    rows: list[list[str]] = []
    for each in found.groups[:MOST_ROWS]:
        shares = {one.option: _share(one.share) for one in each.options}
        row = [each.value, f"{each.entities:,}", f"{each.answered:,}"]
        rows.append(row + [shares.get(option, "") for option in shown])
    _print_table([found.name, ">entities", ">answers", *(f">{option}" for option in shown)], rows)


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; figures stand below heads that begin with >. What others wrote is shown, and does nothing."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for head in heads:
        right = head.startswith(">")
        table.add_column(Text(_short(head.removeprefix(">"))), justify="right" if right else "left")
    for row in rows:
        table.add_row(*(Text(_short(cell)) for cell in row))
    output.print_table(table)


def _short(text: str) -> str:
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= SHOWN else f"{flat[:SHOWN]}…"


def _answered(asked: Asked) -> str:
    return f"{asked.answered:,} of {asked.asked:,} answered"


def _interval(level: float) -> str:
    return f"{level:.0%} interval"


def _told(figure: Figure, level: float, *, signed: bool = False) -> str:
    """A figure with its interval, or why there is none."""
    value = _number(figure.value, signed=signed)
    if figure.value is None:
        return figure.reason or "unknown"
    if figure.low is None:
        return f"{value} (no interval: {figure.reason})"
    return f"{value} ({level:.0%}: {_between(figure)})"


def _number(value: float | None, *, signed: bool = False) -> str:
    return "" if value is None else f"{value:+.2f}" if signed else f"{value:.2f}"


def _between(figure: Figure, *, share: bool = False) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f"{figure.low:.1%} to {figure.high:.1%}" if share else f"{figure.low:.2f} to {figure.high:.2f}"


def _share(figure: Figure) -> str:
    return "" if figure.value is None else f"{figure.value:.1%}"


def _points(figure: Figure) -> str:
    """A change of a share, in points."""
    if figure.value is None:
        return ""
    between = (
        "" if figure.low is None or figure.high is None else f" ({figure.low * 100:.1f} to {figure.high * 100:.1f})"
    )
    return f"{figure.value * 100:+.1f}{between}"


def _pvalue(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
