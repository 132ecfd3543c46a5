"""Figures with intervals as they stand in a terminal: numbers, shares, changes, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from groundswell.reporting.words import visible

if TYPE_CHECKING:
    from groundswell.stats.clusters import Figure

MOST_ROWS = 12
MOST_OPTIONS = 5
"""So many rows of a table, and options beside each other are shown; of free answers, so many too."""
SHOWN = 100
"""So much of a text."""


def table_of(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table; figures stand below heads that begin with >. What others wrote is shown, and does nothing."""

    table = Table(box=None, pad_edge=False)
    for head in heads:
        right = head.startswith(">")
        table.add_column(Text(short(head.removeprefix(">"))), justify="right" if right else "left")
    for row in rows:
        table.add_row(*(Text(short(cell)) for cell in row))
    return table


def short(text: str) -> str:
    """A text on one line, shortened."""
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= SHOWN else f"{flat[:SHOWN]}…"


def interval(level: float) -> str:
    """What an interval is called."""
    return f"{level:.0%} interval"


def told(figure: Figure, level: float, *, signed: bool = False) -> str:
    """A figure with its interval, or why there is none."""
    value = number(figure.value, signed=signed)
    if figure.value is None:
        return figure.reason or "unknown"
    if figure.low is None:
        return f"{value} (no interval: {figure.reason})"
    return f"{value} ({level:.0%}: {between(figure)})"


def number(value: float | None, *, signed: bool = False) -> str:
    """A number to two digits."""
    return "" if value is None else f"{value:+.2f}" if signed else f"{value:.2f}"


def between(figure: Figure, *, share: bool = False) -> str:
    """Where a figure lies."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{figure.low:.1%} to {figure.high:.1%}" if share else f"{figure.low:.2f} to {figure.high:.2f}"


def percent(figure: Figure) -> str:
    """A share as a percentage."""
    return "" if figure.value is None else f"{figure.value:.1%}"


def points(figure: Figure | None) -> str:
    """A change of a share, in points."""
    if figure is None or figure.value is None:
        return ""
    where = "" if figure.low is None or figure.high is None else f" ({figure.low * 100:.1f} to {figure.high * 100:.1f})"
    return f"{figure.value * 100:+.1f}{where}"


def pvalue(p: float) -> str:
    """A p-value as papers have it."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def off(figure: Figure | None) -> str:
    """A difference with its sign and its interval."""
    if figure is None or figure.value is None:
        return ""
    where = between(figure)
    return f"{figure.value:+.2f} ({where})" if where else f"{figure.value:+.2f}"
