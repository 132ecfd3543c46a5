"""Read and write entities and types: JSON, and CSV with one row per entity.

In CSV, an apostrophe is put before a cell that a spreadsheet would run as a formula, and before text that would be read
as another type: `12`, `true`, empty text, text that starts with an apostrophe. Reading removes it, so that an export
can be imported without loss.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.options import worded
from groundswell.experiments.simulations.catalogue import Catalogue, new_entity_id, new_type_id
from groundswell.experiments.simulations.entities import Dimension, Entity, EntityType, Value
from groundswell.store.tables import csv_records, csv_text, guarded

T = TypeVar("T")
Format = Literal["json", "csv"]
COLUMNS = ("id", "entity_type_id", "name", "description", "model")
PREFIX = "attributes."
"""Prefix of an attribute column whose name clashes with one of the other columns."""
DELIMITERS = (",", ";", "\t")
WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,15})")
NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
TRUTHS = {"true": True, "false": False, "yes": True, "no": False}
"""Accepted spellings of a boolean dimension."""
MISTAKEN = {
    **dict.fromkeys(("type", "typ", "typeid", "entitytype", "entitytypeid"), "entity_type_id"),
    **dict.fromkeys(("desc", "descr", "description"), "description"),
    **dict.fromkeys(("id", "ids", "entityid"), "id"),
    **dict.fromkeys(("model", "models"), "model"),
    "name": "name",
}
"""Column names that are probably misspelt fields. An attribute with such a name needs the prefix."""
MOST_TOLD = 5
"""Maximum number of invalid rows listed in an error."""


class Loaded(NamedTuple):
    """The contents of a file."""

    types: list[EntityType]
    entities: list[Entity]


def write_json(types: Iterable[EntityType], entities: Iterable[Entity]) -> str:
    """Types and entities as one object."""
    held = {"entity_types": list(types), "entities": list(entities)}
    return msgspec.json.format(msgspec.json.encode(held), indent=2).decode() + "\n"


def write_csv(entities: Sequence[Entity]) -> str:
    """Entities as a table with one column per attribute. Types are not included."""
    names = list(dict.fromkeys(name for entity in entities for name in entity.attributes))
    header = [*COLUMNS, *(_text_cell(_column(name)) for name in names)]
    return csv_text(header, (_cells(entity, names) for entity in entities))


def _cells(entity: Entity, attributes: Sequence[str]) -> list[Value | None]:
    own = (entity.id, entity.entity_type_id, entity.name, entity.description, entity.model)
    texts = [None if text is None else _text_cell(text) for text in own]
    return [*texts, *(_cell(entity.attributes.get(name)) for name in attributes)]


def read_json(text: str, source: str) -> Loaded:
    """Read `{"entity_types": [...], "entities": [...]}`, or a list of entities."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise SettingsError(f"{source}: not valid JSON: {error}") from error
    return read_data(found, source)


def read_data(found: Any, source: str, new_id: Callable[[], str] = new_entity_id) -> Loaded:
    """The same, from decoded data. `new_id` makes ids for entities without one, and is called for every entity."""
    if isinstance(found, list):
        found = {"entities": found}
    if not isinstance(found, dict):
        raise SettingsError(f'{source}: must be {{"entity_types": [...], "entities": [...]}}, or a list of entities')
    _refuse_unknown(found, ("entity_types", "entities"), source)
    types = [
        _type(each, f"{source}: entity_types[{at}]") for at, each in enumerate(_list(found, "entity_types", source))
    ]
    entities = [
        _entity(each, f"{source}: entities[{at}]", new_id()) for at, each in enumerate(_list(found, "entities", source))
    ]
    return Loaded(types, entities)


