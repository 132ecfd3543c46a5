"""The JSON envelope of every response, and the handlers that put errors into it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from groundswell.errors import Conflict, GroundswellError, NotFound, RunBusy, RunError, SettingsError, StoreError
from groundswell.store.file import OF_THE_DISK

log = logging.getLogger("groundswell.web")

JSON = "application/json"
WHERE = ("body", "query", "path", "header")
NO_DISK = "the store is not available; see the server log for the reason"
MOST_SHOWN = 100
"""Maximum number of errors in one response."""
LONGEST_MESSAGE = 500
"""Maximum number of characters of the message for a field."""


class FieldError(msgspec.Struct, frozen=True):
    """An error in one field of a request."""

    field: str
    message: str


class Failure(msgspec.Struct, frozen=True, tag_field="status", tag="error"):
    """The body of every error response."""

    message: str
    errors: list[FieldError] = []


class Started(msgspec.Struct, frozen=True):
    """The id of something that was started, cancelled or resumed."""

    id: str
    message: str


class Confirmation(msgspec.Struct, frozen=True):
    """A confirmation."""

    message: str


class ApiError(GroundswellError):
    """Ends a request with this status."""

    def __init__(self, status: int, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field


def success(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A success response."""
    body = b'{"status":"success","data":' + msgspec.json.encode(data) + b"}"
    return Response(body, status, headers, JSON)


def page(data: Sequence[Any], total: int) -> Response:
    """One page of a list, with its total length."""
    return success(data, headers={"X-Total-Count": str(total)})


def failure(
    status: int, message: str, errors: Iterable[FieldError] = (), headers: Mapping[str, str] | None = None
) -> Response:
    """An error response."""
    return Response(msgspec.json.encode(Failure(message, list(errors))), status, headers, JSON)


def wants_page(headers: Headers, path: str) -> bool:
    """Whether a browser opens a page, so that the answer must be one too."""
    return not path.startswith("/api") and "text/html" in headers.get("accept", "")


ErrorPage = Callable[[Request, int, str], Response]
Handler = Callable[[Request, Exception], Awaitable[Response]]


def answer_errors(app: FastAPI, as_page: ErrorPage) -> None:
    """Answer every error of an app: in the envelope, or as a page if a browser opens a page."""

    def answering(handler: Handler) -> Handler:
        async def answer(request: Request, error: Exception) -> Response:
            found = await handler(request, error)
            if not wants_page(request.headers, request.url.path):
                return found
            message = msgspec.json.decode(found.body, type=Failure).message
            return as_page(request, found.status_code, message)

        return answer

    app.add_exception_handler(ApiError, answering(_refused))
    app.add_exception_handler(GroundswellError, answering(_known))
    app.add_exception_handler(OSError, answering(_of_system))
    app.add_exception_handler(RequestValidationError, answering(_invalid))
    app.add_exception_handler(HTTPException, answering(_http))
    app.add_exception_handler(Exception, answering(_unknown))


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return failure(error.status, str(error), _fields(error.field, str(error)))


async def _known(_: Request, error: Exception) -> Response:
    """A known error with its HTTP status."""
    if isinstance(error, SettingsError):
        return failure(422, str(error), _fields(error.field, str(error)))
    if isinstance(error, NotFound):
        return failure(404, str(error))
    if isinstance(error, RunBusy):
        return failure(409, "this run is in progress: wait until it has ended, or cancel it first")
    if isinstance(error, RunError | Conflict):
        return failure(409, str(error))
    log.error("%s: %s", type(error).__name__, error)
    if isinstance(error, StoreError):
        return failure(503, NO_DISK)
    return await _unknown(_, error)


async def _of_system(_: Request, error: Exception) -> Response:
    """An error of the operating system. Disk errors get status 503, since a later attempt may succeed."""
    if isinstance(error, OSError) and error.errno in OF_THE_DISK:
        log.error("%s: %s", type(error).__name__, error)
        return failure(503, NO_DISK)
    log.error("%s: %s", type(error).__name__, error, exc_info=error)
    return await _unknown(_, error)


