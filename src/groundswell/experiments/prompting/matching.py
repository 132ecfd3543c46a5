"""Searches for users' regular expressions with a time limit, since some, like `(a|aa)+$`, take exponential time.

`re` can only be interrupted in the main thread. So `regex` does the search, which supports a timeout in every thread.
The syntax is that of `re`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import regex  # type: ignore[import-untyped]

from groundswell.errors import TimeLimitExceeded

SECONDS = 1.0
"""Time limit of one search."""
_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?!\d{0,9},?\d{0,9}\})", re.S)
"""A brace that is not a repetition count, or an escape, which stays unchanged."""


def read_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile an expression. Raises `re.error`."""
    read = re.compile(pattern, flags)
    try:
        _compiled(read.pattern, read.flags)
    except regex.error as error:
        raise re.error(error.msg, pattern, error.pos) from None
    return read


def is_found(pattern: re.Pattern[str], text: str) -> bool:
    """Whether an expression matches in a text. Raises `TimeLimitExceeded`."""
    try:
        return _compiled(pattern.pattern, pattern.flags).search(text, timeout=SECONDS) is not None
    except TimeoutError:
        raise TimeLimitExceeded(f"{pattern.pattern!r} takes longer than {SECONDS:g} s to search") from None


@lru_cache(maxsize=256)
def _compiled(pattern: str, flags: int) -> Any:
    """The expression for `regex`, where braces such as `{e}` have a different meaning."""
    same = _BRACE.sub(lambda found: r"\{" if found[0] == "{" else found[0], pattern)
    kept = (re.I, regex.I), (re.M, regex.M), (re.S, regex.S), (re.X, regex.X), (re.A, regex.A)
    return regex.compile(same, sum(theirs for ours, theirs in kept if flags & ours) | regex.V0)
