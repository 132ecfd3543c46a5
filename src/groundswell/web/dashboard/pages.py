"""What all pages share: templates, static files, errors shown as pages, and parts that a stream replaces.

A page extends `base.html`. It can name a stream, whose events contain parts of the page by their id, and `dashboard.js`
puts them in place. Every template escapes what it shows, and the content security policy allows only our own scripts.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Query, Request
from jinja2 import Environment, FunctionLoader
from starlette.responses import HTMLResponse, Response

from groundswell.reporting import page as reports
from groundswell.reporting.numbers import percent
from groundswell.reporting.words import age, cost, duration, size
from groundswell.web.access import ALL, SHARED, THEME, access_of
from groundswell.web.envelope import ApiError
from groundswell.web.services import Services

router = APIRouter(include_in_schema=False)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
"""Only scripts of this server. Styles may be inline: charts set theirs with scripts."""
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
THEMES = ("light", "dark")
AT_ONCE = 50
"""The number of rows of a list on one page."""
Text = Annotated[str, Query(max_length=200)]
"""A query parameter: a search text or a filter."""


def page(here: Services, request: Request, name: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from its template. `title` and `active` (the entry in the navigation) are values of every page."""
    theme = request.cookies.get(THEME, "")
    access = access_of(request.scope)
    common = {
        "path": request.url.path,
        "theme": theme if theme in THEMES else "",
        "signed_in": here.settings.token is not None and access == ALL,
        "navigation": access == ALL,
        "read_only": access == SHARED,
        "stream": "",
    }
    html = environment().get_template(name).render(common | values)
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    return HTMLResponse(html, status, headers)


def part(name: str, macro: str, *values: Any) -> str:
    """A part of a page: what a macro of a template returns."""
    module = environment().get_template(name).module
    return str(getattr(module, macro)(*values))


class Pager(NamedTuple):
    """Links from one page of a list to the previous and the next one. `address` makes the address of an offset."""

    total: int
    offset: int
    address: Callable[[int], str]
    back: str = "Newer"
    forward: str = "Older"

    @property
    def end(self) -> int:
        """How many rows there are up to the end of this page."""
        return min(self.offset + AT_ONCE, self.total)

    @property
    def previous(self) -> str:
        """The address of the previous page; empty on the first one."""
        return self.address(max(0, self.offset - AT_ONCE)) if self.offset else ""

    @property
    def next(self) -> str:
        """The address of the next page; empty on the last one."""
        return self.address(self.end) if self.end < self.total else ""


def with_query(path: str, query: Iterable[tuple[str, Any]]) -> str:
    """An address with the parameters that are not empty."""
    given = urlencode([(name, value) for name, value in query if value not in ("", 0)])
    return f"{path}?{given}" if given else path


def indented(value: Any) -> str:
    """A value as JSON that people can read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


@cache
def environment() -> Environment:
    """The templates of the dashboard, and those of reports, whose macros show blocks."""
    made = reports.environment(FunctionLoader(_template))
    made.filters |= {"age": age, "cost": cost, "duration": duration, "percent": percent, "size": size}
    made.globals["static"] = static_url
    return made


def _template(name: str) -> str:
    path = files("groundswell.web.dashboard") / "templates" / name
    return path.read_text(encoding="utf-8") if path.is_file() else reports.asset(name)


def static_url(name: str) -> str:
    """The address of a static file. It changes with the content, so browsers may keep the file forever."""
    return f"/static/{name}?v={_static(name)[1]}"


@router.get("/static/{name}")
async def static(request: Request, name: str, v: str = "") -> Response:
    """A style sheet or script."""
    try:
        body, digest = _static(name)
    except FileNotFoundError:
        raise ApiError(404, f"there is no file {name[:100]!r}") from None
    kept = "public, max-age=31536000, immutable" if v == digest else "no-cache"
    headers = {"Content-Encoding": "gzip", "Cache-Control": kept, "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        del headers["Content-Encoding"]
        body = gzip.decompress(body)
    return Response(body, media_type=TYPES[Path(name).suffix], headers=headers)


@cache
def _static(name: str) -> tuple[bytes, str]:
    """A static file, compressed, and a digest of its content."""
    body = _content(name)
    return gzip.compress(body, 6, mtime=0), sha256(body).hexdigest()[:12]


def _content(name: str) -> bytes:
    if name == "bokeh.js":
        from bokeh.resources import Resources

        return "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw).encode()
    if name == "report.css":
        return (reports.asset("page.css") + _chosen_themes()).encode()
    ours = {each.name: each for each in (files("groundswell.web.dashboard") / "static").iterdir()}
    if name not in ours or Path(name).suffix not in TYPES:
        raise FileNotFoundError(name)
    return ours[name].read_bytes()


def _chosen_themes() -> str:
    """The colours of reports for a theme that the user has chosen, whatever the system prefers."""
    light, dark = re.findall(r":root\{((?:color-scheme[^;]*;)?[^}]*--ink[^}]*)\}", reports.asset("page.css"))
    return (
        f':root[data-theme="light"]{{{light};color-scheme:light}}:root[data-theme="dark"]{{{dark};color-scheme:dark}}'
    )


def error_page(here: Services, request: Request, status: int, message: str) -> HTMLResponse:
    """An error as a page."""
    titles: Mapping[int, str] = {404: "Not found", 403: "Not allowed", 409: "Not possible now", 503: "Not available"}
    title = titles.get(status, "Something went wrong" if status >= 500 else "Not valid")
    return page(here, request, "error.html", status, title=title, active="", message=message)
