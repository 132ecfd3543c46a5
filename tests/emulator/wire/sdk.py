"""The official clients' own models as judges of what we write."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def judged(model: type[M], data: Any) -> M:
    """The data as the client's model reads it from JSON, with nothing in it that the model does not know."""
    read = model.model_validate_json(msgspec.json.encode(data))
    strange = list(_strangers(read, model.__name__))
    assert strange == []
    return read


def _strangers(value: Any, path: str) -> Any:
    if isinstance(value, BaseModel):
        yield from (f"{path}.{name}" for name in value.model_extra or ())
        for name in type(value).model_fields:
            yield from _strangers(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from _strangers(one, f"{path}[{at}]")


def events(stream: Any) -> list[Any]:
    """The data of server-sent events, as their bytes say; the last of OpenAI's is the string [DONE]."""
    found: list[Any] = []
    for chunk in stream:
        assert chunk.endswith(b"\n\n")
        data = next(line for line in chunk.split(b"\n") if line.startswith(b"data: ")).removeprefix(b"data: ")
        found.append("[DONE]" if data == b"[DONE]" else msgspec.json.decode(data))
    return found
