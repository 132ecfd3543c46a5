"""Plain arithmetic with precedence, exactly, by recursive descent."""

from __future__ import annotations

import re
from fractions import Fraction

_TOKEN = re.compile(r"\s*(?:(\d{1,15}(?:\.\d{1,9})?)|([-+*/()×÷·xX−]))")
_LEAD = re.compile(
    r"(?:what(?:'s| is| are)|how much is|calculate|compute|evaluate|work out|solve|find|the value of|simplify|:)+\s*",
    re.I,
)
_EXPRESSION = re.compile(r"(?=\D*+\d)[\d\s.()+\-*/×÷·xX−]++")
_SAME = {"×": "*", "·": "*", "x": "*", "X": "*", "÷": "/", "−": "-"}
_DEEPEST = 30


class _Reader:
    """Reads one expression; `steps` collects what was worked out, in order."""

    def __init__(self, symbols: list[str]) -> None:
        self.symbols = symbols
        self.at = 0
        self.depth = 0
        self.steps: list[tuple[Fraction, str, Fraction, Fraction]] = []

    def peek(self) -> str:
        return self.symbols[self.at] if self.at < len(self.symbols) else ""

    def take(self) -> str:
        symbol = self.peek()
        self.at += 1
        return symbol

    def sum(self) -> Fraction:
        value = self.product()
        while self.peek() in ("+", "-"):
            value = self.work(value, self.take(), self.product())
        return value

    def product(self) -> Fraction:
        value = self.factor()
        while self.peek() in ("*", "/"):
            value = self.work(value, self.take(), self.factor())
        return value

    def factor(self) -> Fraction:
        symbol = self.take()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError("too deep")
        if symbol == "-":
            value = -self.factor()
        elif symbol == "(":
            value = self.sum()
            if self.take() != ")":
                raise ValueError("unbalanced")
        else:
            value = Fraction(symbol)
        self.depth -= 1
        return value

    def work(self, left: Fraction, sign: str, right: Fraction) -> Fraction:
        value = apply(left, sign, right)
        self.steps.append((left, sign, right, value))
        return value


def apply(left: Fraction, sign: str, right: Fraction) -> Fraction:
    """One operation; dividing by zero raises ZeroDivisionError."""
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    return left / right


def expression_in(text: str) -> str | None:
    """The arithmetic expression that a text consists of, but for a lead-in such as "What is"."""
    bare = text.strip().rstrip("?=. \n").strip()
    bare = _LEAD.sub("", bare, count=3).strip()
    return bare if 0 < len(bare) <= 300 and _EXPRESSION.fullmatch(bare) else None


def evaluate(expression: str) -> list[tuple[Fraction, str, Fraction, Fraction]] | None:
    """The operations of an expression in the order they are done; None where it is none, or has no operation."""
    symbols: list[str] = []
    at, end = 0, len(expression.rstrip())
    while at < end:
        match = _TOKEN.match(expression, at)
        if match is None:
            return None
        symbols.append(match[1] or _SAME.get(match[2], match[2]))
        at = match.end()
    reader = _Reader(symbols)
    try:
        reader.sum()
    except (ValueError, ZeroDivisionError):
        return None
    return reader.steps if reader.steps and reader.at == len(symbols) else None
