"""What a model wrote, as utterances: labels, thoughts and speech told apart, and nobody spoken for. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_THOUGHT = re.compile(r"\s*(\*{1,2})(?=[^\s*])([^*]+)\1(?!\*)\s*(.*)", re.DOTALL)
_UNCLOSED = re.compile(r"\s*\*(?=[^\s*])([^*]*)", re.DOTALL)
_WHOLE_LINE = re.compile(r"^[ \t]*\*(?=[^\s*])([^*\n]+)\*[ \t]*$", re.MULTILINE)
_LEAD = re.compile(r"([ \t]*(?:[-•>]|\d{1,3}[.)])?[ \t]*)[*_\"“]{0,3}")
_TAIL = re.compile(r"[*_\"”]{0,3}[ \t]*(?:\([^)\n]{0,60}\))?[ \t]*[:：][*_]{0,2}")
_OPENING, _CLOSING = '"“„«', '"”“»'
NO_THOUGHT = ("", "thought", "private thought", "thinking")
"""What a small model writes that copies the form and thinks nothing."""


class Label(NamedTuple):
    """What a line may begin with, in small letters, how long it is as it is written, and whom it means."""

    folded: str
    length: int
    place: int


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


def _label_at(text: str, line: int, labels: Sequence[Label]) -> tuple[int, int] | None:
    """Whom the line that begins here names as its speaker, and where the words begin."""
    lead = _LEAD.match(text, line)
    assert lead is not None
    for start in dict.fromkeys((lead.end(), lead.end(1), line)):  # a name may begin with what else would be left out
        for label in labels:
            end = start + label.length
            if text[start:end].casefold() == label.folded and (tail := _TAIL.match(text, end)) is not None:
                return label.place, tail.end()
    return None


def utterance(text: str, *, thoughts: bool) -> Utterance:
    """One participant's words. With `thoughts`, what stands between asterisks ahead of the speech, or alone on a line,
    was only thought; a thought that was cut off before its end still is one.
    """
    text = text.strip()
    if not thoughts:
        return Utterance(_unquoted(text))
    if (found := _THOUGHT.fullmatch(text)) is not None:
        thought, rest = found[2].strip(), found[3]
    elif (cut := _UNCLOSED.fullmatch(text)) is not None:
        return Utterance("", cut[1].strip())
    else:
        thought, rest = "", text
    more = [each.strip() for each in _WHOLE_LINE.findall(rest)]
    rest = _WHOLE_LINE.sub("", rest) if more else rest
    private = [each for each in (thought, *more) if each.casefold() not in NO_THOUGHT]
    return Utterance(_unquoted(rest.strip()), " ".join(private))


def own(text: str, place: int, names: Sequence[str], *, thoughts: bool) -> tuple[Utterance, bool]:
    """What an entity said when it was asked to speak; and whether the model went on for somebody else.

    A label of its own is taken off; from where another is named as the speaker, the rest is left out.
    """
    parts, overrun = list[str](), False
    for segment in segments(text.strip(), names):
        if segment.place not in (None, place):
            overrun = True
            break
        if segment.text.strip():
            parts.append(segment.text.strip())
    return utterance("\n".join(parts), thoughts=thoughts), overrun


@lru_cache(maxsize=1024)
def _labels(names: tuple[str, ...]) -> list[Label]:
    """What participants may be called before a line: the whole name, or a first name that only one of them has."""
    labels = {name.casefold(): Label(name.casefold(), len(name), place) for place, name in enumerate(names)}
    first = [name.split()[0] for name in names]
    folded = [name.casefold() for name in first]
    for place, name in enumerate(first):
        if folded.count(name.casefold()) == 1 and len(name) > 1:
            labels.setdefault(name.casefold(), Label(name.casefold(), len(name), place))
    return sorted(labels.values(), key=lambda label: -label.length)


def _unquoted(text: str) -> str:
    """Speech without the quotes around the whole of it."""
    if len(text) > 1 and text[0] in _OPENING and text[-1] in _CLOSING and not any(q in text[1:-1] for q in _OPENING):
        return text[1:-1].strip()
    return text
