"""Outcomes: how a trial ended, and how results and specs are encoded."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from groundswell.engine.records import TrialRow
from groundswell.errors import AskFailed, CallFailed, MalformedReply, SettingsError, TrialMissing
from groundswell.program.conductor import Conductor
from groundswell.program.request import Fault, FaultKind, canonical
from groundswell.program.trial import Program
from groundswell.reporting import notebook

R = TypeVar("R")

OURS = str(Path(__file__).parents[1])


class Outcome(msgspec.Struct, Generic[R], frozen=True):
    """How a trial ended: with a result, or with a fault.

    Attributes:
        key: Key of the trial.
        spec: The spec of the trial.
        result: What the program returned; None if the trial is missing.
        fault: Why the trial is missing; None if it has a result.
    """

    key: str
    spec: Any
    result: R | None
    fault: Fault | None = None

    @property
    def ok(self) -> bool:
        """Whether the trial has a result."""
        return self.fault is None

    def unwrap(self) -> R:
        """Return the result.

        Raises:
            TrialMissing: If the trial has no result.
        """
        if self.fault is not None:
            raise TrialMissing(self.key, self.fault)
        return self.result  # type: ignore[return-value]  # None is a result too, where R allows it

    def _repr_html_(self) -> str:
        rows = notebook.fields("spec", _plain(self.spec))
        if self.fault is not None:
            end = notebook.fault(f"{self.fault.kind}: {self.fault.message}")
            return notebook.fragment(
                [notebook.heading(f"trial {self.key}", "missing", notebook.RED), notebook.table(rows), end]
            )
        rows += notebook.fields("result", _plain(self.result))
        return notebook.fragment([notebook.heading(f"trial {self.key}", "usable"), notebook.table(rows)])


def _plain(value: Any) -> Any:
    """A value as plain data, or unchanged if it cannot be converted."""
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError, RecursionError):
        return value


def encode_result(program: Program[Any, Any], result: Any) -> str:
    """A result as JSON text."""
    try:
        return canonical(result).decode()
    except UnicodeEncodeError:
        raise
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{program}: the result cannot be stored as JSON: {error}") from error


def decode_result(program: Program[Any, Any], body: str) -> Any:
    """The result that `encode_result` wrote, in the type that the program returns."""
    return _decode(program.result_type, body, f"{program}: a result is not a valid {program.result_type}")


def encode_spec(program: Program[Any, Any], spec: Any) -> bytes:
    """A spec as JSON."""
    try:
        return canonical(spec)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{program}: the spec cannot be stored as JSON: {error}") from error


def decode_spec(program: Program[Any, Any], body: bytes | str) -> Any:
    """The spec that `encode_spec` wrote, in the type that the program takes."""
    return _decode(program.spec_type, body, f"{program}: the spec is not a valid {program.spec_type}")


def past_outcome(program: Program[Any, Any], row: TrialRow) -> Outcome[Any]:
    """The outcome of a trial that the store has."""
    assert row.outcome is not None
    given = decode_spec(program, row.spec)
    if row.fault is None:
        return Outcome(row.key, given, decode_result(program, row.outcome))
    return Outcome(row.key, given, None, msgspec.json.decode(row.outcome, type=Fault))


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decode(wanted: Any, body: bytes | str, problem: str) -> Any:
    decoder = _decoders.get(wanted)
    try:
        if decoder is None:
            decoder = _decoders[wanted] = msgspec.json.Decoder(wanted)
        return decoder.decode(body)
    except (msgspec.ValidationError, TypeError) as error:
        raise SettingsError(f"{problem}: {error}") from error


def outcome_of(program: Program[Any, Any], key: str, given: Any, conductor: Conductor) -> tuple[str, Outcome[Any]]:
    """How a trial ended: encoded for the store, and as the `Outcome` that a driver receives."""
    error = conductor.error
    if error is None:
        try:
            body = encode_result(program, conductor.result)
        except UnicodeEncodeError as problem:
            error = problem
        else:
            try:
                return body, Outcome(key, given, decode_result(program, body))
            except SettingsError as problem:
                if not _has_type(conductor.result, program.result_type):
                    raise
                error = problem  # of the right type, but JSON cannot hold the value, for example NaN
    fault = fault_of(error)
    return canonical(fault).decode(), Outcome(key, given, None, fault)


def _has_type(result: Any, wanted: Any) -> bool:
    try:
        msgspec.convert(result, wanted)
    except msgspec.ValidationError:
        return False
    return True


def fault_of(error: Exception) -> Fault:
    """The fault of a trial whose program raised an exception."""
    if isinstance(error, AskFailed | CallFailed):
        return error.fault
    if isinstance(error, MalformedReply):
        return Fault(FaultKind.MALFORMED, plain_text(f"{error}; the model wrote: {error.text[:200]}"))
    return Fault(FaultKind.PROGRAM, f"{described(error)}{_place(error)}")


def _place(error: Exception) -> str:
    """The last function of user code in a traceback. Without the line, which changes with every comment above it."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(OURS)] or frames
    return f" (in {theirs[-1].name}, {Path(theirs[-1].filename).name})" if theirs else ""


def described(error: BaseException) -> str:
    """An exception of user code as text that can be stored."""
    try:
        text = str(error)
    except Exception as problem:  # noqa: BLE001  user code: only its text is lost
        text = f"(str() of the exception raised {type(problem).__name__})"
    return plain_text(f"{type(error).__name__}: {text}")


def plain_text(text: str) -> str:
    """Text that can be stored: characters that are not valid Unicode are escaped."""
    return text.encode(errors="backslashreplace").decode()
