"""Parse replies into lines: speaker labels, thoughts and speech. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from groundswell.experiments.simulations.thoughts import INVISIBLE, apart, readable

_BLANK = rf"[ \t\xa0{INVISIBLE}]*+"
_LEAD = re.compile(rf"({_BLANK}(?:[-•>*+]|#{{1,6}}|\d{{1,3}}[.)])?{_BLANK})[*_\"“`(\[]{{0,3}}")
_TAIL = re.compile(rf"{_BLANK}[*_\"”`)\]]{{0,3}}{_BLANK}(?:\([^)\n]{{0,60}}\))?{_BLANK}[:：][*_]{{0,2}}")
_COLON = re.compile("[:：\n]")
_OPENING, _CLOSING = '"“„«', '"”“»'


class Labels(NamedTuple):
    """Speaker labels of one length, in lower case, with the index of the entity."""

    length: int
    places: dict[str, int]


class Utterance(NamedTuple):
    """The speech and thought of one line."""

    speech: str
    thought: str = ""


class Segment(NamedTuple):
    """A part of a text with its speaker; None before the first label."""

    place: int | None
    text: str


def segments(text: str, names: Sequence[str]) -> list[Segment]:
    """Split a text at lines that start with one of the names and a colon."""
    labels = _labels(tuple(names))
    found = [Segment(None, "")]
    begin, line = 0, 0
    while True:
        if (label := _label_at(text, line, labels)) is not None:
            found[-1] = found[-1]._replace(text=text[begin:line])
            begin = label[1]
            found.append(Segment(label[0], ""))
        line = text.find("\n", line) + 1
        if not line:
            break
    found[-1] = found[-1]._replace(text=text[begin:])
    return found


def _label_at(text: str, line: int, labels: Sequence[Labels]) -> tuple[int, int] | None:
    """The speaker that the line starting here names, and where its words start."""
    if (colon := _COLON.search(text, line)) is None or colon[0] == "\n":
        return None
    lead = _LEAD.match(text, line)
    assert lead is not None
    for start in dict.fromkeys(
        (lead.end(), lead.end(1), line)
    ):  # a name may start with a character that would be skipped
        for length, places in labels:
            end = start + length
            place = places.get(text[start:end].casefold())
            if place is not None and (tail := _TAIL.match(text, end)) is not None:
                return place, tail.end()
    return None


def utterance(text: str, *, thoughts: bool) -> Utterance:
    """Parse the words of one entity. With `thoughts`, text between asterisks is a thought, unless it is emphasis."""
    text = text.strip()
    speech, thought = apart(text) if thoughts else (text, "")
    return Utterance(_unquoted(speech), thought)


def own(text: str, place: int, names: Sequence[str], *, thoughts: bool) -> tuple[Utterance, bool]:
    """Parse the reply of an entity, and say whether the model also spoke for another entity.

    The label of the entity is removed. Everything from the label of another entity on is dropped.
    """
    parts, overrun = list[str](), False
    for segment in segments(readable(text).strip(), names):
        if segment.place not in (None, place):
            overrun = True
            break
        if segment.text.strip():
            parts.append(segment.text.strip())
    return utterance("\n".join(parts), thoughts=thoughts), overrun


@lru_cache(maxsize=1024)
def _labels(names: tuple[str, ...]) -> list[Labels]:
    """Accepted speaker labels: the full name, or a first name that only one entity has."""
    found = {name.casefold(): (len(name), place) for place, name in enumerate(names)}
    first = [name.split()[0] for name in names]
    folded = [name.casefold() for name in first]
    for place, name in enumerate(first):
        if folded.count(name.casefold()) == 1 and len(name) > 1:
            found.setdefault(name.casefold(), (len(name), place))
    by_length: dict[int, dict[str, int]] = {}
    for name, (length, place) in found.items():
        by_length.setdefault(length, {})[name] = place
    return [Labels(length, by_length[length]) for length in sorted(by_length, reverse=True)]


def _unquoted(text: str) -> str:
    """Speech without enclosing quotes."""
    if len(text) > 1 and text[0] in _OPENING and text[-1] in _CLOSING and not any(q in text[1:-1] for q in _OPENING):
        return text[1:-1].strip()
    return text
