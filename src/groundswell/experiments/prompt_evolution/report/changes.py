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


class Piece(NamedTuple):
    """A stretch of words that both have, or one of them alone."""

    kind: Kind
    text: str


def changed(old: str, new: str) -> list[Piece]:
    """From one text to another: same and new are the new one, letter by letter; same and gone are the old one's words.

    Words are compared without the space after them.
    """
    before, after = tokens(old), tokens(new)
    matcher = SequenceMatcher(None, _bare(before), _bare(after), autojunk=False)
    found = list[Piece]()
    for what, left, right, low, high in matcher.get_opcodes():
        if what == "equal":
            found.append(Piece("same", "".join(after[low:high])))
            continue
        if left < right:
            found.append(Piece("gone", "".join(before[left:right])))
        if low < high:
            found.append(Piece("new", "".join(after[low:high])))
    return found


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
    for each in pieces:
        if each.kind == without:
            continue
        if each.kind == "same":
            yield text(each.text)
            continue
        words = each.text.rstrip()
        yield tag("ins" if each.kind == "new" else "del", words)
        yield text(each.text[len(words) :] or " ")
