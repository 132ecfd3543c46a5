"""What simulations came to, for a terminal: one of the talks, a few lines, and a table for every question.

Generators that end with true or false say whether they left anything out: the file has the rest.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from groundswell.experiments.simulations.analysis import Analysis, LineFigures
from groundswell.experiments.simulations.figures import (
    MOST_OPTIONS,
    MOST_ROWS,
    between,
    interval,
    number,
    off,
    percent,
    points,
    pvalue,
    short,
    table_of,
    told,
)
from groundswell.experiments.simulations.grouping import DimensionFigures, GroupFigures, GroupOption
from groundswell.experiments.simulations.reading import SaidLine, SimulationShown
from groundswell.experiments.simulations.tabulation import Asked, QuestionFigures, ScaleFigures
from groundswell.reporting.words import also, visible

if TYPE_CHECKING:
    Shown = Iterator[str | Table | Text]
    Clipped = Generator[str | Table | Text, None, bool]

MOST_LINES = 8
"""So many lines of a talk are shown,"""
SHOWN = 240
"""and so much of each."""
MOST_QUESTIONS = 6
"""So many questions are shown."""
FOUND = 0.05


def talk(simulation: SimulationShown) -> Shown:
    """One talk of a batch, as far as there is room for it; or the end of a talk that is on its own."""

    lines, alone = simulation.lines, simulation.batch_id is None
    more = max(0, len(lines) - MOST_LINES)
    yield ""
    yield f"{simulation.id}:" if alone else f"one of them, {simulation.id}:"
    if more and alone:
        yield f"  {more:,} lines before, and then …"
    yield from map(_line, lines[more:] if alone else lines[:MOST_LINES])
    if more and not alone:
        yield f"  … and {more:,} lines more"
    for answer in [each for each in simulation.answers if not each.before][:MOST_LINES]:
        value = f"no answer ({answer.problem})" if answer.value is None else str(answer.value)
        yield Text(f"  {visible(answer.name)}, asked {answer.question}: {visible(_cut(value))}", "dim")


def _line(line: SaidLine) -> Text:

    said = Text(f"  {visible(line.name)}: ", "bold")
    if line.thought:
        said.append(f"*{visible(_cut(line.thought))}* ", "italic dim not bold")
    said.append(visible(_cut(line.speech)), "not bold")
    return said


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN else f"{flat[:SHOWN]}…"


def figures(analysis: Analysis, file: Path | str) -> Shown:
    """The short version of an analysis; `file` has the whole."""
    yield ""
    if not analysis.simulations.usable:
        yield "no simulation is usable, so there are no figures"
        return
    yield _of_lines(analysis.lines)
    if analysis.lines.short:
        yield f"{analysis.lines.short:,} simulations have fewer turns than planned"
    clipped = len(analysis.questions) > MOST_QUESTIONS
    for question in analysis.questions[:MOST_QUESTIONS]:
        yield ""
        clipped |= yield from _question(question, analysis.level)
    if clipped:
        yield f"there is more: {file}"


def _of_lines(lines: LineFigures) -> str:
    words = "" if lines.words_per_line is None else f", {lines.words_per_line:.1f} words each"
    more = {
        "cut off": lines.cut,
        "that went on to speak for others": lines.overrun,
        "without a thought": lines.thoughtless or 0,
        "more left out": lines.left,
    }
    return f"{lines.count:,} lines{words}{also(**more)}"


def _question(question: QuestionFigures, level: float) -> Clipped:

    yield Text(f"{question.id}: {short(question.text)}", "bold")
    clipped = False
    if question.scale is not None:
        yield from _scale(question, question.scale, level)
    elif question.free is not None:
        clipped |= question.after.answered > min(MOST_OPTIONS, len(question.free.examples))
        words = "" if question.free.words is None else f", {question.free.words:.1f} words each"
        yield f"{_answered(question.after)}{words}"
        for example in question.free.examples[:MOST_OPTIONS]:
            yield f"  {example.name}: {short(example.text)}"
    else:
        clipped |= yield from _choice(question, level)
    return (yield from _dimensions(question, level)) or clipped


def _scale(question: QuestionFigures, scale: ScaleFigures, level: float) -> Iterator[str]:
    spread = "" if scale.sd is None else f", sd {scale.sd:.2f}"
    yield f"mean {told(scale.mean, level)}{spread}, from {scale.low} to {scale.high}; {_answered(question.after)}"
    if scale.before is not None and scale.change is not None:
        yield f"before {told(scale.before, level)}; change {told(scale.change, level, signed=True)}"
    if len(scale.steps) <= MOST_ROWS:
        yield "answers: " + ", ".join(f"{each.step} x {each.count:,}" for each in scale.steps)


def _choice(question: QuestionFigures, level: float) -> Clipped:
    options = sorted(question.options, key=lambda each: -each.count)
    before = any(each.before is not None for each in options)
    heads = ["option", ">answers", ">share", f">{interval(level)}", *([">before", ">change"] if before else [])]
    rows: list[list[str]] = []
    for each in options[:MOST_ROWS]:
        row = [each.option, f"{each.count:,}", percent(each.share), between(each.share, share=True)]
        if before and each.before is not None and each.change is not None:
            row += [percent(each.before), points(each.change)]
        rows.append(row)
    yield table_of(heads, rows)
    reason = next((each.share.reason for each in options if each.share.reason), "")
    yield f"{_answered(question.after)}{f'; no interval: {reason}' if reason else ''}"
    return len(options) > MOST_ROWS


def _answered(asked: Asked) -> str:
    return f"{asked.answered:,} of {asked.asked:,} answered"


def _dimensions(question: QuestionFigures, level: float) -> Clipped:
    """The question by what entities are: by all attributes named in advance, and by the nearest other."""
    named = [each for each in question.dimensions if not each.exploratory]
    others = [each for each in question.dimensions if each.exploratory]
    for each in named:
        yield from _named(each, named, question, level)
    nearest = min(
        (each for each in others if each.p_holm is not None), key=lambda each: (each.p_holm, each.p), default=None
    )
    if nearest is None:
        return bool(others)
    return (yield from _nearest(nearest, others, question, level)) or len(others) > 1


def _named(
    found: DimensionFigures, named: Sequence[DimensionFigures], question: QuestionFigures, level: float
) -> Shown:
    """An attribute that was named in advance, in full."""
    if not found.groups:
        yield f"by {found.name}: no groups: {found.reason}"
        return
    among = len([each for each in named if each.p is not None])
    yield f"by {found.name}: {_verdict(found.p, found.p_holm, among) or f'no test: {found.reason}'}"
    yield from _means(found, found.groups, level) if question.scale is not None else _options(found, level)
    if question.before is not None:
        among = len([each for each in named if each.change_p is not None])
        told = _verdict(found.change_p, found.change_p_holm, among) or f"no test: {found.change_reason}"
        yield f"the change by {found.name}: {told}"


def _verdict(p: float | None, holm: float | None, among: int) -> str:
    """Whether there is a difference, with p-values; nothing where there is none to tell by."""
    if p is None or holm is None:
        return ""
    found = "makes a difference" if holm < FOUND else "no difference that can be told"
    return f"{found} (p {pvalue(p)}, Holm {pvalue(holm)} among {among})"


def _nearest(
    found: DimensionFigures, others: Sequence[DimensionFigures], question: QuestionFigures, level: float
) -> Clipped:
    """Of what was not asked for in advance, the attribute that has most bearing."""
    assert found.p is not None
    assert found.p_holm is not None
    among = len([each for each in others if each.p is not None])
    tested = f"p {pvalue(found.p)}" + (f", Holm {pvalue(found.p_holm)} among {among}" if among > 1 else "")
    if found.p_holm < FOUND:
        yield f"not asked for in advance: {found.name} makes a difference ({tested}):"
    else:
        yield (
            "not asked for in advance: no attribute makes a difference that can be told; "
            f"{found.name} comes nearest ({tested}):"
        )
    if question.scale is not None:
        yield from _means(found, found.groups[:MOST_ROWS], level)
    else:
        yield _shares(found, question)
    return len(found.groups) > MOST_ROWS or len(question.options) > MOST_OPTIONS


def _means(found: DimensionFigures, groups: Sequence[GroupFigures], level: float) -> Shown:
    twice = any(each.change is not None for each in groups)
    heads = [found.name, ">entities", ">answers", ">mean", f">{interval(level)}", ">less the others"]
    heads += [">change", ">less the others"] if twice else []
    rows: list[list[str]] = []
    for each in groups:
        row = [each.value, f"{each.entities:,}", f"{each.answered:,}"]
        if each.mean is not None:
            row += [number(each.mean.value), between(each.mean), off(each.difference)]
        rows.append([*row, off(each.change), off(each.change_difference)] if twice else row)
    yield table_of(heads, rows)
    yield from reasons(each.mean.reason for each in groups if each.mean is not None)


def _options(found: DimensionFigures, level: float) -> Shown:
    """A row for every option of every group."""
    twice = any(option.change is not None for each in found.groups for option in each.options)
    heads = [found.name, ">entities", ">answers", "option", ">share", f">{interval(level)}", ">less the others"]
    rows: list[list[str]] = []
    for each in found.groups:
        for at, option in enumerate(each.options):
            whose = [each.value, f"{each.entities:,}", f"{each.answered:,}"] if at == 0 else ["", "", ""]
            rows.append([*whose, *_option(option, twice=twice)])
    yield table_of([*heads, *([">change", ">less the others"] if twice else [])], rows)
    yield from reasons(option.share.reason for each in found.groups for option in each.options)


def _option(option: GroupOption, *, twice: bool) -> list[str]:
    row = [option.option, percent(option.share), between(option.share, share=True), points(option.difference)]
    return [*row, points(option.change), points(option.change_difference)] if twice else row


def _shares(found: DimensionFigures, question: QuestionFigures) -> Table:
    """The commonest options beside each other, each with how its share changed, where it was asked twice."""
    shown = [each.option for each in sorted(question.options, key=lambda each: -each.count)[:MOST_OPTIONS]]
    twice = question.before is not None
    rows: list[list[str]] = []
    for each in found.groups[:MOST_ROWS]:
        options = {one.option: one for one in each.options}
        row = [each.value, f"{each.entities:,}", f"{each.answered:,}"]
        for option in shown:
            change = options[option].change
            row.append(percent(options[option].share))
            if twice:
                row.append("" if change is None or change.value is None else f"{change.value * 100:+.1f}")
        rows.append(row)
    heads = [head for option in shown for head in (f">{option}", *([">change"] if twice else []))]
    return table_of([found.name, ">entities", ">answers", *heads], rows)


def reasons(given: Iterable[str]) -> Iterator[str]:
    """Why figures have no interval."""
    if different := dict.fromkeys(each for each in given if each):
        yield f"no interval, for some: {', '.join(different)}"
