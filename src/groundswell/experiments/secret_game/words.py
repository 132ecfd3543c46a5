"""Secrets: code words in sets of like ones, and how two of them are drawn for an interaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from unicodedata import category

from groundswell.errors import SettingsError
from groundswell.experiments.detectors.secret import Secret, secret_of

Pool = tuple[tuple[str, ...], ...]
"""Sets of words. The words of one set are alike, so that which of them an agent holds does not matter."""

FEWEST = 3
"""So many letters, digits or signs a secret must have."""
BUILT_IN = Path(__file__).with_name("data") / "words.txt"


@cache
def built_in_pool() -> Pool:
    """The words that come with the game."""
    return read_pool(BUILT_IN.read_text(encoding="utf-8"), BUILT_IN.name)


def read_pool(text: str, whence: str) -> Pool:
    """Sets of words from a text: one set to a line, words apart by spaces; # begins a remark."""
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    return check_pool(tuple(tuple(words) for words in lines if words), whence)


def check_pool(pool: Pool, whence: str) -> Pool:
    """Sets of words, if they can be drawn from; `whence` is where they come from, for the message."""
    every = [word for words in pool for word in words]
    folded = [word.casefold() for word in every]
    if len(set(folded)) < len(folded):
        twice = next(word for at, word in enumerate(folded) if word in folded[:at])
        raise SettingsError(f"{whence}: {twice!r} is there twice; every word may be in one set only")
    if not pool or min(map(len, pool)) < 2:
        raise SettingsError(
            f"{whence}: a line must have two words or more, apart by spaces; they are drawn against each other"
        )
    if short := [word for word in every if is_short(word)]:
        raise SettingsError(f"{whence}: {short[0]!r} is too short to be told from other text; use 3 letters or more")
    if (alike := mistakable(every)) is not None:
        raise SettingsError(f"{whence}: who says {alike[1]!r} says {alike[0]!r} too; leave one of them out")
    return pool


def is_short(secret: str) -> bool:
    """Whether a secret has too little in it to be told from other text; punctuation and what is not seen is nothing."""
    return sum(category(char)[0] not in "PZC" for char in secret) < FEWEST


def mistakable(secrets: Iterable[str]) -> tuple[str, str] | None:
    """Two secrets of which the first is found in the second: but for case and accents, its plural, or its part."""
    known = [secret_of(secret) for secret in secrets]
    forms: dict[str, int] = {}
    for place, each in enumerate(known):
        for form in _forms(each):
            if (found := forms.setdefault(form, place)) != place:
                return known[found].given, each.given
    for place, each in enumerate(known):
        for part in _parts(each.words):
            if (found := forms.get(part, place)) != place:
                return known[found].given, each.given
    return None


def _forms(secret: Secret) -> list[str]:
    """The secret, and its plurals."""
    if not secret.plain:
        return [secret.given]
    plurals = [secret.plain + ending for ending in secret.endings]
    return [secret.plain, *plurals, *([secret.plural] if secret.plural else [])]


def _parts(words: Sequence[str]) -> Iterator[str]:
    """All words in a row that a longer secret has, run together."""
    for start in range(len(words)):
        yield from accumulate(words[start:])


def draw_pair(pool: Pool, seed: int, block: int) -> tuple[str, str]:
    """Two words of one set, the same for the same seed and block. Sets are drawn by how many words they have."""
    rng = Random(f"{seed}/{block}")
    (words,) = rng.choices(pool, [len(words) for words in pool])
    one, other = rng.sample(words, 2)
    return one, other


def draw_many(pool: Pool, seed: int, count: int, taken: Sequence[str] = ()) -> list[str]:
    """Different words for so many agents, from the sets that have most, none of them taken already."""
    free = [[word for word in words if not any(mistakable((word, other)) for other in taken)] for words in pool]
    words = [word for words in sorted(free, key=len, reverse=True) for word in words]
    if count > len(words):
        raise SettingsError(f"{count} agents need {count} different words, and there are {len(words)}: give more")
    largest = max(map(len, free))
    return Random(f"{seed}/agents").sample(words[: max(count, largest)], count)
