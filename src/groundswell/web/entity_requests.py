"""What clients send to make entities and their types: checked field by field, all that is wrong in one answer."""

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
    MOST_DIMENSIONS,
    MOST_OPTIONS,
    Dimension,
    DimensionType,
    Distribution,
    Entity,
    EntityType,
    Value,
)
from groundswell.experiments.simulations.templates import template
from groundswell.experiments.simulations.writing import LONGEST_WISHES, MOST_WRITTEN, Writing
from groundswell.web.requests import Body, Seed, named
from groundswell.web.settings import ServerSettings

ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
RESERVED = ("export",)
"""No entity may be called so: an address of the API is."""
MOST_AT_ONCE = 1_000
"""So many are sampled by one request, at the most."""
MOST_NAMES = 10_000

Id = Annotated[str, Field(pattern=ID, description="letters, digits, dots, hyphens, underscores")]
PathId = Annotated[str, Path(pattern=ID)]
OfType = Annotated[str | None, Query(pattern=ID, description="only those of this type")]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Model = Annotated[str | None, Field(max_length=500, description="as provider/model")]
Template = Annotated[str | None, Field(max_length=LONGEST_NAME, description="GET /api/templates lists them")]
AnySeed = Annotated[Seed | None, Field(description="the same seed makes the same; left out, one is drawn")]


class Flaws:
    """What is wrong with a request, with the place of each. Found one by one, told together."""

    def __init__(self) -> None:
        self._found: list[dict[str, Any]] = []

    @contextmanager
    def under(self, *place: str | int) -> Iterator[None]:
        """Take down what the block finds wrong with something at this place."""
        try:
            yield
        except SettingsError as error:
            field = () if error.field is None else (error.field,)
            self._found.append({"loc": ("body", *place, *field), "msg": str(error)})
        except RequestValidationError as several:
            self._found += [{**each, "loc": ("body", *place, *each["loc"][1:])} for each in several.errors()]

    def tell(self) -> None:
        """Refuse the request, if anything is wrong with it."""
        if self._found:
            raise RequestValidationError(self._found)


class DimensionBody(Body):
    """One attribute that the entities of a type have, and how it is spread among them."""

    name: Name
    type: DimensionType
    description: Text = ""
    min_value: Annotated[float | None, Field(description="of int and float")] = None
    max_value: Annotated[float | None, Field(description="of int and float")] = None
    options: Annotated[list[Text], Field(default_factory=list, max_length=MOST_OPTIONS, description="of categorical")]
    weights: Annotated[
        list[float] | None, Field(max_length=MOST_OPTIONS, description="of categorical: one for each option")
    ] = None
    distribution: Annotated[Distribution | None, Field(description="of int and float")] = None
    true_percentage: Annotated[float | None, Field(description="of boolean: a share from 0 to 1")] = None

    def made(self) -> Dimension:
        """As the catalogue takes it."""
        weights = None if self.weights is None else tuple(self.weights)
        try:
            return Dimension(**{**self.model_dump(), "options": tuple(self.options), "weights": weights})
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
    """What is said of an entity type beside its name."""

    id: Id | None = None
    description: Text = ""
    dimensions: Annotated[list[DimensionBody], Field(default_factory=list, max_length=MOST_DIMENSIONS)]
    names: Annotated[list[Name], Field(default_factory=list, max_length=MOST_NAMES, description="for sampled members")]

    def type_named(self, name: str, id_: str | None) -> EntityType:
        """As the catalogue takes it."""
        flaws = Flaws()
        dimensions: list[Dimension] = []
        for at, dimension in enumerate(self.dimensions):
            with flaws.under("dimensions", at):
                dimensions.append(dimension.made())
        flaws.tell()
        wanted = same_id(self.id, id_) or new_type_id()
        return EntityType(wanted, name, self.description, tuple(dimensions), tuple(self.names))


class TypeBody(Described):
    """An entity type."""

    model_config = ConfigDict(json_schema_extra={"examples": [TYPE_EXAMPLE]})

    name: Name

    def made(self, id_: str | None = None) -> EntityType:
        """As the catalogue takes it, with the id that the address names."""
        return self.type_named(self.name, id_)