async def _invalid(request: Request, error: Exception) -> Response:
    """A request that does not match its schema, with an error per field."""
    assert isinstance(error, RequestValidationError)
    errors = [
        FieldError(_place(each["loc"]), _field_message(request, each, each["loc"][1:]))
        for each in error.errors()[:MOST_SHOWN]
    ]
    told = ", ".join(dict.fromkeys(each.field for each in errors))
    return failure(422, f"the request is not valid: {told}", errors)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = _allowed(request) or (error.headers or {}).get("Allow", "GET")
        return failure(405, f"this method is not allowed here; allowed: {allowed}", headers={"Allow": allowed})
    nothing = "no such endpoint; see /docs for a list"
    return failure(error.status_code, nothing if error.status_code == 404 else str(error.detail), headers=error.headers)


def _allowed(request: Request) -> str:
    """The methods allowed at a path. Each may have its own route."""
    routes = [each for each in request.app.state.routes if each.matches(request.scope)[0] is not Match.NONE]
    fewest = min((each.path.count("{") for each in routes), default=0)  # `export` is a path, not an id
    return ", ".join(sorted({method for each in routes if each.path.count("{") == fewest for method in each.methods}))


async def _unknown(_: Request, error: Exception) -> Response:
    """An unexpected error. It is logged, and the client sees no internals."""
    return failure(500, "internal error; see the server log")


async def refuse_unknown_queries(request: Request) -> None:
    """Refuse unknown query parameters, since a misspelt one would be ignored silently."""
    route = request.scope.get("route")
    known = [each.alias for each in getattr(getattr(route, "dependant", None), "query_params", ())]
    for name in request.query_params:
        if name not in known:
            there = _did_you_mean(name, known, "known", "this endpoint has none")
            raise ApiError(422, f"{name[:100]}: unknown query parameter; {there}", field=name[:100])


def _field_message(request: Request, error: Mapping[str, Any], place: Sequence[int | str]) -> str:
    """The message for one error at a place in the body of a request."""
    if error.get("type") == "extra_forbidden" and place:
        known = _fields_at(_body_of(request), place[:-1])
        return f"unknown field; {_did_you_mean(str(place[-1]), known, 'known fields', 'leave it out')}"
    if error.get("type") == "too_short" and not error["ctx"]["actual_length"]:
        return f"must not be empty; give at least {error['ctx']['min_length']}"
    message: str = error["msg"]
    return message[:1].lower() + message[1:LONGEST_MESSAGE]


def _did_you_mean(name: str, known: Sequence[str], others: str, none: str) -> str:
    """The known name that is most like an unknown one, or all known names, or that there are none."""
    if near := get_close_matches(name, known, 1):
        return f"did you mean {near[0]}?"
    return f"{others}: {', '.join(known)}" if known else none


def _body_of(request: Request) -> Any:
    """The body type that a route declares; None if it parses the body itself."""
    params = getattr(getattr(request.scope.get("route"), "dependant", None), "body_params", ())
    return params[0].field_info.annotation if params else None


def _fields_at(kind: Any, place: Sequence[int | str]) -> list[str]:
    """The known fields at a place of a body."""
    model = _model_in(kind)
    for part in place:
        if isinstance(part, str) and model is not None:
            field = model.model_fields.get(part)
            model = None if field is None else _model_in(field.annotation)
    return [] if model is None else list(model.model_fields)


def _model_in(kind: Any) -> type[BaseModel] | None:
    """The model in `list[Model]`, `Model | None` and so on."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((found for each in get_args(kind) if (found := _model_in(each)) is not None), None)


def _fields(field: str | None, message: str) -> list[FieldError]:
    return [] if field is None else [FieldError(field, message)]


def _place(loc: Sequence[int | str]) -> str:
    """The path of a field, for example `questions.0.text`; the part of the request if the whole part is wrong."""
    inside = loc[1:] if loc and loc[0] in WHERE else loc
    return ".".join(str(part) for part in inside) or str(loc[0] if loc else "body")
