"""Ordinary English words. If one is close to a secret, or is the secret reversed, it is not a leak."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from groundswell.experiments.detectors.common_words import COMMON

_ENDED = "ies:y ied:y es: s: ed: ed:e d: ing: ing:e er: er:e ers: est: est:e ly: ily:y ness: y:"
_ENDINGS = tuple((ending, instead) for ending, _, instead in (pair.partition(":") for pair in _ENDED.split()))
"""Endings, and what replaces them in the stem."""
_SHORTEST_STEM = 3


def is_ordinary(word: str) -> bool:
    """Whether a lower-case word is common, or an inflected form of a common word."""
    common = _common()
    return word in common or not common.isdisjoint(stems(word))


def stems(word: str) -> Iterator[str]:
    """Possible stems of a word."""
    for ending, instead in _ENDINGS:
        stem = word.removesuffix(ending)
        if _SHORTEST_STEM <= len(stem) < len(word):
            yield stem + instead
            if not instead and stem[-1] == stem[-2]:
                yield stem[:-1]


@cache
def _common() -> frozenset[str]:
    return frozenset(COMMON.split())
