"""Request bodies for entities and entity types. A response names all errors at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from fastapi import Path, Query
from fastapi.exceptions import RequestValidationError
from pydantic import ConfigDict, Field

from groundswell.engine.options import Limits, RunOptions
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.catalogue import OnConflict, new_entity_id, new_type_id
from groundswell.experiments.simulations.entities import (
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_CHECKS,
    MOST_CONDITIONS,
    MOST_DIMENSIONS,
    MOST_MARGINS,
    MOST_OPTIONS,
    MOST_TABLES,
    MOST_VALUES,
    Check,
    Dimension,
    DimensionType,
    Distribution,
    Entity,
    EntityType,
    PersonNames,
    Table,
    Value,
)
from groundswell.experiments.simulations.templates import template
from groundswell.experiments.simulations.writing import LONGEST_WISHES, MOST_WRITTEN, Writing
from groundswell.web.requests import Body, Seed, named
from groundswell.web.settings import ServerSettings

ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
RESERVED = ("export",)
"""Reserved entity ids, since they are paths of the API."""
MOST_AT_ONCE = 1_000
"""Maximum number of entities that one request can sample."""
MOST_NAMES = 10_000

Id = Annotated[str, Field(pattern=ID, description="Id: letters, digits, dots, hyphens and underscores.")]
PathId = Annotated[str, Path(pattern=ID)]
OfType = Annotated[str | None, Query(pattern=ID, description="Return only entities of this type.")]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Model = Annotated[str | None, Field(max_length=500, description="A model, as provider/model.")]
Template = Annotated[
    str | None, Field(max_length=LONGEST_NAME, description="Name of a template; see GET /api/templates.")
]
AnySeed = Annotated[
    Seed | None, Field(description="Random seed. The same seed gives the same result. The default is a random one.")
]


class Flaws:
    """Collects the errors of a request with their places, to report them together."""

    def __init__(self) -> None:
        self._found: list[dict[str, Any]] = []

    @contextmanager
    def under(self, *place: str | int) -> Iterator[None]:
        """Collect the error that the block raises, under this place."""
        try:
            yield
        except SettingsError as error:
            field = () if error.field is None else (error.field,)
            self._found.append({"loc": ("body", *place, *field), "msg": str(error)})
        except RequestValidationError as several:
            self._found += [{**each, "loc": ("body", *place, *each["loc"][1:])} for each in several.errors()]

    def tell(self) -> None:
        """Raise the collected errors, if any."""
        if self._found:
            raise RequestValidationError(self._found)


Values = Annotated[list[Value], Field(min_length=1, max_length=MOST_VALUES)]
When = Annotated[
    dict[str, Value | Values],
    Field(
        min_length=1,
        max_length=MOST_CONDITIONS,
        description='For each dimension a value, several values, or a range of numbers such as "18..24" or "50..".',
    ),
]
Weights = Annotated[
    list[float] | None, Field(max_length=MOST_OPTIONS, description="One weight per option, for categorical.")
]
Share = Annotated[float | None, Field(description="Share of true values from 0 to 1, for boolean.")]
Low = Annotated[float | None, Field(description="Lowest value, for int and float.")]
High = Annotated[float | None, Field(description="Highest value, for int and float.")]
Curve = Annotated[Distribution | None, Field(description="Distribution, for int and float.")]
Mean = Annotated[float | None, Field(description="Mean of a normal distribution, before values outside are redrawn.")]
Deviation = Annotated[float | None, Field(gt=0, description="Standard deviation of a normal distribution.")]
Source = Annotated[Text, Field(description="Where the figures come from.")]


def _conditions(given: Mapping[str, Value | list[Value]]) -> dict[str, Value | tuple[Value, ...]]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


class TableBody(Body):
    """The distribution of a dimension where other attributes have certain values. The first table that applies is
    used. What is left out is as in the dimension."""

    when: When
    weights: Weights = None
    true_percentage: Share = None
    min_value: Low = None
    max_value: High = None
    distribution: Curve = None
    mean: Mean = None
    standard_deviation: Deviation = None
    source: Source = ""

    def made(self) -> Table:
        """The table of the catalogue."""
        weights = None if self.weights is None else tuple(self.weights)
        return Table(**{**self.model_dump(), "when": _conditions(self.when), "weights": weights})


class CheckBody(Body):
    """An implausible combination, which is not sampled: all conditions of `when` and all of `never`."""

    when: When
    never: When
    reason: Text

    def made(self) -> Check:
        """The check of the catalogue."""
        return Check(_conditions(self.when), _conditions(self.never), self.reason)


class PersonNamesBody(Body):
    """Sampled entities are people with names from the built-in lists."""

    gender: Annotated[Name | None, Field(description="Dimension with the gender.")] = None
    region: Annotated[Name | None, Field(description="Dimension with the region, or a region for all.")] = None


class DimensionBody(Body):
    """One attribute of the entities of a type, and its distribution."""

    name: Name
    type: DimensionType
    description: Text = ""
    min_value: Low = None
    max_value: High = None
    options: Annotated[
        list[Text], Field(default_factory=list, max_length=MOST_OPTIONS, description="The values, for categorical.")
    ]
    weights: Weights = None
    distribution: Curve = None
    true_percentage: Share = None
    mean: Mean = None
    standard_deviation: Deviation = None
    tables: Annotated[list[TableBody], Field(default_factory=list, max_length=MOST_TABLES)]
    source: Source = ""

    def made(self) -> Dimension:
        """The dimension of the catalogue."""
        weights = None if self.weights is None else tuple(self.weights)
        try:
            tables = tuple(table.made() for table in self.tables)
            given = {**self.model_dump(), "options": tuple(self.options), "weights": weights, "tables": tables}
            return Dimension(**given)
        except SettingsError as error:
            field = error.field if error.field in Dimension.__struct_fields__ else "name"
            raise SettingsError(str(error), field=field) from error


TYPE_EXAMPLE: dict[str, Any] = {
    "name": "Voter",
    "description": "Somebody who may vote in a small town.",
    "dimensions": [
        {"name": "age", "type": "int", "min_value": 18, "max_value": 90, "distribution": "normal"},
        {"name": "party", "type": "categorical", "options": ["left", "right", "none"], "weights": [3, 3, 1]},
        {"name": "owns a home", "type": "boolean", "true_percentage": 0.6},
        {"name": "income", "type": "float", "min_value": 0, "max_value": 250000, "distribution": "skewed"},
        {"name": "biography", "type": "text"},
    ],
    "names": ["Ana Silva", "Ben Okoro"],
}


class Described(Body):
    """The fields of an entity type other than its name."""

    id: Id | None = None
    description: Text = ""
    dimensions: Annotated[list[DimensionBody], Field(default_factory=list, max_length=MOST_DIMENSIONS)]
    names: Annotated[
        list[Name], Field(default_factory=list, max_length=MOST_NAMES, description="Names for sampled entities.")
    ]

    margins: Annotated[
        dict[str, Annotated[dict[str, float], Field(min_length=1, max_length=MOST_VALUES)]],
        Field(
            default_factory=dict,
            max_length=MOST_MARGINS,
            description="For some dimensions the share of each value, or range of numbers, among sampled entities.",
        ),
    ]
    margins_source: Source = ""
    checks: Annotated[list[CheckBody], Field(default_factory=list, max_length=MOST_CHECKS)]
    person_names: PersonNamesBody | None = None

    def type_named(self, name: str, id_: str | None) -> EntityType:
        """The entity type of the catalogue."""
        flaws = Flaws()
        dimensions: list[Dimension] = []
        for at, dimension in enumerate(self.dimensions):
            with flaws.under("dimensions", at):
                dimensions.append(dimension.made())
        flaws.tell()
        wanted = same_id(self.id, id_) or new_type_id()
        return EntityType(
            wanted,
            name,
            self.description,
            tuple(dimensions),
            tuple(self.names),
            self.margins,
            self.margins_source,
            tuple(each.made() for each in self.checks),
            None if self.person_names is None else PersonNames(**self.person_names.model_dump()),
        )


class TypeBody(Described):
    """An entity type."""

    model_config = ConfigDict(json_schema_extra={"examples": [TYPE_EXAMPLE]})

    name: Name

    def made(self, id_: str | None = None) -> EntityType:
        """The entity type of the catalogue, with the id in the path."""
        return self.type_named(self.name, id_)


class NewTypeBody(Described):
    """A new entity type, described in full or made from a template. With a template, `id` and `name` are optional."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [TYPE_EXAMPLE, {"template": "human", "id": "townspeople", "name": "Townspeople"}],
            "anyOf": [{"required": ["name"]}, {"required": ["template"]}],
        }
    )

    name: Name | None = None
    template: Template = None

    def made(self) -> EntityType:
        """The entity type of the catalogue."""
        if self.template is not None:
            return self._from(template(self.template))
        if self.name is None:
            raise SettingsError("name: give a name, or a template with `template`", field="name")
        return self.type_named(self.name, None)

    def _from(self, given: EntityType) -> EntityType:
        for field in ("description", "dimensions", "names", "margins", "margins_source", "checks", "person_names"):
            if getattr(self, field):
                said = "cannot be combined with `template`, which sets it; leave one of them out"
                raise SettingsError(f"{field}: {said}", field=field)
        return msgspec.structs.replace(given, id=self.id or given.id, name=self.name or given.name)


