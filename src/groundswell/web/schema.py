"""Responses in the OpenAPI document, with schemas made from the types that are sent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from groundswell.web.envelope import JSON, Failure

REF = "#/components/schemas/{name}"
MEANINGS = {
    400: "The body is not valid JSON.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site.",
    404: "Not found.",
    409: "Not possible in the current state, or the name or id already exists.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "Invalid fields. `errors` names them.",
    429: "Too many runs are waiting, or too many streams are open.",
    503: "The store is not available, or the server is stopping.",
}
ALWAYS = (401, 403, 422, 503)
WITH_BODY = (400, 413, 415)

_types: dict[Any, None] = {Failure: None}
_schemas: dict[str, Any] = {}

Responses = dict[int | str, dict[str, Any]]
TOTAL = {"X-Total-Count": {"description": "Total number of items.", "schema": {"type": "integer"}}}


def answers(kind: Any, what: str, *, status: int = 200, example: Any = None, paged: bool = False) -> Responses:
    """The declaration of a success response with data of a type."""
    _types[kind] = None
    schema = {
        "type": "object",
        "required": ["status", "data"],
        "properties": {"status": {"const": "success"}, "data": _reference(kind)},
    }
    content: dict[str, Any] = {"schema": schema}
    if example is not None:
        content["example"] = {"status": "success", "data": example}
    response: dict[str, Any] = {"description": what, "content": {JSON: content}}
    if paged:
        response["headers"] = TOTAL
    return {status: response}


@cache
def _reference(kind: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.schema_components([kind], ref_template=REF)[0][0]
    return found


def component(name: str, schema: dict[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """Add a schema and those that it refers to, and return a reference."""
    _schemas[name] = schema
    _schemas.update({f"{name}.{each}": found for each, found in inner.items()})
    return {"$ref": REF.format(name=name)}


def files(*media: str) -> Responses:
    """The declaration of a response that is a file."""
    content: dict[str, Any] = {each: {"schema": {}} for each in media}
    return {200: {"description": "The file.", "content": content}}


def errors(*statuses: int, body: bool = False) -> Responses:
    """The declaration of the error responses of a route, including those of every route."""
    found = sorted({*statuses, *ALWAYS, *(WITH_BODY if body else ())})
    content = {JSON: {"schema": {"$ref": REF.format(name="Failure")}}}
    return {status: {"description": MEANINGS[status], "content": content} for status in found}


def declare(app: FastAPI) -> None:
    """Add the declared types to the OpenAPI document of an app."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                tags=app.openapi_tags,
            )
            shown = msgspec.json.schema_components(list(_types), ref_template=REF)[1]
            schemas = found.setdefault("components", {}).setdefault("schemas", {})
            schemas.update({**shown, **_schemas})
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
