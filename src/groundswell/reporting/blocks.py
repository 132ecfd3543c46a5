"""Results as blocks: key figures, texts, tables, figures and transcripts.

An experiment turns its analysis into a list of blocks once. All output formats are made from that list: the page
`report.html`, the summary at the end of a command, notebooks, Markdown and JSON.

    yield Text(id="findings", lines=["12.0% of offers were refused (95% CI 8.1% to 17.0%, n = 200)."], brief=True)
    yield Figure(
        id="offers",
        title="Most offers are fair",
        caption="Share of games by offer, 95% intervals.",
        columns={"offer": "count", "games": "share"},
        rows=[(50, Estimate(0.6, 0.53, 0.67, 120, 200)), ...],
        size=(7.4, 2.5),
        draw=draw_offers,
    )

A block belongs to a part of the report. Parts are always in the same order: findings, figures, tables, transcripts
and run details. Cells hold data, not text: each renderer formats them by the kind of their column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec

from groundswell.errors import SettingsError
from groundswell.reporting.words import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Part = Literal["findings", "figures", "tables", "transcripts", "run"]
PARTS: dict[Part, str] = {
    "findings": "Findings",
    "figures": "Figures",
    "tables": "Tables",
    "transcripts": "Transcripts",
    "run": "Run details",
}
"""The parts of a report in their order, and their headings."""

Kind = str
"""How the cells of a column are formatted:

text          unchanged
count         whole numbers: 1,234
share         from 0 to 1: 12.0%
share_change  a difference of shares: +3.1%
number        two digits after the point; `number.3` has three
change        the same with a sign; `change.3`
value         any number, to four significant digits
p             a p-value
usd           dollars
seconds       a duration

A cell of any kind except text may be an `Estimate`: a value with its confidence interval.
"""

Look = Literal["orange", "orange-dashed", "orange-dotted", "yellow", "green", "removed"]
"""How a passage is marked. `green` also marks additions, `removed` marks removals."""


class Estimate(msgspec.Struct, frozen=True):
    """A value with its confidence interval. A share also has its count and n."""

    value: float | None
    low: float | None = None
    high: float | None = None
    count: int | None = None
    n: int | None = None


class RateFigure(Protocol):
    """A share with its confidence interval, as analyses return it."""

    @property
    def count(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def rate(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def estimate(rate: RateFigure) -> Estimate:
    """A share from an analysis as a cell."""
    return Estimate(rate.rate, rate.low, rate.high, rate.count, rate.n)


Cell = str | int | float | bool | Estimate | None


@dataclass(frozen=True, kw_only=True)
class Block:
    """The fields of all blocks. `brief` blocks are also shown at the end of a command and in notebooks."""

    id: str
    title: str = ""
    part: Part = "findings"
    brief: bool = False


class KeyFigure(NamedTuple):
    """One key figure: its value, its label and a note."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class KeyFigures(Block):
    """The most important figures, shown large."""

    figures: Sequence[KeyFigure]


class Mark(NamedTuple):
    """A marked range of a text: start and end character, look, and a note."""

    start: int
    end: int
    look: Look
    note: str = ""


class Passage(NamedTuple):
    """A verbatim text with marks. It is folded unless `open`."""

    title: str
    text: str
    marks: Sequence[Mark] = ()
    open: bool = False


@dataclass(frozen=True, kw_only=True)
class Text(Block):
    """Sentences, one per line, and verbatim passages."""

    lines: Sequence[str] = ()
    passages: Sequence[Passage] = ()