def read_type(text: str, source: str, *, new: bool = True) -> EntityType:
    """Read one entity type from JSON. With `new`, a missing id is generated."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise SettingsError(f"{source}: not valid JSON: {error}") from error
    if not new and isinstance(found, dict) and "id" not in found:
        raise SettingsError(f"{source}: id is missing; give the id of the type to change", field="id")
    return _type(found, source)


def read_csv(
    text: str, source: str, types: Mapping[str, EntityType], new_id: Callable[[], str] = new_entity_id
) -> Loaded:
    """Read entities from CSV. Values are converted by the dimensions of their type, or by what they look like."""
    text = text.removeprefix("\ufeff")
    # Rows are numbered from 1, as in a spreadsheet; empty rows are skipped.
    records = enumerate(_records(text, source, _delimiter(text, source)), start=1)
    rows = ((number, row) for number, row in records if any(row))
    header = next(rows, (0, []))[1]
    places = _places(header, source)
    entities: list[Entity] = []
    problems: list[SettingsError] = []
    for number, row in rows:
        try:
            entities.append(_read_row(places, row, types, f"row {number}", new_id()))
        except SettingsError as error:
            problems.append(error)
    if problems:
        raise _told(problems, source)
    return Loaded([], entities)


def _told(problems: Sequence[SettingsError], source: str) -> SettingsError:
    """One error for all invalid rows: the first ones, and how many more there are."""
    if len(problems) == 1:
        return SettingsError(f"{source}, {problems[0]}", field=problems[0].field)
    lines = [f"{source}: {len(problems):,} rows are invalid", *map(str, problems[:MOST_TOLD])]
    if len(problems) > MOST_TOLD:
        lines.append(f"and {len(problems) - MOST_TOLD:,} more")
    return SettingsError("\n  ".join(lines))


def read(text: str, form: Format, source: str, catalogue: Catalogue) -> Loaded:
    """Read a file, given the types in the store."""
    if form == "json":
        return read_json(text, source)
    return read_csv(text, source, {type_.id: type_ for type_ in catalogue.types()})


def format_of(name: str) -> Format | None:
    """The format of a file, by its extension."""
    ending = name.lower().rpartition(".")[2]
    return "json" if ending == "json" else "csv" if ending == "csv" else None


def _list(found: Mapping[str, Any], field: str, source: str) -> list[Any]:
    held = found.get(field, [])
    if not isinstance(held, list):
        raise SettingsError(f"{source}: {field}: must be a list")
    return held


def _type(given: Any, where: str) -> EntityType:
    if not isinstance(given, dict):
        raise SettingsError(f"{where}: must be an object")
    _refuse_unknown(given, EntityType.__struct_fields__, where)
    dimensions = given.get("dimensions")
    for at, dimension in enumerate(dimensions if isinstance(dimensions, list) else ()):
        if isinstance(dimension, dict):
            _refuse_unknown(dimension, Dimension.__struct_fields__, f"{where}: dimensions[{at}]")
    return _made({"id": new_type_id(), **given}, EntityType, where)


def _entity(given: Any, where: str, new_id: str) -> Entity:
    if not isinstance(given, dict):
        raise SettingsError(f"{where}: must be an object")
    _refuse_unknown(given, Entity.__struct_fields__, where)
    return _made({"id": new_id, **given}, Entity, where)


def _made(given: dict[str, Any], wanted: type[T], where: str) -> T:
    try:
        return msgspec.convert(given, wanted)
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}", field=error.field) from error
    except msgspec.ValidationError as error:
        raise SettingsError(f"{where}: {worded(error, wanted)}") from error


def _refuse_unknown(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Raise `SettingsError` for an unknown field: a misspelt one would be lost silently."""
    if strange := [name for name in given if name not in known]:
        raise SettingsError(f"{where}: unknown field {strange[0]!r}; allowed are {', '.join(known)}")


def _records(text: str, source: str, delimiter: str) -> Iterator[list[str]]:
    return (record for _, record in csv_records(io.StringIO(text, newline=""), source, delimiter))


def _delimiter(text: str, source: str) -> str:
    """The delimiter: a comma, unless only a semicolon or a tab gives a column `name`."""
    fitting = (each for each in DELIMITERS if "name" in next(_records(text, source, each), ()))
    return next(fitting, DELIMITERS[0])


def _places(header: Sequence[str], source: str) -> list[str]:
    """The columns: a field of entities, or `attributes.` and the name of an attribute."""
    for column in map(_text, header):
        if column not in COLUMNS and (meant := _meant(column)) is not None:
            other = f"; for an attribute of this name, use {PREFIX}{column}" if meant != "name" else ""
            raise SettingsError(f"{source}, row 1: column {column!r} must be called {meant}{other}")
    if "name" not in header:
        raise SettingsError(
            f"{source}, row 1: the column 'name' is missing; allowed are {', '.join(COLUMNS)} and attributes"
        )
    places: dict[str, None] = {}
    for at, cell in enumerate(header, start=1):
        column = _text(cell)
        if not column.strip():
            raise SettingsError(f"{source}, row 1: column {at} has no name")
        place = column if column in COLUMNS or column.startswith(PREFIX) else PREFIX + column
        if place in places:
            raise SettingsError(f"{source}, row 1: column {column!r} occurs twice")
        places[place] = None
    return list(places)


