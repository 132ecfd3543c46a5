"""Request bodies: limited in size, and refused unless they are valid JSON or, for imports, CSV."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groundswell.web.envelope import JSON, failure

DEEPEST = 50
LARGEST = 2**63
CSV, FORM, LOGIN = "text/csv", "application/x-www-form-urlencoded", "/login"
TABLES = ("/api/entities/import",)
"""Paths that accept CSV in addition to JSON."""


class JsonBodies:
    """Reads and checks the body of a request, and passes it on as a whole."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        said = headers.get("content-length", "")
        too_large = said.isdigit() and (len(said) > 18 or int(said) > self._most)
        body = b"" if too_large else await self._read(receive)
        if body is None:
            return
        if too_large or len(body) > self._most:
            refused: tuple[int, str] | None = (413, f"the body is too large; the limit is {self._most:,} bytes")
        else:
            refused = _refusal(scope["path"], headers, body) if body else None
        if refused is not None:
            await failure(*refused)(scope, receive, send)
        else:
            await self._app(scope, _again(body, receive), send)

    async def _read(self, receive: Receive) -> bytes | None:
        """The body, read until it exceeds the limit; None if the client disconnected."""
        pieces: list[bytes] = []
        size = 0
        while size <= self._most:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if not message.get("more_body"):
                break
        return b"".join(pieces)


def kind_of(headers: Headers) -> str:
    """The media type of a body."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _refusal(path: str, headers: Headers, body: bytes) -> tuple[int, str] | None:
    kind = kind_of(headers)
    if path == LOGIN and kind == FORM:
        return None
    if kind == CSV and path in TABLES:
        return _unreadable(body)
    if kind != JSON:
        also = f", or CSV with `Content-Type: {CSV}`" if path in TABLES else ""
        return 415, f"send JSON with the header `Content-Type: {JSON}`{also}"
    problem = flaw(body)
    return None if problem is None else (400, f"the body is not valid JSON: {problem}")


def _unreadable(body: bytes) -> tuple[int, str] | None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return 400, f"the body is not valid text: byte {error.start} is not UTF-8"
    return None


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the whole body first, then further messages."""
    given = False

    async def give() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give


def flaw(body: bytes) -> str | None:
    """Why a body is not portable JSON; None if it is."""
    try:
        found = json.loads(
            body.decode(), object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_whole, parse_float=_number
        )
        if b"\\u" in body:
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        return f"byte {error.start} is not UTF-8"
    except UnicodeEncodeError:
        return "it contains half of a surrogate pair"
    except RecursionError:
        return _too_deep()
    except ValueError as error:
        return str(error)
    return _too_deep() if _depth(found) > DEEPEST else None


def _too_deep() -> str:
    return f"it is nested more than {DEEPEST} levels deep"


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name[:100]!r} appears twice")
        found[name] = value
    return found


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def _whole(text: str) -> int:
    number = int(text) if len(text) < 30 else LARGEST
    if not -LARGEST <= number < LARGEST:
        raise ValueError(f"the number {text[:30]} is too large")
    return number


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:30]} is too large")
    return number


def _depth(value: Any) -> int:
    """The nesting depth of lists and objects, up to the limit."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        depth += 1 if any(isinstance(each, dict | list) for each in level) else 0
        level = [each for each in inner if isinstance(each, dict | list)]
    return depth