@dataclass(frozen=True, kw_only=True)
class Table(Block):
    """A table. `columns` maps column names to kinds. A folded table is shown on demand."""

    part: Part = "tables"
    columns: Mapping[str, Kind]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    folded: bool = False
    brief_columns: Sequence[str] = ()
    """The columns shown on a terminal and in notebooks. The default is all columns."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise SettingsError(
                    f"block {self.id}: a row has {len(row)} cells, but the table has {len(self.columns)} "
                    f"columns; give one cell per column"
                )

    def drawn(self, size: tuple[float, float], draw: Callable[[Canvas], None]) -> Figure:
        """A figure with the rows of this table as its data."""
        part: Part = "figures" if self.part == "tables" else self.part
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return Figure(**(given | {"part": part, "size": size, "draw": draw, "folded": False}))


@dataclass(frozen=True, kw_only=True)
class Figure(Table):
    """A figure and its data. The title states the finding; the caption gives units, n and the interval.

    `draw` receives a matplotlib figure of this size in inches. reporting/figures.py has the colours.
    """

    part: Part = "figures"
    size: tuple[float, float]
    draw: Callable[[Canvas], None]


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a transcript. `side` is the number of the speaker, from 0, and sets the colour.

    `path` is the position of the request in its trial, if the message is the reply to one request.
    """

    speaker: str
    text: str
    side: int = 0
    note: str = ""
    thought: str = ""
    marks: tuple[Mark, ...] = ()
    thought_marks: tuple[Mark, ...] = ()
    path: str = ""


class Transcript(msgspec.Struct, frozen=True, omit_defaults=True):
    """One trial as a transcript. `tags` maps the names of filters to the values of this trial."""

    key: str
    title: str
    outcome: str = ""
    facts: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    notes: tuple[str, ...] = ()
    tags: dict[str, list[str]] = {}


@dataclass(frozen=True, kw_only=True)
class Transcripts(Block):
    """All transcripts. Each call of `items` reads them again. `example` returns the one shown on a terminal.

    `filters` names the tags to filter by, in order. `command` is the command line that shows one trial in full, with
    {key} in place of its key. `one` makes the transcript of one trial from its key, without reading all of them.
    """

    part: Part = "transcripts"
    items: Callable[[], Iterable[Transcript]]
    filters: Sequence[str] = ()
    legend: Mapping[Look, str] = field(default_factory=dict)
    command: str = ""
    about: str = ""
    example: Callable[[], Transcript | None] | None = None
    one: Callable[[str], Transcript | None] | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """The blocks of a run, or of several pooled runs, in order."""

    kind: str
    """Title of the experiment, for example `Secret game`."""
    title: str
    blocks: Sequence[Block]
    footer: str = ""

    def __post_init__(self) -> None:
        order, taken = list(PARTS), set[str]()
        blocks = [_with_own_id(block, taken) for block in self.blocks]
        object.__setattr__(self, "blocks", sorted(blocks, key=lambda block: order.index(block.part)))

    @property
    def brief(self) -> list[Block]:
        """The blocks that are shown on a terminal and in notebooks."""
        return [block for block in self.blocks if block.brief]

    @property
    def figures(self) -> list[Figure]:
        """The figures, in order."""
        return [block for block in self.blocks if isinstance(block, Figure)]

    @property
    def example(self) -> tuple[Transcripts, Transcript] | None:
        """The transcript shown on a terminal, and its block."""
        for block in self.blocks:
            if isinstance(block, Transcripts) and block.example is not None and (found := block.example()) is not None:
                return block, found
        return None


_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]+")
LONGEST_ID = 80
Piece = str | tuple[str, str, str]
"""A part of a text: plain, or marked, with its look and a note."""


def pieces(text: str, marks: Iterable[Mark] = ()) -> list[Piece]:
    """A text split where marks begin and end. Where marks overlap, the first sets the look."""
    found = [mark for mark in marks if mark.start < mark.end]
    edges = {0, len(text), *(edge for mark in found for edge in (mark.start, mark.end) if 0 < edge < len(text))}
    cut: list[Piece] = []
    for start, end in pairwise(sorted(edges)):
        here = [mark for mark in found if mark.start <= start and end <= mark.end]
        words = visible(text[start:end])
        notes = visible("; ".join(dict.fromkeys(mark.note for mark in here if mark.note)))
        cut.append((words, here[0].look, notes) if here else words)
    return cut


def narrowed(table: Table) -> Table:
    """A table with only its brief columns."""
    if not table.brief_columns:
        return table
    places = [at for at, name in enumerate(table.columns) if name in table.brief_columns]
    return Table(
        id=table.id,
        title=table.title,
        columns={name: kind for name, kind in table.columns.items() if name in table.brief_columns},
        rows=[[row[at] for at in places] for row in table.rows],
        caption=table.caption,
    )


