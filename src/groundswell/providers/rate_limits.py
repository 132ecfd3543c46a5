"""Read rate limits from the headers of answers, in the formats that providers and compatible servers use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, NamedTuple

from groundswell.program.request import Standing

Resource = Literal["requests", "tokens", "input_tokens", "output_tokens", "project_tokens"]

MOST = 1e12
"""Larger limits mean "no limit"."""
LONGEST_RESET = 31 * 86_400.0
"""Quotas last a month at most. A number up to this is a wait in seconds; a larger one is a time, or a mistake."""
FIRST_MOMENT, FIRST_MILLISECONDS, LAST_MILLISECONDS = 1e9, 1e11, 1e14
"""Unix times have ten digits in seconds and thirteen in milliseconds."""
LONGEST_TEXT = 64

_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PIECES = re.compile("(?<![0-9.])([0-9.]++)([a-zµ]+)")


class HeaderNames(NamedTuple):
    """The headers of one limit."""

    resource: Resource
    limit: str
    remaining: str
    reset: str

    @classmethod
    def of(cls, resource: Resource, pattern: str) -> HeaderNames:
        """Names from their common pattern. Built once, because every answer is checked for them."""
        return cls(resource, pattern.format("limit"), pattern.format("remaining"), pattern.format("reset"))


def read_rate_limits(headers: Mapping[str, str], every: Iterable[HeaderNames], now: float) -> tuple[Standing, ...]:
    """Read the limits from headers. Entries with a missing or invalid limit or remainder are skipped."""
    found: list[Standing] = []
    for resource, of_limit, of_remaining, of_reset in every:
        limit = headers.get(of_limit)
        if limit is None:
            continue
        try:
            allowed, left = float(limit), float(headers.get(of_remaining, ""))
        except (TypeError, ValueError):
            continue
        if 0 < allowed <= MOST and 0 <= left <= MOST:
            wait = seconds_until(headers.get(of_reset, ""), now)
            found.append(Standing(resource, allowed, left if left < allowed else allowed, wait))
    return tuple(found)


def seconds_until(text: str, now: float) -> float | None:
    """Seconds until a reset, from a duration, seconds, a Unix time or an RFC 3339 date. None if it is unreadable."""
    try:
        if text[-1:] in _UNITS:
            wait = _duration(text)
        elif text[4:5] == "-":
            wait = _unix_time(text) - now
            wait = wait if wait > 0 else 0.0
        else:
            wait = _number(float(text), now)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None
    return wait if 0 <= wait <= LONGEST_RESET else None


@lru_cache(maxsize=4096)
def _duration(text: str) -> float:
    """Seconds from Go's duration format (12ms, 1.5s, 6m0s), extended by days."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(text)
    seconds, read_to = 0.0, 0
    for number, unit in _PIECES.findall(text):
        seconds += float(number) * _UNITS[unit]
        read_to += len(number) + len(unit)
    if read_to != len(text):
        raise ValueError(text)
    return seconds


@lru_cache(maxsize=256)
def _unix_time(text: str) -> float:
    """Unix time of an RFC 3339 date. A date without a time zone is in UTC."""
    date = datetime.fromisoformat(text.upper())
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _number(number: float, now: float) -> float:
    """Seconds until a bare number: a duration or a point in time, distinguished by size."""
    if number < FIRST_MOMENT:
        return number
    if number < FIRST_MILLISECONDS:
        return max(0.0, number - now)
    return max(0.0, number / 1000 - now) if number < LAST_MILLISECONDS else number
