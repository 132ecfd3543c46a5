"""Figures as the report writes them: the same in tables, plots and sentences."""

from __future__ import annotations

from typing import Protocol

NONE = "–"


class RateFigure(Protocol):
    """A share with its interval, as every analysis has them."""

    @property
    def count(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def rate(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def percent(share: float | None, signed: bool = False) -> str:
    """A share in percent, to a tenth."""
    if share is None:
        return NONE
    return _minus(f"{100 * share:+.1f}%" if signed else f"{100 * share:.1f}%")


def count(figure: RateFigure) -> str:
    """So many of so many."""
    return f"{figure.count:,} of {figure.n:,}"


def interval(low: float | None, high: float | None, signed: bool = False) -> str:
    """From here to there, in percent."""
    if low is None or high is None:
        return NONE
    return f"{percent(low, signed)} to {percent(high, signed)}"


def rate(figure: RateFigure) -> str:
    """A share with its interval: 12.0% (8.1% to 17.0%)."""
    if figure.rate is None:
        return NONE
    return f"{percent(figure.rate)} ({interval(figure.low, figure.high)})"


def stacked(figure: RateFigure, *, counted: bool = False) -> str:
    """A share with its interval below it, and the count above where it is wanted."""
    if figure.rate is None:
        return NONE
    below = f"{percent(figure.rate)}\n{interval(figure.low, figure.high)}"
    return f"{figure.count:,} · {below}" if counted else below


def number(value: float | None, digits: int = 2, signed: bool = False) -> str:
    """A figure on a scale of its own."""
    if value is None:
        return NONE
    return _minus(f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}")


def _minus(shown: str) -> str:
    """A minus as wide as a plus; and nothing is 0 from above or below."""
    if not shown.strip("+-0.%"):
        shown = shown.lstrip("+-")
    return shown.replace("-", "−")


def between(low: float | None, high: float | None, digits: int = 2) -> str:
    """From here to there, on a scale of its own; an end that nothing bounds is left open."""
    if low is None and high is None:
        return NONE
    ends = ("below" if low is None else number(low, digits)), ("above" if high is None else number(high, digits))
    return " to ".join(ends)


def p_value(p: float | None) -> str:
    """A p to three digits, as journals write it."""
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def points(value: float) -> str:
    """Points without needless zeros."""
    return f"{value:,.10g}" if value == round(value, 6) else f"{value:,.2f}"


def plural(many: int, what: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{many:,} {what}" if many == 1 else f"{many:,} {what}s"
