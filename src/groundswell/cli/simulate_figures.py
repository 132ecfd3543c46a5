"""The figures of a batch on a terminal: a few lines, and a table for every question. The file has the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from groundswell.cli import output
from groundswell.cli.figures import (
    MOST_OPTIONS,
    MOST_ROWS,
    between,
    interval,
    percent,
    points,
    print_table,
    short,
    told,
)
from groundswell.cli.simulate_groups import print_dimensions
from groundswell.shown.words import also

if TYPE_CHECKING:
    from groundswell.experiments.simulations.analysis import Analysis, LineFigures
    from groundswell.experiments.simulations.tabulation import Asked, QuestionFigures, ScaleFigures

MOST_QUESTIONS = 6
"""So many questions are shown."""


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
    output.line(f"{question.id}: {short(question.text)}", "bold")
    clipped = False
    if question.scale is not None:
        _print_scale(question, question.scale, level)
    elif question.free is not None:
        clipped |= question.after.answered > min(MOST_OPTIONS, len(question.free.examples))
        words = "" if question.free.words is None else f", {question.free.words:.1f} words each"
        output.line(f"{_answered(question.after)}{words}")
        for example in question.free.examples[:MOST_OPTIONS]:
            output.line(f"  {example.name}: {short(example.text)}")
    else:
        clipped |= _print_choice(question, level)
    return clipped | print_dimensions(question, level)


def _print_scale(question: QuestionFigures, scale: ScaleFigures, level: float) -> None:
    spread = "" if scale.sd is None else f", sd {scale.sd:.2f}"
    output.line(
        f"mean {told(scale.mean, level)}{spread}, from {scale.low} to {scale.high}; {_answered(question.after)}"
    )
    if scale.before is not None and scale.change is not None:
        output.line(f"before {told(scale.before, level)}; change {told(scale.change, level, signed=True)}")
    if len(scale.steps) <= MOST_ROWS:
        output.line("answers: " + ", ".join(f"{each.step} x {each.count:,}" for each in scale.steps))


def _print_choice(question: QuestionFigures, level: float) -> bool:
    options = sorted(question.options, key=lambda each: -each.count)
    before = any(each.before is not None for each in options)
    heads = ["option", ">answers", ">share", f">{interval(level)}", *([">before", ">change"] if before else [])]
    rows: list[list[str]] = []
    for each in options[:MOST_ROWS]:
        row = [each.option, f"{each.count:,}", percent(each.share), between(each.share, share=True)]
        if before and each.before is not None and each.change is not None:
            row += [percent(each.before), points(each.change)]
        rows.append(row)
    print_table(heads, rows)
    reason = next((each.share.reason for each in options if each.share.reason), "")
    output.line(f"{_answered(question.after)}{f'; no interval: {reason}' if reason else ''}")
    return len(options) > MOST_ROWS


def _answered(asked: Asked) -> str:
    return f"{asked.answered:,} of {asked.asked:,} answered"
