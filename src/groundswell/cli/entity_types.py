"""`groundswell entities types`: add, change, show and delete entity types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
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
    from groundswell.experiments.simulations.microdata import Microdata

TypeId = Annotated[str, Meta(description="Id of an entity type."), Flag(argument=True, metavar="ID")]
Yes = Annotated[bool, Meta(description="Do not ask for confirmation."), Flag("-y")]

SURVEY = "Survey data"


class SurveyFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How survey microdata is read."""

    codebook: Annotated[
        Path | None,
        Meta(description="TOML or JSON file with the meaning of columns and codes of survey data."),
        Flag(metavar="FILE", group=SURVEY, usual=True, completes="files"),
    ] = None
    columns: Annotated[
        tuple[str, ...],
        Meta(description="Columns of survey data to use. Default: those of the codebook, otherwise all."),
        Flag(metavar="A,B", group=SURVEY, commas=True),
    ] = ()
    weight: Annotated[
        str | None,
        Meta(description="Column with the weights of the respondents. Default: that of the codebook, otherwise none."),
        Flag(metavar="COLUMN", group=SURVEY, usual=True),
    ] = None
    name_gender: Annotated[
        str | None,
        Meta(description="Column with the gender, for names that fit: woman, female or f; man, male or m."),
        Flag(metavar="COLUMN", group=SURVEY),
    ] = None
    name_region: Annotated[
        str | None,
        Meta(description="Column with the region, or a region for all, such as 'North America', for names that fit."),
        Flag(metavar="COLUMN", group=SURVEY),
    ] = None

    def read(self, file: Path, type_id: str | None) -> Microdata:
        """The respondents of a file. Flags override the codebook."""
        from groundswell.experiments.simulations.microdata import Codebook, read_codebook, read_microdata

        book = Codebook() if self.codebook is None else read_codebook(text_of(self.codebook), str(self.codebook))
        book = book.with_flags(weight=self.weight, gender=self.name_gender, region=self.name_region)
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", file.stem).strip("-._")[:64] or "respondent"
        return read_microdata(text_of(file), str(file), type_id or slug, book, self.columns)


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


@app.add("learn")
def learn(
    flags: StoreFlags,
    file: Annotated[
        Path,
        Meta(description="CSV file with one row per respondent."),
        Flag(argument=True, metavar="FILE.csv", completes="files"),
    ],
    survey: SurveyFlags,
    *,
    new_id: Annotated[
        str | None,
        Meta(description="Id of the new type. Default: the name of the file."),
        Flag(long="--id"),
    ] = None,
) -> None:
    """Add an entity type with the distributions of survey data.

    Its dimensions are sampled independently. To keep combinations as they are in the data, use
    `groundswell entities import --microdata`.
    """
    new = survey.read(file, new_id).type
    with catalogue_of(flags.store, make=True) as catalogue:
        catalogue.add_type(new)
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
    if not type_.names and type_.person_names is None:
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
