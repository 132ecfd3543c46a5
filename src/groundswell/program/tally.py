"""Follows a part of a program: what it asks and calls, and the replies. Counts its requests and tokens, by model.

Use it to measure code that you call and did not write.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from types import coroutine
from typing import Any, NamedTuple, TypeVar

import msgspec

from groundswell.errors import ProgramError
from groundswell.program.request import Embedding, Invoke, Reply, Request
from groundswell.program.traps import Ask, Call, Together

T = TypeVar("T")


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """Requests to one model, and their tokens."""

    asks: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


Tally = dict[str, Asked]
"""By model."""


class Turn(NamedTuple):
    """A request or a function call of a program, and what came back: a reply, a returned value, or the exception."""

    request: Request | Invoke
    label: str
    result: Any


async def followed(part: Coroutine[Any, Any, T], most: int | None = None) -> tuple[T, list[Turn]]:
    """Run a part of a program and note its turns, in the order of the program, whatever the order of replies was.

    Raises `ProgramError` if the part makes more than `most` requests and calls.
    """
    notes = _Notes(most)
    return await _follow(part, notes, notes.turns), _flat(notes.turns)


def tally_of(turns: Sequence[Turn]) -> Tally:
    """The requests that were answered, and their tokens, by model."""
    tally: Tally = {}
    for request, _, result in turns:
        if not isinstance(request, Invoke) and isinstance(result, Reply | Embedding):
            known, usage = tally.get(request.model, Asked()), result.usage
            tally[request.model] = Asked(
                known.asks + 1, known.input_tokens + usage.input_tokens, known.output_tokens + usage.output_tokens
            )
    return tally


async def tallied(part: Coroutine[Any, Any, T]) -> tuple[T, Tally]:
    """Run a part of a program and count its requests."""
    value, turns = await followed(part)
    return value, tally_of(turns)


class _Notes:
    """The turns so far: a list with a list for each branch of a `together`; and how many may follow."""

    def __init__(self, most: int | None) -> None:
        self.turns: list[Any] = []
        self._most = most
        self._count = 0

    def one_more(self) -> None:
        self._count += 1
        if self._most is not None and self._count > self._most:
            raise ProgramError(f"the program made more than {self._most:,} requests and calls; does it end?")


@coroutine
def _follow(part: Coroutine[Any, Any, T], notes: _Notes, turns: list[Any]) -> Generator[Any, Any, T]:
    """Forward what the part waits for, and the replies; note them on the way."""
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            try:
                trap = part.send(value) if error is None else part.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            if type(trap) is Together:
                trap = Together(tuple(_branch(child, notes, turns) for child in trap.children))
            else:
                notes.one_more()
            try:
                value, error = (yield trap), None
            except Exception as raised:  # noqa: BLE001  handed to the part, which may handle it
                value, error = None, raised
            if type(trap) is Ask or type(trap) is Call:
                turns.append(Turn(trap.request, trap.label, value if error is None else error))
    finally:
        part.close()


def _branch(part: Coroutine[Any, Any, T], notes: _Notes, turns: list[Any]) -> Coroutine[Any, Any, T]:
    """Follow a branch of a `together`. Its place in the list does not depend on when it ends."""
    turns.append(inside := list[Any]())

    async def branch() -> T:
        return await _follow(part, notes, inside)

    return branch()


def _flat(turns: Sequence[Any]) -> list[Turn]:
    found = list[Turn]()
    for each in turns:
        found += [each] if isinstance(each, Turn) else _flat(each)
    return found
