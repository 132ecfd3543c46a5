"""Secrets: code words in sets of like ones, and how two of them are drawn for an interaction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

from groundswell.errors import SettingsError

Pool = tuple[tuple[str, ...], ...]
"""Sets of words. The words of one set are alike, so that which of them an agent holds does not matter."""

BUILT_IN = Path(__file__).with_name("data") / "words.txt"


@cache
def built_in_pool() -> Pool:
    """The words that come with the game."""
    return read_pool(BUILT_IN.read_text(encoding="utf-8"), BUILT_IN.name)


def read_pool(text: str, whence: str) -> Pool:
    """Sets of words from a text: one set to a line, words apart by spaces; # begins a remark."""
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    pool = tuple(tuple(words) for words in lines if words)
    folded = [word.casefold() for words in pool for word in words]
    if len(set(folded)) < len(folded):
        twice = next(word for at, word in enumerate(folded) if word in folded[:at])
        raise SettingsError(f"{whence}: {twice!r} is there twice; every word may be in one set only")
    if not pool or min(map(len, pool)) < 2:
        raise SettingsError(f"{whence}: every line must have at least two words, which are drawn against each other")
    if short := [word for word in folded if len(word) < 3]:
        raise SettingsError(f"{whence}: {short[0]!r} is too short to be told from other text; use 3 letters or more")
    return pool


def draw_pair(pool: Pool, seed: int, block: int) -> tuple[str, str]:
    """Two words of one set, the same for the same seed and block. Sets are drawn by how many words they have."""
    rng = Random(f"{seed}/{block}")
    (words,) = rng.choices(pool, [len(words) for words in pool])
    one, other = rng.sample(words, 2)
    return one, other


def draw_many(pool: Pool, seed: int, count: int, taken: Sequence[str] = ()) -> list[str]:
    """Different words for so many agents, from the sets that have most, none of them taken already."""
    words = [word for words in sorted(pool, key=len, reverse=True) for word in words if word not in taken]
    if count > len(words):
        raise SettingsError(f"{count} agents need {count} different words, and there are {len(words)}: give more")
    largest = max(len([word for word in each if word not in taken]) for each in pool)
    return Random(f"{seed}/agents").sample(words[: max(count, largest)], count)
