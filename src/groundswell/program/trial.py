"""What a user writes: a program, and the trial it is handed."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any, Generic, Protocol, TypeVar, Unpack, get_type_hints, overload

import msgspec

from groundswell.errors import MalformedReply, SettingsError
from groundswell.program.request import (
    Chat,
    ChatOptions,
    Embed,
    Embedding,
    Invoke,
    Message,
    Reply,
    Returned,
    assistant,
    user,
)
from groundswell.program.source import identity, is_own
from groundswell.program.traps import Ask, Call

S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")


ONLY_MESSAGES = {Message}
RESERVED = ("trial", "row")
"""Columns of the long table that are not recorded: the key of the trial, and the number of the row in it."""
_NUMBERS = re.compile(r"\d+")
UNREADABLE = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)
"""What reading a reply as JSON may raise; the last one where it is nested too deeply."""


class Strand(Protocol):
    """The part of a program that is running: a position in its tree, and random numbers of its own."""

    prefix: str
    position: int
    rng: Random | None


class Trial:
    """One instance of a program, as its code sees it: a key, a random generator, and the ways to ask."""

    __slots__ = ("_rows", "_strand", "key", "seed")

    _strand: Strand

    def __init__(self, key: str, seed: int) -> None:
        self.key = key
        self.seed = seed
        self._rows: list[tuple[str, int, dict[str, Any]]] = []

    @property
    def rng(self) -> Random:
        """Random numbers of the current strand: siblings never race for them, and a replay draws the same."""
        strand = self._strand
        if strand.rng is None:
            digest = blake2b(f"{self.seed}\0{self.key}\0{strand.prefix}".encode(), digest_size=16).digest()
            strand.rng = Random(int.from_bytes(digest))
        return strand.rng

    def row(self, **values: str | float | bool | None) -> None:
        """Record a row of data: named values, one line of the run's long table.

        Rows are stored with the result of the trial. `Run.rows` has those of all trials, for analysis.
        """
        for name, value in values.items():
            if value is not None and not isinstance(value, str | int | float):
                raise TypeError(f"row: {name} is a {type(value).__name__}; give text, a number, true or false, or None")
            if isinstance(value, float) and not isfinite(value):
                raise ValueError(f"row: {name} is {value}; leave it out, or give None, where there is no value")
            if name in RESERVED:
                raise ValueError(f"row: {name} is the name of a column that every row has; take another one")
        try:
            msgspec.json.encode(values)
        except (UnicodeEncodeError, ValueError, OverflowError) as error:
            raise ValueError(f"row: {', '.join(map(ascii, values))} cannot be stored: {error}") from error
        self._rows.append((self._strand.prefix, self._strand.position, values))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows recorded by now, in the order of the program, whichever reply came first."""
        ordered = sorted(self._rows, key=lambda each: (*map(int, _NUMBERS.findall(each[0])), each[1]))
        return [values for _, _, values in ordered]

    @overload
    def ask(
        self,
        model: str,
        messages: str | Sequence[Message],
        *,
        label: str = "",
        into: None = None,
        **options: Unpack[ChatOptions],
    ) -> Awaitable[Reply]: ...
    @overload
    def ask(
        self,
        model: str,
        messages: str | Sequence[Message],
        *,
        label: str = "",
        into: type[T],
        **options: Unpack[ChatOptions],
    ) -> Awaitable[T]: ...
    def ask(
        self,
        model: str,
        messages: str | Sequence[Message],
        *,
        label: str = "",
        into: type[Any] | None = None,
        **options: Unpack[ChatOptions],
    ) -> Awaitable[Any]:
        """Ask a model. `messages` is a conversation, or a string for a single user message.

        With `into`, the reply is decoded into that type (its JSON schema goes along with the request); a
        reply that does not fit is asked for once more, then `MalformedReply` is raised with its text.
        """
        said = (Message("user", messages),) if isinstance(messages, str) else tuple(messages)
        if set(map(type, said)) != ONLY_MESSAGES:
            raise TypeError("messages: give a string, or a list of user(...), assistant(...) and system(...) messages")
        if into is None:
            return Ask(Chat(model, said, **options), label)
        return _ask_into(into, Chat(model, said, **options), label)

    def embed(
        self, model: str, texts: Sequence[str], *, dimensions: int | None = None, label: str = ""
    ) -> Awaitable[Embedding]:
        """Embed texts; the reply's `vectors` are in their order."""
        if isinstance(texts, str):
            raise TypeError("texts: give a list of strings, not one string")
        return Ask(Embed(model, tuple(texts), dimensions), label)

    @overload
    def call(self, function: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> Awaitable[T]: ...
    @overload
    def call(self, function: Callable[..., T], *args: Any, **options: Any) -> Awaitable[T]: ...
    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Awaitable[Any]:
        """Run a function registered with `@function` outside the program; what it returns is journalled.

        The value comes back as plain data (what JSON can hold), on the first run as on a replay.
        """
        name = _FUNCTION_NAMES.get(function)
        if name is None:
            label = getattr(function, "__qualname__", repr(function))
            raise SettingsError(f"{label} is not registered: put @function('a/name') on it to call it from a program")
        return _call(Call(Invoke(name, args, options or None), name))


async def _call(trap: Call[Returned]) -> Any:
    return (await trap).value


async def _ask_into(into: type[T], chat: Chat, label: str) -> T:
    """Ask for JSON that decodes into a type; say what was wrong and ask again once."""
    if chat.schema is None:
        chat = msgspec.structs.replace(chat, schema=_inline_schema(into))
    reply: Reply = await Ask(chat, label)
    try:
        return msgspec.json.decode(_bare_json(reply.text), type=into)
    except UNREADABLE as error:
        problem = str(error)
    again = (
        *chat.messages,
        assistant(reply.text),
        user(f"That was not valid: {problem} Reply with the JSON alone."),
    )
    reply = await Ask(msgspec.structs.replace(chat, messages=again), label)
    try:
        return msgspec.json.decode(_bare_json(reply.text), type=into)
    except UNREADABLE as error:
        raise MalformedReply(getattr(into, "__name__", str(into)), str(error), reply.text) from error


def _inline_schema(into: type[Any]) -> dict[str, Any]:
    """A type's JSON schema with the outermost reference resolved, as providers want it."""
    schema = msgspec.json.schema(into)
    definitions = schema.get("$defs", {})
    if schema.keys() <= {"$ref", "$defs"} and "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        rest = {other: body for other, body in definitions.items() if other != name or _refers(definitions, name)}
        return {**definitions[name], **({"$defs": rest} if rest else {})}
    return schema


def _refers(schema: Any, name: str) -> bool:
    if isinstance(schema, dict):
        return schema.get("$ref") == f"#/$defs/{name}" or any(_refers(part, name) for part in schema.values())
    return isinstance(schema, list) and any(_refers(part, name) for part in schema)


def _bare_json(text: str) -> str:
    """The JSON in a reply, without the code fence that models like to put around it."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") + 1 : -3].strip()
    return text


ProgramFunction = Callable[[Trial, S], Coroutine[Any, Any, R]]


class Program(Generic[S, R]):
    """A registered program: its name and version, its function, and the types of its spec and result."""

    __slots__ = ("_source", "function", "id", "name", "result_type", "spec_type", "version")

    def __init__(self, name: str, version: int, function: ProgramFunction[S, R]) -> None:
        hints = _type_hints(function)
        parameters = list(inspect.signature(function).parameters)
        if len(parameters) != 2:
            raise SettingsError(f"program {name!r}: must take exactly (trial, spec), not ({', '.join(parameters)})")
        self.name = name
        self.version = version
        self.id = f"{name}@{version}"
        self.function = function
        self.spec_type: Any = hints.get(parameters[1], Any)
        self.result_type: Any = hints.get("return", Any)
        self._source = None if is_own(function) else identity(function)  # its file may be edited while it runs

    @property
    def source(self) -> str:
        """What a run stores of the program's code: see `groundswell.program.source`."""
        if self._source is None:
            self._source = identity(self.function)
        return self._source

    @source.setter
    def source(self, source: str) -> None:
        self._source = source

    def __call__(self, trial: Trial, spec: S) -> Coroutine[Any, Any, R]:
        """Use a program as a part of another: `await duel(trial, spec)`, alone or in `together`."""
        return self.function(trial, spec)

    def __repr__(self) -> str:
        return f"<program {self.id}>"


_PROGRAMS: dict[str, Program[Any, Any]] = {}
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
_FUNCTION_NAMES: dict[Callable[..., Any], str] = {}


def program(name: str, version: int = 1) -> Callable[[ProgramFunction[S, R]], Program[S, R]]:
    """Register an `async def f(trial, spec)` as a program."""

    def register(function: ProgramFunction[S, R]) -> Program[S, R]:
        if not inspect.iscoroutinefunction(function):
            raise SettingsError(f"program {name!r}: must be an `async def`")
        made = Program(name, version, function)
        _claim(_PROGRAMS.get(made.id), made.function, f"program {made.id}")
        _PROGRAMS[made.id] = made
        return made

    return register


def function(name: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Register a plain or async function that programs may `call`."""

    def register(registered: Callable[..., T]) -> Callable[..., T]:
        _claim(_FUNCTIONS.get(name), registered, f"function {name}")
        _FUNCTIONS[name] = registered
        _FUNCTION_NAMES[registered] = name
        return registered

    return register


def find_program(program_id: str) -> Program[Any, Any] | None:
    """The program registered as `name@version`, if its module has been imported."""
    return _PROGRAMS.get(program_id)


def find_function(name: str) -> Callable[..., Any] | None:
    """The function registered under a name, if its module has been imported."""
    return _FUNCTIONS.get(name)


def _claim(holder: Any, newcomer: Callable[..., Any], what: str) -> None:
    """Let a reloaded module replace its own registrations, and nobody else's."""
    holder = getattr(holder, "function", holder)
    if holder is not None and _origin(holder) != _origin(newcomer):
        raise SettingsError(f"{what} is registered twice: in {_origin(holder)} and in {_origin(newcomer)}")


def _origin(function: Callable[..., Any]) -> str:
    """Where a function is from. A notebook gives every version of a cell another file name, and none of them exists."""
    file = inspect.getsourcefile(function)
    return f"{file if file is not None and Path(file).exists() else function.__module__}:{function.__qualname__}"


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of a function; types that are local to another function are looked up where they can be."""
    try:
        return get_type_hints(function)
    except NameError:
        closure = inspect.getclosurevars(function).nonlocals
        caller = sys._getframe(3).f_locals
        return get_type_hints(function, localns={**caller, **closure})
