"""Number formatting, the same in tables, figures and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from groundswell.reporting.blocks import Cell, Estimate, Kind, RateFigure
from groundswell.reporting.words import cost, duration

NONE = "–"


def percent(share: float | None, signed: bool = False) -> str:
    """A share in percent, with one decimal."""
    if share is None:
        return NONE
    return _minus(f"{100 * share:+.1f}%" if signed else f"{100 * share:.1f}%")


def count(figure: RateFigure) -> str:
    """A count of n: `12 of 100`."""
    return f"{figure.count:,} of {figure.n:,}"


def interval(low: float | None, high: float | None, signed: bool = False) -> str:
    """An interval in percent."""
    if low is None or high is None:
        return NONE
    return f"{percent(low, signed)} to {percent(high, signed)}"


def rate(figure: RateFigure) -> str:
    """A share with its interval: 12.0% (8.1% to 17.0%)."""
    if figure.rate is None:
        return NONE
    return f"{percent(figure.rate)} ({interval(figure.low, figure.high)})"


def number(value: float | None, digits: int = 2, signed: bool = False) -> str:
    """A number with a fixed number of decimals."""
    if value is None:
        return NONE
    return _minus(f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}")


def _minus(shown: str) -> str:
    """Use the minus sign U+2212, and no sign for 0."""
    if not shown.strip("+-0.%"):
        shown = shown.lstrip("+-")
    return shown.replace("-", "−")


def between(low: float | None, high: float | None, digits: int = 2) -> str:
    """An interval of numbers. An unbounded end is left open."""
    if low is None and high is None:
        return NONE
    ends = ("below" if low is None else number(low, digits)), ("above" if high is None else number(high, digits))
    return " to ".join(ends)


def p_value(p: float | None) -> str:
    """A p-value with three decimals, as in journals."""
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equals(p: float | None) -> str:
    """A p-value in a sentence: `p = 0.012`, `p < 0.001`."""
    shown = p_value(p)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def points(value: float) -> str:
    """Points without trailing zeros."""
    return f"{value:,.10g}" if value == round(value, 6) else f"{value:,.2f}"


def plural(many: int, what: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{many:,} {what}" if many == 1 else f"{many:,} {what}s"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names as an enumeration: `Ana, Ben and Carla`."""
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def worded(cell: Cell, kind: Kind, *, counts: bool = True) -> tuple[str, str]:
    """A table cell as text: the value, with its count if `counts`, and its interval."""
    if not isinstance(cell, Estimate):
        return _value(cell, kind), ""
    value = _value(cell.value, kind)
    if counts and cell.count is not None and cell.n is not None:
        value = f"{cell.count:,}/{cell.n:,} · {value}"
    if cell.value is None or (cell.low is None and cell.high is None):
        return value, ""
    name, _, digits = kind.partition(".")
    if name.startswith("share"):
        return value, interval(cell.low, cell.high, signed=name == "share_change")
    return value, between(cell.low, cell.high, int(digits or 2))


def _value(value: str | int | float | bool | None, kind: Kind) -> str:
    name, _, digits = kind.partition(".")
    if value is None:
        return NONE
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isfinite(value):
        return str(value)
    match name:
        case "count":
            return f"{value:,}".replace("-", "−")
        case "share" | "share_change":
            return percent(value, signed=name == "share_change")
        case "number" | "change":
            return number(value, int(digits or 2), signed=name == "change")
        case "value":
            return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        case "p":
            return p_value(value)
        case "usd":
            return f"−{cost(-value, 0)}" if value < 0 else cost(value, 0)
        case "seconds":
            return duration(value)
    return str(value)
