"""/api/entities: entities that are created by hand, sampled from a type, or written by a model.

The entities that a run of `write` produced are added to the store when it has ended, each exactly once. A server may be
killed before that, so ended runs are checked again when a server starts. A marker, written in the same transaction as
the entities, shows which ones are already stored.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from groundswell.engine.driver import driver_name
from groundswell.engine.records import RunRecord
from groundswell.errors import Conflict, GroundswellError, NotFound, SettingsError, StoreError
from groundswell.experiments.simulations.catalogue import KEPT, Catalogue
from groundswell.experiments.simulations.entities import Entity, EntityType, Value
from groundswell.experiments.simulations.sampling import first_free
from groundswell.experiments.simulations.sampling import sample as drawn
from groundswell.experiments.simulations.templates import template
from groundswell.experiments.simulations.writing import Written, keep, write
from groundswell.store.journal import Store
from groundswell.store.runs import UNFINISHED
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
from groundswell.web.envelope import Confirmation, page, success
from groundswell.web.schema import answers, errors
from groundswell.web.services import Here, Limit, Offset, Services

router = APIRouter(prefix="/api/entities", tags=["entities"])

log = logging.getLogger("groundswell.web")

WRITE = driver_name(write)
NOT_KEPT = "its entities could not be stored"
EXAMPLE: dict[str, Any] = {"id": "entity-id-1", **ENTITY_EXAMPLE, "model": None}


class EntityShown(msgspec.Struct, frozen=True):
    """An entity with all its fields."""

    id: str
    name: str
    description: str
    attributes: dict[str, Value]
    entity_type_id: str | None
    model: str | None


class Writes(msgspec.Struct, frozen=True):
    """A started run in which a model writes entities. Follow or cancel it under /api/runs."""

    id: str
    run_id: str
    message: str


def shown(entity: Entity) -> EntityShown:
    """An entity with all its fields, including empty ones."""
    given = (entity.description, entity.attributes, entity.entity_type_id, entity.model)
    return EntityShown(entity.id, entity.name, *given)


@router.post(
    "",
    status_code=201,
    summary="Create an entity",
    responses={**answers(EntityShown, "The new entity.", status=201, example=EXAMPLE), **errors(409, body=True)},
)
async def create(here: Here, body: EntityBody) -> Response:
    """Create an entity. Without an id, one is generated."""
    entity = _checked(here, body.made())
    [added] = await asyncio.to_thread(here.catalogue.add_entities, entity)
    return success(shown(added), 201)


@router.post(
    "/sample",
    status_code=201,
    summary="Sample entities",
    responses={
        **answers(list[EntityShown], "The new entities.", status=201, example=[EXAMPLE]),
        **errors(409, body=True),
    },
)
async def sample(here: Here, body: SampleBody) -> Response:
    """Sample entities from the distributions of their type. No model is used, so text attributes stay empty. The
    same seed, type and number always produce the same entity."""
    return success(await here.heavy(lambda: _sampled(here, body)), 201)


@router.post(
    "/generate",
    status_code=202,
    summary="Generate entities with a model",
    responses={
        **answers(
            Writes,
            "The run was started.",
            status=202,
            example={"id": "k7m2x9pqrs", "run_id": "k7m2x9pqrs", "message": "Entities are being written"},
        ),
        **errors(429, body=True),
    },
)
async def generate(here: Here, body: GenerateBody) -> Response:
    """Start a run in which a model writes entities. Follow it with GET /api/runs/{run_id}. The entities are added
    when it has ended."""
    body.check()
    writing = body.made(await here.heavy(lambda: type_of(here, body)), here.settings)
    await here.check_models(writing.model)
    name = here.free_name("entities")
    record = await here.background.plan(write, writing, name=name, seed=body.seed_or_any(), options=body.options)
    return success(Writes(record.id, record.id, "Entities are being written"), 202)


@router.get(
    "",
    summary="List entities",
    responses={**answers(list[EntityShown], "The entities, oldest first.", paged=True), **errors()},
)
async def list_all(
    here: Here,
    entity_type_id: OfType = None,
    q: Annotated[str, Query(max_length=200, description="Text in the id, name, description or attributes.")] = "",
    limit: Limit = 100,
    offset: Offset = 0,
) -> Response:
    """List entities. The header X-Total-Count has their total number."""
    return await here.part(limit, lambda: _listed(here, entity_type_id, q, limit, offset))


@router.get(
    "/{entity_id}",
    summary="Get an entity",
    responses={**answers(EntityShown, "The entity.", example=EXAMPLE), **errors(404)},
)
async def get(here: Here, entity_id: PathId) -> Response:
    """Return an entity with its attributes."""
    return success(shown(here.catalogue.entity(entity_id)))


@router.put(
    "/{entity_id}",
    summary="Replace an entity",
    responses={**answers(EntityShown, "The changed entity.", example=EXAMPLE), **errors(404, body=True)},
)
async def change(here: Here, entity_id: PathId, body: EntityBody) -> Response:
    """Replace an entity. Existing simulation batches keep the earlier version."""
    entity = _checked(here, body.made(entity_id))
    return success(shown(await asyncio.to_thread(here.catalogue.change_entity, entity)))


@router.delete(
    "/{entity_id}",
    summary="Delete an entity",
    responses={**answers(Confirmation, "The entity was deleted."), **errors(404)},
)
async def delete(here: Here, entity_id: PathId) -> Response:
    """Delete an entity. Existing simulation batches keep their copy."""
    await asyncio.to_thread(here.catalogue.delete_entity, entity_id)
    return success(Confirmation(f"Entity {entity_id} deleted successfully"))


def type_of(here: Services, body: MembersBody) -> EntityType:
    """The type that a request names. A template's type is added to the store if it is missing."""
    if body.template is not None:
        return here.catalogue.type_named(template(body.template).id)
    assert body.entity_type_id is not None, "checked before"
    try:
        return here.catalogue.type(body.entity_type_id)
    except NotFound as error:
        raise SettingsError(f"entity_type_id: {error}", field="entity_type_id") from error


