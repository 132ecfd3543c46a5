"""A report as one self-contained HTML page: no network, no other files. Text from models is always escaped.

Transcripts are packed in chunks (JSON, compressed, base64), and a small script unpacks those that are viewed. A content
security policy allows only that script, and forbids loading anything.
"""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec
from jinja2 import BaseLoader, Environment, FunctionLoader, StrictUndefined, Template

from groundswell.reporting.blocks import (
    PARTS,
    Block,
    Figure,
    Mark,
    Message,
    Piece,
    Report,
    Table,
    Transcript,
    Transcripts,
    cells_as_columns,
    pieces,
)
from groundswell.reporting.figures import on_page, on_paper, svg_of
from groundswell.reporting.numbers import worded
from groundswell.reporting.words import clipped, visible
from groundswell.store.tables import csv_text

CHUNK = 400_000
"""Bytes of transcripts per chunk."""
MOST_FINDINGS = 6
"""Findings that are shown at once, so that key figures and the first figure are near the top. The rest is folded."""
FOLDED_FROM = 40
"""Tables with more rows are folded."""
MOST_ROWS = 1_000
"""Maximum number of rows of a table on the page. The CSV download has all of them."""
MOST_IN_CELL = 300
MOST_VALUES = 200
"""Maximum number of values of a filter. The most frequent ones are offered."""


def page_of(report: Report, drawn: Mapping[str, str] | None = None) -> str:
    """The whole page. `drawn` contains figures that are already rendered, by id."""
    parts = {part: [block for block in report.blocks if block.part == part] for part in PARTS}
    return template("page.html").render(
        report=report,
        parts={part: blocks for part, blocks in parts.items() if blocks},
        headings=PARTS,
        css=asset("page.css"),
        script=asset("page.js"),
        policy=policy(),
        drawings=drawn or {},
    )


def policy() -> str:
    """The content security policy: inline styles and the page's own script. The page can load nothing."""
    digest = base64.b64encode(sha256(asset("page.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def asset(name: str) -> str:
    """A template, style sheet or script of reports."""
    return (files("groundswell.reporting") / "templates" / name).read_text(encoding="utf-8")


@cache
def template(name: str) -> Template:
    """A template of reports, with automatic escaping."""
    return environment(FunctionLoader(asset)).get_template(name)


def environment(loader: BaseLoader) -> Environment:
    """An environment for templates that show blocks. `blocks.html` has a macro for each kind of block."""
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters |= {
        "visible": visible,
        "rows": _rows,
        "pieces": pieces,
        "csv": _csv,
        "drawn": _drawn,
        "packed": _packed,
        "type": _type,
    }
    made.globals |= {
        "most_rows": MOST_ROWS,
        "most_findings": MOST_FINDINGS,
        "folded_from": FOLDED_FROM,
        "drawings": {},
    }
    return made


def _type(block: Block) -> str:
    return type(block).__name__.lower()


class _Cell(NamedTuple):
    tag: str
    text: str
    interval: str
    number: bool


def _rows(table: Table) -> Iterator[list[_Cell]]:
    kinds = list(table.columns.values())
    for row in table.rows[:MOST_ROWS]:
        made = []
        for at, (cell, kind) in enumerate(zip(row, kinds, strict=True)):
            text, interval = worded(cell, kind)
            made.append(_Cell("td" if at else "th", visible(clipped(text, MOST_IN_CELL)), interval, kind != "text"))
        yield made


def _csv(table: Table) -> str:
    return base64.b64encode(csv_text(*cells_as_columns(table)).encode()).decode()


def _drawn(block: Figure, drawings: Mapping[str, str]) -> dict[str, str]:
    svg = drawings.get(block.id) or svg_of(block)
    return {"svg": on_page(block, svg), "file": base64.b64encode(on_paper(block, svg)).decode()}


@dataclass(frozen=True)
class Packed:
    """Transcripts as stored in the page: the filters, the index and the chunks."""

    count: int
    filters: dict[str, list[tuple[str, int]]]
    index: str
    chunks: list[str]


def _packed(block: Transcripts) -> Packed:
    tags: list[dict[str, list[str]]] = []
    chunks: list[str] = []
    sizes: list[int] = []
    held: list[bytes] = []
    for item in block.items():
        tags.append(item.tags)
        held.append(msgspec.json.encode(_encoded(item)))
        if sum(map(len, held)) > CHUNK:
            chunks.append(_pack(held))
            sizes.append(len(held))
            held = []
    if held:
        chunks.append(_pack(held))
        sizes.append(len(held))
    filters = {visible(name): filter_values(name, tags) for name in block.filters}
    filters = {name: values for name, values in filters.items() if any(many < len(tags) for _, many in values)}
    codes = {name: {value: at for at, (value, _) in enumerate(values)} for name, values in filters.items()}
    index = {
        "sizes": sizes,
        "tags": {
            visible(name): [[codes[visible(name)].get(value, -1) for value in each.get(name, ())] for each in tags]
            for name in block.filters
            if visible(name) in codes
        },
    }
    return Packed(len(tags), filters, _packed_text(msgspec.json.encode(index)), chunks)


def filter_values(name: str, tags: Sequence[dict[str, list[str]]]) -> list[tuple[str, int]]:
    """The values of a filter with their number of transcripts: numbers in order, words by frequency."""
    counts = Counter(value for each in tags for value in dict.fromkeys(each.get(name, ())))
    most = counts.most_common(MOST_VALUES)
    numbers = all(value.isdecimal() and len(value) < 10 for value, _ in most)
    return sorted(most, key=lambda each: int(each[0])) if numbers else most


def _pack(held: Sequence[bytes]) -> str:
    return _packed_text(b"[" + b",".join(held) + b"]")


def _packed_text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 6)).decode()


def _encoded(item: Transcript) -> dict[str, Any]:
    """A transcript as the script expects it, with control characters escaped."""
    found: dict[str, Any] = {"key": visible(item.key), "title": visible(item.title), "outcome": visible(item.outcome)}
    if item.facts:
        found["facts"] = [visible(fact) for fact in item.facts]
    if item.messages:
        found["messages"] = [_message(each) for each in item.messages]
    if item.notes:
        found["notes"] = [visible(note) for note in item.notes]
    return found


def _message(each: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"speaker": visible(each.speaker), "text": _text(each.text, each.marks)}
    if each.side:
        found["side"] = each.side
    if each.note:
        found["note"] = visible(each.note)
    if each.thought:
        found["thought"] = _text(each.thought, each.thought_marks)
    return found


def _text(text: str, marks: Sequence[Mark]) -> str | list[Piece]:
    return pieces(text, marks) if marks else visible(text)
