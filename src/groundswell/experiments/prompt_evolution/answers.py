"""Find the answer in a reply, and compare answers.

| form | example |
|---|---|
| `#### n` | 3 + 4 = 7 `#### 7` |
| `\\boxed{n}` | `\\boxed{\\frac{1}{2}}`, `$\\boxed{7}$` |
| a tag | `<answer>7</answer>` |
| JSON | `{"answer": 7}` |
| a label | Answer: 7 / Final answer: **7** / The answer is 7. / = 7 at the end of the last line |
| a bare number | 7 |
| the last number | So there are 7 pens left. |

The first form of the table that occurs in a reply is used; if it occurs several times, the last one. Numbers are
compared as exact fractions: `1,200`, `$1200.00`, `1.2e3` and `2400/2` are equal, and so are `50%`, `50 pens` and `50`.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache

_NUMBER = r"[-+−]?\s?[$€£]?\s?(?:\d{1,3}(?:[,  ]\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?(?:\s?/\s?\d+(?:\.\d+)?)?"
_REAL = re.compile(rf"(?<![\w.])(?=[-+−$€£.\d])({_NUMBER})(?<=\d)", re.A)
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}")
_SPELT = re.compile(r"\\(?:text|mathrm|mbox)\s*\{([^{}]*)\}")
_HASHES = re.compile(r"####[ \t]*+([^\n]*)")
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
_TAG = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.I | re.S)
_FIELD = re.compile(r'"(?:final_?)?(?:answer|result|value)"\s*:\s*("(?:[^"\\]|\\.)*"|[^,}\s]+)', re.I)
_LABEL = re.compile(
    r"\b(?:(?:final\s+)?answer|result|solution)\b\W{0,4}(?:\s+is\b|:|=)\W{0,3}?\s*([^\n]*)"
    r"|\bthe answer is\s*:?\s*([^\n]*)",
    re.I,
)
_FORMS = (("####", _HASHES), ("boxed", _BOXED), ("</", _TAG), ('"', _FIELD))
"""Each form with a marker that its replies contain, so that most regular expressions are skipped."""
_POWER = re.compile(r"[eE]([-+]?\d+)$")
LARGEST = 400
"""The largest exponent that is evaluated: `1e999999999` would exhaust the memory."""
_DRESS = str.maketrans({"*": None, "`": None, "_": " ", "−": "-", "–": "-"})


@lru_cache(maxsize=64)
def extracted(reply: str) -> str | None:
    """The answer as written in a reply; None if there is none."""
    text = _composed(reply).strip()
    for mark, form in _FORMS:
        for found in reversed(form.findall(text)) if mark in text else ():
            if answer := _plain(found):
                return answer
    for found in reversed(list(_LABEL.finditer(text))):
        if answer := _plain(found[1] or found[2] or ""):
            return _first_number(answer) or answer
    if not text:
        return None
    last = _plain(text.splitlines()[-1])
    _, equals, after = last.rpartition("=")
    if equals and (number := _first_number(after)) is not None:
        return number
    numbers = _REAL.findall(_plain(text))
    return numbers[-1].strip() if numbers else None


def _composed(text: str) -> str:
    """Normalise Unicode characters (NFKC)."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _plain(text: str) -> str:
    """Remove formatting around an answer."""
    if "\\" in text:
        text = _FRACTION.sub(r"\1/\2", text).replace("\\$", "$").replace("\\%", "%")
        text = _SPELT.sub(r" \1", text).replace("\\,", "").replace("\\!", "")
    text = text.translate(_DRESS).replace("{,}", ",")
    return text.strip().strip("\"'$()[]").rstrip(".;,!").strip()


def _first_number(text: str) -> str | None:
    found = _REAL.search(text)
    return found[1].strip() if found is not None else None


@lru_cache(maxsize=8192)
def number_in(text: str) -> Fraction | None:
    """The number in a text, ignoring its unit; None if there is no number or more than one."""
    found = _REAL.findall(_plain(_composed(text)))
    return _fraction(found[0]) if len(found) == 1 else None


def _fraction(text: str) -> Fraction | None:
    text = re.sub(r"[\s,$€£]", "", text).replace("−", "-")
    above, _, below = text.partition("/")
    try:
        if (power := _POWER.search(above)) is not None and abs(int(power[1])) > LARGEST:
            return None
        return Fraction(above) / Fraction(below or "1")
    except (ValueError, ZeroDivisionError):
        return None


def same_number(one: str, other: str) -> bool:
    """Whether two answers are the same number."""
    first, second = number_in(one), number_in(other)
    return first is not None and first == second


def same_text(one: str, other: str) -> bool:
    """Whether two answers have the same words, ignoring case, punctuation and articles."""
    return _bare(one) == _bare(other)


def _bare(text: str) -> str:
    text = _composed(text).casefold()
    return " ".join(word for word in re.findall(r"\w+", text) if word not in ("a", "an", "the"))
