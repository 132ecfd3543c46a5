"""/api/entities: who talks. Made by hand, drawn from a type, or written by a model in the background."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from groundswell.errors import Conflict, NotFound, SettingsError
from groundswell.experiments.simulations.entities import Entity, EntityType, Value
from groundswell.experiments.simulations.sampling import first_free
from groundswell.experiments.simulations.sampling import sample as drawn
from groundswell.experiments.simulations.templates import template
from groundswell.experiments.simulations.writing import write
from groundswell.web.entity_requests import (
    ENTITY_EXAMPLE,
    EntityBody,
    Flaws,
    GenerateBody,
    MembersBody,
    OfType,
    PathId,
    SampleBody,
    check_entity,
    check_fit,
)
from groundswell.web.envelope import Told, page, success
from groundswell.web.schema import answers, errors
from groundswell.web.services import Here, Limit, Offset, Services

router = APIRouter(prefix="/api/entities", tags=["entities"])

EXAMPLE: dict[str, Any] = {"id": "entity-id-1", **ENTITY_EXAMPLE, "model": None}


class EntityShown(msgspec.Struct, frozen=True):
    """An entity with all its fields, whether they were given or not."""

    id: str
    name: str
    description: str
    attributes: dict[str, Value]
    entity_type_id: str | None
    model: str | None


class Writes(msgspec.Struct, frozen=True):
    """A model that was set to work; its run can be followed and cancelled under /api/runs."""

    id: str
    run_id: str
    message: str


def shown(entity: Entity) -> EntityShown:
    """An entity with all its fields, also those that are empty."""
    given = (entity.description, entity.attributes, entity.entity_type_id, entity.model)
    return EntityShown(entity.id, entity.name, *given)


@router.post(
    "",
    status_code=201,
    summary="Create an entity",
    responses={**answers(EntityShown, "it was added", status=201, example=EXAMPLE), **errors(409, body=True)},
)
async def create(here: Here, body: EntityBody) -> Response:
    """By hand. Without an id it is given one."""
    entity = _checked(here, body.made())
    [added] = await asyncio.to_thread(here.catalogue.add_entities, entity)
    return success(shown(added), 201)


@router.post(
    "/sample",
    status_code=201,
    summary="Draw entities from the distributions of their type",
    responses={
        **answers(list[EntityShown], "they were added, all of them", status=201, example=[EXAMPLE]),
        **errors(409, body=True),
    },
)
async def sample(here: Here, body: SampleBody) -> Response:
    """No model is asked, so texts stay empty. The same seed, type and number always give the same entity."""
    return success(await here.heavy(lambda: _sampled(here, body)), 201)


@router.post(
    "/generate",
    status_code=202,
    summary="Have a model write entities",
    responses={
        **answers(
            Writes,
            "it was started",
            status=202,
            example={"id": "k7m2x9pqrs", "run_id": "k7m2x9pqrs", "message": "Entities are being written"},
        ),
        **errors(429, body=True),
    },
)
async def generate(here: Here, body: GenerateBody) -> Response:
    """In the background. How far it is, GET /api/runs/{run_id} tells; when that has ended, the entities are there."""
    body.check()
    writing = body.made(await here.heavy(lambda: type_of(here, body)), here.settings)
    await here.check_models(writing.model)
    name = here.free_name("entities")
    record = await here.background.plan(write, writing, name=name, seed=body.seed_or_any(), options=body.options)
    return success(Writes(record.id, record.id, "Entities are being written"), 202)


@router.get(
    "",
    summary="Get all entities",
    responses={**answers(list[EntityShown], "in the order in which they were added", paged=True), **errors()},
)
async def list_all(here: Here, entity_type_id: OfType = None, limit: Limit = 100, offset: Offset = 0) -> Response:
    """A bare list; the header X-Total-Count says how many there are in all."""
    return await here.part(limit, lambda: _listed(here, entity_type_id, limit, offset))


@router.get(
    "/{entity_id}",
    summary="Get a specific entity",
    responses={**answers(EntityShown, "the entity", example=EXAMPLE), **errors(404)},
)
async def get(here: Here, entity_id: PathId) -> Response:
    """With its attributes."""
    return success(shown(here.catalogue.entity(entity_id)))


@router.put(
    "/{entity_id}",
    summary="Change an entity",
    responses={**answers(EntityShown, "it was changed", example=EXAMPLE), **errors(404, body=True)},
)
async def change(here: Here, entity_id: PathId, body: EntityBody) -> Response:
    """The whole entity is replaced. Batches that were made with it keep the one they have."""
    entity = _checked(here, body.made(entity_id))
    return success(shown(await asyncio.to_thread(here.catalogue.change_entity, entity)))


@router.delete("/{entity_id}", summary="Delete an entity", responses={**answers(Told, "it is gone"), **errors(404)})
async def delete(here: Here, entity_id: PathId) -> Response:
    """Batches that were made with it keep the one they have."""
    await asyncio.to_thread(here.catalogue.delete_entity, entity_id)
    return success(Told(f"Entity {entity_id} deleted successfully"))


def type_of(here: Services, body: MembersBody) -> EntityType:
    """The type that a request names. That of a template is added to the store, unless it is there."""
    if body.template is not None:
        return here.catalogue.type_named(template(body.template).id)
    assert body.entity_type_id is not None, "checked before"
    try:
        return here.catalogue.type(body.entity_type_id)
    except NotFound as error:
        raise SettingsError(f"entity_type_id: {error}", field="entity_type_id") from error


def _checked(here: Services, entity: Entity) -> Entity:
    """An entity that a client may make; an error tells of every attribute that does not fit."""
    check_entity(entity, here.settings)
    if entity.entity_type_id is not None:
        flaws = Flaws()
        check_fit(entity, here.catalogue.types_by_id([entity.entity_type_id]), flaws)
        flaws.tell()
    return entity


def _sampled(here: Services, body: SampleBody) -> list[EntityShown]:
    body.check()
    type_ = type_of(here, body)
    seed = body.seed_or_any()
    entities = drawn(type_, body.count, seed, body.first)
    try:
        return [shown(each) for each in here.catalogue.add_entities(*entities)]
    except Conflict as error:
        free = first_free(type_, body.count, seed, body.first, here.catalogue.taken)
        other = f"give another seed, or go on with `first` {free}"
        raise Conflict(f"some of these were sampled before: {other} ({error})") from error


def _listed(here: Services, type_: str | None, limit: int, offset: int) -> Response:
    found = here.catalogue.entities(limit, offset, type_)
    return page([shown(each) for each in found], here.catalogue.count_entities(type_))
