"""What the headers of an answer say of rate limits, in the forms that providers and servers like them write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, NamedTuple

from groundswell.program.request import Standing

Resource = Literal["requests", "tokens", "input_tokens", "output_tokens", "project_tokens"]

MOST = 1e12
"""No limit is larger than this; servers that have none write such numbers."""
LONGEST_RESET = 31 * 86_400.0
"""Quotas are by the month at most. A number up to this is seconds to wait; larger ones are moments, or mistakes."""
FIRST_MOMENT, FIRST_MILLISECONDS, LAST_MILLISECONDS = 1e9, 1e11, 1e14
"""Unix time has ten digits in seconds, for as long as this code will last, and thirteen in milliseconds."""
LONGEST_TEXT = 64

_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PIECES = re.compile("(?<![0-9.])([0-9.]++)([a-zµ]+)")


class HeaderNames(NamedTuple):
    """The headers that tell of one limit."""

    resource: Resource
    limit: str
    remaining: str
    reset: str

    @classmethod
    def of(cls, resource: Resource, pattern: str) -> HeaderNames:
        """The names by what they have in common. They are made once: every answer is asked for them."""
        return cls(resource, pattern.format("limit"), pattern.format("remaining"), pattern.format("reset"))


def read_rate_limits(headers: Mapping[str, str], every: Iterable[HeaderNames], now: float) -> tuple[Standing, ...]:
    """The limits that headers tell of. One whose limit or remainder is missing, or makes no sense, is left out."""
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
    """How far away a reset is: a duration, seconds, a Unix time or an RFC 3339 date. None if it cannot be told."""
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
    """The seconds of what Go writes: 12ms, 1.5s, 6m0s; and days, which it does not."""
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
    """The Unix time of an RFC 3339 date; one that names no zone is in UTC."""
    date = datetime.fromisoformat(text.upper())
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _number(number: float, now: float) -> float:
    """The seconds that a bare number means: so many, or those until that moment, told apart by size."""
    if number < FIRST_MOMENT:
        return number
    if number < FIRST_MILLISECONDS:
        return max(0.0, number - now)
    return max(0.0, number / 1000 - now) if number < LAST_MILLISECONDS else number
