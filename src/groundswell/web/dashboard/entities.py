"""Entities and entity types: lists, forms, import and export. The forms call the REST API."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from groundswell.experiments.simulations.catalogue import ENTITY
from groundswell.experiments.simulations.entities import LONGEST_NAME, Entity, EntityType
from groundswell.experiments.simulations.templates import template, templates
from groundswell.web.dashboard.pages import AT_ONCE, Pager, Text, indented, page, with_query
from groundswell.web.entity_requests import PathId
from groundswell.web.services import Here, Offset, Services

router = APIRouter(include_in_schema=False)

TypeId = Annotated[str, Query(max_length=64)]
MOST_TYPES = 500
NEW_TYPE = {
    "name": "Voter",
    "description": "Somebody who may vote in a small town.",
    "dimensions": [
        {"name": "age", "type": "int", "min_value": 18, "max_value": 90, "distribution": "normal"},
        {"name": "party", "type": "categorical", "options": ["left", "right", "none"]},
        {"name": "owns a home", "type": "boolean", "true_percentage": 0.6},
    ],
}
"""What the form of a new type begins with."""


@router.get("/entities")
async def entities(
    here: Here,
    request: Request,
    q: Text = "",
    entity_type_id: TypeId = "",
    offset: Offset = 0,
) -> Response:
    """All entities, with a search."""
    type_ = entity_type_id or None
    query = {"q": q, "entity_type_id": entity_type_id}
    total = here.catalogue.count_entities(type_, q.strip())
    return page(
        here,
        request,
        "entities.html",
        title="Entities",
        active="entities",
        rows=here.catalogue.entities(AT_ONCE, offset, type_, q.strip()),
        total=total,
        pages=Pager(
            total, offset, lambda at: with_query("/entities", [*query.items(), ("offset", at)]), "Earlier", "Later"
        ),
        query=query,
        types={each.id: each for each in here.catalogue.types(MOST_TYPES)},
    )


@router.get("/entities/{entity_id}")
async def entity(here: Here, request: Request, entity_id: PathId) -> Response:
    """One entity."""
    found = here.catalogue.entity(entity_id)
    document = here.store.documents.find(ENTITY, entity_id)[entity_id]
    now = time.time()
    values: dict[str, Any] = {
        "entity": found,
        "type": _type_of(here, found),
        "added": now - document.created_at,
        "changed": now - document.updated_at if document.updated_at > document.created_at else None,
    }
    return page(here, request, "entity.html", title=found.name, active="entities", **values)


@router.get("/entities/{entity_id}/edit")
async def edit(here: Here, request: Request, entity_id: PathId) -> Response:
    """The form of an entity."""
    found = here.catalogue.entity(entity_id)
    return _form(here, request, found, _type_of(here, found))


@router.get("/new-entity")
async def new_entity(here: Here, request: Request, entity_type_id: TypeId = "") -> Response:
    """The form of a new entity, of a type or of none."""
    return _form(here, request, None, here.catalogue.type(entity_type_id) if entity_type_id else None)


@router.get("/import-entities")
async def import_entities(here: Here, request: Request) -> Response:
    """Import a file."""
    return page(here, request, "entities_import.html", title="Import entities", active="entities")


@router.get("/entity-types")
async def types(here: Here, request: Request) -> Response:
    """All entity types, and the templates that are not in the store."""
    found = here.catalogue.types(MOST_TYPES)
    known = {each.id for each in found}
    values: dict[str, Any] = {
        "types": [(each, here.catalogue.count_entities(each.id)) for each in found],
        "templates": [each for each in templates() if each.id not in known],
    }
    return page(here, request, "entity_types.html", title="Entity types", active="entities", **values)


@router.get("/new-entity-type")
async def new_type(
    here: Here, request: Request, template_name: Annotated[str, Query(alias="template", max_length=LONGEST_NAME)] = ""
) -> Response:
    """The form of a new type, which begins with a template or an example."""
    text = indented(template(template_name) if template_name else NEW_TYPE)
    values: dict[str, Any] = {"type": None, "text": text, "send": "POST /api/entity-types"}
    return page(here, request, "entity_type_form.html", title="New entity type", active="entities", **values)


@router.get("/entity-types/{entity_type_id}")
async def type_page(here: Here, request: Request, entity_type_id: PathId) -> Response:
    """One type: its dimensions, its entities, and making more of them."""
    found = here.catalogue.type(entity_type_id)
    values: dict[str, Any] = {"type": found, "count": here.catalogue.count_entities(found.id), "model": here.model}
    return page(here, request, "entity_type.html", title=found.name, active="entities", **values)


@router.get("/entity-types/{entity_type_id}/edit")
async def edit_type(here: Here, request: Request, entity_type_id: PathId) -> Response:
    """The form of a type."""
    found = here.catalogue.type(entity_type_id)
    values: dict[str, Any] = {
        "type": found,
        "text": indented(found),
        "send": f"PUT /api/entity-types/{found.id}",
    }
    return page(here, request, "entity_type_form.html", title=f"Edit {found.name}", active="entities", **values)


def _form(here: Services, request: Request, found: Entity | None, type_: EntityType | None) -> Response:
    """The form of an entity. Attributes that its type does not have are edited as JSON."""
    values: dict[str, Any] = {"entity": found, "type": type_, "types": here.catalogue.types(MOST_TYPES)}
    title = "New entity" if found is None else f"Edit {found.name}"
    named = set() if type_ is None else {each.name for each in type_.dimensions}
    rest = {} if found is None else {name: value for name, value in found.attributes.items() if name not in named}
    free = indented(rest) if rest else ""
    return page(here, request, "entity_form.html", title=title, active="entities", free=free, **values)


def _type_of(here: Services, found: Entity) -> EntityType | None:
    return here.catalogue.types_by_id([found.entity_type_id or ""]).get(found.entity_type_id or "")
