"""A question by what entities are, on a terminal: by all attributes named in advance, and by the nearest other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from groundswell.cli import output
from groundswell.cli.figures import (
    MOST_OPTIONS,
    MOST_ROWS,
    between,
    interval,
    number,
    off,
    percent,
    points,
    print_table,
    pvalue,
)

if TYPE_CHECKING:
    from groundswell.experiments.simulations.grouping import DimensionFigures, GroupFigures, GroupOption
    from groundswell.experiments.simulations.tabulation import QuestionFigures

FOUND = 0.05


def print_dimensions(question: QuestionFigures, level: float) -> bool:
    """The question by what entities are; returns whether anything is left out."""
    named = [each for each in question.dimensions if not each.exploratory]
    others = [each for each in question.dimensions if each.exploratory]
    for each in named:
        _print_named(each, named, question, level)
    nearest = min(
        (each for each in others if each.p_holm is not None), key=lambda each: (each.p_holm, each.p), default=None
    )
    if nearest is None:
        return bool(others)
    return _print_nearest(nearest, others, question, level) or len(others) > 1


def _print_named(
    found: DimensionFigures, named: Sequence[DimensionFigures], question: QuestionFigures, level: float
) -> None:
    """An attribute that was named in advance, in full."""
    if not found.groups:
        output.line(f"by {found.name}: no groups: {found.reason}")
        return
    among = len([each for each in named if each.p is not None])
    output.line(f"by {found.name}: {_verdict(found.p, found.p_holm, among) or f'no test: {found.reason}'}")
    if question.scale is not None:
        _print_means(found, found.groups, level)
    else:
        _print_options(found, level)
    if question.before is not None:
        among = len([each for each in named if each.change_p is not None])
        told = _verdict(found.change_p, found.change_p_holm, among) or f"no test: {found.change_reason}"
        output.line(f"the change by {found.name}: {told}")


def _verdict(p: float | None, holm: float | None, among: int) -> str:
    """Whether there is a difference, with p-values; nothing where there is none to tell by."""
    if p is None or holm is None:
        return ""
    found = "makes a difference" if holm < FOUND else "no difference that can be told"
    return f"{found} (p {pvalue(p)}, Holm {pvalue(holm)} among {among})"


def _print_nearest(
    found: DimensionFigures, others: Sequence[DimensionFigures], question: QuestionFigures, level: float
) -> bool:
    """Of what was not asked for in advance, the attribute that has most bearing; returns whether rows are left out."""
    among = len([each for each in others if each.p is not None])
    output.line(f"not asked for in advance: {_nearest(found, among)}")
    if question.scale is not None:
        _print_means(found, found.groups[:MOST_ROWS], level)
    else:
        _print_shares(found, question)
    return len(found.groups) > MOST_ROWS or len(question.options) > MOST_OPTIONS


def _nearest(found: DimensionFigures, among: int) -> str:
    assert found.p is not None
    assert found.p_holm is not None
    tested = f"p {pvalue(found.p)}" + (f", Holm {pvalue(found.p_holm)} among {among}" if among > 1 else "")
    if found.p_holm < FOUND:
        return f"{found.name} makes a difference ({tested}):"
    return f"no attribute makes a difference that can be told; {found.name} comes nearest ({tested}):"


def _print_means(found: DimensionFigures, groups: Sequence[GroupFigures], level: float) -> None:
    twice = any(each.change is not None for each in groups)
    heads = [found.name, ">entities", ">answers", ">mean", f">{interval(level)}", ">less the others"]
    heads += [">change", ">less the others"] if twice else []
    rows: list[list[str]] = []
    for each in groups:
        row = [each.value, f"{each.entities:,}", f"{each.answered:,}"]
        if each.mean is not None:
            row += [number(each.mean.value), between(each.mean), off(each.difference)]
        rows.append([*row, off(each.change), off(each.change_difference)] if twice else row)
    print_table(heads, rows)
    _print_reasons(each.mean.reason for each in groups if each.mean is not None)


def _print_options(found: DimensionFigures, level: float) -> None:
    """A row for every option of every group."""
    twice = any(option.change is not None for each in found.groups for option in each.options)
    heads = [found.name, ">entities", ">answers", "option", ">share", f">{interval(level)}", ">less the others"]
    rows: list[list[str]] = []
    for each in found.groups:
        for at, option in enumerate(each.options):
            whose = [each.value, f"{each.entities:,}", f"{each.answered:,}"] if at == 0 else ["", "", ""]
            rows.append([*whose, *_option(option, twice=twice)])
    print_table([*heads, *([">change", ">less the others"] if twice else [])], rows)
    _print_reasons(option.share.reason for each in found.groups for option in each.options)


def _option(option: GroupOption, *, twice: bool) -> list[str]:
    row = [option.option, percent(option.share), between(option.share, share=True), points(option.difference)]
    return [*row, points(option.change), points(option.change_difference)] if twice else row


def _print_shares(found: DimensionFigures, question: QuestionFigures) -> None:
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
    print_table([found.name, ">entities", ">answers", *heads], rows)


def _print_reasons(reasons: Iterator[str]) -> None:
    """Why figures have no interval."""
    told = dict.fromkeys(reason for reason in reasons if reason)
    if told:
        output.line(f"no interval, for some: {', '.join(told)}")
