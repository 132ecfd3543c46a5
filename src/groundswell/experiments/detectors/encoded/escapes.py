"""The secret in escapes: `%6c%61`, `&#108;`, `\\u006c`, or invisible characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from groundswell.experiments.detectors.normalised import folded
from groundswell.experiments.detectors.reading import Reading
from groundswell.experiments.detectors.secret import FEWEST, Secret
from groundswell.experiments.detectors.spans import Span

_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ESCAPE = re.compile(r"&#([0-9]{1,7});|&#[xX]([0-9A-Fa-f]{1,6});|\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_TAG = 0xE0000
_BEYOND = 0x110000


class Written(NamedTuple):
    """A decoded character, with the position of its escape."""

    char: str
    start: int
    end: int


Decode = Callable[[re.Match[str]], list[Written]]


def percent(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Percent encoding, as in URLs."""
    if "%" in reading.text:
        yield from _behind(reading.text, _PERCENT, _octets, secret)


def escaped(reading: Reading, secret: Secret) -> Iterator[Span]:
    """HTML and source code escapes."""
    if "&#" in reading.text or "\\" in reading.text:
        yield from _behind(reading.text, _ESCAPE, _code_point, secret)


def invisible(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Unicode tag characters, which are invisible."""
    if reading.text.isascii() or len(secret.plain) < FEWEST:
        return
    for tags in _TAGS.finditer(reading.text):
        hidden = "".join(chr(ord(tag) - _TAG) for tag in tags[0])
        for span in folded(Reading(hidden), secret):
            yield Span(tags.start() + span.start, tags.start() + span.end)


def _octets(escape: re.Match[str]) -> list[Written]:
    """Decode consecutive bytes. A multi-byte character covers all its bytes."""
    octets = bytes.fromhex(escape[0].replace("%", ""))
    chars = octets.decode("utf-8", "replace")
    if len(chars) != len(octets):
        return [Written(char, *escape.span()) for char in chars]
    begin = escape.start()
    return [Written(char, begin + 3 * at, begin + 3 * at + 3) for at, char in enumerate(chars)]


def _code_point(escape: re.Match[str]) -> list[Written]:
    """The character of a code. Invalid codes stay unchanged."""
    decimal, *in_hex = escape.groups()
    code = int(decimal) if decimal else int(next(filter(None, in_hex)), 16)
    return [Written(chr(code) if code < _BEYOND else " ", *escape.span())]


def _behind(text: str, pattern: re.Pattern[str], decode: Decode, secret: Secret) -> Iterator[Span]:
    """Occurrences of the secret in the decoded text, with at least one escaped character."""
    if len(secret.plain) < FEWEST or pattern.search(text) is None:
        return
    written: list[Written] = []
    at = 0
    for escape in pattern.finditer(text):
        written += [Written(text[place], place, place + 1) for place in range(at, escape.start())]
        written += decode(escape)
        at = escape.end()
    written += [Written(text[place], place, place + 1) for place in range(at, len(text))]
    for span in folded(Reading("".join(char for char, _, _ in written)), secret):
        chars = written[span.start : span.end]
        if any(char.end - char.start > 1 for char in chars):
            yield Span(chars[0].start, chars[-1].end)
