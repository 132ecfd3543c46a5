"""Whether a word is set apart from the surrounding text, for example by quotes."""

from __future__ import annotations

import re

from groundswell.experiments.detectors.spans import Span

_QUOTES = "\"'“”‘’«»„`*_~()[]<>"
_AFTER_COLON = re.compile(r"[:=→]\s{0,3}$")
_ENDS = re.compile(r"\s{0,3}(?:[.!?,;]|\n|$)")


def is_set_apart(text: str, span: Span) -> bool:
    """Whether a span is the whole text, is in quotes or emphasis, or follows a colon and ends a clause."""
    before, after = text[max(0, span.start - 6) : span.start], text[span.end : span.end + 6]
    if not before.strip() and span.start < 6 and not after.strip(" \t\n.!?"):
        return len(after) < 6
    if before[-1:] and before[-1] in _QUOTES and after[:1] and after[0] in _QUOTES:
        return True
    return bool(_AFTER_COLON.search(before) and _ENDS.match(after))
