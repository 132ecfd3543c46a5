"""The batches that runs have at providers: those in flight, and the last ones that have ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from groundswell.batch_lookup import FoundBatch, total
from groundswell.store.waves import StoredWave
from groundswell.web import events
from groundswell.web.dashboard.pages import page, part
from groundswell.web.provider_batches import ProviderBatchShown, shown
from groundswell.web.services import Here, Services

router = APIRouter(include_in_schema=False)

RECENT = 25


class BatchRow(NamedTuple):
    """A batch in flight: what the API shows, and the seconds until its deadline."""

    batch: ProviderBatchShown
    left: float | None
    cancellable: bool


class View(NamedTuple):
    """All that the page shows. `usd` is None if no cost is known."""

    rows: Sequence[BatchRow]
    requests: int
    usd: float | None
    unknown: int
    ended: Sequence[StoredWave]
    now: float


@router.get("/batches")
async def batches(here: Here, request: Request) -> Response:
    """The batches in flight, and recent ones."""
    values: dict[str, Any] = {"stream": "/batches/stream", "view": _view(here)}
    return page(here, request, "batches.html", title="Batches", active="batches", **values)


@router.get("/batches/stream")
async def stream(here: Here) -> Response:
    """The lists, whenever they change."""

    def look() -> events.Moment:
        view = _view(here)
        parts = {"in-flight": "in_flight", "ended": "ended"}
        return events.Moment({id_: part("batch_parts.html", name, view) for id_, name in parts.items()}, False)

    return events.part_stream(here, "provider batches", look)


def _view(here: Services) -> View:
    now = time.time()
    found = [here.batch_states.batch_of(wave) for wave in here.store.waves.open()]
    sums = total(found)
    rows = [_row(each, now) for each in found]
    return View(rows, sums["requests"], sums["usd"], sums["unknown"], here.store.waves.ended(RECENT), now)


def _row(found: FoundBatch, now: float) -> BatchRow:
    info = found.info
    left = None if info is None or info.expires_at is None or not info.open else info.expires_at - now
    going = info is None or (info.open and info.state != "cancelling")
    return BatchRow(shown(found, now), left, going and found.batch is not None)
