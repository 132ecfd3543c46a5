"""What is worked out once for a secret: its letters, its words, its endings."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import msgspec

from groundswell.experiments.detectors.reading import Reading

FEWEST = 3
"""With fewer letters and digits, a secret is not looked for in any disguise."""
_SIBILANTS = ("s", "x", "z", "ch", "sh")
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxyz")


class Secret(msgspec.Struct, frozen=True, eq=False):
    """A secret, taken apart. There is one object for each, by which what is made of it is kept."""

    given: str
    plain: str
    """Letters and digits alone, folded."""
    words: tuple[str, ...]
    joints: frozenset[int]
    """The places in `plain` where one word ends and the next begins."""
    digits: str
    endings: tuple[str, ...]
    """What may follow and still be the same word."""
    plural: str
    """`plain` in the plural where that changes its last letter; else empty."""

    @property
    def letters(self) -> int:
        """How many letters it has."""
        return len(self.plain) - len(self.digits)


@lru_cache(maxsize=8192)
def secret_of(secret: str) -> Secret:
    """A secret, taken apart; blanks around it are not part of it."""
    given = secret.strip()
    words = tuple(Reading(given).words)
    plain = "".join(words)
    joints = frozenset(list(accumulate(map(len, words)))[:-1])
    digits = "".join(filter(str.isdigit, plain))
    return Secret(given, plain, words, joints, digits, *_plurals(words, plain))


def _plurals(words: tuple[str, ...], plain: str) -> tuple[tuple[str, ...], str]:
    """The endings of the plural, and the whole plural where an ending will not do. English only."""
    last = words[-1] if words else ""
    if len(last) < FEWEST or not (last.isascii() and last.isalpha()):
        return (), ""
    if last.endswith(_SIBILANTS):
        return ("es",), ""
    if last.endswith("y") and last[-2] in _CONSONANTS:
        return (), plain[:-1] + "ies"
    return (("s", "es") if last.endswith("o") else ("s",)), ""
