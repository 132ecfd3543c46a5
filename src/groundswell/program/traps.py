"""The three awaitables of a program: `Ask`, `Call` and `Together`.

A program may await nothing else, and the rest of `groundswell.program` is built from these. Each yields itself to the
conductor, which sends the result back in or throws. None of them does any work itself.
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
    """One request to one model."""

    __slots__ = ("label", "request")

    def __init__(self, request: Request, label: str = "") -> None:
        self.request = request
        self.label = label

    def __await__(self) -> Generator[Any, Any, T]:
        return (yield self)  # type: ignore[no-any-return]  # the conductor sends what was asked for


class Call(Generic[T]):
    """One call of a registered function, which runs outside the program."""

    __slots__ = ("label", "request")

    def __init__(self, request: Invoke, label: str = "") -> None:
        self.request = request
        self.label = label

    def __await__(self) -> Generator[Any, Any, T]:
        return cast(T, (yield self))


class Together:
    """Several parts of a program at once."""

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
    """Run several parts of a program at the same time.

    Args:
        children: Coroutines of the program, or requests such as `trial.ask(...)`.

    Returns:
        The results as a tuple, in the order of the arguments.

    Raises:
        Exception: If children fail, the exception of the first one in argument order. It is raised after all
            children have ended.
    """
    for child in children:
        if not isinstance(child, Awaitable):
            raise TypeError(f"together takes awaitables, as in together(a, b) or together(*several), not {child!r}")
    return Together(tuple(child if isinstance(child, Coroutine) else _alone(child) for child in children))


async def _alone(trap: Awaitable[T]) -> T:
    return await trap
