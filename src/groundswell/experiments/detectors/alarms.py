"""False alarms of the detectors: matches of code words that do not occur in a message."""

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
    """Matches in messages without a secret. A pair is a message and a code word."""

    pairs: int
    """Number of pairs whose message does not contain the word."""
    tiers: Mapping[Tier, int]
    """Number of these pairs with a match, by tier; every tier is listed."""
    forms: Mapping[str, int]
    """The same by form; only forms that were found."""
    worded: int
    """Number of pairs whose message really contains the word. These are not false alarms."""
    found: tuple[tuple[str, str, str], ...]
    """The first alarms: form, code word and matched text."""


def count_alarms(messages: Iterable[str], secrets: Sequence[str], each: int | None = None, seed: int = 0) -> Alarms:
    """Search every message for `each` of the code words, drawn by the seed; None searches for all of them."""
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
    """The words of a text, each between two spaces. Independent of the detectors, to check them."""
    return f" {' '.join(_WORDS.findall(text.casefold()))} "


def _has(words: str, secret: str) -> bool:
    """Whether a text contains a code word, as singular or plural."""
    wanted = _words(secret).strip()
    ways = (wanted, wanted + "s", wanted + "es", wanted.removesuffix("y") + "ies")
    return bool(wanted) and any(f" {way} " in words for way in ways)
