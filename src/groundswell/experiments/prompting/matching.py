"""Regular expressions of users, searched for under a time limit: some, as `(a|aa)+$`, would take years for a long text.

`re` cannot be interrupted in any thread but the main one. So the search is made by `regex`, which has a time limit in
every thread, and the expression is read as `re` reads it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import regex  # type: ignore[import-untyped]

from groundswell.errors import TimeLimitExceeded

SECONDS = 1.0
"""How long one search may take."""
_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?!\d{0,9},?\d{0,9}\})", re.S)
"""A brace that is no count; and what stands behind a backslash, which is left as it is."""


def read_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """An expression that can be searched for; raises `re.error`."""
    read = re.compile(pattern, flags)
    try:
        _compiled(read.pattern, read.flags)
    except regex.error as error:
        raise re.error(error.msg, pattern, error.pos) from None
    return read


def is_found(pattern: re.Pattern[str], text: str) -> bool:
    """Whether an expression is found in a text; raises `TimeLimitExceeded`."""
    try:
        return _compiled(pattern.pattern, pattern.flags).search(text, timeout=SECONDS) is not None
    except TimeoutError:
        raise TimeLimitExceeded(f"{pattern.pattern!r} takes longer than {SECONDS:g} s to search") from None


@lru_cache(maxsize=256)
def _compiled(pattern: str, flags: int) -> Any:
    """The same expression for `regex`, for which `{e}` and the like mean something of its own."""
    same = _BRACE.sub(lambda found: r"\{" if found[0] == "{" else found[0], pattern)
    kept = (re.I, regex.I), (re.M, regex.M), (re.S, regex.S), (re.X, regex.X), (re.A, regex.A)
    return regex.compile(same, sum(theirs for ours, theirs in kept if flags & ours) | regex.V0)
