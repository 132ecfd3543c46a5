"""Export batches as JSON, CSV or Parquet, one table per file.

simulations  one row per started simulation
lines        one row per line
answers      one row per answer, with the attributes of the entity and the other entities in the simulation
scores       one row per score of a judge

All have the condition, and for a study the level of each factor. For a batch, the condition is its name, so that
tables of several batches can be concatenated.

Simulations are streamed from the store to the file, except for Parquet, which is built in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, Literal, NamedTuple, get_args

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.needed import check_installed
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.reading import SINGLE, Readings, SimulationShown
from groundswell.experiments.simulations.seats import Seat, own_participants
from groundswell.experiments.simulations.simulation import Rules, distinct_names
from groundswell.store.tables import Columns, Kind, Row, write_table

Format = Literal["json", "csv", "parquet"]
Table = Literal["simulations", "lines", "answers", "scores"]

ATTRIBUTE, FACTOR = "attribute.", "factor."
DESIGN: dict[Table, Columns] = {
    "simulations": {"condition": "text"},
    "lines": {"condition": "text", "model": "text", "replicate": "int", "seat": "int"},
    "answers": {"condition": "text", "model": "text", "replicate": "int", "seat": "int", "question_type": "text"},
    "scores": {"condition": "text"},
}
"""Columns of every table, before the levels of factors and its own columns."""
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


class _Part(msgspec.Struct):
    """The part of a condition's settings that tables need."""

    rules: Rules
    name: str = ""
    levels: dict[str, str] = {}
    seats: tuple[Seat, ...] = ()


class _Settings(_Part):
    """The same of a batch."""

    entities: tuple[Entity, ...] = ()
    conditions: tuple[_Part, ...] = ()

    @property
    def everybody(self) -> tuple[Entity, ...]:
        """The entities, and participants that are not among them."""
        return (*self.entities, *own_participants([self.seats, *(each.seats for each in self.conditions)]))


class _Alone(msgspec.Struct):
    """The same of a single simulation."""

    simulation: _Settings
    name: str = ""


def source_of(record: RunRecord, table: Table) -> Source:
    """The columns of a table of a run, and its rows for each simulation."""
    batch = _settings(record)
    known = {entity.id: entity for entity in batch.everybody}
    conditions = {each.name: each for each in batch.conditions}
    factors: dict[str, Kind] = {f"{FACTOR}{factor}": "text" for each in batch.conditions[:1] for factor in each.levels}
    types = {each.id: each.type for each in batch.rules.questions}
    own, rows = _own(table, known)

    def with_design(simulation: SimulationShown) -> Iterator[Row]:
        part = conditions[simulation.metadata["condition"]] if conditions else batch
        about: dict[str, Any] = {"condition": part.name} | {
            f"{FACTOR}{name}": level for name, level in part.levels.items()
        }
        for row in rows(simulation):
            more: dict[str, Any] = {}
            if table in ("lines", "answers"):
                place = simulation.entity_ids.index(row["entity_id"])
                more["model"] = simulation.metadata["models"][place]
                more |= {"replicate": simulation.metadata["replicate"], "seat": place + 1}
            if table == "answers":
                more["question_type"] = types.get(row["question"])
                if part.rules.method == "narrator":  # the narrator does not answer
                    more["model"] = known[row["entity_id"]].model or part.rules.model
            yield {**about, **more, **row}

    return Source({**DESIGN[table], **factors, **own}, with_design)


def _own(table: Table, known: Mapping[str, Entity]) -> tuple[Columns, Callable[[SimulationShown], Iterator[Row]]]:
    """The columns of a table without those of the design, and its rows for each simulation."""
    if table == "simulations":
        return SIMULATIONS, lambda simulation: _simulation_rows(simulation, known)
    if table == "lines":
        return LINES, _line_rows
    if table == "scores":
        return SCORES, _score_rows
    names = dict.fromkeys(f"{ATTRIBUTE}{name}" for entity in known.values() for name in entity.attributes)
    attributes: dict[str, Kind] = dict.fromkeys(names, "any")
    return {**WHO, **attributes, **ANSWERS}, lambda simulation: _answer_rows(simulation, known, tuple(attributes))


def _settings(record: RunRecord) -> _Settings:
    assert record.settings is not None
    if record.driver != SINGLE:
        return msgspec.json.decode(record.settings, type=_Settings)
    alone = msgspec.json.decode(record.settings, type=_Alone)
    return msgspec.structs.replace(alone.simulation, name=alone.name)


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
