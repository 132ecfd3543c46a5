"""Guesses at somebody else's secret, from what they said: stated words first, then words that fit the hints."""

from __future__ import annotations

import re

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills import lines, secrets
from groundswell.emulator.skills.hints import NUMBERS
from groundswell.emulator.skills.scene import Scene

GUESSING = re.compile(
    r"\b(?:best|top|likeliest|most likely)\b[^.!?\n]{0,30}\bguess(?:es)?\b|\bguess\b[^.!?\n]{0,60}\b(?:secret"
    r"|code ?word|word|password)\b"
    r"|\bwhat do you (?:think|believe)\b[^.!?\n]{0,40}\b(?:secret|code ?word)\b",
    re.I,
)
_COUNT = re.compile(r"\b(\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)\b[^.\n]{0,20}\bguess", re.I)
_LETTER = r"[^\W\d_]"
_FIRST = re.compile(
    rf"(?<!not )(?<!n['’]t )\b(?:(?:begins?|starts?) with|first letter is)\s+(?:the letter\s+|an?\s+)?"
    rf"(?:[\"'“‘]({_LETTER})[\"'”’](?!\s*\?)|({_LETTER})\b(?!['’-]\w|\s*\?)(?:(?<![ai])|(?=[^\S\n]*(?:[.,;:!)\n]|\Z|and\b))))"
    rf"|\bthink of\s+[\"'“‘]({_LETTER})[\"'”’]",
    re.I,
)
"""A letter in quotes, or by itself; "a" and "i" are words too, and count only where the phrase ends with them."""
_GRANTED = re.compile("|".join(re.escape(each[:-1]).replace(r"\{0\}", r"(\S[^.\n]{0,100})") for each in lines.GRANTS))
"""The sentences in which a guard gives its secret away."""
_LENGTH = re.compile(r"\b(\d{1,2}|" + "|".join(NUMBERS[1:]) + r")\s+(?:letters|characters|tiles)\b", re.I)


def asked(text: str) -> bool:
    """Whether somebody wants to hear guesses at a secret."""
    lower = text.lower()
    likely = "guess" in lower or ("do you" in lower and ("secret" in lower or "code" in lower))
    return likely and GUESSING.search(text) is not None


def guesses(scene: Scene, wanted: int, chance: Chance, own: str | None) -> list[str]:
    """So many different guesses, the likeliest first; never one's own secret."""
    recent = [text[-2000:] for text in scene.theirs[-50:]]
    told = [_granted(text) or secrets.stated_secret(text) for text in reversed(recent)]
    fitting = _fitting("\n".join(recent))
    start = chance.below(len(fitting) or 1)
    found = [*filter(None, told), *fitting[start:], *fitting[:start], *lines.CODE_WORDS]
    different = dict.fromkeys(word for word in found if own is None or not secrets.carries(own, word))
    return list(different)[:wanted]


def _granted(text: str) -> str | None:
    """The secret that a guard gave away last."""
    found = [next(filter(None, match.groups())) for match in _GRANTED.finditer(text)]
    return found[-1] if found else None


def _fitting(talk: str) -> list[str]:
    """The words that agree with the first letter and the length that were hinted at last."""
    first, length = ["".join(found) for found in _FIRST.findall(talk)], _LENGTH.findall(talk)
    return [
        word
        for word in lines.CODE_WORDS
        if (not first or word[0] == first[-1].casefold()) and (not length or len(word) == _number(length[-1]))
    ]


def _number(text: str) -> int:
    return int(text) if text.isdigit() else NUMBERS.index(text.casefold())


def count_in(text: str) -> int:
    """How many guesses are wanted; one unless a number is given, five for "guesses"."""
    match = _COUNT.search(text)
    if match is not None:
        return max(1, _number(match[1]))
    return 5 if re.search(r"\bguesses\b", text, re.I) else 1


def reply(scene: Scene, own: str | None, chance: Chance) -> str:
    """The guesses, one to a line."""
    return "\n".join(guesses(scene, count_in(scene.last), chance, own))
