"""How often the detectors cry wolf: ordinary messages, and code words that nobody has said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random

import msgspec

from groundswell.experiments.detectors.ladder import detect
from groundswell.experiments.detectors.spans import TIERS, Tier

_WORDS = re.compile(r"[^\W_]+")


class Alarms(msgspec.Struct, frozen=True):
    """What was found where no secret was told. A pair is a message and a code word."""

    pairs: int
    """Pairs in which the message does not have the word."""
    tiers: Mapping[Tier, int]
    """Of these, how many had something found at a tier; every tier is listed."""
    forms: Mapping[str, int]
    """The same by form; only those that were found."""
    worded: int
    """Pairs in which the message happens to have the word: no fault of the detectors, but of the choice of words."""
    found: tuple[tuple[str, str, str], ...]
    """The first alarms: form, code word, and the stretch of text."""


def count_alarms(messages: Iterable[str], secrets: Sequence[str], each: int | None = None, seed: int = 0) -> Alarms:
    """Look in every message for so many of the code words, drawn by the seed; for all of them where `each` is None."""
    chance = Random(seed)
    tiers: Counter[Tier] = Counter(dict.fromkeys(TIERS, 0))
    forms: Counter[str] = Counter()
    pairs, worded, shown = 0, 0, []
    for message in messages:
        words = _words(message)
        for secret in secrets if each is None else chance.sample(secrets, min(each, len(secrets))):
            if _has(words, secret):
                worded += 1
                continue
            pairs += 1
            if matches := detect(message, secret):
                tiers.update({match.tier for match in matches})
                forms.update({match.form for match in matches})
                shown += [(match.form, secret, message[match.start : match.end]) for match in matches]
    return Alarms(pairs, dict(tiers), dict(forms), worded, tuple(shown[:MOST_SHOWN]))


MOST_SHOWN = 100


def _words(text: str) -> str:
    """The words of a text, each between two blanks. It has its own idea of a word, so as to check the detectors."""
    return f" {' '.join(_WORDS.findall(text.casefold()))} "


def _has(words: str, secret: str) -> bool:
    """Whether a code word is among the words of a text, in the singular or in the plural."""
    wanted = _words(secret).strip()
    ways = (wanted, wanted + "s", wanted + "es", wanted.removesuffix("y") + "ies")
    return bool(wanted) and any(f" {way} " in words for way in ways)
