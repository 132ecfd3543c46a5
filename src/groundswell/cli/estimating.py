"""`--estimate`: predict the requests, tokens, cost and time of a command."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from math import floor, log10
from typing import TYPE_CHECKING

from groundswell.cli import output
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from groundswell.engine.spending import Range
    from groundswell.estimate.bill import Bill, Way
    from groundswell.estimate.figures import Estimate
    from groundswell.experiments.options import HowToRun

NOT_HERE = (
    "--estimate: only new runs can be estimated, not the rest of an existing one; use `groundswell run` with the "
    "driver and settings of this run and --estimate, and subtract what `groundswell runs show` reports as done"
)
UNPRICED = "the price of {} is unknown: add it under [prices] in groundswell.toml"


def show_estimate(estimate: Callable[[], Estimate], choices: HowToRun, *, json: bool) -> None:
    """Print an estimate, with prices and times."""
    with redirect_stdout(StringIO()):  # the driver runs on made-up outcomes, so what it prints is meaningless
        found = estimate()
    priced = _billed(found, choices)
    if json:
        output.print_json(priced)
    else:
        _print(priced)


def refuse_estimate(wanted: bool) -> None:
    """Refuse `--estimate` for commands on existing runs."""
    if wanted:
        raise SettingsError(NOT_HERE)


def _billed(estimate: Estimate, choices: HowToRun) -> Bill:
    from groundswell.estimate.bill import bill
    from groundswell.estimate.terms import terms_of
    from groundswell.providers.accounts.config import load_here
    from groundswell.providers.prices import ModelPrices

    accounts = cache(lambda: load_here(choices.account))
    prices = ModelPrices(accounts)
    models = [load.model for load in estimate.loads]
    return bill(estimate, {model: terms_of(model, accounts, prices, choices.max_concurrent) for model in models})


def _print(bill: Bill) -> None:
    from rich.table import Table

    output.line(f"{_span(bill.trials, _count)} trials (estimate; nothing was sent)")
    table = Table(box=None, pad_edge=False)
    table.add_column("model", overflow="fold")  # in a narrow terminal, wrap names rather than figures
    for column in ("requests", "tokens in", "tokens out", "live cost"):
        table.add_column(column, justify="right", no_wrap=True)
    for model in bill.models:
        figures = (model.calls, model.input_tokens, model.output_tokens)
        table.add_row(model.model, *(_span(each, _count) for each in figures), _dollars(model.live_usd))
    output.print_table(table)
    output.line()
    _print_ways({"live": bill.ways.live, "batch": bill.ways.batch, "mixed": bill.ways.mixed})
    output.line()
    for model in bill.models:
        if model.live_usd is None:
            output.line(f"  {UNPRICED.format(model.model)}", "yellow")
    for sentence in bill.assumptions:
        output.line(f"  {sentence}", "dim")


def _print_ways(ways: dict[str, Way | None]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("sent")
    for column in ("cost", "time"):
        table.add_column(column, justify="right")
    for name, way in ways.items():
        if way is not None:
            table.add_row(name, _dollars(way.usd), _span(way.seconds, output.duration))
    output.print_table(table)


def _span(span: Range, shown: Callable[[float], str]) -> str:
    low, high = shown(span.low), shown(span.high)
    return low if low == high else f"{low} to {high}"


def _count(figure: float) -> str:
    """A number to about three digits."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if figure >= 10 * size or (unit != "k" and figure >= size):
            return f"{figure / size:.3g}{unit}"
    return f"{round(figure):,}"


def _dollars(span: Range | None) -> str:
    return "unknown" if span is None else _span(span, _usd)


def _usd(usd: float) -> str:
    """Dollars to two significant digits, since an estimate is no more precise."""
    digits = 2 if usd >= 0.1 or usd == 0 else 1 - floor(log10(usd))
    return f"${usd:,.{digits}f}"
