"""The application: routes, errors, limits, and its description of itself."""

from __future__ import annotations

import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import msgspec
from fastapi import APIRouter, FastAPI, Request
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from groundswell.web import batches, entities, entity_files, entity_types, runs, simulations
from groundswell.web.bodies import JsonBodies
from groundswell.web.envelope import answer_errors, success
from groundswell.web.pages import overview
from groundswell.web.schema import answers, declare, errors
from groundswell.web.security import HEALTH, Guard
from groundswell.web.services import Here, Services
from groundswell.web.settings import ServerSettings

ABOUT = """
Entities talk in a context that you give, alone, in pairs or in groups, many times over.

Every answer is `{"status": "success", "data": ...}` or `{"status": "error", "message": ..., "errors": [...]}`.
"""

router = APIRouter(tags=["server"])
ROUTERS = (
    router,
    batches.router,
    simulations.router,
    entity_types.of_templates,
    entity_types.router,
    entity_files.router,  # before the next: `export` is no id
    entities.router,
    runs.router,
)


class Health(msgspec.Struct, frozen=True):
    """How a server is."""

    status: str
    version: str
    running: int
    waiting: int
    model: str
    uptime_seconds: float


def create_app(services: Services) -> FastAPI:
    """The application, on services that were started and will be closed by whoever made them."""
    settings = services.settings
    app = FastAPI(
        title="Groundswell",
        version=own_version(),
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.services = services
    for each in ROUTERS:
        app.include_router(each)
    app.state.routes = [route for each in ROUTERS for route in each.routes]
    answer_errors(app)
    declare(app)
    app.add_middleware(JsonBodies, most=settings.max_body_bytes)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["X-Total-Count", "Content-Disposition"],
        )
    return app


def guarded(app: FastAPI, settings: ServerSettings) -> ASGIApp:
    """The application as it may be reached from outside."""
    return Guard(app, settings)


@cache
def own_version() -> str:
    """The version of this package."""
    try:
        return version("groundswell")
    except PackageNotFoundError:  # run from a checkout that was not installed
        return "0"


@router.get(HEALTH, summary="How the server is", responses={**answers(Health, "it is there"), **errors()})
async def health(here: Here) -> Response:
    """Needs no token, and tells nothing of what is in the store."""
    background = here.background
    uptime = round(time.monotonic() - here.began, 3)
    return success(Health("ok", own_version(), background.running, background.waiting, here.model, uptime))


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """A plain page without scripts: it works where there is no other network."""
    return HTMLResponse(overview(request.app.openapi()))
