"""A report on a terminal: the findings, the most important tables, and one transcript."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text as RichText

from groundswell.reporting.blocks import (
    Block,
    Figure,
    KeyFigures,
    Mark,
    Message,
    Report,
    Table,
    Text,
    Transcript,
    narrowed,
    pieces,
)
from groundswell.reporting.numbers import worded
from groundswell.reporting.words import clipped, visible

MOST_ROWS = 30
MOST_IN_CELL = 100
MOST_MESSAGES = 12
MOST_SAID = 240
"""Maximum number of characters of a message: its beginning, or the text around its first mark."""
_WIDE = Console(width=10_000)
STYLES = {
    "orange": "bold red",
    "orange-dashed": "red",
    "orange-dotted": "red",
    "yellow": "yellow",
    "green": "green",
    "removed": "strike",
}


def brief(report: Report, width: int | None = None) -> Iterator[RenderableType]:
    """The summary at the end of a command, for a terminal of this width."""
    for block in report.brief:
        yield ""
        yield from block_lines(block, width)
    if (found := report.example) is not None:
        yield ""
        yield from transcript(found[1])


def block_lines(block: Block, width: int | None = None) -> Iterator[RenderableType]:
    """One block."""
    match block:
        case Text():
            if block.title and block.id != "findings":
                yield RichText(visible(block.title), "bold")
            yield from (visible(line) for line in block.lines)
            for each in block.passages:
                yield RichText(visible(each.title), "bold")
                yield visible(each.text)
        case KeyFigures():
            yield from (visible(f"{each.label}: {each.value} {each.note}".rstrip()) for each in block.figures)
        case Figure() | Table():
            if block.title:
                yield RichText(visible(block.title), "bold")
            yield table(block, width)
            if len(block.rows) > MOST_ROWS:
                yield f"… {len(block.rows) - MOST_ROWS:,} more rows in the report"


def table(block: Table, width: int | None = None) -> RichTable:
    """A table with its first rows. On a narrow terminal, only the first value of a row shows its interval."""
    whole = _table(block, intervals=True)
    if width is None or Measurement.get(_WIDE, _WIDE.options, whole).maximum <= width:
        return whole
    return _table(block, intervals=False)


def _table(block: Table, *, intervals: bool) -> RichTable:
    found = narrowed(block)
    made = RichTable(box=None, pad_edge=False)
    for name, kind in found.columns.items():
        made.add_column(RichText(visible(name)), justify="left" if kind == "text" else "right")
    for row in found.rows[:MOST_ROWS]:
        cells, left = [], len(row) if intervals else 1
        for cell, kind in zip(row, found.columns.values(), strict=True):
            value, interval = worded(cell, kind, counts=False)
            shown = f"{value} ({interval})" if interval and left > 0 else value
            left -= bool(interval)
            cells.append(RichText(visible(clipped(" ".join(shown.split()), MOST_IN_CELL))))
        made.add_row(*cells)
    return made


def transcript(found: Transcript) -> Iterator[RichText]:
    """One transcript, with shortened messages and coloured marks."""
    head = RichText(visible(found.title), "bold")
    head.append(f": {visible(found.outcome)}" if found.outcome else "", "not bold")
    yield head
    for fact in found.facts:
        yield RichText(f"  {visible(fact)}", "dim")
    for message in found.messages[:MOST_MESSAGES]:
        yield _said(message)
    if len(found.messages) > MOST_MESSAGES:
        yield RichText(f"  … {len(found.messages) - MOST_MESSAGES:,} more messages", "dim")
    for note in found.notes:
        yield RichText(f"  {visible(' '.join(note.split()))}", "dim")


def _said(message: Message) -> RichText:
    said = RichText(f"  {visible(message.speaker)}: ", "bold")
    if message.thought:
        said.append(f"*{visible(_flat(message.thought, MOST_SAID))}* ", "italic dim not bold")
    start, end = _window(message)
    said.append("…" if start else "", "not bold")
    for piece in pieces(message.text[start:end], [_moved(mark, start) for mark in message.marks]):
        words, look = (piece, "") if isinstance(piece, str) else (piece[0], piece[1])
        shown = words.replace("\n", " ")
        said.append(shown, STYLES.get(look, "not bold"))
    said.append("…" if end < len(message.text) else "", "not bold")
    return said


def _moved(mark: Mark, by: int) -> Mark:
    return mark._replace(start=max(0, mark.start - by), end=mark.end - by)


def _window(message: Message) -> tuple[int, int]:
    """The part of a message that is shown: its beginning, unless the first mark comes later."""
    length, first = len(message.text), min((mark.start for mark in message.marks), default=0)
    start = 0 if length <= MOST_SAID or first < MOST_SAID - 40 else first - MOST_SAID // 2
    return start, min(length, start + MOST_SAID)


def _flat(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}…"
