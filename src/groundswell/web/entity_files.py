"""/api/entities/import and /api/entities/export: entities and entity types as JSON or CSV files."""

from __future__ import annotations

from typing import IO, Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.responses import Response

from groundswell.experiments.simulations.catalogue import Brought, OnConflict
from groundswell.experiments.simulations.entities import Entity, EntityType
from groundswell.experiments.simulations.files import Loaded, read, write_csv, write_json
from groundswell.web.bodies import CSV, kind_of
from groundswell.web.downloads import download
from groundswell.web.entity_requests import (
    ENTITY_EXAMPLE,
    TYPE_EXAMPLE,
    Flaws,
    ImportBody,
    OfType,
    WhatOfTaken,
    check_entity,
    check_fit,
)
from groundswell.web.envelope import JSON, success
from groundswell.web.schema import REF, answers, errors, files
from groundswell.web.services import Here, Services

router = APIRouter(prefix="/api/entities", tags=["entities"])

EXAMPLE = {"entity_types": [{"id": "voter", **TYPE_EXAMPLE}], "entities": [{"id": "ana", **ENTITY_EXAMPLE}]}
TABLE = "id,entity_type_id,name,description,model,age,party\nana,voter,Ana Silva,A nurse.,,41,none\n"


def _schema_of_import() -> dict[str, Any]:
    """The schema of an import: an object, or a list of entities."""
    whole = ImportBody.model_json_schema(ref_template=REF.replace("{name}", "{model}"))
    del whole["$defs"]
    return {"anyOf": [whole, whole["properties"]["entities"]]}


TAKEN = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": _schema_of_import(), "example": EXAMPLE},
            CSV: {"schema": {"type": "string"}, "example": TABLE},
        },
    }
}


@router.post(
    "/import",
    summary="Import entities and entity types",
    responses={**answers(Brought, "The numbers of added, replaced and skipped ones."), **errors(409, body=True)},
    openapi_extra=TAKEN,
)
async def import_file(here: Here, request: Request, on_conflict: WhatOfTaken = "error") -> Response:
    """Import all entities of a file, or none if one is invalid. Send JSON (an export, or a list of entities) or CSV
    with one row per entity."""
    body = await request.body()
    if not body:
        raise RequestValidationError([{"loc": ("body",), "msg": "Field required"}])
    table = kind_of(request.headers) == CSV
    return success(await here.heavy(lambda: _brought(here, body, table, on_conflict)))


@router.get("/export", summary="Export entities and entity types", responses={**files(JSON, CSV), **errors()})
async def export(
    here: Here,
    format: Annotated[Literal["json", "csv"], Query(description="File format.")] = "json",
    entity_type_id: OfType = None,
) -> Response:
    """Download entities and their types as JSON, or entities alone as CSV. Spreadsheet formulas in CSV are escaped."""
    return await download(here, "entities", format, lambda out: _write(here, format, entity_type_id, out))


def _brought(here: Services, body: bytes, table: bool, on_conflict: OnConflict) -> Brought:
    loaded = _read_table(here, body.decode()) if table else _read_json(msgspec.json.decode(body))
    _check(here, loaded, on_conflict)
    return here.catalogue.bring(loaded.types, loaded.entities, on_conflict)


def _read_table(here: Services, text: str) -> Loaded:
    return read(text, "csv", "body", here.catalogue)


def _read_json(found: Any) -> Loaded:
    """The contents of a body. The error names all its flaws and their places."""
    try:
        body = ImportBody.model_validate({"entities": found} if isinstance(found, list) else found)
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from error
    flaws = Flaws()
    types: list[EntityType] = []
    entities: list[Entity] = []
    for at, kind in enumerate(body.entity_types):
        with flaws.under("entity_types", at):
            types.append(kind.made())
    for at, entity in enumerate(body.entities):
        with flaws.under("entities", at):
            entities.append(entity.made())
    flaws.tell()
    return Loaded(types, entities)


def _check(here: Services, loaded: Loaded, on_conflict: OnConflict) -> None:
    """Refuse entities that a client may not create, and those that do not fit their types."""
    given = {kind.id: kind for kind in loaded.types}
    there = here.catalogue.types_by_id(each.entity_type_id for each in loaded.entities if each.entity_type_id)
    types = {**given, **there} if on_conflict == "skip" else {**there, **given}
    flaws = Flaws()
    for at, entity in enumerate(loaded.entities):
        with flaws.under("entities", at):
            check_entity(entity, here.settings)
        check_fit(entity, types, flaws, "entities", at)
    flaws.tell()


def _write(here: Services, format_: Literal["json", "csv"], type_: str | None, out: IO[bytes]) -> None:
    catalogue = here.catalogue
    entities = catalogue.entities(entity_type_id=type_)
    if format_ == "csv":
        out.write(write_csv(entities).encode())
        return
    types = catalogue.types() if type_ is None else list(catalogue.types_by_id([type_]).values())
    out.write(write_json(types, entities).encode())
