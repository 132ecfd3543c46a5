"""`--estimate`: predict the requests, tokens, cost and time of a command."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from math import floor, log10
from typing import TYPE_CHECKING, Any

from groundswell.cli import output
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from groundswell.engine.driver import Driver
    from groundswell.engine.spending import Range
    from groundswell.estimate.bill import Basis, Bill, Pilot, Way
    from groundswell.experiments.options import HowToRun

NOT_HERE = (
    "--estimate: only new runs can be estimated, not the rest of an existing one; use `groundswell run` with the "
    "driver and settings of this run and --estimate, and subtract what `groundswell runs show` reports as done"
)
UNPRICED = "the price of {} is unknown: add it under [prices] in groundswell.toml"


def estimate_driver(driver: Driver, settings: Any, choices: HowToRun, *, seed: int = 0, json: bool) -> None:
    """Print the estimate of a driver."""
    from groundswell.estimate.billing import billed

    show_estimate(
        quietly(
            lambda: billed(driver, settings, seed=seed, account=choices.account, max_concurrent=choices.max_concurrent)
        ),
        json=json,
    )


def quietly(estimate: Callable[[], Bill]) -> Bill:
    """Make an estimate. The driver may run on made-up outcomes, so what it prints is meaningless."""
    with redirect_stdout(StringIO()):
        return estimate()


def show_estimate(bill: Bill, *, pilot: bool = False, json: bool) -> None:
    """Print an estimate. `pilot`: whether the command can run a pilot."""
    if json:
        output.print_json(bill)
    else:
        _print(bill, pilot=pilot)


def refuse_estimate(wanted: bool) -> None:
    """Refuse `--estimate` for commands on existing runs."""
    if wanted:
        raise SettingsError(NOT_HERE)


def _print(bill: Bill, *, pilot: bool) -> None:
    from rich.table import Table

    basis = "nothing was sent" if bill.measured is None else f"measured on {bill.measured.requests:,} requests"
    output.line(f"{_span(bill.trials, _count)} trials (estimate; {basis})")
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
    if bill.measured is not None:
        output.line(_measured(bill.measured))
    elif pilot and bill.pilot is not None:
        output.line(_offered(bill.pilot))


def _measured(basis: Basis) -> str:
    """What the estimate was measured on, and what that cost."""
    cost = "unknown" if basis.usd is None else _usd(basis.usd)
    return (
        f"Measured on {basis.requests:,} requests of run {basis.run}: cost {cost}, time "
        f"{output.duration(basis.seconds)}. Run the command without --estimate and --pilot to continue this run; "
        "these requests are not paid for again."
    )


def _offered(pilot: Pilot) -> str:
    """What a pilot would cost."""
    return (
        f"For a narrower estimate, add --pilot: it sends the first {pilot.requests:,} requests of the run "
        f"(cost {_dollars(pilot.usd)}) and measures them."
    )


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
