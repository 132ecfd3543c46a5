"""/api/entity-types and /api/templates: what kinds of entities there are."""

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
from groundswell.web.envelope import ApiError, Told, page, success
from groundswell.web.schema import answers, errors
from groundswell.web.services import Here, Limit, Offset, Services

router = APIRouter(prefix="/api/entity-types", tags=["entity types"])
of_templates = APIRouter(prefix="/api/templates", tags=["templates"])

EXAMPLE = {"id": "voter", **TYPE_EXAMPLE}


class TypeShown(EntityType, frozen=True, omit_defaults=False):
    """An entity type. Of its dimensions, only what their types have is shown."""


def shown(type_: EntityType) -> TypeShown:
    """A type with all its fields, also those that are empty."""
    return TypeShown(**msgspec.structs.asdict(type_))


@of_templates.get(
    "",
    summary="Get all templates",
    responses={**answers(list[TypeShown], "entity types that come with the package"), **errors()},
)
async def list_templates() -> Response:
    """A start for types of your own; they can also be named where entities are made."""
    return success([shown(each) for each in templates()])


@of_templates.get(
    "/{name}", summary="Get a specific template", responses={**answers(TypeShown, "the template"), **errors(404)}
)
async def get_template(name: str) -> Response:
    """The entity type that it stands for."""
    if name not in names_of_templates():
        raise ApiError(404, f"no template {name!r}: there are {', '.join(names_of_templates())}")
    return success(shown(template(name)))


@router.post(
    "",
    status_code=201,
    summary="Create an entity type",
    responses={**answers(TypeShown, "it was added", status=201, example=EXAMPLE), **errors(409, body=True)},
)
async def create(here: Here, body: NewTypeBody) -> Response:
    """Described in full, or made from a template."""
    return success(shown(await asyncio.to_thread(here.catalogue.add_type, body.made())), 201)


@router.get(
    "",
    summary="Get all entity types",
    responses={**answers(list[TypeShown], "in the order in which they were added", paged=True), **errors()},
)
async def list_all(here: Here, limit: Limit = 100, offset: Offset = 0) -> Response:
    """A bare list; the header X-Total-Count says how many there are in all."""
    return await here.part(limit, lambda: _listed(here, limit, offset))


@router.get(
    "/{entity_type_id}",
    summary="Get a specific entity type",
    responses={**answers(TypeShown, "the type", example=EXAMPLE), **errors(404)},
)
async def get(here: Here, entity_type_id: PathId) -> Response:
    """With its dimensions."""
    return success(shown(here.catalogue.type(entity_type_id)))


@router.put(
    "/{entity_type_id}",
    summary="Change an entity type",
    responses={**answers(TypeShown, "it was changed", example=EXAMPLE), **errors(404, body=True)},
)
async def change(here: Here, entity_type_id: PathId, body: TypeBody) -> Response:
    """The whole type is replaced. Refused if one of its entities would not fit any more."""
    return success(shown(await asyncio.to_thread(here.catalogue.change_type, body.made(entity_type_id))))


@router.delete(
    "/{entity_type_id}", summary="Delete an entity type", responses={**answers(Told, "it is gone"), **errors(404, 409)}
)
async def delete(
    here: Here,
    entity_type_id: PathId,
    with_entities: Annotated[bool, Query(description="whether its entities go too")] = False,
) -> Response:
    """Refused while it has entities, unless they may go too. Batches that were made with them keep what they have."""
    gone = await asyncio.to_thread(_deleted, here, entity_type_id, with_entities)
    too = f" with {gone:,} {'entity' if gone == 1 else 'entities'}" if gone else ""
    return success(Told(f"Entity type {entity_type_id} deleted successfully{too}"))


def _listed(here: Services, limit: int, offset: int) -> Response:
    found = here.catalogue.types(limit, offset)
    return page([shown(each) for each in found], here.catalogue.count_types())


def _deleted(here: Services, id_: str, with_entities: bool) -> int:
    try:
        return here.catalogue.delete_type(id_, with_entities=with_entities)
    except SettingsError as error:
        raise ApiError(409, f"{error}: ?with_entities=true", field=error.field) from error
