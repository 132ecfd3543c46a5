"""Access checks and security headers, as ASGI middleware around the whole application."""

from __future__ import annotations

import logging
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groundswell.web.access import (
    ALL,
    NOTHING,
    SAFE,
    SESSION,
    SHARE,
    SHARED,
    Signer,
    cookies_of,
    grant,
    keep_own_cookies,
    may_read,
    own_origin,
)
from groundswell.web.envelope import failure, wants_page
from groundswell.web.settings import ServerSettings, is_loopback

log = logging.getLogger("groundswell.web")

HEALTH = "/api/health"
OPEN = ("/login", "/logout", "/share/", "/static/", "/docs", "/openapi.json")
"""Paths, and beginnings of paths, that need no token."""
MOST_HEADERS = 64_000
ELSEWHERE = ("cross-site", "same-site")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class Guard:
    """Checks the origin and the token of a request before its body is read.

    With a token, every path except the health check, the documentation and the login requires it: as a bearer header,
    or as the cookie that the login page sets. A request that changes something by cookie must come from our own pages.
    A share link allows reading one run.

    Without a token, only this machine can reach the server, but so can any page open in a browser on it. So the Host
    header must name this machine, and pages may only call the server if it served them.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._signer = None if settings.token is None else Signer(settings.token)
        self._origins = frozenset(settings.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        whole = False
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
            await failure(431, f"the headers of the request are longer than {MOST_HEADERS:,} bytes")(
                scope, receive, send
            )
            return

        async def sending(message: Message) -> None:
            nonlocal whole
            if message["type"] == "http.response.start":
                _add_headers(MutableHeaders(scope=message), path)
            await send(message)
            whole = message["type"] == "http.response.body" and not message.get("more_body")

        keep_own_cookies(scope)
        refusal = self._refusal(scope, Headers(scope=scope), path)
        if refusal is None:
            try:
                await self._app(scope, receive, sending)
            except Exception:
                log.exception("%s %s failed", scope["method"], path)
                if not whole:  # otherwise the client has its response, and the connection stays usable
                    raise
            return
        await refusal(scope, receive, sending)

    def _refusal(self, scope: Scope, headers: Headers, path: str) -> Response | None:
        """The response to a request that is refused; None if it is allowed."""
        if self._signer is None:
            why = self._stranger(headers, path)
            return None if why is None else failure(403, why)
        method = scope["method"]
        asks_leave = method == "OPTIONS" and "access-control-request-method" in headers  # a preflight has no token
        if path == HEALTH or asks_leave:
            return None
        if any(path == each or (each.endswith("/") and path.startswith(each)) for each in OPEN):
            grant(scope, self._by_cookie(headers, path, method) or NOTHING)
            foreign = method not in SAFE and not own_origin(headers)
            return failure(403, "this form must be sent from a page of this server") if foreign else None
        shown = headers.get("authorization", "")
        scheme, _, token = shown.partition(" ")
        if scheme.lower() == "bearer" and self._signer.is_token(token):
            return None
        if not shown and (access := self._by_cookie(headers, path, method)) is not None:
            if method not in SAFE and not own_origin(headers):
                return failure(403, "a request that changes something must be sent from a page of this server")
            grant(scope, access)
            return None
        if wants_page(headers, path):
            query = scope["query_string"].decode("latin-1")
            return RedirectResponse(f"/login?next={quote(f'{path}?{query}' if query else path)}", 303)
        told = "wrong token" if shown else "missing token"
        why = f"{told}: send the header `Authorization: Bearer TOKEN`"
        return failure(401, why, headers={"WWW-Authenticate": "Bearer"})

    def _by_cookie(self, headers: Headers, path: str, method: str) -> str | None:
        """What the cookies of a request allow; None for nothing."""
        assert self._signer is not None
        cookies = cookies_of(headers)
        if self._signer.is_session(cookies.get(SESSION, "")):
            return ALL
        run = self._signer.shared_run(cookies.get(SHARE, ""))
        return SHARED if run is not None and method in SAFE and may_read(path, run) else None

    def _stranger(self, headers: Headers, path: str) -> str | None:
        """Why a request to a server without a token is refused."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not is_loopback(_name_of(hosts[0])):
            return "this server has no token, so it only answers requests to 127.0.0.1 and localhost"
        own = (f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}")
        strange = [each for each in origins if each not in self._origins and each.lower() not in own]
        elsewhere = headers.get("sec-fetch-site") in ELSEWHERE and path.startswith("/api")
        if strange or (elsewhere and not origins):  # for example an image element with our address
            return "requests from pages of other sites are not allowed; see --cors-origin"
        return None


def _name_of(host: str) -> str:
    """The host name in a Host header, without the port."""
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        return name if not port or port.startswith(":") else ""
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _add_headers(headers: MutableHeaders, path: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"
    headers.setdefault("Referrer-Policy", "no-referrer")  # pages have forms, whose origin must be told
    headers.setdefault("Content-Security-Policy", POLICY)  # report pages have their own
    if path.startswith("/api"):
        headers["Cache-Control"] = "no-store"
