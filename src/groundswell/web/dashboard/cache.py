"""The cache of replies: its size, and clearing it."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from groundswell.web.cache import content
from groundswell.web.dashboard.pages import page
from groundswell.web.services import Here

router = APIRouter(include_in_schema=False)

CHOICES = (7, 30, 90, 365)
"""Ages in days to choose from."""


@router.get("/cache")
async def cache(here: Here, request: Request) -> Response:
    """What the cache holds, and what it has saved."""
    found = await here.heavy(lambda: content(here))
    file_bytes = here.store.database.size()
    values: dict[str, Any] = {"kept": found, "file_bytes": file_bytes, "now": time.time(), "choices": CHOICES}
    return page(here, request, "cache.html", title="Cache", active="cache", **values)
