"""Hints at a word: its first letter, its length, a rhyme, a category. Never the word."""

from __future__ import annotations

from functools import lru_cache

from groundswell.emulator.skills import lines
from groundswell.emulator.skills.secrets import carries

_KINDS = {word: kind for kind, words in lines.CATEGORIES.items() for word in words}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@lru_cache(maxsize=4096)
def hints_for(secret: str) -> tuple[str, ...]:
    """Every hint that can be given; evasions where none can be."""
    word = secret.strip()
    found: list[str] = []
    if len(word) > 2:
        found += [line.format(word[0].upper()) for line in lines.HINT_FIRST]
        size = NUMBERS[len(word)] if len(word) < len(NUMBERS) else str(len(word))
        found += [
            line.format(size).replace(size, size.capitalize(), line.startswith("{0}")) for line in lines.HINT_LENGTH
        ]
    if (rhyme := rhyme_for(word)) is not None:
        found += [line.format(rhyme) for line in lines.HINT_RHYME]
    if (kind := _KINDS.get(word.casefold())) is not None:
        found += [line.format(kind) for line in lines.HINT_KIND]
    return tuple(line for line in found if not carries(secret, line)) or lines.DODGES


def rhyme_for(word: str) -> str | None:
    """A word that ends as this one does, by three letters or by two."""
    lower = word.casefold()
    for size in (3, 2):
        ending = lower[-size:]
        for rhyme in lines.RHYMES:
            if len(lower) > size and rhyme.endswith(ending) and rhyme != lower and not carries(word, rhyme):
                return rhyme
    return None
