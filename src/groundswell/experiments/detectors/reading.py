"""A text as the detectors read it. Each view is computed once, on first use."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple
from unicodedata import combining

from groundswell.experiments.detectors.folding import (
    LOOKALIKES,
    UNSPACED,
    VOWEL_SIGNS,
    Fold,
    fold_alike,
    fold_char,
)
from groundswell.experiments.detectors.spans import Span

_ASCII_WORDS = re.compile(r"[a-z0-9]+")
_WORDS = re.compile(rf"(?:[^\W_{UNSPACED}]|[{VOWEL_SIGNS}])++|[{UNSPACED}]")
_WORDY = re.compile(rf"[^\W_{UNSPACED}]|[{VOWEL_SIGNS}]")
INITIALS = re.compile(r"([^\W_])[\w'’]*")
BLANKS = "*_#?•●·□■▢○◯█☐◻⬜…"
"""Signs that can stand for a missing letter."""
_HAS_BLANK = re.compile(rf"[{BLANKS}](?:\\?[^\W_]| [^\W_](?![^\W_]))")
_BLANKED = re.compile(rf"(?:[^\W_]|\\?[{BLANKS}]){{4,60}}+")
_HANGMAN = re.compile(rf"(?<![^\W_])(?:[^\W_]|[{BLANKS}])(?:\\? (?:[^\W_]|\\?[{BLANKS}])(?![^\W_])){{3,60}}+")
_LIKE_ALIKE = frozenset(LOOKALIKES)
LONGEST_KEPT = 4000
LONGEST = 100_000
"""Maximum number of characters that detectors read. It bounds their time; ordinary replies are shorter."""
BESIDE = 3
"""Maximum number of characters between adjacent words."""


def is_wordy(char: str) -> bool:
    """Whether a character next to a word makes it part of a longer word. False for an empty string."""
    return _WORDY.match(char) is not None


class Piece(NamedTuple):
    """A word, or part of one, in the folded text."""

    start: int
    end: int


class Hit(NamedTuple):
    """Consecutive letters in a text, ignoring all other characters between them."""

    span: Span
    """In the folded text."""
    pieces: tuple[Piece, ...]
    tail: str
    """The rest of the last word."""


class Reading:
    """A folded text, with a map from its characters to the original positions."""

    def __init__(self, text: str, fold: Fold = fold_char) -> None:
        self.text = text
        self._origins: list[int] | None = None
        if text.isascii():
            self.folded = text.lower()
            return
        parts = list(map(fold, text))
        self.folded = "".join(parts)
        if any(len(part) != 1 for part in parts):
            self._origins = [at for at, part in enumerate(parts) for _ in part]

    @cached_property
    def tokens(self) -> list[Piece]:
        """The positions of words in the folded text."""
        words = _ASCII_WORDS if self.folded.isascii() else _WORDS
        return [Piece(*match.span()) for match in words.finditer(self.folded)]

    @cached_property
    def words(self) -> list[str]:
        """The words, folded."""
        return (_ASCII_WORDS if self.folded.isascii() else _WORDS).findall(self.folded)

    @cached_property
    def squeezed(self) -> str:
        """Letters and digits only."""
        return "".join(self.words)

    @cached_property
    def initials(self) -> str:
        """The first letters of the words. A letter after an apostrophe is not a first letter."""
        return "".join(INITIALS.findall(self.folded))

    @cached_property
    def singles(self) -> str:
        """The words of a single letter."""
        return "".join(word for word in self.words if len(word) == 1)

    @cached_property
    def by_size(self) -> dict[int, list[str]]:
        """The different words, by their length."""
        sizes: dict[int, list[str]] = defaultdict(list)
        for word in dict.fromkeys(self.words):
            sizes[len(word)].append(word)
        return sizes

    @cached_property
    def places(self) -> dict[str, list[Piece]]:
        """The positions of every word in the folded text."""
        places: dict[str, list[Piece]] = defaultdict(list)
        for word, token in zip(self.words, self.tokens, strict=True):
            places[word].append(token)
        return places

    @cached_property
    def blanked(self) -> list[tuple[str, Span]]:
        """Words with signs in place of letters, together or letter by letter, and their spans in the folded text."""
        if not _HAS_BLANK.search(self.folded):
            return []
        found = []
        for match in (*_BLANKED.finditer(self.folded), *_HANGMAN.finditer(self.folded)):
            written = match[0].replace("\\", "").replace(" ", "")
            if not written.isalnum():
                found.append((written, Span(*match.span())))
                emphasis = len(match[0]) - len(match[0].lstrip("*_"))
                if emphasis:
                    inner = match[0].strip("*_")
                    start = match.start() + emphasis
                    found.append((inner, Span(start, start + len(inner))))
        return found

    @cached_property
    def digits(self) -> int:
        """Number of digits."""
        return 0 if self.squeezed.isalpha() else sum(map(str.isdigit, self.squeezed))

    @cached_property
    def alike(self) -> Reading | None:
        """The text with look-alike letters as Latin ones; None if there are none."""
        if self.text.isascii() or _LIKE_ALIKE.isdisjoint(self.text):
            return None
        return Reading(self.text, fold_alike)

    @cached_property
    def _begins(self) -> list[int]:
        """The start of each word in the squeezed text."""
        begins, at = [], 0
        for token in self.tokens:
            begins.append(at)
            at += token.end - token.start
        return begins

    def origin(self, start: int, end: int) -> Span:
        """The original span of a span of the folded text, including accents of the last letter."""
        if self._origins is None:
            return Span(start, end)
        stop = self._origins[end - 1] + 1
        while stop < len(self.text) and combining(self.text[stop]):
            stop += 1
        return Span(self._origins[start], stop)

    def beside(self, span: Span) -> list[str]:
        """The words just before and after a span of the folded text."""
        first = max(0, bisect_left(self.tokens, Piece(span.start, 0)) - BESIDE)
        some = self.tokens[first : bisect_left(self.tokens, Piece(span.end + BESIDE + 1, 0), first)]
        ends, starts = range(span.start - BESIDE, span.start), range(span.end + 1, span.end + BESIDE + 1)
        return [self.folded[each.start : each.end] for each in some if each.end in ends or each.start in starts]

    def hits(self, needle: str) -> Iterator[Hit]:
        """Every occurrence of these letters and digits in sequence, from the start of a word."""
        at = self.squeezed.find(needle) if needle else -1
        while at >= 0:
            first = bisect_right(self._begins, at) - 1
            if self._begins[first] == at:
                yield self._hit(first, at + len(needle))
            at = self.squeezed.find(needle, at + 1)

    def _hit(self, first: int, end: int) -> Hit:
        """The hit from a word to a position in the squeezed text."""
        last = bisect_right(self._begins, end - 1) - 1
        stop = self.tokens[last].start + end - self._begins[last]
        pieces = [*self.tokens[first:last], Piece(self.tokens[last].start, stop)]
        return Hit(Span(pieces[0].start, stop), tuple(pieces), self.folded[stop : self.tokens[last].end])


_kept = lru_cache(maxsize=256)(Reading)


def read(text: str) -> Reading:
    """The reading of a text. Readings of short texts are cached, because they are searched for several secrets."""
    return _kept(text) if len(text) <= LONGEST_KEPT else Reading(text)
