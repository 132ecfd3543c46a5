"""Rows to files: JSON, CSV and Parquet with the same rows, whatever their columns.

JSON and CSV are written as they come; Parquet is gathered first, since it is written by columns. So it needs memory for
all of them: some 50 MB for 10,000 conversations of five messages.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import msgspec

from groundswell.store.atomic import replacing
from groundswell.store.tables import guarded, write_parquet_frame

Kind = Literal["text", "int", "float", "bool", "list", "json", "any"]
"""What a column holds. `list`: texts. `json`: anything, as JSON text in tables. `any`: as narrow a type as its values
have, and text where they differ."""
Columns = Mapping[str, Kind]
Row = dict[str, Any]
Flat = Callable[[Row], Row]
"""How a row goes into a table, where that differs from how it goes into JSON."""

BETWEEN = "; "


class Taker(Protocol):
    """Something that takes rows, and is told when there are no more."""

    def take(self, row: Row) -> None: ...
    def close(self) -> None: ...


def unchanged(row: Row) -> Row:
    """A row that goes into tables as it is."""
    return row


class AsJson:
    """One array, a line for each row."""

    def __init__(self, out: IO[bytes], columns: Columns, flat: Flat = unchanged) -> None:
        self._out, self._before = out, b"[\n"
        self._encode = msgspec.json.Encoder().encode

    def take(self, row: Row) -> None:
        """Write a row."""
        self._out.write(self._before + self._encode(row))
        self._before = b",\n"

    def close(self) -> None:
        """End the array."""
        self._out.write(b"[]\n" if self._before == b"[\n" else b"\n]\n")


class AsCsv:
    """A table with a head, as RFC 4180 has it. Cells that a spreadsheet would run are guarded."""

    def __init__(self, out: IO[bytes], columns: Columns, flat: Flat = unchanged) -> None:
        self._out, self._columns, self._flat = out, columns, flat
        self._writer = csv.writer(self)
        self._writer.writerow([guarded(name) for name in columns])

    def write(self, text: str) -> int:
        """What csv calls with every line."""
        return self._out.write(text.encode())

    def take(self, row: Row) -> None:
        """Write a row."""
        flat = self._flat(row)
        self._writer.writerow([_cell(_told(flat[name], kind)) for name, kind in self._columns.items()])

    def close(self) -> None:
        """There is nothing left to write."""


class AsParquet:
    """Columns with their types; lists are lists."""

    def __init__(self, out: IO[bytes], columns: Columns, flat: Flat = unchanged) -> None:
        self._out, self._kinds, self._flat = out, columns, flat
        self._columns: dict[str, list[Any]] = {name: [] for name in columns}

    def take(self, row: Row) -> None:
        """Keep a row."""
        flat = self._flat(row)
        for name, values in self._columns.items():
            values.append(_told(flat[name], self._kinds[name]))

    def close(self) -> None:
        """Write all of them."""
        import polars

        types = {
            "bool": polars.Boolean,
            "int": polars.Int64,
            "float": polars.Float64,
            "list": polars.List(polars.String),
        }
        schema: dict[str, Any] = {}
        for name, values in self._columns.items():
            kind = _narrowest(values) if self._kinds[name] == "any" else self._kinds[name]
            if self._kinds[name] == "any":
                self._columns[name] = [_in_column(value, kind) for value in values]
            schema[name] = types.get(kind, polars.String)
        write_parquet_frame(polars.DataFrame(self._columns, schema=schema), self._out)


FORMATS: Mapping[str, type[AsJson | AsCsv | AsParquet]] = {"json": AsJson, "csv": AsCsv, "parquet": AsParquet}


@contextmanager
def tables(folder: Path, name: str, columns: Columns, flat: Flat = unchanged) -> Iterator[Callable[[Row], None]]:
    """The same rows in every format, `name`.json and so on: what is yielded takes them one by one.

    Files are there whole or not at all; those that are there already stay as they are until the end.
    """
    with ExitStack() as stack:
        outs = [stack.enter_context(replacing(path)) for path in paths(folder, name)]
        takers = [form(out, columns, flat) for form, out in zip(FORMATS.values(), outs, strict=True)]

        def take(row: Row) -> None:
            for taker in takers:
                taker.take(row)

        yield take
        for taker in takers:
            taker.close()


def paths(folder: Path, name: str) -> list[Path]:
    """The files that `tables` writes."""
    return [folder / f"{name}.{suffix}" for suffix in FORMATS]


def _told(value: Any, kind: Kind) -> Any:
    return msgspec.json.encode(value).decode() if kind == "json" and value is not None else value


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return guarded(BETWEEN.join(value))
    return guarded(value) if isinstance(value, str) else value


def _narrowest(values: Sequence[Any]) -> Kind:
    """The type that values have in common; text where they have none."""
    types = set(map(type, values)) - {type(None)}
    if types == {bool}:
        return "bool"
    if types == {int}:
        return "int"
    return "float" if types and types <= {int, float} else "text"


def _in_column(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "text":
        return str(value).lower() if isinstance(value, bool) else str(value)
    return float(value) if kind == "float" else value
