"""What the three providers' answers have in common: how a text is cut for streaming, and how times are written."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec

_WORDS = re.compile(r"\s*\S+|\s+")

dump = msgspec.json.Encoder().encode


def words(text: str) -> list[str]:
    """A text in word-sized pieces, the space before each word with it; joined, they are the text again."""
    return _WORDS.findall(text)


def timestamp(seconds: float) -> str:
    """A moment as RFC 3339 writes it, with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"
