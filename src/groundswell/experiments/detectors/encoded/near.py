"""Misspellings of the secret: a wrong, missing or additional letter, or two swapped letters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from groundswell.experiments.detectors.marks import is_set_apart
from groundswell.experiments.detectors.ordinary import is_ordinary, stems
from groundswell.experiments.detectors.reading import Reading
from groundswell.experiments.detectors.secret import Secret
from groundswell.experiments.detectors.spans import Span

_GOES_ON = re.compile(r"['’](?!s\b)\w")
"""The rest of a word after an apostrophe, as in `whate'er`; possessives do not count."""


PLAIN_ENOUGH = 7


def slips(letters: int) -> int:
    """Maximum number of typos by length: none below five letters, one up to eight, then two."""
    return (letters > 4) + (letters > 8)


def near(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Words, or word sequences as long as the secret, that are a misspelling of it and not ordinary words.

    To exclude chance, a match must have at least seven letters and one typo that is not in the first letter, or be set
    apart.
    """
    allowed = slips(secret.letters)
    if not allowed:
        return
    close = {word for word in _candidates(reading, secret, allowed) if _is_slip(word, secret, allowed)}
    if close:
        for word, token in zip(reading.words, reading.tokens, strict=True):
            if word in close and not _GOES_ON.match(reading.folded, token.end):
                span = reading.origin(*token)
                if _is_plain(word, secret) or is_set_apart(reading.text, span):
                    yield span
    if len(secret.words) > 1:
        yield from _rows(reading, secret, allowed)


def _is_plain(word: str, secret: Secret) -> bool:
    """Whether a misspelling counts anywhere in a text."""
    return secret.letters >= PLAIN_ENOUGH and word[0] == secret.plain[0] and is_within(word, secret.plain, 1)


def _candidates(reading: Reading, secret: Secret, allowed: int) -> Iterator[str]:
    """Words of similar length with similar letters."""
    shortest, longest = len(secret.plain) - allowed, len(secret.plain) + allowed
    letters = frozenset(secret.plain)
    for word in {word for word in reading.words if shortest <= len(word) <= longest}:
        if len(letters.symmetric_difference(word)) <= 2 * allowed:
            yield word


def _is_slip(word: str, secret: Secret, allowed: int) -> bool:
    """Whether a word is a misspelling of the secret. Digits must be equal: SECRET2 is not SECRET1."""
    return (
        word != secret.plain
        and is_within(word, secret.plain, allowed)
        and _digits(word) == secret.digits
        and secret.plain not in stems(word)
        and not is_ordinary(word)
    )


def _digits(word: str) -> str:
    return "" if word.isalpha() else "".join(filter(str.isdigit, word))


def _rows(reading: Reading, secret: Secret, allowed: int) -> Iterator[Span]:
    """Misspellings of a secret of several words, with at least one word spelled correctly."""
    count, size, letters = len(secret.words), len(secret.plain), frozenset(secret.plain)
    words, tokens = reading.words, reading.tokens
    if frozenset(secret.words).isdisjoint(words):
        return
    for at in range(len(words) - count + 1):
        row = words[at : at + count]
        joined = "".join(row)
        if abs(len(joined) - size) > allowed or len(letters.symmetric_difference(joined)) > 2 * allowed:
            continue
        wrong = [word for word, meant in zip(row, secret.words, strict=True) if word != meant]
        if 0 < len(wrong) < count and not any(map(is_ordinary, wrong)) and _is_slip(joined, secret, allowed):
            yield reading.origin(tokens[at].start, tokens[at + count - 1].end)


def is_within(one: str, other: str, slips: int) -> bool:
    """Whether the edit distance of two words is at most `slips`. Swapping adjacent letters is one edit."""
    if abs(len(one) - len(other)) > slips:
        return False
    at = 0
    while at < len(one) and at < len(other) and one[at] == other[at]:
        at += 1
    one, other = one[at:], other[at:]
    if not one or not other:
        return True
    if not slips:
        return False
    left = slips - 1
    if is_within(one[1:], other[1:], left) or is_within(one[1:], other, left) or is_within(one, other[1:], left):
        return True
    return one[:2] == other[1::-1] and is_within(one[2:], other[2:], left)
