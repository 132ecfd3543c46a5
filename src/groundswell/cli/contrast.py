"""`groundswell contrast`: one batch of simulations against another."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.options import StoreFlags
from groundswell.cli.stored import opened
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag
from groundswell.experiments.simulations.contrasting import Contrast, QuestionGap
from groundswell.experiments.simulations.experiment import contrast_of
from groundswell.experiments.simulations.figures import interval, number, off, points, pvalue, short, table_of
from groundswell.experiments.simulations.gaps import DimensionGap, Gap
from groundswell.experiments.simulations.summary import reasons
from groundswell.stats.clusters import Figure

FOUND = 0.05


def contrast(
    flags: StoreFlags,
    run: Annotated[
        str,
        Meta(description="A batch, by its name, its run or its id."),
        Flag(argument=True, metavar="RUN"),
    ],
    other: Annotated[
        str,
        Meta(description="The batch that it is compared with."),
        Flag(argument=True, metavar="OTHER"),
    ],
    *,
    by: Annotated[
        list[str] | None,
        Meta(
            description="Say also what they differ by for each value of this attribute. May be repeated, or have "
            "commas. Those that either batch was to be looked at --by are told anyway."
        ),
        Flag(metavar="ATTRIBUTE"),
    ] = None,
) -> None:
    """Compare what was answered in two batches: speaker and narrator, alone and in pairs, one model and another."""
    with opened(flags.store) as store:
        try:
            with output.working("reading the answers"):
                found = contrast_of(store, run, other, by or [])
        except SettingsError as error:
            raise SettingsError(f"--{error}" if error.field == "by" else str(error), field=error.field) from error
    if flags.json:
        output.print_json(found)
    else:
        print_contrast(found.contrast)


def print_contrast(found: Contrast) -> None:
    """What two batches differ by, for people."""
    output.line(f"{found.one}, less {found.other}", "bold")
    for name, (one, other) in found.differ.items():
        output.line(f"  {name}: {_setting(one)} against {_setting(other)}")
    if not found.differ:
        output.line("  their settings are the same")
    altered = f", {found.altered:,} of them altered" if found.altered else ""
    output.line(f"  entities: {found.entities[0]:,} and {found.entities[1]:,}, {found.common:,} in both{altered}")
    for question in found.questions:
        output.line()
        _print_question(question, found)
    if found.left_out:
        output.line()
    for name, reason in found.left_out.items():
        output.line(f"{name} is left out: {reason}")


def _print_question(question: QuestionGap, found: Contrast) -> None:
    output.line(f"{question.id}: {short(question.text)}", "bold")
    if question.reworded:
        output.line("the two batches ask it in other words")
    output.line(_paired(question))
    twice = any(each.change is not None for each in question.gaps)
    heads = [] if question.type == "scale" else ["option"]
    heads += [f">{found.one}", f">{found.other}", f">difference ({interval(found.level)})"]
    rows = [_row(each, twice=twice) for each in question.gaps]
    output.print_table(table_of([*heads, *([">in the change"] if twice else [])], rows))
    _print_reasons([each.difference for each in question.gaps])
    for dimension in question.dimensions:
        _print_dimension(dimension, question, found)


def _paired(question: QuestionGap) -> str:
    """What was compared with what."""
    here, there = question.answers
    if question.pairing == "simulation":
        return (
            f"paired: {question.pairs:,} answers by the same entity in the same combination and replicate "
            f"(of {here:,} and {there:,} answers)"
        )
    if question.pairing == "entity":
        return (
            f"paired: {question.pairs:,} entities that answered in both, each compared with itself "
            f"({here:,} and {there:,} answers)"
        )
    one, other = question.entities
    whose = f"{here:,} answers of {one:,} entities, and {there:,} of {other:,}"
    return f"not paired: fewer than half of the entities are in both ({whose})"


def _row(gap: Gap, *, twice: bool) -> list[str]:
    if gap.option is None:
        row = [number(gap.one), number(gap.other), off(gap.difference)]
        return [*row, off(gap.change)] if twice else row
    row = [gap.option, _share(gap.one), _share(gap.other), points(gap.difference)]
    return [*row, points(gap.change)] if twice else row


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _print_dimension(dimension: DimensionGap, question: QuestionGap, found: Contrast) -> None:
    """What the batches differ by for each value of an attribute."""
    if not dimension.groups:
        output.line(f"by {dimension.name}: no groups: {dimension.reason}")
        return
    output.line(
        f"by {dimension.name}: {_verdict(dimension, len([each for each in question.dimensions if each.p is not None]))}"
    )
    scale, rows = question.type == "scale", list[list[str]]()
    for group in dimension.groups:
        for at, gap in enumerate(group.gaps):
            apart = group.apart[at] if group.apart else None
            whose = [group.value, f"{group.entities:,}"] if at == 0 else ["", ""]
            rows.append([*whose, *_row(gap, twice=False), off(apart) if scale else points(apart)])
    heads = [dimension.name, ">entities", *([] if scale else ["option"]), f">{found.one}", f">{found.other}"]
    heads += [f">difference ({interval(found.level)})", ">less that of the others"]
    output.print_table(table_of(heads, rows))
    _print_reasons([gap.difference for group in dimension.groups for gap in group.gaps])


def _verdict(dimension: DimensionGap, among: int) -> str:
    if dimension.p is None or dimension.p_holm is None:
        return f"no test: {dimension.reason}"
    told = f"(p {pvalue(dimension.p)}, Holm {pvalue(dimension.p_holm)} among {among})"
    if dimension.p_holm < FOUND:
        return f"it makes a difference to what the batches differ by {told}"
    return f"no bearing that can be told on what the batches differ by {told}"


def _print_reasons(figures: list[Figure]) -> None:
    for line in reasons(each.reason for each in figures):
        output.line(line)


def _setting(value: object) -> str:
    return "none" if value in (None, "") else short(str(value))
