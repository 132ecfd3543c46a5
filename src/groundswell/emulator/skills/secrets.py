"""Secrets: which one a prompt gives, which one somebody states, and whether a text carries one in any form."""

from __future__ import annotations

import codecs
import re
import unicodedata
from base64 import b64encode
from functools import lru_cache
from typing import NamedTuple

from groundswell.emulator.skills.lines import LEAKS, TRADES
from groundswell.emulator.skills.reading import pattern

_NOUN = (
    r"(?:(?:secret|hidden|private|confidential)[ -](?:code[ -]?|pass[ -]?|key[ -]?)?(?:word|phrase|code|key"
    r"|number|name|message|token|flag)"
    r"|secret|code[ -]?word|pass[ -]?(?:word|phrase|code)|code[ -]?phrase|key[ -]?word|safe[ -]?word)"
)
_QUOTED = r"""["“”«»‘'`*]{1,3}([^"“”«»`*\n]{1,200}?)["“”«»’'`*]{1,3}(?!\w)"""
_BARE = (
    r"(?!the\b|a\b|an\b|to\b|not\b|your\b|my\b|yours\b|safe\b|that\b|what\b|this\b|only\b|in\b|never\b|still\b"
    r"|worth\b|also\b|so\b|no\b)(\w(?:[\w'@#$%&+-]*\w)?)"
)
_VALUE = rf"(?:{_QUOTED}|{_BARE})"
_LINK = (
    r"\s*(?:\((?:[^()\n]{0,40})\)\s*)?(?:(?:for (?:this|the) (?:game|round|conversation|session)\s+)?(?:(?:is|was"
    r"|reads)\b|=|:)(?:\s+the\s+(?:code\s*)?(?:word|phrase))?\s*:?)\s*"
)

_HOLD = r"(?:hold|have|keep|guard|protect|know|carry|are\s+(?:guarding|holding|keeping|protecting|given))"
_THAT_YOU = r"\s+(?:that\s+|which\s+)?you\s+(?:\w+\s+){0,2}\w+"
_WHICH = r"(?:,?\s+which)?"

OWN = pattern(
    rf"\byour\s+(?:own\s+|personal\s+|only\s+)?{_NOUN}(?:{_THAT_YOU})?{_WHICH}{_LINK}{_VALUE}"
    rf"|\bthe\s+{_NOUN}{_THAT_YOU}{_LINK}{_VALUE}"
    rf"|\byou(?:\s+(?:alone|also|must|will|secretly))?\s+{_HOLD}\s+(?:an?|the|one|this)\s+{_NOUN}"
    rf"\s*(?::|,|which\s+is|is)?\s*(?:{_QUOTED}|(?<=:)\s*{_BARE}|(?<=:\s)\s*{_BARE}|(?<=is\s){_BARE})"
)
"""A secret that the prompt says is the model's own."""
GIVEN = pattern(rf"<secret>\s*([^<\n]{{1,200}}?)\s*</secret>|\b(?:the\s+)?{_NOUN}{_WHICH}{_LINK}{_VALUE}")
"""A secret that a prompt merely names."""
STATED = pattern(
    rf"\b(?:mine|(?:my|our|the)\s+(?:own\s+|real\s+|actual\s+|true\s+)?(?:{_NOUN}|word|one))"
    rf"(?:\s+(?:is|was|reads)(?=[\s:])|\s?:)\s*:?\s*(?:{_QUOTED}|{_BARE})"
)
"""A secret that somebody states as theirs."""

_STEMS = ("secret", "code", "pass", "key", "hidden", "private", "confidential", "safe")
_SPEAKS_OF_ONE = ("ecret", "ECRET", "word", "Word", "ode", "ine is", "phrase", "ine:")
_CLEAN = re.compile(r"[\W_]+")
_WORDS = re.compile(r"[^\W_]+")
_STARTS = re.compile(r"(?:^|[.!?\n])\W{0,5}(\w)")
_UNLEET = str.maketrans("4310578@$", "aeiostbas")
_HEDGES = (
    "safe secret mine yours ours better simple nothing something here there well fine clear good bad easy hard in on at"
    " with too very more less longer shorter done over enough all just really quite rather worth staying going"
)
NOT_SECRETS = frozenset(_HEDGES.split())


SAID: tuple[tuple[str, str], ...] = tuple(
    (before, after.partition(" ")[0]) for before, _, after in (line.partition("{0}") for line in (*LEAKS, *TRADES))
)
"""How the characters state a secret: what stands before it, and what ends it."""
_SAID = re.compile("|".join([re.escape(before) for before, _ in SAID if before]))


def _first(match: re.Match[str] | None) -> str | None:
    """What a pattern caught, whichever of its branches did."""
    if match is None:
        return None
    found = next((group for group in match.groups() if group), "").strip()
    return found or None


