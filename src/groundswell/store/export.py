"""Results as files: JSON lines, JSON, CSV and Parquet, one row per trial. Pure writers over an iterable."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import IO, Any

import msgspec

from groundswell.errors import SettingsError
from groundswell.store.columns import cells, in_order, polars_frame
from groundswell.store.results import TrialResult

RUNS_AS_FORMULA = ("=", "+", "-", "@")


class Row(msgspec.Struct):
    """One trial, as the JSON formats write it."""

    key: str
    program: str
    status: str
    fault_kind: str | None
    fault_message: str | None
    spec: msgspec.Raw
    result: msgspec.Raw | None


def write_jsonl(results: Iterable[TrialResult], out: IO[str]) -> int:
    """One JSON object a line; returns how many."""
    count = 0
    for result in results:
        out.write(msgspec.json.encode(_row(result)).decode() + "\n")
        count += 1
    return count


def write_json(results: Iterable[TrialResult], out: IO[str]) -> int:
    """One JSON array of objects, a line each; returns how many."""
    count = 0
    out.write("[")
    for result in results:
        out.write((",\n" if count else "\n") + msgspec.json.encode(_row(result)).decode())
        count += 1
    out.write("\n]\n")
    return count


def write_csv(results: Iterable[TrialResult], out: IO[str]) -> int:
    """A table with a column for every field of specs and results; returns how many rows.

    The results are read twice, first to find the columns, so that none of them has to be kept in memory.
    """
    results = _rereadable(results)
    names = in_order(name for result in results for name, _ in cells(result))
    writer = csv.writer(out)
    writer.writerow([guarded(name) for name in names])
    count = 0
    for result in results:
        row = dict(cells(result))
        writer.writerow([_csv_cell(row.get(name)) for name in names])
        count += 1
    return count


def write_parquet(results: Iterable[TrialResult], out: IO[bytes]) -> int:
    """The columns of `write_csv` with their types; values of mixed types are written as JSON text."""
    try:
        frame = polars_frame(results, "--format parquet")
    except SettingsError as error:
        raise SettingsError(f"{error}, or use --format csv or jsonl") from error
    write_parquet_frame(frame, out)
    return int(frame.height)


def write_parquet_frame(frame: Any, out: IO[bytes]) -> None:
    """Write a polars frame. It goes through memory: a full disk is then an `OSError`, and no error of polars."""
    made = io.BytesIO()
    frame.write_parquet(made)
    out.write(made.getbuffer())


def guarded(text: str) -> str:
    """Text that no spreadsheet runs as a formula: an apostrophe goes before what looks like one."""
    if text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(RUNS_AS_FORMULA):
        return "'" + text
    return text


def _rereadable(results: Iterable[TrialResult]) -> Iterable[TrialResult]:
    return list(results) if iter(results) is results else results


def _row(result: TrialResult) -> Row:
    fault, found = result.fault, result.result_json
    return Row(
        result.key,
        result.program,
        result.status,
        None if fault is None else fault.kind.value,
        None if fault is None else fault.message,
        msgspec.Raw(result.spec_json.encode()),
        None if found is None else msgspec.Raw(found.encode()),
    )


def _csv_cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, str):
        return guarded(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return guarded(msgspec.json.encode(value).decode())
