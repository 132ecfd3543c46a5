"""The page at /docs: what there is to call, from the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}code{font-size:90%}"


def overview(openapi: Mapping[str, Any]) -> str:
    """All routes, by their tags, each with what it does."""
    title = escape(openapi["info"]["title"])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        f"<h1>{title} {escape(openapi['info']['version'])}</h1>"
        '<p>Requests, answers and examples in full: <a href="/openapi.json">/openapi.json</a>, '
        "which API clients can import.</p>" + "".join(_sections(openapi))
    )


def _sections(openapi: Mapping[str, Any]) -> Iterator[str]:
    tags: dict[str, list[str]] = {}
    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            tag = (route.get("tags") or ["other"])[0]
            about, told = (_marked(route.get(each, "")) for each in ("summary", "description"))
            row = f"<li><code>{method.upper()} {escape(path)}</code> {about}<br><small>{told}</small></li>"
            tags.setdefault(tag, []).append(row)
    for tag, rows in tags.items():
        yield f"<h2>{escape(tag)}</h2><ul>{''.join(rows)}</ul>"


def _marked(text: str) -> str:
    """A text with what stands between backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
