"""What the OpenAPI document says of answers: schemas of the very types that are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from groundswell.web.envelope import JSON, Failure

REF = "#/components/schemas/{name}"
MEANINGS = {
    400: "the body is not JSON that can be read",
    401: "a token is needed",
    403: "the request comes from another site",
    404: "there is no such thing",
    409: "not in the state that it is in",
    413: "the body is too large",
    415: "the body is not JSON",
    422: "fields are wrong: `errors` says which, and why",
    429: "too much is waiting",
    503: "not now: the store cannot be used, or the server is stopping",
}
ALWAYS = (401, 403, 422, 503)
WITH_BODY = (400, 413, 415)

_types: list[Any] = [Failure]
_schemas: dict[str, Any] = {}

Responses = dict[int | str, dict[str, Any]]
TOTAL = {"X-Total-Count": {"description": "how many there are in all", "schema": {"type": "integer"}}}


def answers(kind: Any, what: str, *, status: int = 200, example: Any = None, paged: bool = False) -> Responses:
    """An answer with data of a type in the envelope, as a route declares it."""
    _types.append(kind)
    data = msgspec.json.schema_components([kind], ref_template=REF)[0][0]
    schema = {
        "type": "object",
        "required": ["status", "data"],
        "properties": {"status": {"const": "success"}, "data": data},
    }
    content: dict[str, Any] = {"schema": schema}
    if example is not None:
        content["example"] = {"status": "success", "data": example}
    response: dict[str, Any] = {"description": what, "content": {JSON: content}}
    if paged:
        response["headers"] = TOTAL
    return {status: response}


def component(name: str, schema: dict[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """Put a schema, and those that it refers to, into the document under names of its own; returns a reference."""
    _schemas[name] = schema
    _schemas.update({f"{name}.{each}": found for each, found in inner.items()})
    return {"$ref": REF.format(name=name)}


def files(*media: str) -> Responses:
    """An answer that is a file to be saved."""
    content: dict[str, Any] = {each: {"schema": {}} for each in media}
    return {200: {"description": "the file", "content": content}}


def errors(*statuses: int, body: bool = False) -> Responses:
    """The errors of a route, beside those that every route has."""
    found = sorted({*statuses, *ALWAYS, *(WITH_BODY if body else ())})
    content = {JSON: {"schema": {"$ref": REF.format(name="Failure")}}}
    return {status: {"description": MEANINGS[status], "content": content} for status in found}


def declare(app: FastAPI) -> None:
    """Have an app describe itself with the types that its routes declared."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                tags=app.openapi_tags,
            )
            shown = msgspec.json.schema_components(_types, ref_template=REF)[1]
            schemas = found.setdefault("components", {}).setdefault("schemas", {})
            schemas.update({**shown, **_schemas})
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
