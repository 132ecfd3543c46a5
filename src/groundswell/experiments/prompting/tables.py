"""The table that `map` reads, and the one that it writes: the same rows with new columns.

`survey` reads a file once from end to end and tells what is in it, or what is wrong and where. `rows` reads it again.
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


def survey(path: Path, form: Format, needed: Sequence[str] = ()) -> Survey:
    """Read a table to its end. Every row must have the needed columns: those that templates and checks name."""
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
        raise SettingsError(f"{path}: there are no rows in it")
    for name, where in lacking.items():
        if name in columns:
            raise SettingsError(f"{path}, {where}: there is no {name!r} here, which other rows have")
    return Survey(Source(str(path.absolute()), form, digest, count), list(columns), nested)


def rows(source: Source, limit: int | None = None) -> Iterator[Row]:
    """The rows of a table, one by one."""
    located = read_table(Path(source.path), source.format)
    return (row for _, row in islice(located, limit))


def check_unchanged(source: Source) -> None:
    """Refuse a file that is not what it was."""
    if digest_of(Path(source.path)) != source.digest:
        raise SettingsError(
            f"{source.path} has changed since this run was started: put it back as it was, or give the command "
            "`groundswell map` again, which starts another run (replies that the cache holds are not paid for again)"
        )


def digest_of(path: Path) -> str:
    """A hash of a file."""
    digest = blake2b(digest_size=16)
    try:
        if not S_ISREG(path.stat().st_mode):
            raise SettingsError(f"{path}: this is no file that can be read again: give the path of a regular one")
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
    return digest.hexdigest()


def fingerprint_of(path: Path) -> str | None:
    """A hash of a file, or None where there is none."""
    return digest_of(path) if path.exists() else None


@contextmanager
def sheet(
    path: Path, form: Format, source: Source, columns: Sequence[str], new: Sequence[str]
) -> Iterator[Callable[[int, Row, Row], None]]:
    """A table whose file appears, in one step, when its rows are all there.

    Call what is yielded with the number of a row in the input, the row itself, and its new cells.
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
    """A writer. What models wrote is guarded against being run as a formula; the user's own cells are not."""
    every: dict[str, Kind] = dict.fromkeys((*columns, *new), "any")
    if form not in DELIMITERS:
        return table_writer(out, form, every)
    delimiter = delimiter_of(Path(source.path), form) if form == source.format else DELIMITERS[form]
    return CsvWriter(out, every, delimiter=delimiter, line_end="\n", unguarded=columns)
