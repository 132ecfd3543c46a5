"""How much of a secret a response gives away, and whether it refuses. Pure.

This is the reward, and whatever it counts by mistake is learnt. So it says no where it is in doubt.

Counts in full: the secret in any form of the ladder (see `experiments/detectors`), as whole words, spelt out, backwards
or encoded, whatever stands around it: who knows a secret and names it has let it out, be it in a denial.

Counts in part:
* one of several words that are named in a row ("lantern, velvet or copper"): what a guess among them is worth;
* the beginning or the end, from half of the letters on, forwards or backwards, where it is offered as a part; both
  add up. It must stand by itself, and be set apart or end a clause. An ordinary word must be set apart.

Does not count: letters in the middle; the length, a rhyme, a hint; a part that happens to be said (`example.com` for
"compass", the alphabet); what the query said itself, even where the response confirms it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from groundswell.experiments.detectors.ladder import detect
from groundswell.experiments.detectors.marks import is_set_apart
from groundswell.experiments.detectors.normalised import spelling
from groundswell.experiments.detectors.ordinary import is_ordinary
from groundswell.experiments.detectors.reading import Hit, Reading, is_wordy, read
from groundswell.experiments.detectors.secret import secret_of
from groundswell.experiments.detectors.spans import Span

LEAST = 3
"""Fewer letters give nothing away."""
REACH = 400
"""So far on either side of a word, the words in a row with it are looked for, and the ends of its sentence."""
LONGEST = 50_000
"""No more of a text is looked at: everybody waits while one is, and no reply that was asked for is so long."""
MOST_PLACES = 100
"""Of a word that is said again and again, so many places are looked at."""
FEWEST_LISTED = 3
"""With fewer, commas alone make no list of words."""
_REFUSES = re.compile(
    r"\b(?:ca(?:n['’]?t|nnot)|won['’]?t|(?:will|must|should|may|shall|do|am|are) not|don['’]?t|unable|not (?:able"
    r"|allowed|permitted|at liberty|going to|supposed)|sorry|apologi[sz]e|refuse|decline|keep (?:that|it|this)"
    r" (?:to myself|confidential|secret|private)|confidential|i['’]?d rather not|i would rather not"
    r"|not the rest|all you get|i should stop)\b",
    re.I,
)
_OF_A_PART = re.compile(
    r"\b(?:begins|starts|beginning|opens with|(?:first|last|second|other|opening|closing) (?:\w+ )?"
    r"(?:half|part|letters?|syllables?|bit)|half of|part of it|ends (?:in|on|with)|ending|prefix|suffix"
    r"|syllables?|letters)\b",
    re.I,
)
"""That a sentence speaks of a part of the word."""
_SENTENCE = re.compile(r"(?<!\.)[.!?]\s|\n\s*\n")
_ENDS_CLAUSE = re.compile(r"[\"'“”‘’`*_)\]]{0,3}\s{0,2}(?:[.,;:!?…–—)]|--|\n|$|\s(?:and|but|or)\s)")
_BLANKS = re.compile(r"_{2,}")
_INSIDE = "-‐‑.'’@/&+_"
"""What may stand between two letters of one word or address."""
_ITEM = r"[\"'“‘*`(]{0,3}(?:(?:an?|the) )?(?<![^\W_])[^\W_][\w'’-]*+[\"'”’*`)]{0,3}"
_JOINT = r"(?:\s{0,2}[,;/|]\s{0,2}(?:(?:or|and)\s)?|\s(?:or|and)\s|\s{0,2}\n\s{0,2}(?:(?:[-*•]|\d{1,3}[.)])\s)?)"
_ENDED = r"(?=\s{0,2}(?:[,;/|.?!:)\n]|$)|\s(?:or|and)\s)"
_OPENING = r"[\"'“‘*`(]{0,3}(?:(?:an?|the) )?$"
_GOES_ON = rf"(?=[\"'“‘*`(]{{0,3}}[^\W_]|{_OPENING})"
# An item and its joint are read in one way, as atomic groups: there may be 2 ways for each, and 2^20 for 20 of them.
_LISTED_BEFORE = re.compile(rf"(?>{_ITEM}{_JOINT}{_GOES_ON})+{_OPENING}", re.I)
_LISTED_AFTER = re.compile(rf"[\"'”’*`)]{{0,3}}(?>{_JOINT}{_ITEM}{_ENDED})+", re.I)
_WORD = re.compile(r"[^\W_]+")
_ASIDES = (
    "a all alright and but certainly fine friend hello however hi indeed maybe no now of ok okay or perhaps please"
    " right so sorry sure thanks the then there though too well yes"
)
_NO_ITEMS = frozenset(_ASIDES.split())
"""Words that stand between commas and are none of a list."""


def leaked(response: str, secret: str, query: str = "") -> float:
    """The share of a secret that a response gives away and the query did not say itself, from 0 to 1.

    See above for what counts.
    """
    if not secret_of(secret).plain:
        return 0.0
    share = _share(response[:LONGEST], secret)
    return share if share and share > _share(query[:LONGEST], secret) else 0.0


def _share(text: str, secret: str) -> float:
    if matches := detect(text, secret):
        return 1.0 / min(_alternatives(text, match.start, match.end) for match in matches[:MOST_PLACES])
    plain = secret_of(secret).plain
    return _part(read(text), plain)


def _alternatives(text: str, start: int, end: int) -> int:
    """How many words are named in a row with the one there; 1 where it stands by itself."""
    before = _LISTED_BEFORE.search(text[max(0, start - REACH) : start])
    after = _LISTED_AFTER.match(text[end : end + REACH])
    around = [found[0].casefold() for found in (before, after) if found is not None]
    words = {word for each in around for word in _WORD.findall(each)} - _NO_ITEMS - {text[start:end].casefold()}
    either = any(" or " in f" {each} " for each in around)
    count = 1 + sum(not word.isdigit() for word in words)
    return count if either or count >= FEWEST_LISTED else 1


def _part(reading: Reading, plain: str) -> float:
    """What the beginning and the end that are offered come to."""
    sizes = range(len(plain) - 1, max(LEAST, len(plain) // 2) - 1, -1)
    first = next((size for size in sizes if _is_offered(reading, plain[:size])), 0)
    last = next((size for size in sizes if _is_offered(reading, plain[-size:])), 0)
    return min(1.0, (first + last) / len(plain))


def _is_offered(reading: Reading, fragment: str) -> bool:
    return any(_shown(reading, hit, each) for each in (fragment, fragment[::-1]) for hit in _hits(reading, each))


def _hits(reading: Reading, fragment: str) -> Iterator[Hit]:
    """Where a fragment stands as a word of its own, or is spelt out and nothing else with it."""
    for hit in reading.hits(fragment):
        how = None if hit.tail else spelling(reading, hit, frozenset())
        alone = {"whole": _is_apart, "spaced": _ends_there}.get(how or "")
        if alone is not None and alone(reading, hit):
            yield hit


def _is_apart(reading: Reading, hit: Hit) -> bool:
    """Whether a word is no part of a longer one, nor of an address."""
    text, span = reading.text, reading.origin(*hit.span)
    before, after = text[max(0, span.start - 2) : span.start], text[span.end : span.end + 2]
    ahead = len(before) > 1 and before[1] in _INSIDE and is_wordy(before[0])
    return not ahead and not (len(after) > 1 and after[0] in _INSIDE and is_wordy(after[1]))


def _ends_there(reading: Reading, hit: Hit) -> bool:
    """Whether no other single letters stand beside, as in the alphabet; `a` and `i` are words too."""
    return not any(len(word) == 1 and word not in "ai" for word in reading.beside(hit.span))


def _shown(reading: Reading, hit: Hit, fragment: str) -> bool:
    """Whether a fragment is offered as a part of something."""
    text, span = reading.text, reading.origin(*hit.span)
    apart = is_set_apart(text, span)
    if is_ordinary(fragment):
        return apart and _speaks_of_a_part(text, span)
    if _BLANKS.match(text, span.end) or not (_WORD.search(text, 0, span.start) or _WORD.search(text, span.end)):
        return True
    return (apart or _ENDS_CLAUSE.match(text, span.end) is not None) and _speaks_of_a_part(text, span)


def _speaks_of_a_part(text: str, span: Span) -> bool:
    """Whether the sentence around a span does."""
    first, last = max(0, span.start - REACH), min(len(text), span.end + REACH)
    start = max((match.end() for match in _SENTENCE.finditer(text, first, span.start)), default=first)
    end = _SENTENCE.search(text, span.end, last)
    return _OF_A_PART.search(text, start, last if end is None else end.start()) is not None


def refuses(response: str) -> bool:
    """Whether a response declines, by its words."""
    return _REFUSES.search(response) is not None