class NewTypeBody(Described):
    """A new entity type: described in full, or made from a template, under an id and a name of your own if you like."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [TYPE_EXAMPLE, {"template": "human", "id": "townspeople", "name": "Townspeople"}],
            "anyOf": [{"required": ["name"]}, {"required": ["template"]}],
        }
    )

    name: Name | None = None
    template: Template = None

    def made(self) -> EntityType:
        """As the catalogue takes it."""
        if self.template is not None:
            return self._from(template(self.template))
        if self.name is None:
            raise SettingsError("name: give one, or the name of a template as `template`", field="name")
        return self.type_named(self.name, None)

    def _from(self, given: EntityType) -> EntityType:
        for field in ("description", "dimensions", "names"):
            if getattr(self, field):
                raise SettingsError(f"{field}: a template brings its own; leave it out, or the template", field=field)
        return msgspec.structs.replace(given, id=self.id or given.id, name=self.name or given.name)


ENTITY_EXAMPLE: dict[str, Any] = {
    "name": "Ana Silva",
    "description": "A nurse who has lived in the valley all her life.",
    "attributes": {"age": 41, "party": "none", "owns a home": True},
    "entity_type_id": "voter",
}


class EntityBody(Body):
    """An entity. Its attributes must be among the dimensions of its type; without a type they may be anything."""

    model_config = ConfigDict(json_schema_extra={"examples": [ENTITY_EXAMPLE]})

    id: Id | None = None
    name: Name
    description: Text = ""
    attributes: Annotated[dict[str, Value], Field(default_factory=dict, max_length=MOST_DIMENSIONS)]
    entity_type_id: Id | None = None
    model: Annotated[Model, Field(description="the one that speaks for it")] = None

    def made(self, id_: str | None = None) -> Entity:
        """As the catalogue takes it."""
        given = self.model_dump()
        return Entity(**{**given, "id": same_id(self.id, id_) or new_entity_id()})


class ImportBody(Body):
    """Types and entities of a file, as an export has them. Entities may also be sent as a bare list."""

    entity_types: Annotated[list[TypeBody], Field(default_factory=list)]
    entities: Annotated[list[EntityBody], Field(default_factory=list)]


class MembersBody(Body):
    """Of which type entities are to be made: one of the store, or that of a template, which is added if it is not."""

    entity_type_id: Id | None = None
    template: Template = None
    seed: AnySeed = None

    def seed_or_any(self) -> int:
        """The seed, or one that nobody has used yet, most likely."""
        return secrets.randbelow(2**31) if self.seed is None else self.seed

    def check(self) -> None:
        """Refuse a request that names no type, or two."""
        if (self.entity_type_id is None) == (self.template is None):
            raise SettingsError("entity_type_id: give either this or template", field="entity_type_id")


class SampleBody(MembersBody):
    """How many entities are drawn from the distributions of their type."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"template": "human", "count": 10, "seed": 7}]})

    count: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)]
    first: Annotated[int, Field(ge=1, le=10**9, description="the number of the first: 11 goes on after ten")] = 1


class GenerateBody(MembersBody):
    """How many entities a model writes, and what they should be like."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"template": "human", "count": 10, "wishes": "They all live in the same mountain village."}]
        }
    )

    count: Annotated[int, Field(ge=1, le=MOST_WRITTEN)]
    model: Annotated[Model, Field(description="who writes; the server's own model if it is left out")] = None
    wishes: Annotated[str, Field(max_length=LONGEST_WISHES, description="what they should be like, in words")] = ""
    free: Annotated[bool, Field(description="let the model choose the attributes too")] = False
    budget: Annotated[float | None, Field(gt=0, description="US dollars")] = None

    def made(self, type_: EntityType, settings: ServerSettings) -> Writing:
        """As the driver takes it."""
        return Writing(type_, self.count, named(self.model, settings), self.wishes, self.free)

    @property
    def options(self) -> RunOptions:
        """How the run is carried out."""
        return RunOptions(limits=Limits(usd=self.budget), unattended=True)


WhatOfTaken = Annotated[
    OnConflict, Query(description="what to do about ids that are taken: refuse everything, skip them, replace them")
]


def same_id(given: str | None, wanted: str | None) -> str | None:
    """The id that an address names; a body may repeat it."""
    if given is not None and wanted is not None and given != wanted:
        raise SettingsError(f"id {given!r}: the address says {wanted!r}; an id cannot be changed", field="id")
    return wanted or given


def check_entity(entity: Entity, settings: ServerSettings) -> None:
    """Refuse what a client may not set: a file of this machine as a model, an id that an address of ours has."""
    if entity.model is not None:
        named(entity.model, settings)
    if entity.id in RESERVED:
        raise SettingsError(f"id {entity.id!r}: this one is an address of the API; give another", field="id")


def check_fit(entity: Entity, types: Mapping[str, EntityType], flaws: Flaws, *place: str | int) -> None:
    """Take down every attribute that does not fit the type of an entity."""
    if entity.entity_type_id is None:
        return
    type_ = types.get(entity.entity_type_id)
    if type_ is None:
        with flaws.under(*place):
            problem = f"entity_type_id: there is no entity type {entity.entity_type_id!r}; add it first"
            raise SettingsError(problem, field="entity_type_id")
        return
    for name, value in entity.attributes.items():
        with flaws.under(*place):
            type_.check({name: value})
