"""Batches as files: JSON, CSV and Parquet. One table to a file, never two.

simulations  one row for each simulation that has begun
lines        one row for each utterance
answers      one row for each answer, with who else was there and the attributes of the entity that gave it

Simulations are read one by one and written as they come. Parquet is gathered first, since it is written by columns.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import IO, Any, Literal, NamedTuple, Protocol, get_args

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.reading import SINGLE, Readings, SimulationShown
from groundswell.experiments.simulations.simulation import distinct_names
from groundswell.store.export import guarded

Format = Literal["json", "csv", "parquet"]
Table = Literal["simulations", "lines", "answers"]
Kind = Literal["text", "int", "float", "bool", "list", "any"]
"""What a column holds; `any` is as narrow a type as its values have, and text where they differ."""
Row = dict[str, Any]

BETWEEN = "; "
ATTRIBUTE = "attribute."
SIMULATIONS: Mapping[str, Kind] = {
    "id": "text",
    "sequence_number": "int",
    "timestamp": "text",
    "status": "text",
    "interaction_type": "text",
    "entity_ids": "list",
    "names": "list",
    "content": "text",
    "n_turns": "int",
    "simulation_rounds": "int",
    "final_turn_number": "int",
    "method": "text",
    "style": "text",
    "replicate": "int",
    "models": "list",
    "error": "text",
}
ABOUT = ("n_turns", "simulation_rounds", "final_turn_number", "method", "style", "replicate", "models")
"""What is in the metadata of every simulation."""
LINES: Mapping[str, Kind] = {
    "simulation_id": "text",
    "sequence_number": "int",
    "round": "int",
    "turn": "int",
    "entity_id": "text",
    "name": "text",
    "speech": "text",
    "thought": "text",
    "cut": "bool",
    "overrun": "bool",
}
WHO: Mapping[str, Kind] = {
    "simulation_id": "text",
    "sequence_number": "int",
    "interaction_type": "text",
    "entity_id": "text",
    "name": "text",
    "other_ids": "list",
    "others": "list",
}
ANSWERS: Mapping[str, Kind] = {"question": "text", "before": "bool", "value": "any", "problem": "text"}


def write_export(readings: Readings, record: RunRecord, format: Format, table: Table, out: IO[bytes]) -> int:
    """Write a table of a batch, or of a simulation on its own, to a file; returns how many rows it has.

    As JSON, the table of simulations is the whole batch as the API shows it; the other tables are lists of rows.
    """
    if table not in get_args(Table):
        raise SettingsError(f"table {table!r}: there are {', '.join(get_args(Table))}", field="table")
    if format not in get_args(Format):
        raise SettingsError(f"format {format!r}: there are {', '.join(get_args(Format))}", field="format")
    if format == "parquet" and find_spec("polars") is None:
        raise SettingsError(
            "format parquet needs polars, which is not installed: pip install 'groundswell[report]', or use csv",
            field="format",
        )
    if format == "json" and table == "simulations":
        return _write_whole(readings, record, out)
    source = _source(record, table)
    taker = _TAKERS[format](out, source.columns)
    count = 0
    for simulation in readings.simulations(record):
        for row in source.rows(simulation):
            taker.take(row)
            count += 1
    taker.close()
    return count


def _write_whole(readings: Readings, record: RunRecord, out: IO[bytes]) -> int:
    """The batch, with one simulation after the other; or the simulation that is on its own, alone."""
    encode = msgspec.json.Encoder().encode
    simulations = readings.simulations(record)
    if record.driver == SINGLE:
        only = next(simulations, None)
        out.write(encode(only) + b"\n")
        return 0 if only is None else 1
    out.write(encode(readings.batch(record))[:-1] + b',"simulations":[')
    count = 0
    for simulation in simulations:
        out.write((b",\n" if count else b"\n") + encode(simulation))
        count += 1
    out.write(b"\n]}\n" if count else b"]}\n")
    return count


class _Source(NamedTuple):
    """Where the rows of a table come from."""

    columns: Mapping[str, Kind]
    rows: Callable[[SimulationShown], Iterator[Row]]


class _Entities(msgspec.Struct):
    """As much of a batch's settings as tables need."""

    entities: tuple[Entity, ...]


class _Alone(msgspec.Struct):
    """The same, of a simulation on its own."""

    simulation: _Entities


