"""Messages for errors in requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from fastapi import Request
from pydantic import BaseModel

LONGEST = 500


def worded(request: Request, error: Mapping[str, Any], place: Sequence[int | str]) -> str:
    """The message for one error at a place in the body of a request."""
    if error.get("type") == "extra_forbidden" and place:
        return _unknown(str(place[-1]), _fields_at(_body_of(request), place[:-1]))
    if error.get("type") == "too_short" and not error["ctx"]["actual_length"]:
        return f"must not be empty; give at least {error['ctx']['min_length']}"
    message: str = error["msg"]
    return message[:1].lower() + message[1:LONGEST]


def _unknown(name: str, known: Sequence[str]) -> str:
    if near := get_close_matches(name, known, 1):
        return f"unknown field; did you mean {near[0]}?"
    return f"unknown field; known fields: {', '.join(known)}" if known else "unknown field; leave it out"


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
