"""The lineage of the winner: its ancestors, and the word-by-word changes from the seed prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from groundswell.experiments.prompt_evolution.genome import tokens
from groundswell.experiments.prompt_evolution.population import LIVING, Member
from groundswell.reporting.blocks import Mark

MOST_DRAWN = 250
"""Maximum number of genomes in the drawing, besides the winner's line."""
AROUND = 6
"""Words of context on either side of a change."""
FEW = 2
"""Up to this many equal words between longer changes count as changed."""


def by_birth(members: Iterable[Member]) -> dict[int, Member]:
    """Members by number."""
    return {each.born: each for each in members}


def line(members: Mapping[int, Member], born: int) -> list[Member]:
    """The line of first parents, from a seed to this member."""
    found = list[Member]()
    at: int | None = born
    while at is not None and at in members:
        each = members[at]
        found.append(each)
        at = next((parent for parent in each.parents[:1] if parent < at), None)
    return found[::-1]


def ancestors(members: Mapping[int, Member], born: int) -> set[int]:
    """The numbers of this member and all its ancestors."""
    found, going = set[int](), [born]
    while going:
        at = going.pop()
        if at in found or at not in members:
            continue
        found.add(at)
        going += [parent for parent in members[at].parents if parent < at]
    return found


def sampled(members: Sequence[Member], wanted: set[int], most: int = MOST_DRAWN) -> list[Member]:
    """The survivors in order. If there are too many: the wanted ones, and an even sample of the rest."""
    lived = [each for each in members if each.fate in LIVING or each.born in wanted]
    rest = [each.born for each in lived if each.born not in wanted]
    step = -(-len(rest) // most) if most else 1
    kept = wanted | set(rest[:: max(1, step)])
    return [each for each in lived if each.born in kept]


def record_breakers(members: Iterable[Member]) -> set[int]:
    """The numbers of members that were fitter than all earlier ones."""
    found, best = set[int](), float("-inf")
    for each in members:
        if each.fate == "lives" and each.fitness > best:
            found.add(each.born)
            best = each.fitness
    return found


def gained(members: Mapping[int, Member], child: Member) -> float:
    """How much fitter a member is than its better parent; 0 if it is not, or was not kept."""
    parents = [members[at].fitness for at in child.parents if at in members]
    return max(0.0, child.fitness - max(parents)) if parents and child.fate in LIVING else 0.0


class Piece(NamedTuple):
    """A piece of a word diff."""

    kind: Literal["same", "removed", "added"]
    text: str


def changed(old: str, new: str) -> list[Piece]:
    """The word diff of two texts. Same and added pieces give the new text exactly; same and removed give the old words.

    Words are compared without trailing space.
    """
    before, after = tokens(old), tokens(new)
    found = list[Piece]()
    for same, left, right, low, high in _stretches(_bare(before), _bare(after)):
        if same:
            found.append(Piece("same", "".join(after[low:high])))
            continue
        if left < right:
            found.append(Piece("removed", "".join(before[left:right])))
        if low < high:
            found.append(Piece("added", "".join(after[low:high])))
    return found


class _Stretch(NamedTuple):
    """A range of words of the old text and one of the new text."""

    same: bool
    left: int
    right: int
    low: int
    high: int

    @property
    def words(self) -> int:
        return self.right - self.left + self.high - self.low


def _stretches(before: Sequence[str], after: Sequence[str]) -> list[_Stretch]:
    """The equal and the changed ranges. One or two equal words between longer changes count as changed."""
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
    """Shorten long equal pieces to a few words next to changes."""
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


def marked(pieces: Iterable[Piece]) -> tuple[str, list[Mark]]:
    """The pieces as one text, with marks on additions and deletions."""
    text, marks = "", list[Mark]()
    for each in pieces:
        if text and not text[-1].isspace():
            text += " "
        if each.kind != "same":
            end = len(text) + len(each.text.rstrip())
            marks.append(Mark(len(text), end, "green" if each.kind == "added" else "removed", each.kind))
        text += each.text
    return text, marks
