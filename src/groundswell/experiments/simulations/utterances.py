"""What a model wrote, as utterances: labels, thoughts and speech told apart, and nobody spoken for. Pure."""

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
    """What a line may begin with that is so long: in small letters, with whom it means."""

    length: int
    places: dict[str, int]


class Utterance(NamedTuple):
    """What somebody said and thought."""

    speech: str
    thought: str = ""


class Segment(NamedTuple):
    """A part of a text that one participant is named before; nobody, at the beginning."""

    place: int | None
    text: str


def segments(text: str, names: Sequence[str]) -> list[Segment]:
    """A text cut where a line begins with one of the names and a colon."""
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
    """Whom the line that begins here names as its speaker, and where the words begin."""
    if (colon := _COLON.search(text, line)) is None or colon[0] == "\n":
        return None
    lead = _LEAD.match(text, line)
    assert lead is not None
    for start in dict.fromkeys((lead.end(), lead.end(1), line)):  # a name may begin with what else would be left out
        for length, places in labels:
            end = start + length
            place = places.get(text[start:end].casefold())
            if place is not None and (tail := _TAIL.match(text, end)) is not None:
                return place, tail.end()
    return None


def utterance(text: str, *, thoughts: bool) -> Utterance:
    """One participant's words. With `thoughts`, what stands between asterisks was only thought, unless it is emphasis
    within the speech; a thought that was cut off before its end still is one.
    """
    text = text.strip()
    speech, thought = apart(text) if thoughts else (text, "")
    return Utterance(_unquoted(speech), thought)


def own(text: str, place: int, names: Sequence[str], *, thoughts: bool) -> tuple[Utterance, bool]:
    """What an entity said when it was asked to speak; and whether the model went on for somebody else.

    A label of its own is taken off; from where another is named as the speaker, the rest is left out.
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
    """What participants may be called before a line: the whole name, or a first name that only one of them has."""
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
    """Speech without the quotes around the whole of it."""
    if len(text) > 1 and text[0] in _OPENING and text[-1] in _CLOSING and not any(q in text[1:-1] for q in _OPENING):
        return text[1:-1].strip()
    return text
