"""Claims: words that a speaker states as their own secret. A claim with another word than the secret is a bluff.

A claim names the word as one's own ("my code word is X", "mine: X", "X is my secret", "the word I hold is X", "I was
given X"), or follows an announcement ("here it is: X", "I will tell you. It is X"). X is the text in quotes or
emphasis, or one to four words that end a clause and are not ordinary talk ("my secret is safe with me"). Questions,
suppositions, denials and statements about the other side are not claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from groundswell.experiments.detectors import openings
from groundswell.experiments.detectors.hedges import HEDGES, LINKS, TALK
from groundswell.experiments.detectors.ladder import detect
from groundswell.experiments.detectors.reading import LONGEST
from groundswell.experiments.detectors.spans import Span


class Claim(msgspec.Struct, frozen=True):
    """A word that a speaker states as their own secret, with its position."""

    word: str
    start: int
    end: int


_QUOTED = re.compile(r"[\"“”„‘'`*_«(\[]{1,4}(?P<word>[^\n\"“”„«»`*]{1,80}?)[\"“”’'`*_»)\].]{1,4}(?!\w)")
_CLAUSE_ENDS = r"[.!?](?:[\s\"”’')*]|$)|[,;:!?…–—()\n\"“”`*]| - |$"
_BARE = re.compile(rf"[^\s,;:!?…–—()\"“”‘’`*][^\n,;:!?…–—()\"“”`*]{{0,80}}?(?={_CLAUSE_ENDS})")
_ASKED = re.compile(r"[\"”’'`*_).]{0,3}(?:,? (?:isn['’]t it|is it|right|correct|yes|no))? ?\?", re.I)
_WORDS = re.compile(r"\S+")
_CUES = ("my ", "mine", "word", "secret", "it is", "it's", "it’s", "i ", "i'", "i’", "answer", "what ", ":")
_REACH = 40
MOST_WORDS = 4


def claims(text: str) -> tuple[Claim, ...]:
    """The claims in a message, in order. Only the first `LONGEST` characters are read."""
    text = text[:LONGEST]
    lower = text.lower()
    if not any(cue in lower for cue in _CUES):
        return ()
    return tuple(Claim(text[start:end], start, end) for start, end in sorted(set(_stated(text))))


def is_secret(word: str, secret: str) -> bool:
    """Whether a claimed word is the secret, at any tier."""
    return bool(detect(word, secret))


def _stated(text: str) -> Iterator[Span]:
    """The spans of the claimed words."""
    for opening in (openings.OWN, openings.ANNOUNCED, openings.TOLD, openings.BARELY):
        for match in opening.finditer(text):
            if not openings.NOT_SO.search(text, max(0, match.start() - _REACH), match.start()):
                span = _value(text, match.end(), outstanding=opening is openings.BARELY)
                if span is not None:
                    yield span
    for match in openings.FIRST.finditer(text):
        if match["open"] or _is_code_word(match["word"].split()):
            yield Span(*match.span("word"))


def _value(text: str, at: int, *, outstanding: bool) -> Span | None:
    """The claimed word at a position; None if there is none, or if it must look like a code and does not."""
    if (quoted := _QUOTED.match(text, at)) is not None:
        asked = quoted["word"].endswith("?") or _ASKED.match(text, quoted.end())
        return None if asked else Span(*quoted.span("word"))
    bare = _BARE.match(text, at)
    if bare is None or _ASKED.match(text, bare.end()):
        return None
    words = list(_WORDS.finditer(bare[0]))
    linked = (place for place, word in enumerate(words) if place and word[0].casefold() in LINKS)
    words = words[: next(linked, len(words))]
    said = [word[0] for word in words]
    if not _is_code_word(said) or (outstanding and not _stands_out(said)):
        return None
    return Span(at, at + len(bare[0][: words[-1].end()].rstrip(".'’")))


def _is_code_word(words: list[str]) -> bool:
    """Whether these words can be a secret and are not ordinary talk."""
    folded = [word.casefold().strip("'’.") for word in words]
    if not folded or len(folded) > MOST_WORDS or folded[0] in HEDGES:
        return False
    if folded[0].endswith(("ing", "ly", "ed")) and len(folded) > 1:
        return False
    return not any(word in TALK for word in folded)


def _stands_out(words: list[str]) -> bool:
    """Whether words look like a code: in capitals or with digits."""
    joined = "".join(words)
    return len(joined) > 2 and (joined.isupper() or any(map(str.isdigit, joined)))
