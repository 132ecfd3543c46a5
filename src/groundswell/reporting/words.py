"""Formatting that the command line, notebooks and pages share: figures, and untrusted text."""

from __future__ import annotations

from math import floor, log10
from typing import Any

import msgspec

DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that change the direction of the following text."""
MARKS = {code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F)}
"""Invisible direction marks. Pages need them for right-to-left text; terminals do not."""
CONTROLS = {*range(0x20), *range(0x7F, 0xA0), *DIRECTIONS} - {ord("\n"), ord("\t")}
AS_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in CONTROLS}
IN_JSON = {code: f"\\u{code:04x}" for code in CONTROLS} | MARKS


def cost(usd: float | None, unknown: int) -> str:
    """An amount in dollars. An unknown price is never shown as 0."""
    if usd is None:
        return "unknown"
    digits = 2 if usd >= 1 or usd == 0 else max(4, 1 - floor(log10(usd)))
    shown = f"${usd:,.{digits}f}"
    return f"{shown} and {unknown} requests of unknown price" if unknown else shown


def possible_cost(usd: float, asks: int, unknown: int) -> str:
    """The possible cost of lost replies, to append to the cost; empty if they were free."""
    if not usd and not unknown:
        return ""
    most = f"up to {cost(usd, 0)} more" if usd else "an unknown amount more"
    replies = "1 request whose reply was" if asks == 1 else f"{asks:,} requests whose replies were"
    unpriced = f" ({unknown:,} of unknown price)" if usd and unknown else ""
    return f", plus {most} for {replies} lost{unpriced}"


def duration(seconds: float) -> str:
    """A duration, to about two digits."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def size(count: int) -> str:
    """A number of bytes, in the largest unit that fits."""
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:,.1f} {unit}"
    return f"{count} bytes"


NOT_SMALLER = {
    "busy": "the store is in use",
    "small": "too little of it is free",
    "full": "the disk has no room for a compacted copy",
    "server": "PostgreSQL frees it by itself",
}
"""Why a file keeps its free space."""


def freed(count: int, reused: str | None) -> str:
    """What happened to the free space of a file: it became smaller by some bytes, or why not."""
    if reused is None:
        return f"the file is {size(count)} smaller"
    return f"the file keeps its size ({NOT_SMALLER[reused]}), and later writes reuse the free space"


def also(**counts: int) -> str:
    """Counts other than 0, to append: `, 3 missing`."""
    return "".join(f", {count} {what}" for what, count in counts.items() if count)


def visible(text: str) -> str:
    """Text that is safe on a terminal or a page: control characters are escaped."""
    text = text.replace("\r\n", "\n").translate(AS_ESCAPES)
    return text.encode(errors="backslashreplace").decode()


def on_terminal(text: str) -> str:
    """Text that is safe on a terminal: as `visible`, and direction marks are escaped too."""
    return visible(text).translate(MARKS)


def visible_json(text: str) -> str:
    """JSON that is safe on a terminal: control characters become JSON escapes."""
    return text.translate(IN_JSON)


def clipped(text: str, most: int) -> str:
    """The beginning of a long text, and how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} characters more)"


def plainly(value: Any) -> str:
    """Any value as text: a string unchanged, other data as JSON."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        return repr(value)


def age(seconds: float) -> str:
    """How long ago, in one unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
