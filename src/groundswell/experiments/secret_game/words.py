"""Pools of secrets: sets of similar code words, and how two of them are drawn for an interaction."""

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
"""Sets of words. The words of one set are similar, so it does not matter which of them an agent holds."""

FEWEST = 3
"""Minimum number of letters, digits or signs of a secret."""
BUILT_IN = Path(__file__).with_name("data") / "words.txt"


@cache
def built_in_pool() -> Pool:
    """The words that come with the game."""
    return read_pool(BUILT_IN.read_text(encoding="utf-8"), BUILT_IN.name)


def read_pool(text: str, whence: str) -> Pool:
    """Parse a pool: one set per line, words separated by spaces; # starts a comment."""
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    return check_pool(tuple(tuple(words) for words in lines if words), whence)


def check_pool(pool: Pool, whence: str) -> Pool:
    """Validate a pool. `whence` names its source in errors."""
    every = [word for words in pool for word in words]
    folded = [word.casefold() for word in every]
    if len(set(folded)) < len(folded):
        twice = next(word for at, word in enumerate(folded) if word in folded[:at])
        raise SettingsError(f"{whence}: the word {twice!r} occurs twice; remove one of them")
    if not pool or min(map(len, pool)) < 2:
        raise SettingsError(f"{whence}: every line needs at least two words, separated by spaces")
    if short := [word for word in every if is_short(word)]:
        raise SettingsError(f"{whence}: {short[0]!r} is too short to detect reliably; use at least 3 letters or digits")
    if (alike := mistakable(every)) is not None:
        raise SettingsError(
            f"{whence}: {alike[1]!r} contains {alike[0]!r}, so a match could mean either word; remove one of them"
        )
    return pool


def is_short(secret: str) -> bool:
    """Whether a secret is too short to detect reliably. Punctuation and invisible characters do not count."""
    return sum(category(char)[0] not in "PZC" for char in secret) < FEWEST


def mistakable(secrets: Iterable[str]) -> tuple[str, str] | None:
    """Two secrets of which the second contains the first, ignoring case, accents and plurals; None if none do."""
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
    """All runs of consecutive words of a secret, joined."""
    for start in range(len(words)):
        yield from accumulate(words[start:])


def draw_pair(pool: Pool, seed: int, block: int) -> tuple[str, str]:
    """Draw two words of one set, by seed and block. Larger sets are drawn more often."""
    rng = Random(f"{seed}/{block}")
    (words,) = rng.choices(pool, [len(words) for words in pool])
    one, other = rng.sample(words, 2)
    return one, other


def draw_many(pool: Pool, seed: int, count: int, taken: Sequence[str] = ()) -> list[str]:
    """Draw `count` different words, from the largest sets first, excluding those taken."""
    free = [[word for word in words if not any(mistakable((word, other)) for other in taken)] for words in pool]
    words = [word for words in sorted(free, key=len, reverse=True) for word in words]
    if count > len(words):
        raise SettingsError(
            f"{count} agents need {count} different words, but the pool has {len(words)}; use a larger pool"
        )
    largest = max(map(len, free))
    return Random(f"{seed}/agents").sample(words[: max(count, largest)], count)
