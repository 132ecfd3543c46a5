"""Counts the requests and tokens that a part of a program uses, by model.

Use it to measure code that you call and did not write.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

import msgspec

from groundswell.program.traps import Ask, Together

T = TypeVar("T")


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """Requests to one model, and their tokens."""

    asks: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


Tally = dict[str, Asked]
"""By model."""


async def tallied(part: Coroutine[Any, Any, T]) -> tuple[T, Tally]:
    """Run a part of a program and count its requests. The sums do not depend on the order of replies."""
    tally: Tally = {}
    return await _followed(part, tally), tally


@coroutine
def _followed(part: Coroutine[Any, Any, T], tally: Tally) -> Generator[Any, Any, T]:
    """Forward what the part waits for, and the replies; count the replies on the way."""
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            try:
                trap = part.send(value) if error is None else part.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            if type(trap) is Together:
                trap = Together(tuple(_follower(child, tally) for child in trap.children))
            try:
                value, error = (yield trap), None
            except Exception as raised:  # noqa: BLE001  handed to the part, which may handle it
                value, error = None, raised
            if error is None and type(trap) is Ask:
                known, usage = tally.get(trap.request.model, Asked()), value.usage
                tally[trap.request.model] = Asked(
                    known.asks + 1, known.input_tokens + usage.input_tokens, known.output_tokens + usage.output_tokens
                )
    finally:
        part.close()


async def _follower(part: Coroutine[Any, Any, T], tally: Tally) -> T:
    return await _followed(part, tally)
