"""Rows from files: CSV, TSV, JSON lines, JSON arrays and Parquet. Each is read row by row, as often as needed.

`survey` reads a file once from end to end and tells what is in it, or what is wrong and where. `rows` reads it again.
"""

from __future__ import annotations

import csv
import importlib
import json
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from math import isfinite
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal, NamedTuple, NoReturn, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.prompting.templates import Row

Format = Literal["csv", "tsv", "jsonl", "json", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
BY_ENDING: dict[str, Format] = {".ndjson": "jsonl", ".pq": "parquet", **{f".{name}": name for name in FORMATS}}
DELIMITERS = {"csv": ",", "tsv": "\t"}
INSTEAD = ";\t"
"""What may part the cells of a CSV file in the place of commas: spreadsheets in many countries write semicolons."""
SAID_FIRST = ["sep=", ""]
"""How some spreadsheets say so, in a line of its own."""
QUOTED = re.compile(r'"[^"]*"?')
LARGEST_CELL = 2**31 - 1
PLAIN = (str, int, float, bool, type(None))


class Source(msgspec.Struct, frozen=True):
    """A table in a file: where, in which form, and what was in it when it was looked at."""

    path: str
    format: Format
    digest: str
    rows: int


class Survey(NamedTuple):
    """What is in a table. `nested` is a column that holds lists or objects, if one does."""

    source: Source
    columns: list[str]
    nested: str | None


def format_of(path: Path, what: str) -> Format:
    """The form that a file's name says it has."""
    found = BY_ENDING.get(path.suffix.lower())
    if found is None:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise SettingsError(
            f"{what}: its name must end in {endings}; or give --format for the data", field=what.partition(" ")[0]
        )
    return found


def survey(path: Path, form: Format, needed: Sequence[str] = ()) -> Survey:
    """Read a table to its end. Every row must have the needed columns: those that templates and checks name."""
    digest = digest_of(path, text=form != "parquet")
    columns: dict[str, None] = {}
    lacking: dict[str, str] = {}
    nested, count = None, 0
    for where, row in _located(path, form):
        count += 1
        if row.keys() != columns.keys():
            columns.update(dict.fromkeys(row))
            lacking.update({name: where for name in needed if name not in row and name not in lacking})
        if nested is None and form in ("jsonl", "json", "parquet"):
            nested = next((name for name, cell in row.items() if not isinstance(cell, PLAIN)), None)
    if not count:
        raise SettingsError(f"{path}: there are no rows in it")
    for name, where in lacking.items():
        if name in columns:
            raise SettingsError(f"{path}, {where}: there is no {name!r} here, which other rows have")
    return Survey(Source(str(path.absolute()), form, digest, count), list(columns), nested)


def rows(source: Source, limit: int | None = None) -> Iterator[Row]:
    """The rows of a table, one by one."""
    located = _located(Path(source.path), source.format)
    return (row for _, row in islice(located, limit))


def check_unchanged(source: Source) -> None:
    """Refuse a file that is not what it was."""
    if digest_of(Path(source.path), text=False) != source.digest:
        raise SettingsError(
            f"{source.path} has changed since this run was started: put it back as it was, or give the command "
            "`groundswell map` again, which starts another run (replies that the cache holds are not paid for again)"
        )


def digest_of(path: Path, *, text: bool) -> str:
    """A hash of a file; where it should be text, it must be UTF-8."""
    digest = blake2b(digest_size=16)
    try:
        if not S_ISREG(path.stat().st_mode):
            raise SettingsError(f"{path}: this is no file that can be read again: give the path of a regular one")
        with path.open("rb") as file:
            for number, line in enumerate(file if text else iter(lambda: file.read(1 << 20), b""), 1):
                digest.update(line)
                if text:
                    _check_text(path, number, line)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
    return digest.hexdigest()


def _check_text(path: Path, number: int, line: bytes) -> None:
    if number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SettingsError(f"{path}: this is UTF-16; make it UTF-8: iconv -f utf-16 -t utf-8 {path.name} > new.csv")
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{path}, line {number}: byte {line[error.start]:#04x} is not UTF-8; if the file is in Latin-1 or Windows' "
            f"own encoding, make it UTF-8: iconv -f windows-1252 -t utf-8 {path.name} > new{path.suffix}"
        ) from error


def _located(path: Path, form: Format) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file, each with the place where it stands."""
    if form == "parquet":
        return _parquet_rows(path)
    if form == "json":
        return _json_rows(path)
    return _json_lines(path) if form == "jsonl" else _delimited_rows(path, delimiter_of(path, form))


def delimiter_of(path: Path, form: Format) -> str:
    """What parts the cells of a table: in CSV a comma, or what its header has instead."""
    usual = DELIMITERS[form]
    if form != "csv" or not path.is_file():
        return usual
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = QUOTED.sub("", next((line for line in file if line.strip()), ""))
    return next((each for each in usual + INSTEAD if each in header), usual)


def _delimited_rows(path: Path, delimiter: str) -> Iterator[tuple[str, dict[str, Any]]]:
    csv.field_size_limit(LARGEST_CELL)  # the module's own limit is less than a long document
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = next((row for row in reader if row and row != SAID_FIRST), [])
            _check_header(path, header)
            for row in reader:
                if len(row) == len(header):
                    yield f"line {reader.line_num}", dict(zip(header, row, strict=True))
                elif row:
                    _refuse_ragged(path, reader.line_num, row, header)
        except csv.Error as error:
            raise SettingsError(f"{path}, line {reader.line_num}: {error}: see to its quotes") from error


def _refuse_ragged(path: Path, line: int, row: Sequence[str], header: Sequence[str]) -> NoReturn:
    raise SettingsError(
        f"{path}, line {line}: it has {len(row)} cells, and the header has {len(header)}: "
        'put cells that hold the delimiter or a line break in "quotes"'
    )


def _check_header(path: Path, header: Sequence[str]) -> None:
    if not header:
        raise SettingsError(f"{path}: it is empty; the first line must name the columns")
    if len(set(header)) < len(header):
        twice = next(name for at, name in enumerate(header) if name in header[:at])
        raise SettingsError(f"{path}: two columns are called {twice!r}: give each a name of its own")


def _json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                where = f"line {number}"
                yield where, _as_row(path, where, _decoded(path, line, where))


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    text = path.read_text(encoding="utf-8-sig")
    found = _decoded(path, text, None) if text.strip() else []
    if not isinstance(found, list):
        raise SettingsError(f"{path}: it must hold one JSON array of objects; for an object a line, --format jsonl")
    for number, row in enumerate(found, 1):
        yield f"row {number}", _as_row(path, f"row {number}", row)


def _decoded(path: Path, text: str, where: str | None) -> Any:
    """JSON as it stands: whole numbers of any size, no key twice, no NaN."""
    try:
        found = json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_constant, parse_float=_finite)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        place = where or f"line {error.lineno}"
        raise SettingsError(f"{path}, {place}, character {error.colno}: this is not JSON: {error.msg}") from error
    except UnicodeEncodeError as error:
        raise SettingsError(f"{path}, {where or 'somewhere'}: half of a surrogate pair is no character") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}, {where or 'somewhere'}: this is not JSON: {error}") from error
    return found


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise ValueError(f"{twice!r} is there twice in one object")
    return found


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise ValueError(f"{digits} is larger than numbers can be")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON; write null")


def _as_row(path: Path, where: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        kind = "a list" if isinstance(found, list) else "a single value"
        raise SettingsError(f"{path}, {where}: a row must be an object with the columns' names, not {kind}")
    return found


def polars_for(what: str) -> Any:
    """The package that knows Parquet."""
    try:
        return importlib.import_module("polars")
    except ImportError as error:
        raise SettingsError(
            f"{what}: Parquet needs polars, which is not installed: pip install 'groundswell[report]', "
            "or use CSV or JSON lines"
        ) from error


def read_parquet(path: Path) -> Any:
    """A Parquet file as a frame, in memory as a whole."""
    polars = polars_for(str(path))
    try:
        return polars.read_parquet(path)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise SettingsError(f"{path}: this cannot be read as Parquet: {error}") from error


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, row in enumerate(read_parquet(path).iter_rows(named=True), 1):
        yield f"row {number}", {name: _as_json(cell) for name, cell in row.items()}


def _as_json(cell: Any) -> Any:
    """A cell as JSON can hold it: dates as text, and no number for what is none."""
    if isinstance(cell, float) and not isfinite(cell):
        return None
    return msgspec.to_builtins(cell)
