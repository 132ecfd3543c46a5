"""Export batches as JSON, CSV or Parquet, one table per file.

simulations  one row per started simulation
lines        one row per line
answers      one row per answer, with the attributes of the entity and the other entities in the simulation
scores       one row per score of a judge

Simulations are streamed from the store to the file, except for Parquet, which is built in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Literal, NamedTuple, get_args

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.needed import check_installed
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.reading import SINGLE, Readings, SimulationShown
from groundswell.experiments.simulations.seats import Seat, own_participants
from groundswell.experiments.simulations.simulation import distinct_names
from groundswell.store.tables import Columns, Kind, Row, write_table

Format = Literal["json", "csv", "parquet"]
Table = Literal["simulations", "lines", "answers", "scores"]

ATTRIBUTE = "attribute."
SIMULATIONS: Columns = {
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
"""Metadata that every simulation has."""
LINES: Columns = {
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
    "group": "int",
}
WHO: Columns = {
    "simulation_id": "text",
    "sequence_number": "int",
    "interaction_type": "text",
    "entity_id": "text",
    "name": "text",
    "other_ids": "list",
    "others": "list",
}
ANSWERS: Columns = {"question": "text", "before": "bool", "value": "any", "problem": "text", "missing": "text"}


SCORES: Columns = {
    "simulation_id": "text",
    "sequence_number": "int",
    "judge": "text",
    "measure": "text",
    "entity_id": "text",
    "line": "int",
    "turn": "int",
    "value": "any",
    "missing": "text",
}


def write_export(readings: Readings, record: RunRecord, format: Format, table: Table, out: IO[bytes]) -> int:
    """Write a table of a batch or of a single simulation to a file; returns the number of rows.

    As JSON, the table `simulations` is the whole batch as the API returns it; the other tables are lists of rows.
    """
    if table not in get_args(Table):
        raise SettingsError(f"table {table!r}: must be one of {', '.join(get_args(Table))}", field="table")
    if format not in get_args(Format):
        raise SettingsError(f"format {format!r}: must be one of {', '.join(get_args(Format))}", field="format")
    if format == "parquet":
        check_installed("format parquet needs", ("polars",), field="format")
    if format == "json" and table == "simulations":
        return _write_whole(readings, record, out)
    source = source_of(record, table)
    rows = (row for simulation in readings.simulations(record) for row in source.rows(simulation))
    return write_table(out, format, rows, source.columns)


def _write_whole(readings: Readings, record: RunRecord, out: IO[bytes]) -> int:
    """Write the batch with its simulations, or the single simulation."""
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


class Source(NamedTuple):
    """The columns of a table and a function that makes its rows."""

    columns: Columns
    rows: Callable[[SimulationShown], Iterator[Row]]


class _Seats(msgspec.Struct):
    seats: tuple[Seat, ...] = ()


class _Entities(msgspec.Struct):
    """The part of a batch's settings that tables need."""

    entities: tuple[Entity, ...]
    seats: tuple[Seat, ...] = ()
    conditions: tuple[_Seats, ...] = ()

    @property
    def everybody(self) -> tuple[Entity, ...]:
        """The entities, and participants that are not among them."""
        return (*self.entities, *own_participants([self.seats, *(each.seats for each in self.conditions)]))


class _Alone(msgspec.Struct):
    """The same for a single simulation."""

    simulation: _Entities


def source_of(record: RunRecord, table: Table) -> Source:
    """The columns of a table of a run, and its rows for each simulation."""
    known = {entity.id: entity for entity in _entities(record)}
    if table == "simulations":
        return Source(SIMULATIONS, lambda simulation: _simulation_rows(simulation, known))
    if table == "lines":
        return Source(LINES, _line_rows)
    if table == "scores":
        return Source(SCORES, _score_rows)
    names = dict.fromkeys(f"{ATTRIBUTE}{name}" for entity in known.values() for name in entity.attributes)
    attributes: dict[str, Kind] = dict.fromkeys(names, "any")
    return Source(
        {**WHO, **attributes, **ANSWERS}, lambda simulation: _answer_rows(simulation, known, tuple(attributes))
    )


def _entities(record: RunRecord) -> tuple[Entity, ...]:
    assert record.settings is not None
    if record.driver == SINGLE:
        return msgspec.json.decode(record.settings, type=_Alone).simulation.entities
    return msgspec.json.decode(record.settings, type=_Entities).everybody


def _simulation_rows(simulation: SimulationShown, known: Mapping[str, Entity]) -> Iterator[Row]:
    about = {name: simulation.metadata[name] for name in ABOUT}  # other metadata is the user's and may be called id
    about["names"] = distinct_names([known[each].name for each in simulation.entity_ids])
    yield {name: about[name] if name in about else getattr(simulation, name) for name in SIMULATIONS}


def _line_rows(simulation: SimulationShown) -> Iterator[Row]:
    for line in simulation.lines:
        yield {
            "simulation_id": simulation.id,
            "sequence_number": simulation.sequence_number,
            **{name: getattr(line, name) for name in LINES if name in line.__struct_fields__},
        }


def _score_rows(simulation: SimulationShown) -> Iterator[Row]:
    for score in simulation.scores:
        about = {"simulation_id": simulation.id, "sequence_number": simulation.sequence_number}
        yield about | {name: getattr(score, name) for name in SCORES if name in score.__struct_fields__}


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
