"""The reports of `ask` and `map`, and the replies of `ask` for terminals and pipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.columns import Columns
from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text as RichText

from groundswell.engine.summary import Paid
from groundswell.experiments.experiment import Aside, Found, Plain
from groundswell.experiments.prompting.figures import Difference, ModelFigures
from groundswell.experiments.prompting.mapping import Mapped
from groundswell.experiments.report import about_run, trial_transcripts
from groundswell.reporting import numbers
from groundswell.reporting.blocks import Block, Cell, Estimate, Passage, Report, Table, Text
from groundswell.reporting.words import cost, visible

NARROWEST = 40
BORDER = 7
"""Columns that a panel needs beside its title, including the space to the next panel."""


class ShownReply(NamedTuple):
    """A reply to show: its model, its usage, and its text or why there is none."""

    title: str
    usage: str
    text: str
    usable: bool


def ask_blocks(replies: Sequence[ShownReply], found: Found) -> Iterator[Block]:
    """The replies to one prompt."""
    summary = found.summary
    came = sum(each.usable for each in replies)
    yield Text(
        id="findings",
        lines=[f"{came:,} of {len(replies):,} replies received."],
        passages=[Passage(each.title, each.text, open=True) for each in replies],
        brief=True,
    )
    yield Table(
        id="replies",
        title="Replies",
        columns={"reply": "text", "usage": "text", "usable": "text"},
        rows=[(each.title, each.usage, each.usable) for each in replies],
    )
    yield trial_transcripts(found)
    yield Text(id="status", part="run", lines=[f"run {summary.run_id}: {summary.status}"])
    yield from about_run([summary], found.records, found.held)


def printed(report: Report, width: int | None) -> Iterator[RenderableType]:
    """The replies of a report: panels on a terminal of this width, plain text elsewhere."""
    blocks = {block.id: block for block in report.blocks}
    said, table, status = blocks["findings"], blocks["replies"], blocks["status"]
    assert isinstance(said, Text)
    assert isinstance(table, Table)
    assert isinstance(status, Text)
    shown = [
        ShownReply(str(title), str(usage), visible(passage.text), bool(usable))
        for (title, usage, usable), passage in zip(table.rows, said.passages, strict=True)
    ]
    yield from _plain(shown) if width is None else _panels(shown, width)
    yield Aside(status.lines[0])


def _plain(replies: Sequence[ShownReply]) -> Iterator[str]:
    """Replies one below the other. For a single reply, only its text goes to standard output."""
    if len(replies) == 1 and replies[0].usable:
        yield Plain(replies[0].text)
        yield Aside(f"{replies[0].title}: {replies[0].usage}")
        return
    for number, each in enumerate(replies):
        yield Plain("\n" * bool(number) + f"== {each.title} ({each.usage})\n{each.text}")


def _panels(replies: Sequence[ShownReply], width: int) -> Iterator[RenderableType]:
    """Panels side by side if there is enough room, else one below the other."""
    room = width // max(len(replies), 1)
    longest = max((cell_len(words) for each in replies for words in (each.title, each.usage)), default=0)
    beside = len(replies) > 1 and room >= max(NARROWEST, longest + BORDER)
    made = [
        Panel(
            RichText(each.text, style="" if each.usable else "red"),
            title=RichText(each.title, style="bold"),
            subtitle=RichText(each.usage, style="dim"),
            title_align="left",
            subtitle_align="right",
            width=room - 1 if beside else None,
        )
        for each in replies
    ]
    if beside:
        yield Columns(made)
    else:
        yield from made


def map_blocks(mapped: Mapped, found: Found) -> Iterator[Block]:
    """The report of `map`: figures per model, checks, and the output file."""
    figures = mapped.figures
    lines = [f"{numbers.plural(mapped.file.rows, 'row')} written to {mapped.file.path}"]
    yield Text(id="findings", lines=[*lines, *map(_compared, figures.differences)], brief=True)
    yield _models(figures.models, found.summary.models)
    if any(model.checks for model in figures.models):
        yield _checks(figures.models)
    yield trial_transcripts(found)
    yield from about_run([found.summary], found.records, found.held)


def _models(models: Sequence[ModelFigures], paid: Mapping[str, Paid]) -> Table:
    """One row per model, including judges and embedders."""
    pending = any(model.pending for model in models)
    columns = ["rows", "usable", "missing", *(["pending"] if pending else []), "tokens in", "out"]
    rows: list[list[Cell]] = []
    for each in models:
        counts = [each.rows, each.usable, each.missing, *([each.pending] if pending else [])]
        rows.append([each.model, *counts, each.input_tokens, each.output_tokens, _paid(paid.get(each.model))])
    asked = {each.model for each in models}
    for name, other in paid.items():
        if name not in asked:
            tokens = [other.input_tokens, other.output_tokens]
            rows.append([f"{name}, for checks", *[None] * (len(columns) - 2), *tokens, _paid(other)])
    return Table(
        id="models",
        title="Models",
        part="findings",
        brief=True,
        columns={"model": "text", **dict.fromkeys(columns, "count"), "cost": "usd"},
        rows=rows,
        caption="Rows per model. Cache hits cost nothing.",
    )


def _paid(paid: Paid | None) -> str:
    return cost(0.0, 0) if paid is None else cost(paid.cost.usd, paid.cost.unknown_asks)


def _checks(models: Sequence[ModelFigures]) -> Table:
    unknown = any(check.unknown for model in models for check in model.checks)
    return Table(
        id="checks",
        title="Checks",
        part="findings",
        brief=True,
        columns={
            **{"check": "text", "model": "text", "passed": "count", "of": "count", "rate": "share"},
            **({"not known": "count"} if unknown else {}),
        },
        rows=[
            (
                *(check.check, model.model, check.passed, check.n),
                None if check.rate is None else Estimate(check.rate, check.low, check.high),
                *([check.unknown] if unknown else []),
            )
            for number in range(len(models[0].checks))
            for model in models
            for check in [model.checks[number]]
        ],
        caption="Replies that passed each check, with 95% confidence intervals. Undecided replies are excluded.",
    )


def _compared(found: Difference) -> str:
    """The paired comparison of two models, on the rows that both answered."""
    if found.difference is None:
        return f"{found.check}: no row has a decided reply of both models."
    one, other, points, low, high = found.first, found.second, found.difference, found.low, found.high
    if points < 0:
        one, other, points, low, high = other, one, -points, -high, -low
    spread = numbers.between(100 * low, 100 * high, 1)
    measured = f"{100 * points:.1f} percentage points (95% CI {spread}; n = {found.rows:,} rows)."
    if low > 0:
        return f"{found.check}: {one} passes more often than {other}, by {measured}"
    return f"{found.check}: no significant difference; {one} minus {other} is {measured}"
