"""Tables of user data: the only code that reads and writes CSV, TSV, JSON, JSON lines and Parquet.

write_table, table_files, table_writer    rows to a file, to several files, or one by one
read_table                                the rows of a file, each with its place
frame                                     rows as a data frame of polars or pandas

In CSV and TSV, lists and objects are JSON, a missing cell is empty, and text that a spreadsheet would run as a formula
is guarded. CSV and JSON are written row by row. Parquet is written by columns, so all rows are held in memory first:
some 50 MB for 10,000 conversations of five messages.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NoReturn, Protocol, get_args, overload

import msgspec

from groundswell.errors import SettingsError
from groundswell.store.atomic import replacing

if TYPE_CHECKING:
    import polars

Format = Literal["csv", "tsv", "json", "jsonl", "parquet"]
Kind = Literal["text", "int", "float", "bool", "list", "json", "any"]
"""What a column holds. `list`: texts. `json`: anything, as JSON text in CSV and Parquet. `any`: the narrowest kind that
fits its values."""
Columns = Mapping[str, Kind]
Row = Mapping[str, Any]
Rows = Iterable[Row] | Callable[[], Iterable[Row]]
Located = tuple[str, dict[str, Any] | ValueError]
"""The place of a row in its file, and the row or what is wrong with it."""

FORMATS: tuple[Format, ...] = get_args(Format)
BY_ENDING: dict[str, Format] = {".ndjson": "jsonl", ".pq": "parquet", **{f".{name}": name for name in FORMATS}}
DELIMITERS = {"csv": ",", "tsv": "\t"}
INSTEAD = ";\t"
"""Delimiters of CSV files in the place of commas: spreadsheets in many countries write semicolons."""
SEPARATOR_LINE = ["sep=", ""]
"""A first line with which some spreadsheets name the delimiter."""
QUOTED = re.compile(r'"[^"]*"?')
AMBIGUOUS = re.compile(r"[,;\t\r]")
"""Characters in a column's name that could be taken for the delimiter."""
NUMERAL = re.compile(r"[+-]?\d+(?:\.\d+)?\Z")
RUNS_AS_FORMULA = ("=", "+", "-", "@")
LARGEST_CELL = 2**31 - 1
LARGEST_INT = 2**63
IN_PANDAS = {"bool": "boolean", "int": "Int64", "float": "float64"}
"""Types that can hold missing values. Text is left to pandas, which has another type for it in every version."""

_encode = msgspec.json.Encoder().encode


def format_of(path: str | Path) -> Format | None:
    """The format that the ending of a file's name says; None if it says none."""
    return BY_ENDING.get(Path(path).suffix.lower())


def guarded(text: str) -> str:
    """Text that no spreadsheet runs as a formula: an apostrophe goes before what looks like one. -5 is a number."""
    if text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(RUNS_AS_FORMULA):
        return text if NUMERAL.match(text) else "'" + text
    return text


def write_table(out: IO[bytes], format: Format, rows: Rows, columns: Columns | None = None) -> int:
    """Write rows to an open file; returns how many.

    `rows` is an iterable, or a function that returns one. Without `columns`, a table has all columns that occur: CSV
    then goes through the rows twice, since it begins with the names.
    """
    if columns is None and format in DELIMITERS:
        if not callable(rows) and iter(rows) is rows:
            rows = list(rows)
        columns = dict.fromkeys((name for row in _iterable(rows) for name in row), "any")
    writer = table_writer(out, format, columns)
    count = 0
    for count, row in enumerate(_iterable(rows), 1):  # noqa: B007  it is the number of rows in the end
        writer.add(row)
    writer.close()
    return count


def _iterable(rows: Rows) -> Iterable[Row]:
    return rows() if callable(rows) else rows


@contextmanager
def table_files(
    folder: Path, name: str, columns: Columns, formats: Sequence[Format] = ("csv", "json", "parquet")
) -> Iterator[Callable[[Row], None]]:
    """The same rows in several formats, `name`.csv and so on: call what is yielded with each row.

    Files are there whole or not at all; those that are there already stay as they are until the end.
    """
    with ExitStack() as stack:
        outs = [stack.enter_context(replacing(path)) for path in table_paths(folder, name, formats)]
        writers = [table_writer(out, format, columns) for out, format in zip(outs, formats, strict=True)]

        def add(row: Row) -> None:
            for writer in writers:
                writer.add(row)

        yield add
        for writer in writers:
            writer.close()


