"""Numbers and their units in a text, in digits or English words: "$49.99", "thirty-seven percent". Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from groundswell.experiments.detectors.ordinary import is_ordinary
from groundswell.experiments.detectors.spans import Span

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_VALUES = {word: value for value, word in enumerate(_ONES.split())}
_VALUES |= {word: 10 * ten for ten, word in enumerate(_TENS.split(), 2)}
_NAMED = "|".join(_VALUES)
_SPOKEN = re.compile(
    rf"\b(?:{_NAMED})\b(?:(?:[\s-]{{1,3}}|\sand\s)(?:{_NAMED}|hundred|thousand|point)\b){{0,20}}", re.I
)
_LETTERS = re.compile(r"[a-z]+")
_UNITS = {
    "%": ("%", "percent", "per cent"),
    "$": ("$", "dollars", "dollar", "us dollars", "us dollar", "usd", "bucks"),
    "€": ("€", "euros", "euro", "eur"),
    "£": ("£", "pounds", "pound", "gbp"),
}
_SIGNS = {name: sign for sign, names in _UNITS.items() for name in names}
_UNIT = "|".join(re.escape(name) + (r"\b" if name[-1].isalpha() else "") for name in _SIGNS)
_AMOUNT = re.compile(
    rf"(?<![\w.])(?<!\d[,/-])(?P<before>[$€£]\s?)?(?P<value>\d+(?:,\d{{3}})*(?:[.,]\d+)?)(?![\w]|[.,/-]\d)"
    rf"(?:[\s-]?(?P<after>{_UNIT}))?",
    re.I,
)
_CENTS = re.compile(r"\b(\d+) (dollars|euros|pounds)(?: and)? (\d\d) (?:cents|pence)\b", re.I)
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
_WORD = re.compile(r"[^\W\d_]+")
_LABELLING = "pin code passcode password number no nr id key room door safe ticket order extension price cost discount"
_LABELS = frozenset(_LABELLING.split())
"""Words that may stand beside a number without being part of the secret. Beside a unit, ordinary words may."""


class Amount(NamedTuple):
    """A number as written, without separators, and the sign of its unit; an empty one if there is none."""

    value: str
    unit: str


@lru_cache(maxsize=8192)
def amount_of(secret: str) -> Amount | None:
    """The amount that a secret is, with or without labels; None for any other secret."""
    found = list(_AMOUNT.finditer(secret))
    if len(found) != 1:
        return None
    start, end = found[0].span()
    amount, others = _amount(found[0]), _WORD.findall(f"{secret[:start]} {secret[end:]}".casefold())
    return amount if all(word in _LABELS or (amount.unit and is_ordinary(word)) for word in others) else None


def amounts_in(text: str) -> tuple[str, list[tuple[Amount, Span]]]:
    """A text with number words as digits, and its amounts with their positions."""
    digits = _CENTS.sub(r"\1.\3 \2", _SPOKEN.sub(lambda match: in_digits(match[0]), text))
    return digits, [(_amount(match), Span(*match.span())) for match in _AMOUNT.finditer(digits)]


def _amount(match: re.Match[str]) -> Amount:
    written = (match["before"] or match["after"] or "").strip().casefold()
    value = _THOUSANDS.sub("", match["value"]).replace(",", ".")
    return Amount(value.removesuffix(".00"), _SIGNS.get(written, ""))


def in_digits(spoken: str) -> str:
    """A spoken number in digits. Digits and pairs are put side by side: "forty-eight twenty-one" is 4821."""
    done, thousands, held = "", 0, -1
    for word in _LETTERS.findall(spoken.casefold()):
        value = _VALUES.get(word)
        if word == "point":
            done, thousands, held = f"{done}{_closed(thousands, held)}.", 0, -1
        elif word == "hundred":
            held = max(1, held) * 100
        elif word == "thousand":
            thousands, held = max(1, held) * 1000, -1
        elif value is not None and (held < 0 or _goes_on(held, value)):
            held = max(0, held) + value
        elif value is not None:
            done, thousands, held = f"{done}{_closed(thousands, held)}", 0, value
    return f"{done}{_closed(thousands, held)}"


def _goes_on(held: int, value: int) -> bool:
    """Whether a value continues a number: "forty" and "two", "nine hundred" and "seventeen"."""
    after_hundreds = held > 0 and held % 100 == 0 and value < 100
    return value > 0 and (after_hundreds or (held % 100 >= 20 and held % 10 == 0 and value < 10))


def _closed(thousands: int, held: int) -> str:
    return str(thousands + max(0, held)) if thousands or held >= 0 else ""