def _meant(column: str) -> str | None:
    """The field that a column name resembles, if any: `type`, `ID`, `Entity Type`."""
    return MISTAKEN.get(re.sub(r"[\W_]", "", column.casefold())) if not column.startswith(PREFIX) else None


def _read_row(
    places: Sequence[str], row: Sequence[str], types: Mapping[str, EntityType], where: str, new_id: str
) -> Entity:
    if len(row) != len(places):
        count = "1 cell" if len(row) == 1 else f"{len(row)} cells"
        raise SettingsError(f"{where}: {count}, but the header has {len(places)} columns")
    cells = dict(zip(places, row, strict=True))
    if not cells["name"].strip():
        raise SettingsError(f"{where}, column 'name': is empty", field="name")
    return _entity_in(cells, types, where, new_id)


def _entity_in(cells: Mapping[str, str], types: Mapping[str, EntityType], where: str, new_id: str) -> Entity:
    own = {name: _text(cells[name]) for name in COLUMNS if cells.get(name)}
    wanted = own.get("entity_type_id")
    if wanted is not None and wanted not in types:
        raise SettingsError(
            f"{where}, column 'entity_type_id': no entity type {wanted!r}; add it first",
            field="entity_type_id",
        )
    type_ = None if wanted is None else types[wanted]
    attributes: dict[str, Value] = {}
    for column, cell in cells.items():
        if column not in COLUMNS and cell:
            name = column.removeprefix(PREFIX)
            attributes[name] = value_of(cell, type_.dimension(name) if type_ is not None else None)
            _check_value(type_, name, attributes[name], f"{where}, column {name!r}")
    return _made({"id": new_id, **own, "attributes": attributes}, Entity, where)


def _check_value(type_: EntityType | None, name: str, value: Value, where: str) -> None:
    if type_ is None:
        return
    try:
        type_.check({name: value})
    except SettingsError as error:
        problem = str(error).removeprefix(f"attributes.{name}: ")
        raise SettingsError(f"{where}: {problem}", field=error.field) from error


def _column(name: str) -> str:
    return PREFIX + name if _meant(name) is not None or name.startswith(PREFIX) else name


def _cell(value: Value | None) -> Value | None:
    """A value as a cell; text that would be read as another type gets an apostrophe."""
    if isinstance(value, str) and not (value and _plain(value) and isinstance(_guessed(value), str)):
        return f"'{value}"
    return value


def value_of(cell: str, dimension: Dimension | None) -> Value:
    """The value of a cell, by its dimension, or by what it looks like."""
    if dimension is not None and dimension.type in ("categorical", "text"):
        return _unmarked(cell)
    if dimension is not None and dimension.type == "boolean" and cell.lower() in TRUTHS:
        return TRUTHS[cell.lower()]
    bare = _unmarked(cell)
    return bare if bare != cell else _guessed(cell)


def _unmarked(cell: str) -> str:
    """A cell without the apostrophe that `_cell` added."""
    rest = cell[1:]
    marked = cell.startswith("'") and not (rest and _plain(rest) and isinstance(_guessed(rest), str))
    return rest if marked else cell


def _guessed(text: str) -> Value:
    """A boolean, integer or number if the text looks like one; otherwise text. `007` is text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if WHOLE.fullmatch(text) and abs(int(text)) <= 2**53:
        return int(text)
    if NUMBER.fullmatch(text) and ("." in text or "e" in text.lower()) and abs(float(text)) <= 1e308:
        return float(text)
    return text


def _text_cell(text: str) -> str:
    """A cell of a column that only holds text."""
    return text if _plain(text) else f"'{text}"


def _text(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and not _plain(cell[1:]) else cell


def _plain(text: str) -> bool:
    """Whether text needs no apostrophe: not a formula or signed number, and no leading apostrophe."""
    return guarded(text) == text and not text.startswith(("'", "+", "-"))
