"""Shared by the three providers: splitting a text for streaming, and writing times."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec

_WORDS = re.compile(r"\s*\S+|\s+")

dump = msgspec.json.Encoder().encode


def words(text: str) -> list[str]:
    """A text in words, each with the space before it; joined, they are the text again."""
    return _WORDS.findall(text)


def timestamp(seconds: float) -> str:
    """A time in RFC 3339 format, with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"
