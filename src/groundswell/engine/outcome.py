"""What a trial ended with."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from groundswell.errors import AskFailed, CallFailed, MalformedReply, SettingsError, TrialMissing
from groundswell.program.conductor import Conductor
from groundswell.program.request import Fault, FaultKind, canonical
from groundswell.program.trial import Program
from groundswell.reporting import notebook

R = TypeVar("R")

OURS = str(Path(__file__).parents[1])


class Outcome(msgspec.Struct, Generic[R], frozen=True):
    """A trial's end: a result, or a fault that makes it missing; and the spec that it was about."""

    key: str
    spec: Any
    result: R | None
    fault: Fault | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.fault is None

    def unwrap(self) -> R:
        """The result; raises `TrialMissing` with the fault if there is none."""
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
    """A value as plain data, or as it is where it cannot be that."""
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
        raise SettingsError(f"{program}: its result cannot be stored as JSON: {error}") from error


def decode_result(program: Program[Any, Any], body: str) -> Any:
    """The result that `encode_result` wrote, in the type that the program returns."""
    return _decode(program.result_type, body, f"{program}: a stored result is not a valid {program.result_type}")


def encode_spec(program: Program[Any, Any], spec: Any) -> bytes:
    """A spec as JSON."""
    try:
        return canonical(spec)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{program}: a spec must be plain data: {error}") from error


def decode_spec(program: Program[Any, Any], body: bytes | str) -> Any:
    """The spec that `encode_spec` wrote, in the type that the program takes."""
    return _decode(program.spec_type, body, f"{program}: the spec is not a valid {program.spec_type}")


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
    """How a trial ended, as text and as a driver gets it."""
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
                error = problem  # of the right type, but not a value that JSON can hold: NaN, for one
    fault = fault_of(error)
    return canonical(fault).decode(), Outcome(key, given, None, fault)


def _has_type(result: Any, wanted: Any) -> bool:
    try:
        msgspec.convert(result, wanted)
    except msgspec.ValidationError:
        return False
    return True


def fault_of(error: Exception) -> Fault:
    """What an unhandled exception of a program makes of its trial."""
    if isinstance(error, AskFailed | CallFailed):
        return error.fault
    if isinstance(error, MalformedReply):
        return Fault(FaultKind.MALFORMED, plain_text(f"{error}; the model wrote: {error.text[:200]}"))
    return Fault(FaultKind.PROGRAM, f"{described(error)}{_place(error)}")


def _place(error: Exception) -> str:
    """The last function of the user's own in a traceback. No line: that changes with every comment above it."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(OURS)] or frames
    return f" (in {theirs[-1].name}, {Path(theirs[-1].filename).name})" if theirs else ""


def described(error: BaseException) -> str:
    """An exception of somebody else's code as text that can be stored, whatever its own text is."""
    try:
        text = str(error)
    except Exception as problem:  # noqa: BLE001  the edge of user code: its text is all that is lost
        text = f"(its text cannot be had: {type(problem).__name__})"
    return plain_text(f"{type(error).__name__}: {text}")


def plain_text(text: str) -> str:
    """Text that can be written down: what is not valid Unicode is shown as such."""
    return text.encode(errors="backslashreplace").decode()