ENTITY_EXAMPLE: dict[str, Any] = {
    "name": "Ana Silva",
    "description": "A nurse who has lived in the valley all her life.",
    "attributes": {"age": 41, "party": "none", "owns a home": True},
    "entity_type_id": "voter",
}


class EntityBody(Body):
    """An entity. If it has a type, its attributes must fit the dimensions of the type."""

    model_config = ConfigDict(json_schema_extra={"examples": [ENTITY_EXAMPLE]})

    id: Id | None = None
    name: Name
    description: Text = ""
    attributes: Annotated[dict[str, Value], Field(default_factory=dict, max_length=MOST_DIMENSIONS)]
    entity_type_id: Id | None = None
    model: Annotated[Model, Field(description="Model that speaks for this entity.")] = None

    def made(self, id_: str | None = None) -> Entity:
        """The entity of the catalogue."""
        given = self.model_dump()
        return Entity(**{**given, "id": same_id(self.id, id_) or new_entity_id()})


class ImportBody(Body):
    """Entity types and entities, as in an export. A list of entities is accepted too."""

    entity_types: Annotated[list[TypeBody], Field(default_factory=list)]
    entities: Annotated[list[EntityBody], Field(default_factory=list)]


class MembersBody(Body):
    """The type of new entities: one of the store, or a template, whose type is added to the store if it is missing."""

    entity_type_id: Id | None = None
    template: Template = None
    seed: AnySeed = None

    def seed_or_any(self) -> int:
        """The given seed, or a random one."""
        return secrets.randbelow(2**31) if self.seed is None else self.seed

    def check(self) -> None:
        """Refuse a request that names no type or two types."""
        if (self.entity_type_id is None) == (self.template is None):
            raise SettingsError("entity_type_id: give either entity_type_id or template", field="entity_type_id")


