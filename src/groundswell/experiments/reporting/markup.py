"""HTML from parts. Text becomes HTML in `text` alone, which escapes it; everything else here is made of its results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from groundswell.reporting.words import clipped, visible

MOST_IN_CELL = 300
MOST_ROWS = 40
"""A table with more is shown when it is asked for."""


class Html(str):
    """Text that is HTML already: safe to put on a page as it is."""

    __slots__ = ()


class Section(NamedTuple):
    """A part of the page with a heading of its own."""

    id: str
    title: str
    body: Html


class Number(str):
    """The text of a cell with a figure in it: it stands to the right, and further lines are small."""

    __slots__ = ()


def text(words: str, most: int | None = None) -> Html:
    """Any text as HTML that shows it and does nothing else."""
    return Html(escape(visible(words if most is None else clipped(words, most))))


def joined(parts: Iterable[Html]) -> Html:
    """Parts one after the other."""
    return Html("".join(parts))


def tag(name: str, *parts: str, **attributes: str) -> Html:
    """An element. Parts that are not HTML are text; `class_` is the class, and `aria_label` becomes aria-label."""
    told = "".join(f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    body = "".join(part if isinstance(part, Html) else text(part) for part in parts)
    return Html(f"<{name}{told}>{body}</{name}>")


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A table with its caption. The first cell of a row is its heading; a heading begins with > if figures are below.

    It scrolls on its own where the screen is too narrow, and is folded where it is long.
    """
    top = [_cell("th", Number(head[1:]) if head.startswith(">") else head, scope="col") for head in heads]
    body = [tag("tr", _cell("th", row[0], scope="row"), *(_cell("td", cell) for cell in row[1:])) for row in rows]
    whole = _wide(tag("table", tag("thead", tag("tr", *top)), tag("tbody", *body)), caption)
    if len(body) > MOST_ROWS:
        whole = tag("details", tag("summary", f"{len(body):,} rows"), whole)
    return tag("figure", tag("figcaption", caption), whole)


def _cell(name: str, words: str, **attributes: str) -> Html:
    """A cell. Of a figure, what stands in further lines is small."""
    if not isinstance(words, Number):
        return tag(name, text(words, MOST_IN_CELL), **attributes)
    first, *rest = words.split("\n")
    return tag(name, first, *(tag("small", line) for line in rest), **attributes, class_="n")


def drawing(svg: Html, caption: str) -> Html:
    """A drawing with its caption."""
    return tag("figure", _wide(svg, caption), tag("figcaption", caption))


def _wide(inner: Html, label: str) -> Html:
    """Something that scrolls where it is wider than the screen, by keys too."""
    return tag("div", inner, class_="wide", role="region", aria_label=label, tabindex="0")


def paragraph(words: str, class_: str = "") -> Html:
    """A paragraph of text."""
    return tag("p", words, class_=class_) if class_ else tag("p", words)
