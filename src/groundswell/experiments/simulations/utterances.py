"""What a model wrote, as utterances: labels, thoughts and speech told apart, and nobody spoken for. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_THOUGHT = re.compile(r"\s*(\*{1,2})(?=[^\s*])([^*]+)\1(?!\*)\s*(.*)", re.DOTALL)
_UNCLOSED = re.compile(r"\s*\*(?=[^\s*])([^*]*)", re.DOTALL)
_WHOLE_LINE = re.compile(r"^[ \t]*\*(?=[^\s*])([^*\n]+)\*[ \t]*$", re.MULTILINE)
_OPENING, _CLOSING = '"“„«', '"”“»'
NO_THOUGHT = ("", "thought", "private thought", "thinking")
"""What a small model writes that copies the form and thinks nothing."""


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
    labels, pattern = _labels(tuple(names))
    found = list(pattern.finditer(text))
    cuts = [*(match.start() for match in found), len(text)]
    first = [Segment(None, text[: cuts[0]])]
    return first + [
        Segment(labels[match[1].casefold()], text[match.end() : end])
        for match, end in zip(found, cuts[1:], strict=True)
    ]


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


@lru_cache(maxsize=256)
def _labels(names: tuple[str, ...]) -> tuple[dict[str, int], re.Pattern[str]]:
    """What a participant may be called before a line, and how such a line begins.

    That is the whole name, or a first name that only one of them has.
    """
    labels = {name.casefold(): place for place, name in enumerate(names)}
    first = [name.split()[0].casefold() for name in names]
    for place, name in enumerate(first):
        if first.count(name) == 1 and len(name) > 1:
            labels.setdefault(name, place)
    longest_first = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    before = r"^[ \t]*(?:[-•>]|\d{1,3}[.)])?[ \t]*[*_\"“]{0,3}"
    after = r"[*_\"”]{0,3}[ \t]*(?:\([^)\n]{0,60}\))?[ \t]*[:：][*_]{0,2}"
    return labels, re.compile(f"{before}({longest_first}){after}", re.MULTILINE | re.IGNORECASE)


def _unquoted(text: str) -> str:
    """Speech without the quotes around the whole of it."""
    if len(text) > 1 and text[0] in _OPENING and text[-1] in _CLOSING and not any(q in text[1:-1] for q in _OPENING):
        return text[1:-1].strip()
    return text
