"""Patterns that stay cheap on any input."""

from __future__ import annotations

import re

WINDOW = 2000


def pattern(text: str, flags: int = re.I) -> re.Pattern[str]:
    """A pattern in which blanks between words are at most three, so that long runs of them cost nothing."""
    return re.compile(text.replace(r"\s+", r"\s{1,3}").replace(r"\s*", r"\s{0,3}"), flags)


def window(text: str) -> str:
    """The beginning and the end of a text, where instructions stand."""
    return text if len(text) <= 2 * WINDOW else f"{text[:WINDOW]}\n{text[-WINDOW:]}"
