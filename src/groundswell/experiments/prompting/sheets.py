"""Tables written: row by row into a file beside, which takes its place when it is complete."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Protocol

from groundswell.errors import SettingsError
from groundswell.experiments.prompting.tables import (
    DELIMITERS,
    Format,
    Source,
    delimiter_of,
    digest_of,
    polars_for,
    read_parquet,
)
from groundswell.experiments.prompting.templates import Row
from groundswell.store.atomic import beside
from groundswell.store.tables import guarded, write_parquet_frame

AMBIGUOUS = re.compile(r"[,;\t\r]")
"""What would leave it open, in a header, what parts the cells."""
NUMERAL = re.compile(r"[+-]?\d+(?:\.\d+)?\Z")


class Sheet(Protocol):
    """Takes rows: the cells of the input as they were, and those that are new."""

    def add(self, row: Row, new: Row) -> None:
        """Write one row."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


@contextmanager
def sheet(path: Path, form: Format, source: Source, columns: Sequence[str], new: Sequence[str]) -> Iterator[Sheet]:
    """A sheet whose file appears, in one step, when its rows are all there."""
    try:
        with beside(path) as out:
            text = TextIOWrapper(out, encoding="utf-8", newline="")
            made = _made(out if form == "parquet" else text, form, source, columns, new)
            yield made
            made.close()
            text.detach()
    except OSError as error:
        raise SettingsError(f"--out {path}: {error.strerror or error}") from error


def _made(out: IO[Any], form: Format, source: Source, columns: Sequence[str], new: Sequence[str]) -> Sheet:
    if form == "parquet":
        return ParquetSheet(out, source, columns, new)
    if form in DELIMITERS:
        delimiter = delimiter_of(Path(source.path), form) if form == source.format else DELIMITERS[form]
        return DelimitedSheet(out, delimiter, columns, new)
    return JsonSheet(out, array=form == "json")


class DelimitedSheet:
    """CSV and TSV. What models wrote is guarded against being run as a formula; the user's own cells are not."""

    def __init__(self, out: IO[str], delimiter: str, columns: Sequence[str], new: Sequence[str]) -> None:
        self._columns, self._new = columns, new
        self._plain = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        self._quoted = csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
        (self._quoted if any(map(AMBIGUOUS.search, [*columns, *new])) else self._plain).writerow([*columns, *new])

    def add(self, row: Row, new: Row) -> None:
        own = [_cell(row.get(name)) for name in self._columns]
        self._write([*own, *(guarded_cell(new.get(name)) for name in self._new)])

    def close(self) -> None:
        """Everything is written."""

    def _write(self, cells: list[str]) -> None:
        """Older versions of the writer leave a lone carriage return unquoted, and nobody could read it back."""
        (self._quoted if any("\r" in cell for cell in cells) else self._plain).writerow(cells)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def guarded_cell(value: Any) -> str:
    """A cell that no spreadsheet runs as a formula. A number, such as -5, is none."""
    text = _cell(value)
    return text if NUMERAL.match(text) else guarded(text)


class JsonSheet:
    """JSON lines, or an array with a row a line."""

    def __init__(self, out: IO[str], *, array: bool) -> None:
        self._out = out
        self._array = array
        self._count = 0

    def add(self, row: Row, new: Row) -> None:
        if self._array:
            self._out.write(",\n" if self._count else "[\n")
        self._out.write(json.dumps({**row, **new}, ensure_ascii=False))
        if not self._array:
            self._out.write("\n")
        self._count += 1

    def close(self) -> None:
        if self._array:
            self._out.write("\n]\n" if self._count else "[]\n")


class ParquetSheet:
    """Parquet, which has to be in memory as a whole. Columns that come from Parquet keep their types."""

    def __init__(self, out: IO[bytes], source: Source, columns: Sequence[str], new: Sequence[str]) -> None:
        self._polars = polars_for("--out")
        self._out = out
        self._source = source
        self._columns = columns
        self._numbers: list[int] = []
        self._own: dict[str, list[Any]] = {name: [] for name in ([] if source.format == "parquet" else columns)}
        self._new: dict[str, list[Any]] = {name: [] for name in new}
        self._latest: Row | None = None

    def add(self, row: Row, new: Row) -> None:
        fresh = row is not self._latest
        self._numbers.append((self._numbers[-1] if self._numbers else -1) + fresh)
        self._latest = row
        for held, cells in ((self._own, row), (self._new, new)):
            for name, values in held.items():
                values.append(cells.get(name))

    def close(self) -> None:
        new = [self._series(name, values) for name, values in self._new.items()]
        if self._source.format == "parquet":
            frame = read_parquet(Path(self._source.path))[self._numbers]
        else:
            frame = self._polars.DataFrame({name: self._series(name, values) for name, values in self._own.items()})
        write_parquet_frame(frame.with_columns(new), self._out)

    def _series(self, name: str, values: list[Any]) -> Any:
        """A column of one type; of text, where values are of several."""
        polars = self._polars
        kinds = {type(value) for value in values if value is not None}
        if not kinds:
            return polars.Series(name, values, dtype=polars.String)
        if kinds <= {int, float} or (len(kinds) == 1 and kinds <= {str, bool}):
            try:
                return polars.Series(name, values, dtype=polars.Float64 if float in kinds else None)
            except (TypeError, OverflowError, polars.exceptions.PolarsError):
                pass
        return polars.Series(name, [None if value is None else _cell(value) for value in values], dtype=polars.String)


def fingerprint_of(path: Path) -> str | None:
    """A hash of a file, or None where there is none."""
    return digest_of(path, text=False) if path.exists() else None
