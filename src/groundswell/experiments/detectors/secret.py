"""A parsed secret: its letters, words and plural forms, computed once."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import msgspec

from groundswell.experiments.detectors.reading import Reading

FEWEST = 3
"""Minimum number of letters and digits for the encoded tier."""
_SIBILANTS = ("s", "x", "z", "ch", "sh")
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxyz")


class Secret(msgspec.Struct, frozen=True, eq=False):
    """A parsed secret. Equal secrets share one object, which is a key of caches."""

    given: str
    plain: str
    """Letters and digits only, folded."""
    words: tuple[str, ...]
    joints: frozenset[int]
    """The positions in `plain` where one word ends and the next begins."""
    digits: str
    endings: tuple[str, ...]
    """Plural endings."""
    plural: str
    """The plural of `plain` if it changes the last letter; else empty."""

    @property
    def letters(self) -> int:
        """Number of letters."""
        return len(self.plain) - len(self.digits)


@lru_cache(maxsize=8192)
def secret_of(secret: str) -> Secret:
    """Parse a secret. Surrounding whitespace is removed."""
    given = secret.strip()
    words = tuple(Reading(given).words)
    plain = "".join(words)
    joints = frozenset(list(accumulate(map(len, words)))[:-1])
    digits = "".join(filter(str.isdigit, plain))
    return Secret(given, plain, words, joints, digits, *_plurals(words, plain))


def _plurals(words: tuple[str, ...], plain: str) -> tuple[tuple[str, ...], str]:
    """The plural endings, or the whole plural if the last letter changes. English only."""
    last = words[-1] if words else ""
    if len(last) < FEWEST or not (last.isascii() and last.isalpha()):
        return (), ""
    if last.endswith(_SIBILANTS):
        return ("es",), ""
    if last.endswith("y") and last[-2] in _CONSONANTS:
        return (), plain[:-1] + "ies"
    return (("s", "es") if last.endswith("o") else ("s",)), ""
