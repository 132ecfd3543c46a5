"""Checksums of rows, which reveal damage that still decodes.

SQLite checks the structure of its pages, but not their content. The content that a checksum covers never changes, or
changes together with it. Rows from before schema 0004 have none: only their types and JSON are checked. A wrong
checksum raises `msgspec.DecodeError`, like text that cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from groundswell.engine.records import TrialRow
from groundswell.program.request import Settlement, decode_settlement


def checksum(*values: object) -> int:
    """A 32-bit checksum of values. It detects accidents, not forgery."""
    return crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def joined_checksum(first: str, last: bytes) -> int:
    """The same, of values that are joined by NUL characters already, up to the last one, which is encoded."""
    return crc32(last, crc32(first.encode()))


def verify(known: int | None, what: str, *values: object) -> None:
    """Raise `DecodeError` if values do not match a checksum."""
    if known is not None and known != checksum(*values):
        raise _changed(what)


def _changed(what: str) -> msgspec.DecodeError:
    return msgspec.DecodeError(f"{what} was changed after it was written: its checksum does not match")


def trial_row(values: Sequence[Any]) -> TrialRow:
    """A trial from its columns, and at the end the checksums of the trial and of its outcome."""
    *columns, of_trial, of_outcome = values
    row = TrialRow(*columns)
    if of_trial is not None and of_trial != checksum(*row[:4]):
        raise _changed(f"trial {row.key!r}")
    if of_outcome is not None and of_outcome != checksum(row.id, row.fault, row.outcome, row.ended_at):
        raise _changed(f"the outcome of trial {row.key!r}")
    if of_trial is None or (of_outcome is None and row.outcome is not None) or type(row.attempt) is not int:
        _check_form(row)
    return row


def _check_form(row: TrialRow) -> None:
    """Types and JSON of a row without checksums."""
    msgspec.convert((*row[:7], bool(row.abandoned), row.ended_at), TrialRow)
    for text in (row.spec, row.outcome):
        if text is not None:
            msgspec.json.decode(text, type=msgspec.Raw)


def encode_rows(trial: int, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The rows of data of a trial as they are stored: a checksum of eight digits, and JSON. None: there are none."""
    if not rows:
        return None
    text = msgspec.json.encode(rows).decode()
    return f"{checksum(trial, text):08x}{text}"


def decode_rows(trial: int, stored: str) -> list[dict[str, Any]]:
    """The rows that `encode_rows` wrote."""
    text = stored[8:]
    if stored[:8] != f"{checksum(trial, text):08x}":
        raise _changed(f"the rows of trial number {trial}")
    return msgspec.json.decode(text, type=list[dict[str, Any]])


class AskRow(NamedTuple):
    """An ask that has ended, as the journal holds it.

    `seconds`: duration of the last attempt, None if nothing was sent and in rows that were written before schema 0008.
    """

    trial: int
    path: str
    fingerprint: bytes
    wave: int | None
    fault: str | None
    settlement: str
    checksum: int | None
    seconds: float | None = None

    def decoded(self) -> Settlement:
        """What the ask ended with."""
        return decode_settlement(self.checked().settlement)

    def sum(self) -> int:
        """The checksum that covers the row."""
        seconds = self.seconds.hex() if type(self.seconds) is float else self.seconds  # faster than in decimals
        return checksum(*(self[:6] if seconds is None else (*self[:5], seconds, self.settlement)))

    def checked(self) -> AskRow:
        """The row itself; raises `DecodeError` if it has changed.

        A damaged row may have lost its last columns, its checksum among them: SQLite reads NULL for what is not there.
        """
        if self.checksum is None:
            msgspec.convert(tuple(self), AskRow)
        elif self.checksum != self.sum():
            raise _changed(f"ask {self.path} of trial number {self.trial}")
        return self
