"""/api/entity-types and /api/templates: the types of entities."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import EntityType
from groundswell.experiments.simulations.templates import names_of_templates, template, templates
from groundswell.web.entity_requests import TYPE_EXAMPLE, NewTypeBody, PathId, TypeBody
from groundswell.web.envelope import ApiError, Confirmation, page, success
from groundswell.web.schema import answers, errors
from groundswell.web.services import Here, Limit, Offset, Services

router = APIRouter(prefix="/api/entity-types", tags=["entity types"])
of_templates = APIRouter(prefix="/api/templates", tags=["templates"])

EXAMPLE = {"id": "voter", **TYPE_EXAMPLE}


class TypeShown(EntityType, frozen=True, omit_defaults=False):
    """An entity type. Each dimension has only the fields of its type."""


def shown(type_: EntityType) -> TypeShown:
    """A type with all its fields, including empty ones."""
    return TypeShown(**msgspec.structs.asdict(type_))


@of_templates.get(
    "",
    summary="List templates",
    responses={**answers(list[TypeShown], "The built-in entity types."), **errors()},
)
async def list_templates() -> Response:
    """List the built-in entity types. Use one to create your own type, or name it when you create entities."""
    return success([shown(each) for each in templates()])


@of_templates.get("/{name}", summary="Get a template", responses={**answers(TypeShown, "The template."), **errors(404)})
async def get_template(name: str) -> Response:
    """Return the entity type of a template."""
    if name not in names_of_templates():
        raise ApiError(404, f"there is no template {name!r}; templates: {', '.join(names_of_templates())}")
    return success(shown(template(name)))


@router.post(
    "",
    status_code=201,
    summary="Create an entity type",
    responses={**answers(TypeShown, "The new entity type.", status=201, example=EXAMPLE), **errors(409, body=True)},
)
async def create(here: Here, body: NewTypeBody) -> Response:
    """Create an entity type from a full description, or from a template."""
    return success(shown(await here.heavy(lambda: here.catalogue.add_type(body.made()))), 201)


@router.get(
    "",
    summary="List entity types",
    responses={**answers(list[TypeShown], "The entity types, oldest first.", paged=True), **errors()},
)
async def list_all(here: Here, limit: Limit = 100, offset: Offset = 0) -> Response:
    """List entity types. The header X-Total-Count has their total number."""
    return await here.part(limit, lambda: _listed(here, limit, offset))


@router.get(
    "/{entity_type_id}",
    summary="Get an entity type",
    responses={**answers(TypeShown, "The entity type.", example=EXAMPLE), **errors(404)},
)
async def get(here: Here, entity_type_id: PathId) -> Response:
    """Return an entity type with its dimensions."""
    return success(shown(here.catalogue.type(entity_type_id)))


@router.put(
    "/{entity_type_id}",
    summary="Replace an entity type",
    responses={**answers(TypeShown, "The changed entity type.", example=EXAMPLE), **errors(404, body=True)},
)
async def change(here: Here, entity_type_id: PathId, body: TypeBody) -> Response:
    """Replace an entity type. This fails if one of its entities would no longer fit."""
    return success(shown(await here.heavy(lambda: here.catalogue.change_type(body.made(entity_type_id)))))


@router.delete(
    "/{entity_type_id}",
    summary="Delete an entity type",
    responses={**answers(Confirmation, "The entity type was deleted."), **errors(404, 409)},
)
async def delete(
    here: Here,
    entity_type_id: PathId,
    with_entities: Annotated[bool, Query(description="Delete its entities too.")] = False,
) -> Response:
    """Delete an entity type. If it has entities, this fails without `with_entities`. Existing simulation batches keep
    their copies."""
    gone = await asyncio.to_thread(_deleted, here, entity_type_id, with_entities)
    too = f" with {gone:,} {'entity' if gone == 1 else 'entities'}" if gone else ""
    return success(Confirmation(f"Entity type {entity_type_id} deleted successfully{too}"))


def _listed(here: Services, limit: int, offset: int) -> Response:
    found = here.catalogue.types(limit, offset)
    return page([shown(each) for each in found], here.catalogue.count_types())


def _deleted(here: Services, id_: str, with_entities: bool) -> int:
    try:
        return here.catalogue.delete_type(id_, with_entities=with_entities)
    except SettingsError as error:
        raise ApiError(409, f"{error}: ?with_entities=true", field=error.field) from error
