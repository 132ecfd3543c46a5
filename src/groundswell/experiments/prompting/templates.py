"""Templates with `{column}` placeholders. Nothing else is supported: no attributes, no code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from groundswell.errors import SettingsError
from groundswell.store.tables import Row


class Column(NamedTuple):
    """A placeholder for the value of a column."""

    name: str


class Template(NamedTuple):
    """A parsed template."""

    parts: tuple[str | Column, ...]

    @property
    def columns(self) -> list[str]:
        """The columns that it refers to, without duplicates."""
        return list(dict.fromkeys(part.name for part in self.parts if isinstance(part, Column)))

    def fill(self, row: Row) -> str:
        """The text for a row."""
        return "".join(part if isinstance(part, str) else as_text(row.get(part.name)) for part in self.parts)


def as_text(value: Any) -> str:
    """A cell as text for a model: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def parse_template(text: str, what: str) -> Template:
    """Parse a template. `what` names it in errors."""
    parts: list[str | Column] = []
    at = 0
    while at < len(text):
        piece, at = _piece(text, at, what)
        if isinstance(piece, str) and parts and isinstance(parts[-1], str):
            parts[-1] += piece
        else:
            parts.append(piece)
    return Template(tuple(parts))


def _piece(text: str, at: int, what: str) -> tuple[str | Column, int]:
    """The part at a position, and where it ends."""
    if text.startswith(("{{", "}}"), at):
        return text[at], at + 2
    if text[at] == "}":
        raise _wrong(what, f"unmatched }} at {place(text, at)}; write }}}} for a brace")
    if text[at] != "{":
        ends = [found for brace in "{}" if (found := text.find(brace, at)) >= 0]
        end = min(ends, default=len(text))
        return text[at:end], end
    end = text.find("}", at)
    name = text[at + 1 : end]
    if end < 0 or "{" in name:
        raise _wrong(what, f"unclosed {{ at {place(text, at)}; write {{{{ for a brace")
    if not name:
        raise _wrong(what, f"empty {{}} at {place(text, at)}; name a column, or write {{{{}}}} for braces")
    return Column(name), end + 1


def escaped(text: str) -> str:
    """The template that produces this text."""
    return text.replace("{", "{{").replace("}", "}}")


def place(text: str, at: int) -> str:
    """A position in a text, for messages."""
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return f"character {column}" if "\n" not in text else f"line {line}, character {column}"


def check_columns(needed: Iterable[str], columns: Sequence[str], what: str) -> None:
    """Refuse a column that the data does not have."""
    for name in needed:
        if name not in columns:
            near = get_close_matches(name, columns, 1)
            meant = f"; did you mean {{{near[0]}}}?" if near else ""
            there = ", ".join(columns[:30]) + (", ..." if len(columns) > 30 else "")
            raise _wrong(
                what, f"the data has no column {name!r}{meant} (columns: {there}; write {{{{ and }}}} for braces)"
            )


def _wrong(what: str, why: str) -> SettingsError:
    """An error. `what` starts with the name of the option."""
    return SettingsError(f"{what}: {why}", field=what.partition(" ")[0])
