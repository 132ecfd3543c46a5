"""What `ask` and `map` came to, for a terminal: replies in panels, and models with the checks that they passed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.columns import Columns
from rich.console import RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from groundswell.experiments.experiment import Aside, Plain
from groundswell.reporting.words import cost

if TYPE_CHECKING:
    from groundswell.engine.summary import Paid
    from groundswell.experiments.prompting.figures import CheckFigures, Difference, ModelFigures
    from groundswell.experiments.prompting.mapping import Mapped

NARROWEST = 40
BORDER = 7
"""What a panel has on the left and right of its title, and the space to the next one."""


class Shown(NamedTuple):
    """A reply as people see it; one that did not come has its reason as text."""

    title: str
    told: str
    text: str
    there: bool


def plain(replies: Sequence[Shown]) -> Iterator[str]:
    """Replies below each other; of a single one, nothing but its text goes to standard output."""
    if len(replies) == 1 and replies[0].there:
        yield Plain(replies[0].text)
        yield Aside(f"{replies[0].title}: {replies[0].told}")
        return
    for number, shown in enumerate(replies):
        yield Plain("\n" * bool(number) + f"== {shown.title} ({shown.told})\n{shown.text}")


def panels(replies: Sequence[Shown], width: int) -> Iterator[RenderableType]:
    """Panels side by side where each gets enough room, else below each other."""

    room = width // max(len(replies), 1)
    longest = max((cell_len(words) for shown in replies for words in (shown.title, shown.told)), default=0)
    beside = len(replies) > 1 and room >= max(NARROWEST, longest + BORDER)
    made = [
        Panel(
            Text(shown.text, style="" if shown.there else "red"),
            title=Text(shown.title, style="bold"),
            subtitle=Text(shown.told, style="dim"),
            title_align="left",
            subtitle_align="right",
            width=room - 1 if beside else None,
        )
        for shown in replies
    ]
    if beside:
        yield Columns(made)
    else:
        yield from made


def mapped(found: Mapped, paid: Mapping[str, Paid]) -> Iterator[str | Table]:
    """Figures per model, the checks, and where the rows are."""
    figures = found.figures
    yield ""
    yield _models(figures.models, paid)
    if any(model.checks for model in figures.models):
        yield ""
        yield _checks(figures.models)
    yield from map(_compared, figures.differences)
    yield ""
    yield f"{'1 row' if found.file.rows == 1 else f'{found.file.rows:,} rows'} written to {found.file.path}"


def _models(models: Sequence[ModelFigures], paid: Mapping[str, Paid]) -> Table:
    """A line for each model that was asked, and for each that judged or compared; what was there already is free."""

    table = Table(box=None, pad_edge=False)
    table.add_column("model")
    pending = ["pending"] if any(model.pending for model in models) else []
    for column in ("rows", "usable", "missing", *pending, "tokens in", "out", "cost"):
        table.add_column(column, justify="right")
    for model in models:
        counts = [model.rows, model.usable, model.missing, *([model.pending] if pending else [])]
        cells = [f"{count:,}" for count in (*counts, model.input_tokens, model.output_tokens)]
        table.add_row(escape(model.model), *cells, _paid(paid.get(model.model)))
    asked = {model.model for model in models}
    for name, other in paid.items():
        if name not in asked:
            tokens = [f"{count:,}" for count in (other.input_tokens, other.output_tokens)]
            table.add_row(f"{escape(name)}, for checks", *[""] * (3 + len(pending)), *tokens, _paid(other))
    return table


def _paid(paid: Paid | None) -> str:
    return cost(0.0, 0) if paid is None else cost(paid.cost.usd, paid.cost.unknown_asks)


def _checks(models: Sequence[ModelFigures]) -> Table:

    table = Table(box=None, pad_edge=False)
    for column in ("check", "model"):
        table.add_column(column)
    unknown = ("not known",) if any(check.unknown for model in models for check in model.checks) else ()
    for column in ("passed", "rate", "95% interval", *unknown):
        table.add_column(column, justify="right")
    for number, check in enumerate(models[0].checks):
        for model in models:
            cells = _rate(model.checks[number])
            table.add_row(escape(check.check), escape(model.model), *cells[: 3 + len(unknown)])
    return table


def _rate(check: CheckFigures) -> tuple[str, str, str, str]:
    rate = "" if check.rate is None else f"{check.rate:.1%}"
    interval = "" if check.rate is None else f"{check.low:.1%} to {check.high:.1%}"
    return f"{check.passed:,}/{check.n:,}", rate, interval, f"{check.unknown:,}" if check.unknown else ""


def _compared(found: Difference) -> str:
    """Which of two models passes more often, as far as the rows that both have can tell."""
    if found.difference is None:
        return f"{found.check}: there is no row that both models have"
    one, other, points, low, high = found.first, found.second, found.difference, found.low, found.high
    if points < 0:
        one, other, points, low, high = other, one, -points, -high, -low
    measured = f"{_points(points)} points (95%: {_points(low)} to {_points(high)}; {found.rows:,} rows that both have)"
    if low > 0:
        return f"{found.check}: {one} passes more often than {other}, by {measured}"
    return f"{found.check}: no difference can be told; {one} less {other} is {measured}"


def _points(share: float) -> str:
    return f"{share * 100:.1f}"
