"""The three traps: the only things that a program may await.

Everything else in `groundswell.program` is built from these. A trap yields itself to the conductor,
which sends the result back in, or throws. Nothing here performs anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast, overload

from groundswell.program.request import Invoke, Request

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Ask(Generic[T]):
    """Trap 1: one request to one model."""

    __slots__ = ("label", "request")

    def __init__(self, request: Request, label: str = "") -> None:
        self.request = request
        self.label = label

    def __await__(self) -> Generator[Any, Any, T]:
        return (yield self)  # type: ignore[no-any-return]  # the conductor sends what was asked for


class Call(Generic[T]):
    """Trap 2: one registered function, run outside the program."""

    __slots__ = ("label", "request")

    def __init__(self, request: Invoke, label: str = "") -> None:
        self.request = request
        self.label = label

    def __await__(self) -> Generator[Any, Any, T]:
        return cast(T, (yield self))


class Together:
    """Trap 3: several sub-programs at once."""

    __slots__ = ("children",)

    def __init__(self, children: tuple[Coroutine[Any, Any, Any], ...]) -> None:
        self.children = children

    def __await__(self) -> Generator[Any, Any, tuple[Any, ...]]:
        return cast("tuple[Any, ...]", (yield self))


@overload
def together(a: Awaitable[A], b: Awaitable[B], /) -> Awaitable[tuple[A, B]]: ...
@overload
def together(a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], /) -> Awaitable[tuple[A, B, C]]: ...
@overload
def together(*children: Awaitable[T]) -> Awaitable[tuple[T, ...]]: ...
def together(*children: Awaitable[Any]) -> Awaitable[Any]:
    """Run sub-programs side by side and get their results in order.

    All children are waited for; then the failure of the lowest index, if any, is raised. Children are
    coroutines that take the trial, or asks and calls themselves.
    """
    for child in children:
        if not isinstance(child, Awaitable):
            raise TypeError(f"together takes sub-programs, as in together(a, b) or together(*several), not {child!r}")
    return Together(tuple(child if isinstance(child, Coroutine) else _alone(child) for child in children))


async def _alone(trap: Awaitable[T]) -> T:
    return await trap
