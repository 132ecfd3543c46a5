"""Terminal output for entities and entity types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from groundswell.cli import output
from groundswell.experiments.simulations.writing import Written
from groundswell.reporting import words

if TYPE_CHECKING:
    from groundswell.engine.summary import Summary
    from groundswell.experiments.simulations.entities import Dimension, Entity, EntityType, Value
    from groundswell.store.results import FaultCount

SHORT = 60
NONE_YET = """\
No entities in {store} yet. Sample some, have a model write them, or import your own:
  {sample}
  {write}
  {bring}"""


def say_what_to_do(store: str) -> None:
    """Print the commands that create entities."""
    commands = {
        "sample": "entities sample --type human --count 10",
        "write": "entities write --type human --count 10",
        "bring": "entities import FILE.csv",
    }
    output.line(NONE_YET.format(store=store, **{name: output.command(text, store) for name, text in commands.items()}))


def print_entities(entities: Sequence[Entity], total: int) -> None:
    """Print one line per entity."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in ("id", "type", "name", "attributes"):
        table.add_column(column, no_wrap=column != "attributes")
    for entity in entities:
        about = ", ".join(_pairs(entity.attributes)) or entity.description
        cells = (entity.id, entity.entity_type_id or "-", entity.name, _short(about))
        table.add_row(*(Text(words.visible(cell)) for cell in cells))
    output.print_table(table)
    if total > len(entities):
        output.say(f"Showing {len(entities):,} of {total:,}. Use --limit and --offset to see others.")


def print_entity(entity: Entity) -> None:
    """Print one entity with all its attributes."""
    output.line(f"{entity.name}  ({entity.id})", "bold")
    output.line(f"  type         {entity.entity_type_id or '-'}")
    if entity.model is not None:
        output.line(f"  model        {entity.model}")
    if entity.description:
        output.line(f"  description  {entity.description}")
    for name, value in entity.attributes.items():
        output.line(f"  {name}: {_shown(value)}")


def print_types(types: Sequence[EntityType], members: Mapping[str, int]) -> None:
    """Print one line per type, with its number of entities."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in ("id", "name"):
        table.add_column(column, no_wrap=True)
    for column in ("dimensions", "names", *(["entities"] if members else [])):
        table.add_column(column, justify="right")
    table.add_column("about")
    for type_ in types:
        counts = [len(type_.dimensions), len(type_.names), *([members[type_.id]] if members else [])]
        cells = (type_.id, type_.name, *map(str, counts), _short(type_.description))
        table.add_row(*(Text(words.visible(cell)) for cell in cells))
    output.print_table(table)


def print_type(type_: EntityType, members: int | None = None) -> None:
    """Print one type with its attributes."""
    from rich.table import Table
    from rich.text import Text

    output.line(f"{type_.name}  ({type_.id})", "bold")
    if type_.description:
        output.line(f"  {type_.description}")
    if type_.names:
        output.line(f"  {len(type_.names)} names, such as {', '.join(type_.names[:3])}")
    if members is not None:
        output.line(f"  entities: {members:,}")
    table = Table("dimension", "type", "values", "about", box=None, pad_edge=False)
    for each in type_.dimensions:
        cells = (each.name, each.type, _values(each), each.description)
        table.add_row(*(Text(words.visible(cell)) for cell in cells))
    output.print_table(table)


def print_written(summary: Summary, faults: Sequence[FaultCount], kept: int) -> None:
    """Print the result of `entities write`."""
    output.print_summary(msgspec.structs.replace(summary, analysis=None))
    output.print_missing(faults)
    if summary.analysis is not None:
        written = msgspec.convert(summary.analysis, Written)
        also = f"; {written.same_name:,} with the same name as another" if written.same_name else ""
        already = written.usable - kept
        before = f", {already:,} added earlier" if already else ""
        output.line(f"  kept    {kept:,} {'entity' if kept == 1 else 'entities'}{before}{also}")


def _values(dimension: Dimension) -> str:
    """The values of a dimension and their distribution."""
    if dimension.type == "boolean":
        share = 0.5 if dimension.true_percentage is None else dimension.true_percentage
        return f"true for {share:.0%}"
    if dimension.type == "categorical":
        return _short(", ".join(dimension.options))
    if dimension.type == "text":
        return "written by a model"
    return f"{dimension.min_value:g} to {dimension.max_value:g}, {dimension.distribution or 'uniform'}"


def _pairs(attributes: Mapping[str, Value]) -> Iterable[str]:
    return (f"{name} {_shown(value)}" for name, value in attributes.items())


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHORT else flat[: SHORT - 1] + "…"