def table_paths(folder: Path, name: str, formats: Sequence[Format] = ("csv", "json", "parquet")) -> list[Path]:
    """The files that `table_files` writes."""
    return [folder / f"{name}.{format}" for format in formats]


def csv_text(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV in memory."""
    out = io.BytesIO()
    writer = CsvWriter(out, dict.fromkeys(names, "any"))
    for row in rows:
        writer.add_cells(row)
    return out.getvalue().decode()


class TableWriter(Protocol):
    """Takes rows one by one. The table is complete when it was closed."""

    def add(self, row: Row) -> None:
        """Write a row."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


def table_writer(out: IO[bytes], format: Format, columns: Columns | None) -> TableWriter:
    """A writer for a format. CSV and TSV need to know the columns."""
    if format == "parquet":
        return ParquetWriter(out, columns)
    if format in DELIMITERS:
        return CsvWriter(out, columns or {}, delimiter=DELIMITERS[format])
    return JsonWriter(out, array=format == "json")


class CsvWriter:
    """CSV and TSV: RFC 4180 in UTF-8. Cells of the columns `unguarded` are written as they are, formulas or not."""

    def __init__(
        self,
        out: IO[bytes],
        columns: Columns,
        *,
        delimiter: str = ",",
        line_end: str = "\r\n",
        unguarded: Collection[str] = (),
    ) -> None:
        self._out, self._columns, self._line_end = out, columns, line_end
        self._unguarded = [name in unguarded for name in columns]
        self._writer = csv.writer(self, delimiter=delimiter)
        ambiguous = any(map(AMBIGUOUS.search, columns))
        quoted = csv.writer(self, delimiter=delimiter, quoting=csv.QUOTE_ALL) if ambiguous else self._writer
        quoted.writerow([name if name in unguarded else guarded(name) for name in columns])

    def write(self, line: str) -> int:
        """What the module csv calls with every line. It ends in CR LF, so that these are quoted within cells."""
        return self._out.write((line.removesuffix("\r\n") + self._line_end).encode())

    def add(self, row: Row) -> None:
        """Write a row."""
        self._write([as_text(row.get(name), kind) for name, kind in self._columns.items()])

    def add_cells(self, values: Iterable[Any]) -> None:
        """Write a row that is given by its values, in the order of columns."""
        self._write([as_text(value) for value in values])

    def _write(self, cells: Sequence[Any]) -> None:
        pairs = zip(cells, self._unguarded, strict=True)
        self._writer.writerow([cell if plain or not isinstance(cell, str) else guarded(cell) for cell, plain in pairs])

    def close(self) -> None:
        """There is nothing left to write."""


def as_text(value: Any, kind: Kind = "any") -> Any:
    """A value as a cell: text and numbers as they are, anything else as JSON. What is missing is empty."""
    if value is None:
        return ""
    if kind != "json" and isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    return _encode(value).decode()


class JsonWriter:
    """JSON lines, or an array with a row on each line. Rows are written as they are."""

    def __init__(self, out: IO[bytes], *, array: bool) -> None:
        self._out, self._array, self._count = out, array, 0

    def add(self, row: Row) -> None:
        """Write a row."""
        if self._array:
            self._out.write((b",\n" if self._count else b"[\n") + _encode(row))
        else:
            self._out.write(_encode(row) + b"\n")
        self._count += 1

    def close(self) -> None:
        """End the array."""
        if self._array:
            self._out.write(b"\n]\n" if self._count else b"[]\n")


class ParquetWriter:
    """Columns with their types; lists of text are lists."""

    def __init__(self, out: IO[bytes], columns: Columns | None) -> None:
        _package("polars", "Parquet", ", or use CSV or JSON lines")
        self._out, self._gathered = out, _Gathered(columns)

    def add(self, row: Row) -> None:
        """Keep a row."""
        self._gathered.add(row)

    def close(self) -> None:
        """Write all of them."""
        write_parquet(self._gathered.polars(), self._out)


def write_parquet(frame: polars.DataFrame, out: IO[bytes]) -> None:
    """Write a frame. It goes through memory: a full disk is then an `OSError`, and no error of polars."""
    made = io.BytesIO()
    frame.write_parquet(made)
    out.write(made.getbuffer())


@overload
def frame(rows: Iterable[Row], columns: Columns | None = None, pandas: Literal[False] = False) -> polars.DataFrame: ...
@overload
def frame(rows: Iterable[Row], columns: Columns | None = None, pandas: bool = False) -> Any: ...
def frame(rows: Iterable[Row], columns: Columns | None = None, pandas: bool = False) -> Any:
    """Rows as a polars DataFrame, or one of pandas."""
    _package("pandas" if pandas else "polars", "frame(pandas=True)" if pandas else "frame()")
    gathered = _Gathered(columns)
    for row in rows:
        gathered.add(row)
    return gathered.pandas() if pandas else gathered.polars()


class _Gathered:
    """Rows as columns. They are kept as such: a mapping for each row would take several times the memory."""

    def __init__(self, columns: Columns | None) -> None:
        self._columns = columns
        self._values: dict[str, list[Any]] = {name: [] for name in columns or ()}
        self._count = 0

    def add(self, row: Row) -> None:
        if self._columns is None and row.keys() != self._values.keys():
            for name in row:
                self._values.setdefault(name, [None] * self._count)
        for name, values in self._values.items():
            values.append(row.get(name))
        self._count += 1

    def polars(self) -> polars.DataFrame:
        import polars

        types: dict[Kind, Any] = {
            "bool": polars.Boolean,
            "int": polars.Int64,
            "float": polars.Float64,
            "list": polars.List(polars.String),
        }
        typed = self._typed()
        schema = {name: types.get(kind, polars.String) for name, (kind, _) in typed.items()}
        return polars.DataFrame({name: values for name, (_, values) in typed.items()}, schema=schema)

    def pandas(self) -> Any:
        """A pandas frame, with types that can hold missing values only where there are some."""
        pandas = importlib.import_module("pandas")
        return pandas.DataFrame(
            {
                name: pandas.Series(values, dtype=IN_PANDAS.get(kind) if None in values else None)
                for name, (kind, values) in self._typed().items()
            }
        )

    def _typed(self) -> dict[str, tuple[Kind, list[Any]]]:
        found: dict[str, tuple[Kind, list[Any]]] = {}
        for name, values in self._values.items():
            kind = (self._columns or {}).get(name, "any")
            if kind == "any":
                kind = kind_of(values)
            found[name] = (kind, [None if value is None else _of_kind(value, kind) for value in values])
        return found


def kind_of(values: Iterable[Any]) -> Kind:
    """The narrowest kind of column that holds these values: JSON if some are nested, text if types differ."""
    types = {type(value) for value in values} - {type(None)}
    if types == {bool}:
        return "bool"
    if types and types <= {int, float}:
        whole = (value for value in values if type(value) is int)
        fits = all(-LARGEST_INT <= value < LARGEST_INT for value in whole)
        return "text" if not fits else "int" if types == {int} else "float"
    return "text" if types <= {str, int, float, bool} else "json"


def _of_kind(value: Any, kind: Kind) -> Any:
    if kind == "float":
        return float(value)
    return str(as_text(value, kind)) if kind in ("text", "json") else value


def read_table(path: Path, format: Format) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file, one by one, each with its place ("line 7"). Raises `SettingsError` where a row is wrong."""
    for where, row in rows_or_errors(path, format):
        if isinstance(row, ValueError):
            raise SettingsError(f"{path}, {where}: {row}") from row
        yield where, row


def rows_or_errors(path: Path, format: Format) -> Iterator[Located]:
    """The same, with an error in the place of a row that is wrong. A file that cannot be read raises one.

    JSON is an array of objects or an object on each line, whichever of the two the format says.
    """
    try:
        if format == "parquet":
            for number, row in enumerate(read_parquet(path).iter_rows(named=True), 1):
                yield f"row {number}", {name: _as_json(cell) for name, cell in row.items()}
        elif format in DELIMITERS:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield from _delimited_rows(file, str(path), delimiter_of(path, format))
        else:
            with path.open(encoding="utf-8-sig", newline="\n") as file:
                yield from json_rows(file)
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error


def _not_utf8(path: Path) -> SettingsError:
    """Says where a file is not UTF-8."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
                return SettingsError(
                    f"{path}: the file is UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8 {path.name} > "
                    f"new{path.suffix}"
                )
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return SettingsError(
                    f"{path}, line {number}: byte {line[error.start]:#04x} is not valid UTF-8; if the file is in "
                    f"Latin-1 or Windows-1252, convert it: iconv -f windows-1252 -t utf-8 {path.name} > "
                    f"new{path.suffix}"
                )
    return SettingsError(f"{path}: the file is not valid UTF-8")


def delimiter_of(path: Path, format: Format) -> str:
    """The delimiter of a table: in CSV a comma, or what its header has instead."""
    usual = DELIMITERS[format]
    if format != "csv" or not path.is_file():
        return usual
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = QUOTED.sub("", next((line for line in file if line.strip()), ""))
    return next((each for each in usual + INSTEAD if each in header), usual)


def csv_records(lines: Iterable[str], source: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The records of CSV as they are, the header and empty ones among them, each with the line in which it ends."""
    csv.field_size_limit(LARGEST_CELL)  # the module's own limit is less than a long document
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for record in reader:
            yield reader.line_num, record
    except csv.Error as error:
        raise SettingsError(f"{source}, line {reader.line_num}: {error}: check its quotes") from error


def _delimited_rows(lines: Iterable[str], source: str, delimiter: str) -> Iterator[Located]:
    records = csv_records(lines, source, delimiter)
    header = next((record for _, record in records if record and record != SEPARATOR_LINE), [])
    if not header:
        raise SettingsError(f"{source}: the file is empty; the first line must name the columns")
    if (twice := _repeated(header)) is not None:
        raise SettingsError(f"{source}: two columns are named {twice!r}: rename one of them")
    for line, record in records:
        if len(record) == len(header):
            yield f"line {line}", dict(zip(header, record, strict=True))
        elif record:
            problem = f"it has {len(record)} cells, but the header has {len(header)}"
            yield (
                f"line {line}",
                ValueError(f'{problem}: put cells that contain the delimiter or a line break in "quotes"'),
            )


def json_rows(lines: Iterable[str]) -> Iterator[Located]:
    """The rows of a JSON array or of JSON lines, by what is there: each with its place, or what is wrong with it."""
    lines, first = iter(lines), True
    for number, line in enumerate(lines, 1):
        if first and line.lstrip().startswith("["):
            where, found = _decoded("\n" * (number - 1) + line + "".join(lines))
            rows = found if isinstance(found, list) else [found]
            yield from (_as_row(where or f"row {at}", row) for at, row in enumerate(rows, 1))
        elif line.strip():
            first = False
            yield _as_row(*_decoded(line, f"line {number}"))


def _decoded(text: str, where: str = "") -> tuple[str, Any]:
    """JSON with its place, or a `ValueError`: whole numbers of any size, no key twice, no NaN."""
    try:
        found = json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_constant, parse_float=_finite)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        place = where or f"line {error.lineno}"
        return f"{place}, character {error.colno}", ValueError(f"invalid JSON: {error.msg}")
    except UnicodeEncodeError:
        return where or "the array", ValueError("invalid Unicode: an unpaired surrogate")
    except (ValueError, RecursionError) as error:
        return where or "the array", ValueError(f"invalid JSON: {error}")
    return where, found


def _as_row(where: str, found: Any) -> Located:
    if isinstance(found, ValueError | dict):
        return where, found
    kind = "a list" if isinstance(found, list) else "a single value"
    return where, ValueError(f"a row must be an object with column names as keys, not {kind}")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if (twice := _repeated([name for name, _ in pairs])) is not None:
        raise ValueError(f"key {twice!r} occurs twice in one object")
    return dict(pairs)


def _repeated(names: Sequence[str]) -> str | None:
    """The first name that is there for the second time."""
    if len(set(names)) == len(names):
        return None
    return next(name for at, name in enumerate(names) if name in names[:at])


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise ValueError(f"number {digits} is too large")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed; use null")


def read_parquet(path: Path) -> polars.DataFrame:
    """A Parquet file as a frame, in memory as a whole."""
    _package("polars", f"{path}: Parquet", ", or use CSV or JSON lines")
    import polars

    try:
        return polars.read_parquet(path)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise SettingsError(f"{path}: cannot be read as Parquet: {error}") from error


def _as_json(cell: Any) -> Any:
    """A cell of Parquet as JSON can hold it: dates as text, and no number for what is none."""
    if isinstance(cell, float) and not isfinite(cell):
        return None
    return msgspec.to_builtins(cell)


def _package(name: str, wanted_by: str, instead: str = "") -> Any:
    """A package that is not there in every installation."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"{wanted_by} needs {name}, which is not installed: pip install 'groundswell[report]'{instead}"
        ) from error
