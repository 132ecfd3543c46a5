"""The input table of `map`, and its output table: the same rows with new columns.

`survey` reads a file once and reports its contents, or what is wrong and where. `rows` reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import IO, NamedTuple

import msgspec

from groundswell.errors import SettingsError
from groundswell.store.atomic import beside
from groundswell.store.tables import (
    DELIMITERS,
    CsvWriter,
    Format,
    Kind,
    Row,
    TableWriter,
    delimiter_of,
    frame,
    read_parquet,
    read_table,
    table_writer,
    write_parquet,
)

PLAIN = (str, int, float, bool, type(None))


class Source(msgspec.Struct, frozen=True):
    """A table file: its path, format, hash and number of rows."""

    path: str
    format: Format
    digest: str
    rows: int


class Survey(NamedTuple):
    """The contents of a table. `nested` is a column with lists or objects, if there is one."""

    source: Source
    columns: list[str]
    nested: str | None


def survey(path: Path, form: Format, needed: Sequence[str] = ()) -> Survey:
    """Read a whole table. Every row must have the needed columns, which templates and checks name."""
    digest = digest_of(path)
    columns: dict[str, None] = {}
    lacking: dict[str, str] = {}
    nested, count = None, 0
    for where, row in read_table(path, form):
        count += 1
        if row.keys() != columns.keys():
            columns.update(dict.fromkeys(row))
            lacking.update({name: where for name in needed if name not in row and name not in lacking})
        if nested is None and form not in DELIMITERS:
            nested = next((name for name, cell in row.items() if not isinstance(cell, PLAIN)), None)
    if not count:
        raise SettingsError(f"{path}: the table has no rows")
    for name, where in lacking.items():
        if name in columns:
            raise SettingsError(f"{path}, {where}: column {name!r} is missing, but other rows have it")
    return Survey(Source(str(path.absolute()), form, digest, count), list(columns), nested)


def rows(source: Source, limit: int | None = None) -> Iterator[Row]:
    """The rows of a table, one by one."""
    located = read_table(Path(source.path), source.format)
    return (row for _, row in islice(located, limit))


def check_unchanged(source: Source) -> None:
    """Refuse a file that has changed."""
    if digest_of(Path(source.path)) != source.digest:
        raise SettingsError(
            f"{source.path} has changed since this run was started: restore it, or start a new run with "
            "`groundswell map` (cached replies are not paid for again)"
        )


def digest_of(path: Path) -> str:
    """A hash of a file."""
    digest = blake2b(digest_size=16)
    try:
        if not S_ISREG(path.stat().st_mode):
            raise SettingsError(f"{path}: not a regular file; the table must be read more than once")
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
    return digest.hexdigest()


def fingerprint_of(path: Path) -> str | None:
    """A hash of a file; None if it does not exist."""
    return digest_of(path) if path.exists() else None


@contextmanager
def sheet(
    path: Path, form: Format, source: Source, columns: Sequence[str], new: Sequence[str]
) -> Iterator[Callable[[int, Row, Row], None]]:
    """A table file that is written atomically when all rows are there.

    Yields a function that takes the number of the input row, the row, and its new cells.
    """
    try:
        with beside(path) as out:
            if form == source.format == "parquet":  # columns keep their types
                added: list[tuple[int, Row]] = []
                yield lambda number, row, cells: added.append((number, cells))
                given = read_parquet(Path(source.path))[[number for number, _ in added]]
                write_parquet(given.hstack(frame((cells for _, cells in added), dict.fromkeys(new, "any"))), out)
            else:
                writer = _writer(out, form, source, columns, new)
                yield lambda number, row, cells: writer.add({**row, **cells})
                writer.close()
    except OSError as error:
        raise SettingsError(f"--out {path}: {error.strerror or error}") from error


def _writer(out: IO[bytes], form: Format, source: Source, columns: Sequence[str], new: Sequence[str]) -> TableWriter:
    """A writer. Formulas in replies are escaped; the user's own cells stay unchanged."""
    every: dict[str, Kind] = dict.fromkeys((*columns, *new), "any")
    if form not in DELIMITERS:
        return table_writer(out, form, every)
    delimiter = delimiter_of(Path(source.path), form) if form == source.format else DELIMITERS[form]
    return CsvWriter(out, every, delimiter=delimiter, line_end="\n", unguarded=columns)
