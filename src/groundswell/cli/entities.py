"""`groundswell entities`: add, sample, write, import and export the entities of simulations."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from groundswell.cli import entity_types, entity_writing, output
from groundswell.cli import entity_views as views
from groundswell.cli.catalogued import catalogue_of, is_there, text_of
from groundswell.cli.commands import Group
from groundswell.cli.options import StoreFlags
from groundswell.errors import Conflict, SettingsError
from groundswell.experiments.options import Flag

if TYPE_CHECKING:
    from groundswell.experiments.simulations.entities import Entity, EntityType, Value

Id = Annotated[str, Meta(description="Id of an entity."), Flag(argument=True, metavar="ID")]
TypeOrTemplate = Annotated[
    str,
    Meta(
        description="Id of an entity type, or name of a template. If you name a template, it is added to the "
        "store as an entity type."
    ),
    Flag(long="--type", metavar="ID"),
]
OfType = Annotated[str | None, Meta(description="Only entities of this type."), Flag(long="--type", metavar="ID")]
Limit = Annotated[int, Meta(ge=1, description="Maximum number of entities to show."), Flag(metavar="N")]
Offset = Annotated[int, Meta(ge=0, description="Number of entities to skip."), Flag(metavar="N")]


class FileFormat(StrEnum):
    """Format of a file of entities."""

    JSON = "json"
    CSV = "csv"


class Taken(StrEnum):
    """What to do about an id that already exists."""

    ERROR = "error"
    SKIP = "skip"
    REPLACE = "replace"


Form = Annotated[
    FileFormat | None,
    Meta(description="Format of the file. Default: by its extension."),
    Flag(long="--format"),
]

app = Group("entities", "Create, list, import and export the entities of simulations.")
app.add_command(entity_types.app)


@app.add("list")
def list_entities(flags: StoreFlags, *, of_type: OfType = None, limit: Limit = 50, offset: Offset = 0) -> None:
    """List entities, in the order in which they were added."""
    found: list[Entity] = []
    total = 0
    if is_there(flags.store):
        with catalogue_of(flags.store) as catalogue:
            found = catalogue.entities(limit, offset, of_type)
            total = catalogue.count_entities(of_type)
    if flags.json:
        output.print_json({"total": total, "entities": found})
    elif total:
        views.print_entities(found, total)
    elif of_type is not None and is_there(flags.store):
        with catalogue_of(flags.store) as catalogue:
            catalogue.type(of_type)  # an unknown type is an error
        output.line(f"No entities of type {of_type} in {flags.store}.")
    else:
        views.say_what_to_do(flags.store)


@app.add()
def show(flags: StoreFlags, entity: Id) -> None:
    """Show an entity with all its attributes."""
    with catalogue_of(flags.store) as catalogue:
        found = catalogue.entity(entity)
    if flags.json:
        output.print_json(found)
    else:
        views.print_entity(found)


@app.add()
def add(
    flags: StoreFlags,
    *,
    name: Annotated[str, Meta(description="Name of the entity.")],
    description: Annotated[str, Meta(description="Description of the entity, in one or two sentences.")] = "",
    of_type: Annotated[
        str | None,
        Meta(description="Id of its entity type, or name of a template."),
        Flag(long="--type", metavar="ID"),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        Meta(description="Attribute, such as age=34. Can be repeated."),
        Flag(metavar="NAME=VALUE"),
    ] = None,
    model: Annotated[
        str | None,
        Meta(description="Model that speaks for it. Default: the model of the simulation."),
        Flag(metavar="MODEL"),
    ] = None,
    new_id: Annotated[
        str | None,
        Meta(description="Id of the entity. Default: a generated id."),
        Flag(long="--id"),
    ] = None,
) -> None:
    """Add one entity."""
    from groundswell.experiments.simulations.catalogue import new_entity_id
    from groundswell.experiments.simulations.entities import Entity

    with catalogue_of(flags.store, make=True) as catalogue:
        type_ = None if of_type is None else catalogue.type_named(of_type)
        attributes = _attributes(attribute or (), type_)
        made = Entity(new_id or new_entity_id(), name, description, attributes, of_type, model)
        [added] = catalogue.add_entities(made)
        count = len(catalogue.implausible([added]))
    if flags.json:
        output.print_json(added)
    else:
        output.line(f"Added {added.name} with the id {added.id}.")
        views.say_implausible(count)


def _attributes(given: Sequence[str], type_: EntityType | None) -> dict[str, Value]:
    from groundswell.experiments.simulations.files import value_of

    found: dict[str, Value] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise SettingsError(f"--attribute {each}: write it as NAME=VALUE")
        found[name] = value_of(value, None if type_ is None else type_.dimension(name))
    return found


@app.add()
def sample(
    flags: StoreFlags,
    *,
    of_type: TypeOrTemplate,
    count: Annotated[int, Meta(ge=1, description="Number of entities."), Flag(metavar="N")] = 10,
    seed: Annotated[int, Meta(description="Seed of the random draw. The same seed gives the same entities.")] = 0,
    first: Annotated[
        int,
        Meta(
            ge=1,
            description="Number of the first entity to sample. For example, --first 11 continues a sample of ten "
            "entities.",
        ),
        Flag(metavar="N"),
    ] = 1,
) -> None:
    """Sample entities from the distributions of their type. No model is used, so text attributes stay empty."""
    from groundswell.experiments.simulations.sampling import first_free
    from groundswell.experiments.simulations.sampling import sample as drawn

    with catalogue_of(flags.store, make=True) as catalogue:
        type_ = catalogue.type_named(of_type)
        try:
            added = catalogue.add_entities(*drawn(type_, count, seed, first))
        except Conflict as error:
            free = first_free(type_, count, seed, first, catalogue.taken)
            other = f"use another --seed, or continue with --first {free}"
            raise Conflict(f"some of these entities were sampled before; {other} ({error})") from error
    if flags.json:
        output.print_json({"total": len(added), "entities": added})
    else:
        views.print_entities(added[:20], len(added[:20]))
        output.say(f"Added {len(added):,} {'entity' if len(added) == 1 else 'entities'} of type {of_type}.")


@app.add("import")
def import_file(
    flags: StoreFlags,
    file: Annotated[Path, Meta(description="JSON or CSV file."), Flag(argument=True, metavar="FILE")],
    survey: entity_types.SurveyFlags,
    *,
    form: Form = None,
    on_conflict: Annotated[
        Taken,
        Meta(description="What to do if an id already exists: stop with an error, skip them or replace them."),
        Flag(usual=True),
    ] = Taken.ERROR,
    microdata: Annotated[
        bool,
        Meta(
            description="The file is CSV with one row per respondent of a survey. Adds an entity type with the columns "
            "as dimensions, and the respondents as its entities."
        ),
        Flag(group=entity_types.SURVEY, usual=True),
    ] = False,
    count: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="With --microdata: draw N respondents, with replacement and with probabilities proportional "
            "to their weights. Default: each respondent once.",
        ),
        Flag(metavar="N", group=entity_types.SURVEY, usual=True),
    ] = None,
    seed: Annotated[
        int,
        Meta(description="With --microdata: seed of the draw and of the names."),
        Flag(metavar="N", group=entity_types.SURVEY),
    ] = 0,
    type_id: Annotated[
        str | None,
        Meta(description="With --microdata: id of the new entity type. Default: the name of the file."),
        Flag(long="--type", metavar="ID", group=entity_types.SURVEY),
    ] = None,
) -> None:
    """Import entities from a file, and from JSON also entity types. If one of them cannot be imported, none are."""
    from groundswell.experiments.simulations.files import Loaded, read
    from groundswell.experiments.simulations.microdata import draw

    if not microdata and (seed or count or type_id or survey != entity_types.SurveyFlags()):
        raise SettingsError("options for survey data need --microdata")
    if survey.weight is not None and count is None:
        raise SettingsError("--weight: give --count too, the number of respondents to draw")
    data = survey.read(file, type_id) if microdata else None
    with catalogue_of(flags.store, make=True) as catalogue:
        if data is None:
            loaded = read(text_of(file), _format(str(file), form).value, str(file), catalogue)
        else:
            known = catalogue.types_by_id([data.type.id]).get(data.type.id) == data.type
            loaded = Loaded([] if known else [data.type], draw(data, count, seed))
        try:
            brought = catalogue.bring(*loaded, on_conflict.value)
        except Conflict as error:
            raise Conflict(f"{file}: {error} (use --on-conflict skip or replace)") from error
    if flags.json:
        output.print_json(brought)
        return
    also = output._also(replaced=brought.replaced, skipped=brought.skipped)
    types = brought.types_added + brought.types_replaced
    output.line(
        f"{brought.added:,} entities added{also}"
        + (f"; {types:,} {'type' if types == 1 else 'types'} added or replaced" if types else "")
    )
    views.say_implausible(brought.implausible)


@app.add()
def export(
    flags: StoreFlags,
    file: Annotated[
        str,
        Meta(description="JSON or CSV file, or - for standard output."),
        Flag(argument=True, metavar="FILE"),
    ],
    *,
    form: Form = None,
    of_type: OfType = None,
) -> None:
    """Export entities to a file: JSON with their types, or CSV with one row per entity."""
    if file == "-" and flags.json:
        raise SettingsError(
            "--json cannot be combined with FILE -, because both write to standard output; give a file name"
        )
    from groundswell.experiments.simulations.files import write_csv, write_json

    wanted = _format(file, form)
    with catalogue_of(flags.store) as catalogue:
        types = catalogue.types() if of_type is None else [catalogue.type(of_type)]
        entities = catalogue.entities(entity_type_id=of_type)
    text = write_csv(entities) if wanted is FileFormat.CSV else write_json(types, entities)
    if file == "-":
        output.Shown(json=wanted is FileFormat.JSON).write(text.encode())
        return
    _write_to(Path(file), text)
    if flags.json:
        held = 0 if wanted is FileFormat.CSV else len(types)
        output.print_json({"output": file, "format": wanted.value, "entities": len(entities), "types": held})
    else:
        output.say(f"Wrote {len(entities):,} entities to {file}.")


@app.add()
def delete(
    flags: StoreFlags,
    ids: Annotated[list[str], Meta(description="Ids of the entities."), Flag(argument=True, metavar="ID...")],
    *,
    yes: entity_types.Yes = False,
) -> None:
    """Delete entities. Simulations that used them keep their copies."""
    with catalogue_of(flags.store) as catalogue:
        catalogue.check_there(ids)
    if not yes:
        what = ids[0] if len(ids) == 1 else f"{len(ids)} entities"
        output.confirm(f"Delete {what}?")
    with catalogue_of(flags.store) as catalogue:
        count = catalogue.delete_entity(*ids)
    if flags.json:
        output.print_json({"deleted": count})
    else:
        output.line(f"Deleted {count:,} {'entity' if count == 1 else 'entities'}.")


@app.add()
def check(
    flags: StoreFlags,
    ids: Annotated[
        list[str] | None,
        Meta(description="Ids of entities. Default: all entities."),
        Flag(argument=True, metavar="[ID...]"),
    ] = None,
    *,
    of_type: OfType = None,
) -> None:
    """List implausible entities and why they are, by the checks of their types."""
    with catalogue_of(flags.store) as catalogue:
        if ids:
            catalogue.check_there(ids)
        found = catalogue.many(ids) if ids else catalogue.entities(entity_type_id=of_type)
        if of_type is not None:
            catalogue.type(of_type)  # an unknown type is an error
            found = [each for each in found if each.entity_type_id == of_type]
        reasons = catalogue.implausible(found)
    names = {each.id: each.name for each in found}
    if flags.json:
        listed = [{"id": id_, "name": names[id_], "reasons": why} for id_, why in reasons.items()]
        output.print_json({"checked": len(found), "implausible": listed})
    else:
        views.print_check(reasons, names, len(found))


app.add("write")(entity_writing.write)
app.add("keep")(entity_writing.keep)


@app.add("templates")
def list_templates(
    name: Annotated[
        str | None,
        Meta(description="Template to show with its attributes. Default: list all templates."),
        Flag(argument=True, metavar="NAME"),
    ] = None,
    json: Annotated[bool, Meta(description="Print one JSON object on standard output.")] = False,
) -> None:
    """Show the built-in entity types."""
    from groundswell.experiments.simulations.templates import template, templates

    if json:
        output.print_json({"templates": templates()} if name is None else template(name))
    elif name is None:
        views.print_types(templates(), {})
    else:
        views.print_type(template(name))


def _format(name: str, given: FileFormat | None) -> FileFormat:
    from groundswell.experiments.simulations.files import format_of

    found = given.value if given is not None else format_of(name)
    if found is None:
        raise SettingsError(f"{name}: unknown file extension; add --format json or --format csv")
    return FileFormat(found)


def _write_to(file: Path, text: str) -> None:
    """Write a file that appears only once it is complete."""
    from groundswell.store.atomic import beside

    try:
        with beside(file) as out:
            out.write(text.encode())
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror or error}") from error
