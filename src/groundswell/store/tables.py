"""Trials as tables: one row each, as frames and as files (JSON lines, JSON, CSV and Parquet)."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeVar

import msgspec

from groundswell.engine.records import TrialRow
from groundswell.errors import SettingsError
from groundswell.program.request import Fault

T = TypeVar("T")

TrialStatus = Literal["usable", "missing", "unfinished"]


class TrialResult(NamedTuple):
    """One trial as the store holds it: a result, a fault, or neither while it is unfinished."""

    row: TrialRow
    fault: Fault | None

    @property
    def key(self) -> str:
        """The trial's key."""
        return self.row.key

    @property
    def program(self) -> str:
        """The program, as name@version."""
        return self.row.program

    @property
    def status(self) -> TrialStatus:
        """Whether there is a result, and if not, whether there will be."""
        if self.row.outcome is None:
            return "unfinished"
        return "usable" if self.fault is None else "missing"

    @property
    def spec_json(self) -> str:
        """The spec as it was stored."""
        return self.row.spec

    @property
    def result_json(self) -> str | None:
        """The result as it was stored."""
        return self.row.outcome if self.status == "usable" else None

    def spec(self, wanted: type[T] | Any = Any) -> T | Any:
        """The spec, as plain data or in a type."""
        return msgspec.json.decode(self.row.spec, type=wanted)

    def result(self, wanted: type[T] | Any = Any) -> T | Any:
        """The result, as plain data or in a type; None where there is none."""
        return None if self.result_json is None else msgspec.json.decode(self.result_json, type=wanted)


Kind = Literal["bool", "int", "float", "text", "json"]

FIXED = ("key", "program", "status", "fault_kind", "fault_message")
LARGEST = 2**63
IN_PANDAS = {"bool": "boolean", "int": "Int64", "float": "float64"}
"""Types that can hold missing values. Text is left to pandas, which has another type for it in every version."""


class Column(NamedTuple):
    """The values of a column, all of one kind or None; what is not of a plain kind is JSON text."""

    kind: Kind
    values: list[Any]


def cells(result: TrialResult) -> Iterator[tuple[str, Any]]:
    """One trial as flat cells; what has no fields stays one cell."""
    fault = result.fault
    kind, message = (None, None) if fault is None else (fault.kind.value, fault.message)
    yield from zip(FIXED, (result.key, result.program, result.status, kind, message), strict=True)
    yield from _flat("spec", result.spec())
    if result.result_json is not None:
        yield from _flat("result", result.result())


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for field, part in value.items():
            yield f"{prefix}.{field}", part
    else:
        yield prefix, value


def in_order(names: Iterable[str]) -> list[str]:
    """Names of columns in the order of a table: the fixed ones, then specs', then results'."""
    return sorted(dict.fromkeys((*FIXED, *names)), key=lambda name: (name not in FIXED, name.startswith("result")))


def columns(results: Iterable[TrialResult]) -> dict[str, Column]:
    """All trials as columns. They are gathered as such: a row each would take several times the memory and time."""
    gathered: dict[str, list[Any]] = {name: [] for name in FIXED}
    count = 0
    for result in results:
        for name, value in cells(result):
            column = gathered.setdefault(name, [])
            if len(column) < count:
                column.extend([None] * (count - len(column)))
            column.append(value)
        count += 1
    for column in gathered.values():
        column.extend([None] * (count - len(column)))
    return {name: _typed(gathered[name]) for name in in_order(gathered)}


def _typed(values: list[Any]) -> Column:
    kind = _kind(values)
    if kind == "float":
        return Column(kind, [None if value is None else float(value) for value in values])
    if kind == "json":
        encode = msgspec.json.Encoder().encode
        return Column(kind, [None if value is None else encode(value).decode() for value in values])
    return Column(kind, values)


def _kind(values: list[Any]) -> Kind:
    """What a column can be without losing anything."""
    types = set(map(type, values)) - {type(None)}
    if int in types and not all(-LARGEST <= value < LARGEST for value in values if type(value) is int):
        return "json"
    if types <= {str}:
        return "text"
    if types == {bool}:
        return "bool"
    if types == {int}:
        return "int"
    return "float" if types <= {int, float} else "json"


def polars_frame(results: Iterable[TrialResult], wanted_by: str = "frame()") -> Any:
    """Trials as a polars DataFrame."""
    return _polars(columns(results), wanted_by)


def _polars(table: Mapping[str, Column], wanted_by: str) -> Any:
    polars = _installed("polars", wanted_by)
    types = {"bool": polars.Boolean, "int": polars.Int64, "float": polars.Float64}
    schema = {name: types.get(column.kind, polars.String) for name, column in table.items()}
    return polars.DataFrame({name: column.values for name, column in table.items()}, schema=schema)


def pandas_frame(results: Iterable[TrialResult]) -> Any:
    """Trials as a pandas DataFrame, with types that can hold missing values only where there are some."""
    pandas = _installed("pandas", "frame(pandas=True)")
    made = {}
    for name, column in columns(results).items():
        gaps = None in column.values
        made[name] = pandas.Series(column.values, dtype=IN_PANDAS.get(column.kind) if gaps else None)
    return pandas.DataFrame(made)


def _installed(package: str, wanted_by: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise SettingsError(
            f"{wanted_by} needs {package}, which is not installed: pip install 'groundswell[report]'"
        ) from error


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


def write_rows(rows: Callable[[], Iterable[Mapping[str, Any]]], out: IO[Any], to: str) -> int:
    """The long table of a run, in one of the formats; returns how many rows. `rows` is called once or twice."""
    if to == "parquet":
        listed = list(rows())
        names = _names(listed)
        table = {name: _typed([row.get(name) for row in listed]) for name in names}
        write_parquet_frame(_polars(table, "--format parquet"), out)
        return len(listed)
    if to == "csv":
        names, writer, count = _names(rows()), csv.writer(out), 0
        writer.writerow([guarded(name) for name in names])
        for row in rows():
            writer.writerow([_csv_cell(row.get(name)) for name in names])
            count += 1
        return count
    count = 0
    out.write("[" if to == "json" else "")
    for count, row in enumerate(rows(), 1):
        before = "" if to == "jsonl" else ",\n" if count > 1 else "\n"
        out.write(before + msgspec.json.encode(row).decode() + ("\n" if to == "jsonl" else ""))
    out.write("\n]\n" if to == "json" else "")
    return count


def _names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


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


def csv_text(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([guarded(name) for name in names])
    for row in rows:
        writer.writerow([_csv_cell(cell) for cell in row])
    return out.getvalue()


Columns = Mapping[str, str]
Row_ = Mapping[str, Any]


@contextmanager
def table_files(
    folder: Path, name: str, columns: Columns, formats: Sequence[str] = ("csv", "json", "parquet")
) -> Iterator[Callable[[Row_], None]]:
    from groundswell.experiments.reporting.tables import tables

    with tables(folder, name, columns) as take:  # type: ignore[arg-type]
        yield take  # type: ignore[misc]


def table_paths(folder: Path, name: str, formats: Sequence[str] = ("csv", "json", "parquet")) -> list[Path]:
    return [folder / f"{name}.{format}" for format in formats]
