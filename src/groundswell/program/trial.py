"""Programs, and the `Trial` that a program receives."""

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
"""Columns that every row has: the key of the trial, and the number of the row in it."""
_NUMBERS = re.compile(r"\d+")
UNREADABLE = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)
"""What decoding a reply as JSON may raise. `RecursionError`: it is nested too deeply."""


class Strand(Protocol):
    """The running part of a program: its position in the tree and its random generator."""

    prefix: str
    position: int
    rng: Random | None


class Trial:
    """One execution of a program. The program receives it as its first argument.

    Attributes:
        key: Key of the trial, unique in its run.
        seed: Seed of the run.
    """

    __slots__ = ("_rows", "_strand", "key", "seed")

    _strand: Strand

    def __init__(self, key: str, seed: int) -> None:
        self.key = key
        self.seed = seed
        self._rows: list[tuple[str, int, dict[str, Any]]] = []

    @property
    def rng(self) -> Random:
        """A `random.Random` for this trial. A replay draws the same numbers.

        Each branch of a `together` has its own generator, so the order of replies does not affect the numbers.
        """
        strand = self._strand
        if strand.rng is None:
            digest = blake2b(f"{self.seed}\0{self.key}\0{strand.prefix}".encode(), digest_size=16).digest()
            strand.rng = Random(int.from_bytes(digest))
        return strand.rng

    def row(self, **values: str | float | bool | None) -> None:
        """Record an observation: one row of the run's table.

        Rows are stored with the result of the trial. `Run.rows` returns the rows of all trials.

        Args:
            values: Columns and their values: text, numbers, booleans or None.

        Raises:
            TypeError: If a value has another type.
            ValueError: If a number is not finite, or a column is called `trial` or `row`.
        """
        for name, value in values.items():
            if value is not None and not isinstance(value, str | int | float):
                raise TypeError(f"row: {name} is a {type(value).__name__}; give a str, int, float, bool or None")
            if isinstance(value, float) and not isfinite(value):
                raise ValueError(f"row: {name} is {value}; use None for a missing value")
            if name in RESERVED:
                raise ValueError(f"row: the column name {name!r} is reserved; use another name")
        try:
            msgspec.json.encode(values)
        except (UnicodeEncodeError, ValueError, OverflowError) as error:
            raise ValueError(f"row: {', '.join(map(ascii, values))} cannot be stored: {error}") from error
        self._rows.append((self._strand.prefix, self._strand.position, values))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows recorded so far, in program order, whatever the order of replies was."""
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
        """Send a chat request to a model and wait for the reply.

        Args:
            model: Model as `provider/model`, or an alias.
            messages: The conversation, or a string for a single user message.
            label: Name of the request in transcripts and progress, for example the speaker.
            into: Type to decode the reply into. Its JSON schema is sent with the request. If the reply cannot be
                decoded, the model is told what is wrong and asked once more.
            options: Options of the request, such as `max_tokens` and `temperature`. See `Chat`.

        Returns:
            The `Reply`, or with `into` a value of that type.

        Raises:
            AskFailed: If the request failed for good.
            MalformedReply: If the second reply cannot be decoded either.
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
        """Send an embedding request to a model and wait for the vectors.

        Args:
            model: Model as `provider/model`, or an alias.
            texts: Texts to embed.
            dimensions: Length of the vectors, where the model supports it.
            label: Name of the request in transcripts and progress.

        Returns:
            The `Embedding`. Its `vectors` are in the order of the texts.

        Raises:
            AskFailed: If the request failed for good.
        """
        if isinstance(texts, str):
            raise TypeError("texts: give a list of strings, not one string")
        return Ask(Embed(model, tuple(texts), dimensions), label)

    @overload
    def call(self, function: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> Awaitable[T]: ...
    @overload
    def call(self, function: Callable[..., T], *args: Any, **options: Any) -> Awaitable[T]: ...
    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Awaitable[Any]:
        """Call a function registered with `@function`. It runs outside the program, and its return value is journalled.

        A replay uses the journalled value and does not call the function again.

        Args:
            function: The registered function.
            args: Positional arguments: data that JSON can hold.
            options: Keyword arguments: data that JSON can hold.

        Returns:
            The return value, as plain data that JSON can hold.

        Raises:
            CallFailed: If the function raised.
            SettingsError: If the function is not registered.
        """
        name = _FUNCTION_NAMES.get(function)
        if name is None:
            label = getattr(function, "__qualname__", repr(function))
            raise SettingsError(
                f"{label} is not registered: decorate it with @function('a/name') to call it from a program"
            )
        return _call(Call(Invoke(name, args, options or None), name))


async def _call(trap: Call[Returned]) -> Any:
    return (await trap).value


async def _ask_into(into: type[T], chat: Chat, label: str) -> T:
    """Ask for JSON that decodes into a type. If it does not, report the problem and ask once more."""
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
    """A type's JSON schema with the outermost reference resolved, as providers require."""
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
    """The JSON in a reply, without the code fence that models often put around it."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") + 1 : -3].strip()
    return text


ProgramFunction = Callable[[Trial, S], Coroutine[Any, Any, R]]


class Program(Generic[S, R]):
    """A registered program. The decorator `program` creates it.

    Attributes:
        name: Name of the program, such as `secret_game/duel`.
        version: Version of the program.
        id: `name@version`.
        function: The `async def` that was decorated.
        spec_type: Type of its spec, from the annotation.
        result_type: Type of its result, from the annotation.
    """

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
        self._source = (
            None if is_own(function) else identity(function)
        )  # now, since its file may be edited while it runs

    @property
    def source(self) -> str:
        """Hash of the program's code, which a run stores. See `groundswell.program.source`."""
        if self._source is None:
            self._source = identity(self.function)
        return self._source

    @source.setter
    def source(self, source: str) -> None:
        self._source = source

    def __call__(self, trial: Trial, spec: S) -> Coroutine[Any, Any, R]:
        """Use the program as a part of another program: `await duel(trial, spec)`, alone or in `together`."""
        return self.function(trial, spec)

    def __repr__(self) -> str:
        return f"<program {self.id}>"


_PROGRAMS: dict[str, Program[Any, Any]] = {}
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
_FUNCTION_NAMES: dict[Callable[..., Any], str] = {}


def program(name: str, version: int = 1) -> Callable[[ProgramFunction[S, R]], Program[S, R]]:
    """Register an `async def f(trial, spec)` as a program.

    Args:
        name: Name of the program, such as `secret_game/duel`. Runs store it.
        version: Increase it when the program should give other results than before.

    Returns:
        A decorator that turns the function into a `Program`.

    Raises:
        SettingsError: If the function is not an `async def`, does not take `(trial, spec)`, or the name and version
            are already registered for another function.
    """

    def register(function: ProgramFunction[S, R]) -> Program[S, R]:
        if not inspect.iscoroutinefunction(function):
            raise SettingsError(f"program {name!r}: must be an `async def`")
        made = Program(name, version, function)
        _claim(_PROGRAMS.get(made.id), made.function, f"program {made.id}")
        _PROGRAMS[made.id] = made
        return made

    return register


def function(name: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Register a function, plain or `async`, that programs can call with `trial.call`.

    Use it for everything that a program must not do itself: files, network requests, long computations.

    Args:
        name: Name of the function. Journals store it.

    Returns:
        A decorator that returns the function unchanged.

    Raises:
        SettingsError: If the name is already registered for another function.
    """

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
    """Allow a reloaded module to replace its own registrations, but no others."""
    holder = getattr(holder, "function", holder)
    if holder is not None and _origin(holder) != _origin(newcomer):
        raise SettingsError(
            f"{what} is registered twice: in {_origin(holder)} and in {_origin(newcomer)}; rename one of them"
        )


def _origin(function: Callable[..., Any]) -> str:
    """Where a function is defined. In a notebook, each version of a cell has another file name that does not exist."""
    file = inspect.getsourcefile(function)
    return f"{file if file is not None and Path(file).exists() else function.__module__}:{function.__qualname__}"


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of a function. Types that are local to the calling function are found too."""
    try:
        return get_type_hints(function)
    except NameError:
        closure = inspect.getclosurevars(function).nonlocals
        caller = sys._getframe(3).f_locals
        return get_type_hints(function, localns={**caller, **closure})
