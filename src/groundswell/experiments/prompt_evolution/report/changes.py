"""What differs between two prompts, word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from groundswell.experiments.prompt_evolution.genome import tokens
from groundswell.experiments.reporting.markup import Html, joined, tag, text

Kind = Literal["same", "gone", "new"]
AROUND = 6
"""Words that are shown on either side of a change."""
FEW = 2
"""Words in both texts, between changes that are longer, that are taken for chance."""


class Piece(NamedTuple):
    """A stretch of words that both have, or one of them alone."""

    kind: Kind
    text: str


def changed(old: str, new: str) -> list[Piece]:
    """From one text to another: same and new are the new one, letter by letter; same and gone are the old one's words.

    Words are compared without the space after them.
    """
    before, after = tokens(old), tokens(new)
    found = list[Piece]()
    for same, left, right, low, high in _stretches(_bare(before), _bare(after)):
        if same:
            found.append(Piece("same", "".join(after[low:high])))
            continue
        if left < right:
            found.append(Piece("gone", "".join(before[left:right])))
        if low < high:
            found.append(Piece("new", "".join(after[low:high])))
    return found


class _Stretch(NamedTuple):
    """Words of the old text and of the new one, from here to there."""

    same: bool
    left: int
    right: int
    low: int
    high: int

    @property
    def words(self) -> int:
        return self.right - self.left + self.high - self.low


def _stretches(before: Sequence[str], after: Sequence[str]) -> list[_Stretch]:
    """What is the same and what is not. A word or two that happen to be in both, in the midst of others, are not."""
    found = list[_Stretch]()
    for what, *ends in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        found.append(_Stretch(what == "equal", *ends))
        while len(found) > 2 and _by_chance(*found[-3:]):
            first, _, last = found[-3:]
            found[-3:] = [_Stretch(False, first.left, last.right, first.low, last.high)]
    return found


def _by_chance(first: _Stretch, middle: _Stretch, last: _Stretch) -> bool:
    if first.same or not middle.same or last.same:
        return False
    return middle.right - middle.left <= FEW and middle.words < min(first.words, last.words)


def _bare(words: Sequence[str]) -> list[str]:
    return [word.rstrip() for word in words]


def shortened(pieces: Sequence[Piece], around: int = AROUND) -> list[Piece]:
    """With long stretches that are the same cut down to a few words next to changes."""
    found = list[Piece]()
    for at, each in enumerate(pieces):
        words = tokens(each.text)
        left, right = around * (at > 0), around * (at < len(pieces) - 1)
        if each.kind != "same" or len(words) <= left + right + 1:
            found.append(each)
            continue
        kept = [*words[:left], "… ", *(words[len(words) - right :] if right else [])]
        found.append(Piece("same", "".join(kept)))
    return found


def marked(pieces: Sequence[Piece], *, without: Kind | None = None) -> Html:
    """The pieces as HTML; those of one kind may be left out."""
    return joined(_shown(pieces, without))


def _shown(pieces: Sequence[Piece], without: Kind | None) -> Iterator[Html]:
    before = " "
    for each in pieces:
        if each.kind == without:
            continue
        if not before[-1:].isspace():
            yield text(" ")
        before = each.text
        if each.kind == "same":
            yield text(each.text)
            continue
        words = each.text.rstrip()
        yield tag("ins" if each.kind == "new" else "del", words)
        yield text(each.text[len(words) :])