class SampleBody(MembersBody):
    """Which entities to sample from the distributions of their type."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"template": "human", "count": 10, "seed": 7}]})

    count: Annotated[int, Field(ge=1, le=MOST_AT_ONCE, description="Number of entities.")]
    first: Annotated[
        int,
        Field(ge=1, le=10**9, description="Number of the first entity. To continue after ten entities, use 11."),
    ] = 1


class GenerateBody(MembersBody):
    """Which entities a model should write."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"template": "human", "count": 10, "wishes": "They all live in the same mountain village."}]
        }
    )

    count: Annotated[int, Field(ge=1, le=MOST_WRITTEN, description="Number of entities.")]
    model: Annotated[Model, Field(description="Model that writes the entities. The default is the server's model.")] = (
        None
    )
    wishes: Annotated[
        str, Field(max_length=LONGEST_WISHES, description="Instructions for the model, in plain language.")
    ] = ""
    free: Annotated[bool, Field(description="Let the model choose the attributes too.")] = False
    budget: Annotated[float | None, Field(gt=0, description="Maximum cost in US dollars.")] = None

    def made(self, type_: EntityType, settings: ServerSettings) -> Writing:
        """The driver settings."""
        return Writing(type_, self.count, named(self.model, settings), self.wishes, self.free)

    @property
    def options(self) -> RunOptions:
        """How the run is carried out."""
        return RunOptions(limits=Limits(usd=self.budget), unattended=True)


WhatOfTaken = Annotated[
    OnConflict,
    Query(description="What to do with ids that already exist: refuse the import, skip them, or replace them."),
]


def same_id(given: str | None, wanted: str | None) -> str | None:
    """The id in the path. The body may repeat it."""
    if given is not None and wanted is not None and given != wanted:
        raise SettingsError(f"id {given!r}: the path has {wanted!r}; an id cannot be changed", field="id")
    return wanted or given


def check_entity(entity: Entity, settings: ServerSettings) -> None:
    """Refuse what a client may not set: a file of this machine as a model, or a reserved id."""
    if entity.model is not None:
        named(entity.model, settings)
    if entity.id in RESERVED:
        raise SettingsError(f"id {entity.id!r}: this id is reserved; use another one", field="id")


def check_fit(entity: Entity, types: Mapping[str, EntityType], flaws: Flaws, *place: str | int) -> None:
    """Collect every attribute that does not fit the type of an entity."""
    if entity.entity_type_id is None:
        return
    type_ = types.get(entity.entity_type_id)
    if type_ is None:
        with flaws.under(*place):
            problem = f"entity_type_id: there is no entity type {entity.entity_type_id!r}; create it first"
            raise SettingsError(problem, field="entity_type_id")
        return
    for name, value in entity.attributes.items():
        with flaws.under(*place):
            type_.check({name: value})
