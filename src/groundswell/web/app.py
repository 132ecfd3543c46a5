"""The FastAPI application: routes, errors, limits and the OpenAPI document."""

from __future__ import annotations

import time
from functools import partial

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse, RedirectResponse, Response

from groundswell.experiments.experiment import experiment_names
from groundswell.known_models import examine
from groundswell.reporting.api_page import api_page
from groundswell.version import __version__
from groundswell.web import batches, entities, entity_files, entity_types, labels, provider_batches, runs, simulations
from groundswell.web.bodies import JsonBodies
from groundswell.web.cache import router as cache_router
from groundswell.web.dashboard import PAGES
from groundswell.web.dashboard.pages import error_page
from groundswell.web.envelope import answer_errors, refuse_unknown_queries, success
from groundswell.web.experiments import router_for
from groundswell.web.schema import answers, declare, errors
from groundswell.web.security import HEALTH
from groundswell.web.services import Here, Services

ABOUT = """
Run experiments with language models, follow them, and read their results.

Every JSON response is `{"status": "success", "data": ...}` or `{"status": "error", "message": ..., "errors": [...]}`.
"""

router = APIRouter(tags=["server"])
ROUTERS = (
    router,
    batches.router,
    batches.contrasts,
    simulations.router,
    entity_types.of_templates,
    entity_types.router,
    entity_files.router,  # before the next one: `export` is not an id
    entities.router,
    runs.router,
    labels.router,
    provider_batches.router,
    cache_router,
)


class Health(msgspec.Struct, frozen=True):
    """The state of the server. `running` and `waiting` count runs; `model` is the default model."""

    status: str
    version: str
    running: int
    waiting: int
    model: str
    uptime_seconds: float


class ModelShown(msgspec.Struct, frozen=True):
    """A model, or a family of models: `MODEL` and `NAME` are placeholders. `lacks` lists what to set or install."""

    model: str
    usable: bool
    about: str
    lacks: list[str]


def create_app(services: Services) -> FastAPI:
    """The application. The caller starts and closes the services."""
    settings = services.settings
    app = FastAPI(
        title="Groundswell",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(refuse_unknown_queries)],
    )
    app.state.services = services
    routers = (*ROUTERS, router_for(experiment_names()), *PAGES)
    for each in routers:
        app.include_router(each)
    app.state.routes = [route for each in routers for route in each.routes]
    answer_errors(app, partial(error_page, services))
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


@router.get(HEALTH, summary="Check the server", responses={**answers(Health, "The server is up."), **errors()})
async def health(here: Here) -> Response:
    """Return the version and the number of runs in progress. Needs no token."""
    background = here.background
    uptime = round(time.monotonic() - here.began, 3)
    return success(Health("ok", __version__, background.running, background.waiting, here.model, uptime))


@router.get("/", include_in_schema=False)
async def start() -> Response:
    """Redirect to the dashboard."""
    return RedirectResponse("/runs")


@router.get("/api/models", summary="List models", responses={**answers(list[ModelShown], "The models."), **errors()})
async def models(here: Here) -> Response:
    """List the models that requests may name, and what is missing to use them. No provider is contacted."""
    return success(await here.heavy(lambda: _models(here)))


def _models(here: Services) -> list[ModelShown]:
    """The models without paths and addresses, which clients must not see."""
    found = examine(here.settings.account)
    known = [
        *((one["model"], one["usable"], one["about"], one["lacks"]) for one in (*found["local"], found["sentences"])),
        *((one["model"], one["usable"], "", one["lacks"]) for one in found["accounts"]),
        *((name, True, f"alias of {model}", []) for name, model in (found["short_names"] | found["aliases"]).items()),
        *((model, True, "an emulated model", []) for model in found["emulated"]),
    ]
    return [ModelShown(*each) for each in known if not each[0].endswith("/PATH")]


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """A plain page without scripts, which works offline."""
    return HTMLResponse(api_page(request.app.openapi()))
