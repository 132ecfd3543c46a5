"""Rows to files. JSON and CSV are written as they come; Parquet is gathered first, since it is written by columns.

So Parquet needs memory for the text of all interactions, some 50 MB for 10,000 of five messages.
"""

from __future__ import annotations

import csv
from typing import IO, Any, Protocol

import msgspec

from groundswell.experiments.secret_game.report.rows import COLUMNS, Row, flat
from groundswell.store.export import guarded


class Taker(Protocol):
    """Something that takes rows, and is told when there are no more."""

    def take(self, row: Row) -> None: ...
    def close(self) -> None: ...


class AsJson:
    """One array, a line for each row."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._before = b"[\n"
        self._encode = msgspec.json.Encoder().encode

    def take(self, row: Row) -> None:
        """Write a row."""
        self._out.write(self._before + self._encode(row))
        self._before = b",\n"

    def close(self) -> None:
        """End the array."""
        self._out.write(b"[]\n" if self._before == b"[\n" else b"\n]\n")


class AsCsv:
    """A table with a head. Cells that a spreadsheet would run are guarded."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._writer = csv.writer(self)
        self._writer.writerow(COLUMNS)

    def write(self, text: str) -> int:
        """What csv calls with every line."""
        return self._out.write(text.encode())

    def take(self, row: Row) -> None:
        """Write a row."""
        self._writer.writerow([_cell(value) for value in flat(row).values()])

    def close(self) -> None:
        """There is nothing left to write."""


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return guarded(value) if isinstance(value, str) else value


class AsParquet:
    """Columns with their types."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}

    def take(self, row: Row) -> None:
        """Keep a row."""
        for name, value in flat(row).items():
            self._columns[name].append(value)

    def close(self) -> None:
        """Write all of them."""
        import polars

        types = {"bool": polars.Boolean, "int": polars.Int64, "float": polars.Float64}
        schema = {name: types.get(kind, polars.String) for name, kind in COLUMNS.items()}
        polars.DataFrame(self._columns, schema=schema).write_parquet(self._out)


FORMATS: dict[str, type[AsJson | AsCsv | AsParquet]] = {
    "interactions.json": AsJson,
    "interactions.csv": AsCsv,
    "interactions.parquet": AsParquet,
}