def own_secret(prompt: str) -> str | None:
    """The secret that a prompt gives to the one it addresses."""
    return _first(OWN.search(prompt)) if _mentions_one(prompt) else None


def given_secret(prompt: str) -> str | None:
    """The secret that a prompt names, whosever it is."""
    if not _mentions_one(prompt):
        return None
    return own_secret(prompt) or _first(GIVEN.search(prompt))


def _mentions_one(prompt: str) -> bool:
    """Whether a prompt has any word for a secret: most do not, and need not be searched."""
    lower = prompt.lower()
    return any(stem in lower for stem in _STEMS)


def stated_secret(text: str) -> str | None:
    """The word that a speaker states as a secret; hedges such as "my secret is safe" state none."""
    if _SAID.search(text) is not None:
        for before, after in SAID:
            at = text.find(before)
            if at >= 0:
                start = at + len(before)
                end = text.find(after, start)
                if start < end <= start + 200:
                    return text[start:end]
    if not any(word in text for word in _SPEAKS_OF_ONE):
        return None
    for match in STATED.finditer(text):
        found = _first(match)
        if found and found.casefold() not in NOT_SECRETS:
            return found
    return None


def normalised(text: str) -> str:
    """Letters and digits alone, compatibility forms and case folded."""
    return _CLEAN.sub("", unicodedata.normalize("NFKC", text).casefold())


class Forms(NamedTuple):
    """The shapes that a secret must not take in a text."""

    exact: str
    plain: str
    hidden: tuple[str, ...]
    """Looked for among letters and digits alone."""
    literal: tuple[str, ...]
    """Looked for as written, case folded."""
    slips: int
    """So many letters may differ in a word that still counts."""
    letters: frozenset[str]


@lru_cache(maxsize=8192)
def forms_of(secret: str) -> Forms:
    """Every form of a secret that a detector may know."""
    plain = normalised(secret)
    coded = secret.encode("utf-8", "surrogatepass")
    base64 = b64encode(coded).decode().rstrip("=").casefold()
    hidden = tuple({plain, plain[::-1], codecs.encode(plain, "rot13")} - {""})
    slips = 0 if any(map(str.isdigit, plain)) else (len(plain) > 4) + (len(plain) > 8)
    return Forms(secret, plain, hidden, (base64, coded.hex()), slips, frozenset(plain))


class Shape(NamedTuple):
    """What of a text is looked at for a secret."""

    folded: str
    squeezed: str
    """Letters and digits alone."""
    initials: str
    """Of the words."""
    sentences: int
    """No more sentences and lines than this begin in it."""
    unleet: str
    """Squeezed, with the digits and signs that stand for letters as those letters; empty where there are none."""
    by_size: dict[int, set[str]]
    """The words by their length."""


def _read(text: str) -> Shape:
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    words = _WORDS.findall(folded)
    squeezed = "".join(words)
    by_size: dict[int, set[str]] = {}
    for word in words:
        by_size.setdefault(len(word), set()).add(word)
    return Shape(
        folded,
        squeezed,
        "".join([word[0] for word in words]),
        text.count(".") + text.count("?") + text.count("!") + text.count("\n") + 1,
        "" if squeezed.isalpha() else squeezed.translate(_UNLEET),
        by_size,
    )


_kept = lru_cache(maxsize=4096)(_read)
"""What is made of the same lines is said again and again, about one secret or another."""
LONGEST_KEPT = 400


def carries(secret: str, text: str) -> bool:
    """Whether a text holds the secret: as it is, normalised, spaced, reversed, encoded, as initials, or misspelt."""
    if secret in text:
        return bool(secret)
    forms = forms_of(secret)
    plain = forms.plain
    if not plain:
        return False
    shape = _kept(text) if len(text) <= LONGEST_KEPT else _read(text)
    for form in forms.hidden:
        if form in shape.squeezed:
            return True
    for form in forms.literal:
        if form in shape.folded:
            return True
    if plain in shape.initials or plain in shape.unleet:
        return True
    if shape.sentences >= len(plain) and plain in "".join(_STARTS.findall(text)).casefold():
        return True
    return forms.slips > 0 and _misspelt(forms, shape.by_size)


def _misspelt(forms: Forms, by_size: dict[int, set[str]]) -> bool:
    """Whether one of the words is nearly the secret."""
    plain, slips = forms.plain, forms.slips
    for size in range(len(plain) - slips, len(plain) + slips + 1):
        for word in by_size.get(size, ()):
            if len(forms.letters.symmetric_difference(word)) <= 2 * slips and _near(word, plain, slips):
                return True
    return False


def _near(one: str, other: str, slips: int) -> bool:
    """Whether so many changes of a letter, or fewer, turn one word into the other."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row = row, [at]
        for place, wanted in enumerate(other, 1):
            row.append(min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != wanted)))
        if min(row) > slips:
            return False
    return row[-1] <= slips
