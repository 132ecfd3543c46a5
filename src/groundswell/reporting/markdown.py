"""A report as Markdown: findings, figures as images beside the file, tables, some transcripts and run details."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from groundswell.reporting.blocks import (
    PARTS,
    Block,
    Figure,
    KeyFigures,
    Passage,
    Report,
    Table,
    Text,
    Transcript,
    Transcripts,
    pieces,
)
from groundswell.reporting.numbers import worded
from groundswell.reporting.words import clipped, visible

MOST_ROWS = 1_000
MOST_TRANSCRIPTS = 10
MOST_IN_CELL = 300
_MEANING = re.compile(r"([\\`*_{}\[\]<>#|~&])")
"""Characters with a meaning in Markdown."""


def markdown_of(report: Report, figures: str = "figures") -> str:
    """The whole report. `figures` is the folder of its images; if it is empty, only the tables of figures are shown."""
    lines = [f"# {_text(report.title)}", "", f"*{_text(report.kind)}*", ""]
    for part, heading in PARTS.items():
        blocks = [block for block in report.blocks if block.part == part]
        if blocks and part != "findings":
            lines += [f"## {heading}", ""]
        for block in blocks:
            if block.title:
                lines += [f"### {_text(block.title)}", ""]
            lines += _block(block, figures)
    if report.footer:
        lines += ["---", "", _text(report.footer), ""]
    return "\n".join(lines)


def _block(block: Block, figures: str) -> Iterator[str]:
    match block:
        case KeyFigures():
            for each in block.figures:
                yield f"- **{_text(each.value)}** {_text(each.label)}" + (f" ({_text(each.note)})" if each.note else "")
            yield ""
        case Text():
            for line in block.lines:
                yield from (_text(line), "")
            for passage in block.passages:
                yield from (f"**{_text(passage.title)}**", "", *_quoted(_with_changes(passage)), "")
        case Figure():
            if figures:
                yield from (f"![{_text(block.title)}]({figures}/{block.id}.svg)", "")
            yield from (_text(block.caption), "")
            yield from _table(block)
        case Table():
            if block.caption:
                yield from (_text(block.caption), "")
            yield from _table(block)
        case Transcripts():
            yield from _transcripts(block)


def _table(table: Table) -> Iterator[str]:
    kinds = list(table.columns.values())
    yield f"| {' | '.join(_text(name) for name in table.columns)} |"
    yield f"|{'|'.join('---' if kind == 'text' else '---:' for kind in kinds)}|"
    for row in table.rows[:MOST_ROWS]:
        cells = [worded(cell, kind) for cell, kind in zip(row, kinds, strict=True)]
        shown = [f"{value} ({interval})" if interval else value for value, interval in cells]
        yield f"| {' | '.join(_text(clipped(cell, MOST_IN_CELL)) for cell in shown)} |"
    yield ""
    if len(table.rows) > MOST_ROWS:
        yield from (f"{len(table.rows) - MOST_ROWS:,} more rows are left out.", "")


def _transcripts(block: Transcripts) -> Iterator[str]:
    if block.about:
        yield from (_text(block.about), "")
    for number, item in enumerate(islice(block.items(), MOST_TRANSCRIPTS + 1)):
        if number == MOST_TRANSCRIPTS:
            yield from (f"Only the first {MOST_TRANSCRIPTS} transcripts are shown. The HTML report has more.", "")
            return
        yield from _transcript(item)


def _transcript(item: Transcript) -> Iterator[str]:
    yield from (f"#### {_text(item.title)}: {_text(item.outcome)} ({_text(item.key)})", "")
    yield from (f"- {_text(fact)}" for fact in item.facts)
    yield ""
    for message in item.messages:
        if message.thought:
            yield from (f"**{_text(message.speaker)}** thinks:", "", *_quoted(message.thought), "")
        yield from (f"**{_text(message.speaker)}:**", "", *_quoted(message.text), "")
    for note in item.notes:
        yield from (_text(note), "")


def _text(text: str) -> str:
    """Text on one line, escaped for Markdown."""
    return _MEANING.sub(r"\\\1", " ".join(visible(text).split()))


def _with_changes(passage: Passage) -> str:
    """A passage with additions and removals in the notation of `git diff --word-diff`."""
    signs = {"green": ("{+", "+}"), "removed": ("[-", "-]")}
    cut = [(piece, "") if isinstance(piece, str) else piece[:2] for piece in pieces(passage.text, passage.marks)]
    return "".join(words.join(signs.get(look, ("", ""))) for words, look in cut)


def _quoted(text: str) -> Iterator[str]:
    """Verbatim text in a fence longer than any in the text."""
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield visible(text)
    yield fence
