"""Pages that are walked through."""

from __future__ import annotations

import base64
import zlib
from html.parser import HTMLParser
from typing import Any

import msgspec

VOID = {"meta", "input", "br", "img"}


class Walked(HTMLParser):
    """A page that was walked through: every element closed in its order, every attribute once."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.strays: list[str] = []
        self.packed: dict[str, list[str]] = {"chunk": [], "index": []}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if len({name for name, _ in attrs}) < len(attrs):
            self.strays.append(f"<{tag}> says something twice")
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.strays.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        kind = (self.elements[-1][1].get("class") or "") if self.elements and self.open[-1:] == ["script"] else ""
        if kind in self.packed:
            self.packed[kind].append(data)
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        self.strays.append(f"a comment: {data}")

    @property
    def well_formed(self) -> bool:
        return not self.open and not self.strays

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.elements}

    @property
    def text(self) -> str:
        return "".join(data for within, data in self.texts if within not in ("style", "script"))

    @property
    def transcripts(self) -> list[dict[str, Any]]:
        """The transcripts that are packed in the page."""
        return [each for chunk in self._packed("chunk") for each in chunk]

    @property
    def index(self) -> dict[str, Any]:
        """Where each transcript is, and its tags."""
        found: dict[str, Any]
        (found,) = self._packed("index")
        return found

    def _packed(self, kind: str) -> list[Any]:
        return [msgspec.json.decode(zlib.decompress(base64.b64decode(text))) for text in self.packed[kind]]
