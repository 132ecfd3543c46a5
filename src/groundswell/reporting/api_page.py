"""The page at /docs of a server: its endpoints, from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundswell.reporting.page import template


def api_page(openapi: Mapping[str, Any]) -> str:
    """All endpoints by tag, with their descriptions."""
    tags: dict[str, list[dict[str, Any]]] = {}
    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            shown = {name: _pieces(route.get(name, "")) for name in ("summary", "description")}
            tag = (route.get("tags") or ["other"])[0]
            tags.setdefault(tag, []).append({"method": method.upper(), "path": path, **shown})
    return template("api.html").render(info=openapi["info"], tags=tags)


def _pieces(text: str) -> list[tuple[str, bool]]:
    """A text split at its backticks: parts between two of them are code."""
    return [(words, bool(at % 2)) for at, words in enumerate(text.split("`"))]
