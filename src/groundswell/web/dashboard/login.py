"""Logging in with the token of the server, and links that share one run."""

from __future__ import annotations

import logging
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from groundswell.web.access import SESSION, SESSION_SECONDS, SHARE, Signer, scheme_of
from groundswell.web.dashboard.pages import page
from groundswell.web.envelope import ApiError
from groundswell.web.services import Here, Services

router = APIRouter(include_in_schema=False)
log = logging.getLogger("groundswell.web")

LONGEST_ADDRESS = 100


@router.get("/login")
async def login(here: Here, request: Request, next: str = "/") -> Response:
    """The login page."""
    if here.settings.token is None:
        return RedirectResponse("/", 303)
    return page(here, request, "login.html", title="Log in", active="", next=local_address(next), wrong=False)


@router.post("/login")
async def log_in(here: Here, request: Request, next: str = "/") -> Response:
    """Exchange the token for a cookie."""
    signer = _signer(here)
    found = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
    if not signer.is_token(found.get("token", "")):
        forwarded = request.headers.get("x-forwarded-for", "")[:LONGEST_ADDRESS]
        address = request.client.host if request.client is not None else "an unknown address"
        log.warning(
            "wrong token at the login from %s%s", address, f", forwarded for {forwarded!r}" if forwarded else ""
        )
        await here.wrong_logins.wait()
        return page(here, request, "login.html", 401, title="Log in", active="", next=local_address(next), wrong=True)
    answer = RedirectResponse(local_address(next), 303)
    _set(answer, request, SESSION, signer.session(), SESSION_SECONDS)
    return answer


@router.post("/logout")
async def log_out() -> Response:
    """Remove the cookies."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(SESSION)
    answer.delete_cookie(SHARE)
    return answer


@router.get("/share/{signed}")
async def share(here: Here, request: Request, signed: str) -> Response:
    """Open a share link: keep it as a cookie, and show the run."""
    run = _signer(here).shared_run(signed)
    if run is None:
        raise ApiError(403, "this link has expired or is not complete; ask for a new one")
    answer = RedirectResponse(f"/runs/{run}/results", 303)
    _set(answer, request, SHARE, signed, SESSION_SECONDS)
    return answer


def _signer(here: Services) -> Signer:
    if here.settings.token is None:
        raise ApiError(404, "this server has no token, so there is nothing to log in to")
    return Signer(here.settings.token)


def _set(answer: Response, request: Request, name: str, value: str, seconds: int) -> None:
    encrypted = scheme_of(request) == "https"
    answer.set_cookie(name, value, max_age=seconds, httponly=True, samesite="lax", secure=encrypted)


def local_address(address: str) -> str:
    """An address of this server; the start page for any other."""
    local = address.startswith("/") and not address.startswith("//")
    return address if local and "\\" not in address and address.isprintable() else "/"
