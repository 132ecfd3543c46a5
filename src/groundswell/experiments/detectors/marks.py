"""Whether a text points to a word: by setting it apart, for example with quotes, or by announcing an encoding."""

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


_ANNOUNCED = re.compile(
    r"backward|revers|anagram|scrambl|shuffl|jumbl|arrang|cipher|cypher|encod|decod|crypt|base ?(?:16|32|64|85)|rot-?\d"
    r"|c(?:ae|e)sar|atbash|shifted|pig latin|vowel|consonant|mirror|flipp|keypad|phone|\bt9\b|leet|riddle|letters",
    re.I,
)
BEFORE, AFTER = 80, 80
"""How many characters on either side of a word are searched for an announcement."""


def is_announced(text: str, span: Span) -> bool:
    """Whether the text around a span mentions an encoding: "backwards", "an anagram", "decode"."""
    return _ANNOUNCED.search(text, max(0, span.start - BEFORE), span.end + AFTER) is not None
