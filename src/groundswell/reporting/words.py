"""The words that the command line, notebooks and pages share: figures, and text that somebody else wrote."""

from __future__ import annotations

from math import floor, log10
from typing import Any

import msgspec

DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that turn the direction of the text after them. Letters have a direction without these."""
MARKS = {code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F)}
"""Characters that have a direction and nothing else. Pages order right-to-left text by them; terminals need none."""
CONTROLS = {*range(0x20), *range(0x7F, 0xA0), *DIRECTIONS} - {ord("\n"), ord("\t")}
AS_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in CONTROLS}
IN_JSON = {code: f"\\u{code:04x}" for code in CONTROLS} | MARKS


def cost(usd: float | None, unknown: int) -> str:
    """Dollars as known: a price that nobody knows is never shown as 0."""
    if usd is None:
        return "unknown"
    digits = 2 if usd >= 1 or usd == 0 else max(4, 1 - floor(log10(usd)))
    shown = f"${usd:,.{digits}f}"
    return f"{shown} and {unknown} asks of unknown price" if unknown else shown


def possible_cost(usd: float, asks: int, unknown: int) -> str:
    """What may have been paid for lost replies, to be put after the cost; nothing where they were free."""
    if not usd and not unknown:
        return ""
    most = f"at most {cost(usd, 0)} more" if usd else "an unknown amount more"
    replies = "1 request whose reply was" if asks == 1 else f"{asks:,} requests whose replies were"
    unpriced = f" ({unknown:,} of unknown price)" if usd and unknown else ""
    return f", and {most} for {replies} lost{unpriced}"


def duration(seconds: float) -> str:
    """A length of time, to about two digits."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def also(**counts: int) -> str:
    """What else there is, if anything: `, 3 missing`."""
    return "".join(f", {count} {what}" for what, count in counts.items() if count)


def visible(text: str) -> str:
    """Text that does nothing to a terminal or a page: control characters are shown, not obeyed."""
    text = text.replace("\r\n", "\n").translate(AS_ESCAPES)
    return text.encode(errors="backslashreplace").decode()


def on_terminal(text: str) -> str:
    """Text that does nothing to a terminal: as `visible`, with the marks of direction."""
    return visible(text).translate(MARKS)


def visible_json(text: str) -> str:
    """JSON that does nothing to a terminal: control characters, which are in strings only, as escapes of JSON."""
    return text.translate(IN_JSON)


def clipped(text: str, most: int) -> str:
    """The beginning of a text that is too long, and how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} characters more)"


def plainly(value: Any) -> str:
    """Any value as text: a string as it is, data as JSON."""
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
