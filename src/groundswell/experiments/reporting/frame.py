"""The frame of a report: one page that needs nothing else, its head, its contents and its sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groundswell.experiments.reporting.markup import Html, Section, joined, tag, text
from groundswell.experiments.reporting.style import CSS

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the browser lets the page do: show its own styles. Scripts and requests are refused, whoever wrote them."""


class Top(NamedTuple):
    """What a page begins with: what kind of experiment it is about, its title, what came out in a sentence, cards."""

    kicker: str
    title: str
    headline: str
    cards: Sequence[Html]


def card(value: str, what: str, more: str) -> Html:
    """One figure that stands out."""
    return tag("div", tag("b", value), tag("span", what), tag("small", more), class_="card")


def framed(top: Top, sections: Sequence[Section], end: str) -> str:
    """The whole page."""
    head = joined(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            tag("title", top.title),
            Html(f"<style>{CSS}</style>"),
        ]
    )
    foot = tag("footer", text(end))
    body = tag("main", _header(top), _contents(sections), *(_section(each) for each in sections), foot)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def _header(top: Top) -> Html:
    return tag(
        "header",
        tag("p", top.kicker, class_="kicker"),
        tag("h1", top.title),
        tag("p", top.headline, class_="headline"),
        tag("div", *top.cards, class_="cards"),
    )


def _contents(sections: Sequence[Section]) -> Html:
    links = [tag("li", tag("a", section.title, href=f"#{section.id}")) for section in sections]
    return tag("nav", tag("ol", *links), aria_label="Contents")


def _section(section: Section) -> Html:
    heading = tag("h2", section.title, id=f"{section.id}-title")
    whole = tag("section", heading, section.body, id=section.id, aria_labelledby=f"{section.id}-title")
    return joined([Html("\n"), whole])
