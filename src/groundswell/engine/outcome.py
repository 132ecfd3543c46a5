"""What a trial ended with."""

from __future__ import annotations

import traceback
from typing import Any, Generic, TypeVar

import msgspec

from groundswell.errors import AskFailed, CallFailed, MalformedReply, SettingsError
from groundswell.program.request import Fault, FaultKind, canonical
from groundswell.program.trial import Program

R = TypeVar("R")


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
        """The result; raises `AskFailed` with the fault if it is missing."""
        if self.fault is not None:
            raise AskFailed(self.fault)
        return self.result  # type: ignore[return-value]  # None is a result too, where R allows it


def encode_result(program: Program[Any, Any], result: Any) -> str:
    """A result as JSON text."""
    try:
        return canonical(result).decode()
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{program}: its result cannot be stored as JSON: {error}") from error


def decode_result(program: Program[Any, Any], body: str) -> Any:
    """The result that `encode_result` wrote, in the type that the program returns."""
    return _decode(program.result_type, body, f"{program}: a stored result is not a valid {program.result_type}")


def is_result(program: Program[Any, Any], result: Any) -> bool:
    """Whether a result has the type that the program says it returns."""
    try:
        msgspec.convert(result, program.result_type)
    except msgspec.ValidationError:
        return False
    return True


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


def fault_of(error: BaseException) -> Fault:
    """What an unhandled exception of a program makes of its trial."""
    if isinstance(error, AskFailed | CallFailed):
        return error.fault
    if isinstance(error, MalformedReply):
        return Fault(FaultKind.MALFORMED, f"{error}; the model wrote: {error.text[:200]}")
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({last[0].filename.rpartition('/')[2]}:{last[0].lineno})" if last else ""
    return Fault(FaultKind.PROGRAM, f"{described(error)}{where}")


def described(error: BaseException) -> str:
    """An exception of somebody else's code as text that can be stored, whatever its own text is."""
    try:
        text = str(error)
    except Exception as problem:  # noqa: BLE001  the edge of user code: its text is all that is lost
        text = f"(its text cannot be had: {type(problem).__name__})"
    return f"{type(error).__name__}: {text}".encode(errors="backslashreplace").decode()
