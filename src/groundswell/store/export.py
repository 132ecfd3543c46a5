"""Results as files: JSON lines, JSON, CSV and Parquet, one row per trial. Pure writers over an iterable."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Iterable, Iterator
from typing import IO, Any, Literal

import msgspec

from groundswell.errors import SettingsError
from groundswell.store.results import TrialResult

Kind = Literal["bool", "int", "float", "text", "json"]

FIXED = ("key", "program", "status", "fault_kind", "fault_message")
RUNS_AS_FORMULA = ("=", "+", "-", "@")
LARGEST = 2**63


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
    columns = _columns(results)
    writer = csv.writer(out)
    writer.writerow([guarded(name) for name in columns])
    count = 0
    for result in results:
        cells = _cells(result)
        writer.writerow([_csv_cell(cells.get(name)) for name in columns])
        count += 1
    return count


def write_parquet(results: Iterable[TrialResult], out: IO[bytes]) -> int:
    """The columns of `write_csv` with their types; values of mixed types are written as JSON text."""
    try:
        polars = importlib.import_module("polars")
    except ImportError as error:
        raise SettingsError(
            "--format parquet needs polars, which is not installed: pip install 'groundswell[report]', "
            "or use --format csv or jsonl"
        ) from error
    results = _rereadable(results)
    types = {"bool": polars.Boolean, "int": polars.Int64, "float": polars.Float64}
    columns = _columns(results)
    rows = [_cells(result) for result in results]
    data = {name: [_typed(cells.get(name), kind) for cells in rows] for name, kind in columns.items()}
    schema = {name: types.get(kind, polars.String) for name, kind in columns.items()}
    polars.DataFrame(data, schema=schema).write_parquet(out)
    return len(rows)


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


def _cells(result: TrialResult) -> dict[str, Any]:
    """One trial as flat columns; what has no fields stays one column."""
    fault = result.fault
    kind, message = (None, None) if fault is None else (fault.kind.value, fault.message)
    cells = dict(zip(FIXED, (result.key, result.program, result.status, kind, message), strict=True))
    cells.update(_flat("spec", result.spec()))
    if result.result_json is not None:
        cells.update(_flat("result", result.result()))
    return cells


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for field, part in value.items():
            yield f"{prefix}.{field}", part
    else:
        yield prefix, value


def _columns(results: Iterable[TrialResult]) -> dict[str, Kind]:
    """All columns with the kind of value that each holds: the fixed ones, then specs', then results'."""
    found: dict[str, Kind | None] = dict.fromkeys(FIXED, "text")
    for result in results:
        for name, value in _cells(result).items():
            found[name] = _wider(found.get(name), value)
    order = sorted(found, key=lambda name: (name not in FIXED, name.startswith("result")))
    return {name: found[name] or "text" for name in order}


def _wider(kind: Kind | None, value: Any) -> Kind | None:
    """The kind of a column that also holds this value."""
    if value is None:
        return kind
    new = _kind(value)
    if kind is None or kind == new:
        return new
    return "float" if {kind, new} == {"int", "float"} else "json"


def _kind(value: Any) -> Kind:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -LARGEST <= value < LARGEST else "json"
    if isinstance(value, float):
        return "float"
    return "text" if isinstance(value, str) else "json"


def _typed(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "float":
        return float(value)
    return msgspec.json.encode(value).decode() if kind == "json" else value


def _csv_cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, str):
        return guarded(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return guarded(msgspec.json.encode(value).decode())
