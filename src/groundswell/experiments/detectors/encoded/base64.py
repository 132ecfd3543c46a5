"""The secret in base64, by itself or somewhere in a longer text that was encoded."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from functools import lru_cache

from groundswell.experiments.detectors.reading import Reading
from groundswell.experiments.detectors.secret import FEWEST, Secret
from groundswell.experiments.detectors.spans import Span

_RUN = re.compile(r"[A-Za-z0-9+/_-]{4,}")
_STANDARD = str.maketrans("-_", "+/")
_PADDING = re.compile(r"={0,2}")


@lru_cache(maxsize=8192)
def _cases(given: str) -> tuple[bytes, ...]:
    """The secret in its common cases, as bytes."""
    cases = dict.fromkeys((given, given.lower(), given.upper(), given.title(), given.capitalize()))
    return tuple(case.encode("utf-8", "surrogatepass") for case in cases)


@lru_cache(maxsize=8192)
def _cores(given: str) -> tuple[str, ...]:
    """The base64 of each case at the three offsets of a group, without characters that depend on adjacent bytes."""
    cores: dict[str, None] = {}
    for case in _cases(given):
        for lead in range(3):
            bits = 8 * (lead + len(case))
            cores[b64encode(bytes(lead) + case).decode()[-(-8 * lead // 6) : bits // 6]] = None
    return tuple(dict.fromkeys(form for core in cores for form in (core, core.replace("+", "-").replace("/", "_"))))


def base64(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Every base64 text whose decoded bytes contain the secret as a word."""
    text = reading.text
    if len(secret.plain) < FEWEST or not any(core in text for core in _cores(secret.given)):
        return
    for run in _RUN.finditer(text):
        if any(core in run[0] for core in _cores(secret.given)):
            yield from _inside(text, run, secret)


def _inside(text: str, run: re.Match[str], secret: Secret) -> Iterator[Span]:
    """The position of the secret in a run of base64 characters, for any alignment of its groups."""
    written = run[0].translate(_STANDARD)
    for shift in range(min(4, len(written))):
        decoded = _decoded(written[shift:])
        for case in _cases(secret.given):
            at = decoded.find(case)
            while at >= 0:
                if _is_word(decoded, at, at + len(case)):
                    yield _span(text, run.start() + shift, at, at + len(case))
                at = decoded.find(case, at + 1)


def _decoded(written: str) -> bytes:
    """The bytes of a text in base64 whose padding may be missing."""
    written = written[:-1] if len(written) % 4 == 1 else written
    return b64decode(written + "=" * (-len(written) % 4))


def _is_word(decoded: bytes, start: int, end: int) -> bool:
    """Whether these bytes are not adjacent to a letter or digit."""
    return not (decoded[start - 1 : start].isalnum() if start else False) and not decoded[end : end + 1].isalnum()


def _span(text: str, begin: int, start: int, end: int) -> Span:
    """The base64 characters of these bytes, including padding."""
    stop = begin - (-8 * end // 6)
    padding = _PADDING.match(text, stop)
    return Span(begin + 8 * start // 6, padding.end() if padding else stop)