def _source(record: RunRecord, table: Table) -> _Source:
    known = {entity.id: entity for entity in _entities(record)}
    if table == "simulations":
        return _Source(SIMULATIONS, lambda simulation: _simulation_rows(simulation, known))
    if table == "lines":
        return _Source(LINES, _line_rows)
    names = dict.fromkeys(f"{ATTRIBUTE}{name}" for entity in known.values() for name in entity.attributes)
    attributes: dict[str, Kind] = dict.fromkeys(names, "any")
    return _Source(
        {**WHO, **attributes, **ANSWERS}, lambda simulation: _answer_rows(simulation, known, tuple(attributes))
    )


def _entities(record: RunRecord) -> tuple[Entity, ...]:
    assert record.settings is not None
    if record.driver == SINGLE:
        return msgspec.json.decode(record.settings, type=_Alone).simulation.entities
    return msgspec.json.decode(record.settings, type=_Entities).entities


def _simulation_rows(simulation: SimulationShown, known: Mapping[str, Entity]) -> Iterator[Row]:
    about = {name: simulation.metadata[name] for name in ABOUT}  # the rest of it is the user's, and may be called id
    about["names"] = distinct_names([known[each].name for each in simulation.entity_ids])
    yield {name: about[name] if name in about else getattr(simulation, name) for name in SIMULATIONS}


def _line_rows(simulation: SimulationShown) -> Iterator[Row]:
    for line in simulation.lines:
        yield {
            "simulation_id": simulation.id,
            "sequence_number": simulation.sequence_number,
            **{name: getattr(line, name) for name in LINES if name in line.__struct_fields__},
        }


def _answer_rows(simulation: SimulationShown, known: Mapping[str, Entity], attributes: Sequence[str]) -> Iterator[Row]:
    ids = simulation.entity_ids
    called = dict(zip(ids, distinct_names([known[each].name for each in ids]), strict=True))
    for answer in simulation.answers:
        has = known[answer.entity_id].attributes
        others = [each for each in ids if each != answer.entity_id]
        yield {
            "simulation_id": simulation.id,
            "sequence_number": simulation.sequence_number,
            "interaction_type": simulation.interaction_type,
            "entity_id": answer.entity_id,
            "name": answer.name,
            "other_ids": others,
            "others": [called[each] for each in others],
            **{name: has.get(name.removeprefix(ATTRIBUTE)) for name in attributes},
            **{name: getattr(answer, name) for name in ANSWERS},
        }


class _Taker(Protocol):
    """Something that takes rows, and is told when there are no more."""

    def take(self, row: Row) -> None: ...
    def close(self) -> None: ...


class _AsJson:
    """One array, a line for each row."""

    def __init__(self, out: IO[bytes], columns: Mapping[str, Kind]) -> None:
        self._out, self._before = out, b"[\n"
        self._encode = msgspec.json.Encoder().encode

    def take(self, row: Row) -> None:
        """Write a row."""
        self._out.write(self._before + self._encode(row))
        self._before = b",\n"

    def close(self) -> None:
        """End the array."""
        self._out.write(b"[]\n" if self._before == b"[\n" else b"\n]\n")


class _AsCsv:
    """A table with a head, as RFC 4180 has it. Cells that a spreadsheet would run are guarded."""

    def __init__(self, out: IO[bytes], columns: Mapping[str, Kind]) -> None:
        self._out = out
        self._writer = csv.writer(self)
        self._writer.writerow([guarded(name) for name in columns])

    def write(self, text: str) -> int:
        """What csv calls with every line."""
        return self._out.write(text.encode())

    def take(self, row: Row) -> None:
        """Write a row."""
        self._writer.writerow([_cell(value) for value in row.values()])

    def close(self) -> None:
        """There is nothing left to write."""


class _AsParquet:
    """Columns with their types; lists are lists."""

    def __init__(self, out: IO[bytes], columns: Mapping[str, Kind]) -> None:
        self._out, self._kinds = out, columns
        self._columns: dict[str, list[Any]] = {name: [] for name in columns}

    def take(self, row: Row) -> None:
        """Keep a row."""
        for name, value in row.items():
            self._columns[name].append(value)

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
        polars.DataFrame(self._columns, schema=schema).write_parquet(self._out)


_TAKERS: Mapping[str, Callable[[IO[bytes], Mapping[str, Kind]], _Taker]] = {
    "json": _AsJson,
    "csv": _AsCsv,
    "parquet": _AsParquet,
}


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
