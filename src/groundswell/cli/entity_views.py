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
    from groundswell.experiments.simulations.entities import Condition, Dimension, Entity, EntityType, Value
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
        names = "lists" if type_.person_names is not None and not type_.names else len(type_.names)
        counts = [len(type_.dimensions), names, *([members[type_.id]] if members else [])]
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
    if type_.person_names is not None and not type_.names:
        roles = type_.person_names
        output.line(f"  names from the built-in lists, by {' and '.join(filter(None, (roles.gender, roles.region)))}")
    if type_.names:
        output.line(f"  {len(type_.names)} names, such as {', '.join(type_.names[:3])}")
    if members is not None:
        output.line(f"  entities: {members:,}")
    depends = type_.depends_on()
    headers = ["dimension", "type", "values", *(["depends on"] if any(depends.values()) else []), "about"]
    table = Table(*headers, box=None, pad_edge=False)
    for each in type_.dimensions:
        on = [", ".join(depends[each.name])] if any(depends.values()) else []
        cells = (each.name, each.type, _values(each), *on, each.description)
        table.add_row(*(Text(words.visible(cell)) for cell in cells))
    output.print_table(table)
    for name, shares in type_.margins.items():
        output.line(words.visible(f"margin {name}: {', '.join(f'{key} {share:.1%}' for key, share in shares.items())}"))
    for check in type_.checks:
        output.line(words.visible(f"implausible: {check.reason} ({_told(check.when)}; {_told(check.never)})"))
    for source, names in _sources(type_).items():
        output.line(words.visible(f"source: {source} ({', '.join(names)})"))


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
        say_implausible(written.implausible)


def say_implausible(count: int) -> None:
    """Note how many entities are implausible, if any are."""
    if count:
        are = "1 entity is" if count == 1 else f"{count:,} entities are"
        output.say(f"{are} implausible, by the checks of the type. To list them: groundswell entities check")


def print_check(found: Mapping[str, Sequence[str]], names: Mapping[str, str], checked: int) -> None:
    """Print the implausible entities and why they are."""
    for id_, reasons in found.items():
        output.line(words.visible(f"{id_}  {names[id_]}: {'; '.join(reasons)}"))
    of = "1 entity" if checked == 1 else f"{checked:,} entities"
    output.line(f"{len(found):,} of {of} {'is' if len(found) == 1 else 'are'} implausible.")


def _sources(type_: EntityType) -> dict[str, list[str]]:
    """The sources of the figures of a type, with what has them."""
    found: dict[str, list[str]] = {}
    for each in type_.dimensions:
        for source in dict.fromkeys([each.source, *(table.source for table in each.tables)]):
            if source:
                found.setdefault(source, []).append(each.name)
    if type_.margins_source:
        found.setdefault(type_.margins_source, []).append("margins")
    return found


def _told(conditions: Mapping[str, Condition]) -> str:
    listed = {name: value if isinstance(value, tuple) else (value,) for name, value in conditions.items()}
    return ", ".join(f"{name} {' or '.join(map(_shown, values))}" for name, values in listed.items())


def _values(dimension: Dimension) -> str:
    """The values of a dimension and their distribution."""
    if dimension.type == "boolean":
        share = 0.5 if dimension.true_percentage is None else dimension.true_percentage
        return f"true for {share:.0%}"
    if dimension.type == "categorical":
        return _short(", ".join(dimension.options))
    if dimension.type == "text":
        return "written by a model"
    around = "" if dimension.mean is None else f" around {dimension.mean:g}"
    return f"{dimension.min_value:g} to {dimension.max_value:g}, {dimension.distribution or 'uniform'}{around}"


def _pairs(attributes: Mapping[str, Value]) -> Iterable[str]:
    return (f"{name} {_shown(value)}" for name, value in attributes.items())


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHORT else flat[: SHORT - 1] + "…"
