"""`groundswell entities types`: add, change, show and delete entity types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from groundswell.cli import entity_views as views
from groundswell.cli import output
from groundswell.cli.catalogued import catalogue_of, is_there, text_of
from groundswell.cli.commands import Group
from groundswell.cli.options import StoreFlags
from groundswell.errors import Conflict, SettingsError
from groundswell.experiments.options import Flag

if TYPE_CHECKING:
    from groundswell.experiments.simulations.entities import EntityType

TypeId = Annotated[str, Meta(description="Id of an entity type."), Flag(argument=True, metavar="ID")]
Yes = Annotated[bool, Meta(description="Do not ask for confirmation."), Flag("-y")]

app = Group("types", "Manage entity types and their attributes (dimensions).")


@app.add("list")
def list_types(flags: StoreFlags) -> None:
    """List the entity types of a store."""
    types: list[EntityType] = []
    members: dict[str, int] = {}
    if is_there(flags.store):
        with catalogue_of(flags.store) as catalogue:
            types = catalogue.types()
            members = {type_.id: catalogue.count_entities(type_.id) for type_ in types}
    if flags.json:
        output.print_json({"total": len(types), "types": types, "entities": members})
    elif types:
        views.print_types(types, members)
    else:
        add = output.command("entities types add --template human", flags.store)
        output.line(f"No entity types in {flags.store} yet. Add one: {add}")


@app.add("show")
def show_type(flags: StoreFlags, entity_type: TypeId) -> None:
    """Show an entity type with its attributes."""
    with catalogue_of(flags.store) as catalogue:
        found = catalogue.type(entity_type)
        members = catalogue.count_entities(entity_type)
    if flags.json:
        output.print_json(found)
    else:
        views.print_type(found, members)


@app.add("add")
def add_type(
    flags: StoreFlags,
    file: Annotated[
        Path | None,
        Meta(description="JSON file with the entity type."),
        Flag(argument=True, metavar="FILE.json"),
    ] = None,
    *,
    template: Annotated[
        str | None, Meta(description="Add this template instead of a file."), Flag(metavar="NAME")
    ] = None,
    new_id: Annotated[
        str | None,
        Meta(description="Id of the new type. Default: the id in the file or of the template."),
        Flag(long="--id"),
    ] = None,
) -> None:
    """Add an entity type from a file or from a template."""
    import msgspec

    from groundswell.experiments.simulations import templates
    from groundswell.experiments.simulations.files import read_type

    if (file is None) == (template is None):
        raise SettingsError(
            "give either FILE.json or --template NAME; list templates with `groundswell entities templates`"
        )
    new = templates.template(template) if template is not None else read_type(text_of(file or Path()), str(file))
    if new_id is not None:
        new = msgspec.structs.replace(new, id=new_id)
    with catalogue_of(flags.store, make=True) as catalogue:
        try:
            catalogue.add_type(new)
        except Conflict as error:
            change = output.command("entities types change FILE.json", flags.store)
            raise Conflict(f"{error} (set --id, or run {change})") from error
    if flags.json:
        output.print_json(new)
    else:
        output.line(f"Added {new.name} with the id {new.id} and {_dimensions(new)}.")
        _say_names(new)


@app.add("change")
def change_type(
    flags: StoreFlags,
    file: Annotated[
        Path,
        Meta(description="JSON file with the whole entity type, including its id."),
        Flag(argument=True, metavar="FILE.json"),
    ],
) -> None:
    """Replace an entity type with the one in a file. Fails if an existing entity does not match the new type."""
    from groundswell.experiments.simulations.files import read_type

    changed = read_type(text_of(file), str(file), new=False)
    with catalogue_of(flags.store) as catalogue:
        catalogue.change_type(changed)
    if flags.json:
        output.print_json(changed)
    else:
        output.line(f"Changed {changed.id}: {changed.name}, {_dimensions(changed)}.")
        _say_names(changed)


def _dimensions(type_: EntityType) -> str:
    count = len(type_.dimensions)
    return f"{count} {'dimension' if count == 1 else 'dimensions'}"


def _say_names(type_: EntityType) -> None:
    """Warn if a type has no names for sampled entities."""
    if not type_.names:
        output.say(
            f"The type has no `names`. Sampled entities will be called {type_.name} 1, {type_.name} 2 and so on."
        )


@app.add("delete")
def delete_type(
    flags: StoreFlags,
    entity_type: TypeId,
    *,
    with_entities: Annotated[bool, Meta(description="Also delete the entities of this type.")] = False,
    yes: Yes = False,
) -> None:
    """Delete an entity type. Fails if it has entities, unless --with-entities is given."""
    with catalogue_of(flags.store) as catalogue:
        catalogue.type(entity_type)
    if not yes:
        also = " and all its entities" if with_entities else ""
        output.confirm(f"Delete entity type {entity_type}{also}?")
    with catalogue_of(flags.store) as catalogue:
        try:
            gone = catalogue.delete_type(entity_type, with_entities=with_entities)
        except SettingsError as error:
            raise SettingsError(f"{error} (--with-entities)", field=error.field) from error
    if flags.json:
        output.print_json({"deleted": entity_type, "entities": gone})
    else:
        output.line(f"Deleted entity type {entity_type}" + (f" and {gone:,} entities." if gone else "."))
