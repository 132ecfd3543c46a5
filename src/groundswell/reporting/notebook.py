"""HTML for notebooks: fragments of bounded size without scripts and style sheets, in the colours of their page.

Every text is escaped with `escaped`. No function here accepts HTML.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from groundswell.reporting.blocks import Block, KeyFigures, Report, Table, Text, narrowed
from groundswell.reporting.figures import on_paper, svg_of
from groundswell.reporting.numbers import worded
from groundswell.reporting.talk import Line, Turn
from groundswell.reporting.words import clipped, plainly, visible

MOST_TEXT = 5_000
MOST_IN_CELL = 1_000
MOST_ROWS = 50
MOST_TALK = 200_000

COLOURS = ("#4c8bf5", "#d9822b", "#2f9e6a", "#a463c9", "#b8960c", "#1f9aa8")
RED = "#d9534f"
STATUS = {
    "completed": "#2f9e6a",
    "running": "#4c8bf5",
    "partial": "#d9822b",
    "stopped": "#d9822b",
    "interrupted": "#d9822b",
    "failed": RED,
}
WRAP = "white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate"
"""Keeps line breaks, and isolates the direction of the text."""
FAINT = "opacity:.65"


def escaped(text: str, most: int = MOST_TEXT) -> str:
    """Any text as safe HTML."""
    return escape(visible(clipped(text, most)))


def fragment(parts: Iterable[str]) -> str:
    """The HTML that `_repr_html_` returns."""
    return f'<div style="line-height:1.45;max-width:60em">{"".join(parts)}</div>'


def heading(title: str, note: str, colour: str | None = None) -> str:
    """A title and a note."""
    mark = "" if colour is None else f'<span style="color:{colour}">● </span>'
    return f"<div>{mark}<b>{escaped(title, MOST_IN_CELL)}</b> {small(note)}</div>"


def small(text: str) -> str:
    """A text in small, faint letters."""
    return f'<small style="{FAINT}">{escaped(text, MOST_IN_CELL)}</small>'


def table(rows: Sequence[tuple[str, str]]) -> str:
    """A table of names and values, up to a maximum number of rows."""
    shown = [_row(name, text) for name, text in rows[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        shown.append(_row("…", f"{len(rows) - MOST_ROWS} more"))
    return f'<table style="border-collapse:collapse;margin:.3em 0">{"".join(shown)}</table>'


def fields(name: str, value: object) -> list[tuple[str, str]]:
    """The rows for a value: one for each of its fields, if it has any."""
    if isinstance(value, dict) and value:
        return [(f"{name}.{plainly(field)}", plainly(part)) for field, part in value.items()]
    return [(name, plainly(value))]


def _row(name: str, text: str) -> str:
    cell = "text-align:left;vertical-align:top;padding:.1em 1em .1em 0"
    return (
        f'<tr><td style="{cell};{FAINT}">{escaped(name, 100)}</td>'
        f'<td style="{cell};{WRAP}" dir="auto">{escaped(text, MOST_IN_CELL)}</td></tr>'
    )


def folded(title: str, text: str) -> str:
    """A text that is shown on demand."""
    return (
        f'<details><summary style="{FAINT}"><small>{escaped(title, 100)}</small></summary>'
        f'<div dir="auto" style="{WRAP};{FAINT}">{escaped(text)}</div></details>'
    )


def quote(who: str, text: str, style: str = "") -> str:
    """A text with its speaker."""
    name = f'<small style="{FAINT}">{escaped(who, 100)}</small> ' if who else ""
    return f'<div dir="auto" style="{WRAP};{style}">{name}{escaped(text)}</div>'


def fault(text: str) -> str:
    """A failure, marked in red."""
    return (
        f'<div dir="auto" style="{WRAP};border:1px solid {RED};border-left-width:4px;padding:.1em .6em">'
        f'<b style="color:{RED}">✗</b> {escaped(text)}</div>'
    )


def talk(turns: Sequence[Turn]) -> Iterator[str]:
    """The turns of a transcript, up to a maximum size. Each speaker has a colour."""
    speakers = dict.fromkeys(turn.speaker for turn in turns)
    colours = {speaker: COLOURS[at % len(COLOURS)] for at, speaker in enumerate(speakers)}
    size = 0
    for at, turn in enumerate(turns):
        size += sum(min(len(line.text), MOST_TEXT) for line in turn.lines)
        if at and size > MOST_TALK:
            yield quote("", f"… {len(turns) - at} more exchanges: print() shows all of them", FAINT)
            return
        yield _turn(turn, colours[turn.speaker])


def _turn(turn: Turn, colour: str) -> str:
    facts = [turn.model, f"[{turn.path}]", turn.note]
    head = f'<b style="color:{colour}">{escaped(turn.speaker, 200)}</b> {small(" · ".join(filter(None, facts)))}'
    earlier = len(turn.lines) - MOST_ROWS
    body = quote("", f"… {earlier} earlier messages", FAINT) if earlier > 0 else ""
    body += "".join(map(_line, turn.lines[-MOST_ROWS:]))
    return f'<div style="margin:.6em 0;padding-left:.7em;border-left:3px solid {colour}">{head}{body}</div>'


def _line(line: Line) -> str:
    match line.kind:
        case "system" | "reasoning":
            return folded(line.who, line.text)
        case "fault":
            return fault(line.text)
        case "reply":
            return quote("", line.text)
        case _:
            return quote(line.who, line.text, FAINT)


def report(found: Report) -> str:
    """The brief blocks of a report, and its figures."""
    parts = [part for block in found.brief for part in _block(block)]
    for each in found.figures:
        image = b64encode(on_paper(each, svg_of(each))).decode()
        words = escaped(f"{each.title}. {each.caption}")
        parts.append(
            f'<figure style="margin:.8em 0"><figcaption><b>{escaped(each.title)}</b></figcaption>'
            f'<img alt="{words}" style="max-width:100%;background:#fff" src="data:image/svg+xml;base64,{image}">'
            f"<div>{small(each.caption)}</div></figure>"
        )
    return fragment(parts)


def _block(block: Block) -> Iterator[str]:
    if block.title and block.id != "findings":
        yield f"<p><b>{escaped(block.title)}</b></p>"
    match block:
        case Text():
            yield from (f'<p dir="auto" style="{WRAP};margin:.3em 0">{escaped(line)}</p>' for line in block.lines)
            yield from (folded(each.title, each.text) for each in block.passages)
        case KeyFigures():
            yield table([(each.label, f"{each.value} {each.note}") for each in block.figures])
        case Table():
            yield _cells(narrowed(block))


def _cells(block: Table) -> str:
    cell = "text-align:{};vertical-align:top;padding:.1em 1em .1em 0"
    sides = ["left" if kind == "text" else "right" for kind in block.columns.values()]
    heads = "".join(
        f'<th style="{cell.format(side)}">{escaped(name, 100)}</th>'
        for name, side in zip(block.columns, sides, strict=True)
    )
    rows = []
    for row in block.rows[:MOST_ROWS]:
        parts = []
        for value, kind, side in zip(row, block.columns.values(), sides, strict=True):
            text, interval = worded(value, kind)
            more = f"<br>{small(interval)}" if interval else ""
            parts.append(f'<td style="{cell.format(side)}">{escaped(text, MOST_IN_CELL)}{more}</td>')
        rows.append(f"<tr>{''.join(parts)}</tr>")
    left = len(block.rows) - MOST_ROWS
    end = small(f"{left:,} more rows are in the report") if left > 0 else ""
    return f'<table style="border-collapse:collapse;margin:.3em 0"><tr>{heads}</tr>{"".join(rows)}</table>{end}'