def _checked(here: Services, entity: Entity) -> Entity:
    """An entity that a client may create. The error names every attribute that does not fit."""
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
        other = f"use another seed, or set `first` to {free}"
        raise Conflict(f"some of these entities already exist: {other} ({error})") from error


def _listed(here: Services, type_: str | None, text: str, limit: int, offset: int) -> Response:
    found = here.catalogue.entities(limit, offset, type_, text)
    return page([shown(each) for each in found], here.catalogue.count_entities(type_, text))


def store_missing_entities(store: Store) -> None:
    """Store the entities of runs that ended while no server was running."""
    for id_, _, _ in store.runs.planned(drivers=(WRITE,)):
        try:
            store_entities(store, id_)
        except StoreError as error:  # serve anyway: the next start tries again
            log.error("run %s: %s: %s", id_, NOT_KEPT, error)


def store_entities(store: Store, id_: str) -> None:
    """Store the entities of an ended run of `write`. If that fails, record the error in the run.

    Runs that were started on the command line are skipped, since the command stores their entities itself.
    """
    record = store.runs.find(id_)
    if record is None or record.driver != WRITE or record.status in UNFINISHED or not record.options.get("unattended"):
        return
    if record.analysis is None:
        return
    try:
        _store(store, record, record.analysis)
    except StoreError:
        raise
    except (GroundswellError, msgspec.DecodeError) as error:
        log.warning("run %s: %s: %s", id_, NOT_KEPT, error)
        store.runs.change(record, error=f"{NOT_KEPT}: {error}; fix this, then resume the run")


def _store(store: Store, record: RunRecord, analysis: str) -> None:
    written = msgspec.json.decode(analysis, type=Written)
    if _is_kept(store, record, written):
        return
    kept = keep(Catalogue(store.documents), written, record.id)
    log.info("run %s: stored %d entities", record.id, len(kept))
    if (record.error or "").startswith(NOT_KEPT):
        store.runs.change(record, error=None)


def _is_kept(store: Store, record: RunRecord, written: Written) -> bool:
    """Whether all entities of a run are stored. This only reads, so starting a server need not write."""
    marker = store.documents.find(KEPT, record.id).get(record.id)
    known: set[str] = set() if marker is None else set(msgspec.json.decode(marker.body, type=list[str]))
    return known.issuperset(entity.id for entity in written.entities)
