"""/api/cache: the replies that runs share."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from groundswell.reporting.words import freed
from groundswell.web.envelope import Confirmation, success
from groundswell.web.schema import answers, errors
from groundswell.web.services import Here, Services

router = APIRouter(prefix="/api/cache", tags=["cache"])

DAY = 86_400.0

Days = Annotated[
    float | None, Query(ge=0, le=100_000, description="Remove only replies that are older than this many days.")
]


class CacheShown(msgspec.Struct, frozen=True):
    """The content of the cache. `reused` counts the requests of all runs that the cache has answered. `oldest` and
    `newest` are Unix times."""

    replies: int
    bytes: int
    oldest: float | None
    newest: float | None
    input_tokens: int
    output_tokens: int
    reused: int


class Cleared(msgspec.Struct, frozen=True):
    """The result of clearing: replies removed and left, and the bytes by which the file shrank."""

    removed: int
    kept: int
    freed_bytes: int
    message: str


@router.get("", summary="Get the cache", responses={**answers(CacheShown, "The content of the cache."), **errors()})
async def get(here: Here) -> Response:
    """Return how many replies are cached, how old they are, and how many tokens they save if all are used again."""
    return success(await here.heavy(lambda: content(here)))


@router.delete("", summary="Clear the cache", responses={**answers(Cleared, "What was removed."), **errors()})
async def clear(here: Here, older_than_days: Days = None) -> Response:
    """Remove all replies, or old ones, and shrink the file if no run is in progress. Later runs send those requests
    again. Existing runs keep their replies in their journals."""
    return success(await here.heavy(lambda: _cleared(here, older_than_days)))


@router.post("/shrink", summary="Shrink the store", responses={**answers(Confirmation, "What was freed."), **errors()})
async def shrink(here: Here) -> Response:
    """Give the free space of the store file back to the disk. The file keeps it while a run is in progress, or if
    little is free."""
    space = await here.heavy(here.store.cache.shrink)
    told = freed(space.freed, space.reused)
    return success(Confirmation(f"{told[0].upper()}{told[1:]}."))


def content(here: Services) -> CacheShown:
    """The content of the cache."""
    return CacheShown(**here.store.cache.kept()._asdict(), reused=here.store.cache.reused())


def _cleared(here: Services, days: float | None) -> Cleared:
    cache = here.store.cache
    removed = cache.clear(None if days is None else time.time() - days * DAY)
    space = cache.shrink() if removed else None
    left = cache.kept().replies
    told = "" if space is None else f"; {freed(space.freed, space.reused)}"
    count = f"{removed:,} {'reply' if removed == 1 else 'replies'}"
    return Cleared(removed, left, 0 if space is None else space.freed, f"{count} removed, {left:,} kept{told}.")