def _with_own_id(block: Block, taken: set[str]) -> Block:
    """A block with a unique id that is a valid file name."""
    plain_id = _NOT_IN_IDS.sub("-", block.id)[:LONGEST_ID] or "block"
    if plain_id != block.id:
        plain_id += f"-{blake2b(block.id.encode(errors='surrogatepass'), digest_size=4).hexdigest()}"
    found, number = plain_id, 2
    while found in taken:
        found, number = f"{plain_id}-{number}", number + 1
    taken.add(found)
    return block if found == block.id else replace(block, id=found)


def without_drawings(report: Report) -> Report:
    """A report with tables instead of figures, if matplotlib is not installed."""
    names = [each.name for each in fields(Table)]
    blocks = [
        Table(**{name: getattr(block, name) for name in names}) if isinstance(block, Figure) else block
        for block in report.blocks
    ]
    return replace(report, blocks=blocks)


def settings_table(rows: Iterable[tuple[str, str]], caption: str = "") -> Table:
    """The settings table at the end of every report. Empty values are left out."""
    return Table(
        id="settings",
        title="Settings",
        part="run",
        columns={"setting": "text", "value": "text"},
        rows=[(name, value) for name, value in rows if value],
        caption=caption,
    )


def plain(report: Report, most: int = 100) -> dict[str, Any]:
    """A report as plain data, for JSON. It contains up to `most` transcripts, and their total number."""
    blocks = [_plain(block, most) for block in report.blocks]
    found: dict[str, Any] = _clean({"kind": report.kind, "title": report.title, "blocks": blocks})
    return found


def _clean(value: Any) -> Any:
    """The value without lone surrogates and without numbers that JSON does not support."""
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, dict):
        return {_encodable(name): _clean(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _plain(block: Block, most: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": type(block).__name__.lower(), "id": block.id, "title": block.title}
    found |= {"part": block.part, "brief": block.brief}
    match block:
        case KeyFigures():
            return found | {"figures": [figure._asdict() for figure in block.figures]}
        case Text():
            return found | {"lines": list(block.lines), "passages": [_passage(each) for each in block.passages]}
        case Table():
            rows = [[_cell(cell) for cell in row] for row in block.rows]
            return found | {"caption": block.caption, "columns": dict(block.columns), "rows": rows}
        case Transcripts():
            items, count = list[Any](), 0
            for count, item in enumerate(block.items(), 1):
                if count <= most:
                    items.append(msgspec.to_builtins(item))
            return found | {"about": block.about, "count": count, "transcripts": items}
    raise TypeError(f"{type(block).__name__} is not a block")


def _passage(passage: Passage) -> dict[str, Any]:
    return {"title": passage.title, "text": passage.text, "marks": [mark._asdict() for mark in passage.marks]}


def _cell(cell: Cell) -> Any:
    return msgspec.structs.asdict(cell) if isinstance(cell, Estimate) else cell


def cells_as_columns(table: Table) -> tuple[list[str], list[list[Any]]]:
    """A table as data for files. An estimate becomes several columns: `leaked`, `leaked low`, `leaked high`."""
    parts = [_fields([row[at] for row in table.rows]) for at in range(len(table.columns))]
    names = list[str]()
    for name, some in zip(table.columns, parts, strict=True):
        names += [_other_than(f"{name} {part}".strip(), names) for part in some]
    rows = [[_part(cell, part) for cell, some in zip(row, parts, strict=True) for part in some] for row in table.rows]
    return [_encodable(name) for name in names], rows


def _other_than(name: str, names: Sequence[str]) -> str:
    """A name that is not in `names`."""
    number, found = 2, name
    while found in names:
        found, number = f"{name} {number}", number + 1
    return found


def _fields(cells: Sequence[Cell]) -> list[str]:
    found = [cell for cell in cells if isinstance(cell, Estimate)]
    if not found:
        return [""]
    more = ["count", "n"] if any(cell.n is not None for cell in found) else []
    return ["", "low", "high", *more]


def _part(cell: Cell, part: str) -> Any:
    if isinstance(cell, Estimate):
        return getattr(cell, part or "value")
    if part:
        return None
    return _encodable(cell) if isinstance(cell, str) else cell


def _encodable(text: str) -> str:
    """Text without lone surrogates, which cannot be encoded."""
    return text.encode(errors="backslashreplace").decode()
