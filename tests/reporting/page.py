"""What a notebook makes of an object: its HTML, read with the parser of the standard library."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Protocol

ALLOWED = {"div", "b", "small", "span", "table", "tr", "td", "details", "summary"}


class Shown(Protocol):
    """Anything that a notebook shows as HTML."""

    def _repr_html_(self) -> str: ...


class Page(HTMLParser):
    """The text of a page and where it stands. Tags must be balanced, and be known to do nothing."""

    def __init__(self, shown: Shown) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self.source = shown._repr_html_()
        self.source.encode()
        self.feed(self.source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        assert {name for name, _ in attrs} <= {"style", "dir"}
        assert not any("url" in (value or "") for _, value in attrs)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    @property
    def text(self) -> str:
        """All text of the page."""
        return "".join(text for _, text in self.texts)

    def inside(self, tag: str) -> list[str]:
        """The texts inside elements of a kind."""
        return [text for path, text in self.texts if tag in path]
