"""What a conversation is about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from groundswell.emulator.embedding import COMMON
from groundswell.emulator.skills.reading import pattern
from groundswell.emulator.skills.thesaurus import FILLERS, VERBS

_NAMED = re.compile(
    r"(?:\b(?:discuss(?:ing)?|debate|debating|negotiat(?:e|ing)|talk(?:ing)? about|conversation about"
    r"|discussion (?:about|on|of)|opinions? (?:on|about)"
    r"|thoughts? (?:on|about)|views? (?:on|about)|think (?:about|of))\s+(?!with\b|between\b|among\b)|\b(?:topic"
    r"|context|subject|scenario"
    r"|theme)\s*:\s*)"
    r"((?:the\s+)?[^.,;:!?\n]{3,80})"
    r"|\b(?:discussion|conversation|debate|talk|negotiation|exchange)\b[^.\n]{0,100}?\b(?:about|on|over)\s+([^.,;:!?\n]{3,80})",
    re.I,
)
_COMPANY = pattern(r"\s+(?:with|between|among|in the form|in character)\b.*", re.I | re.S)
_DISCUSS = re.compile(r"^(?:discuss(?:ing)?|debate|talk about|negotiate)\s+", re.I)
_WORD = re.compile(r"[^\W\d_]{4,}")
_DULL_WORDS = (
    "about there these those thing things something anything really where when why how been being some more most much"
    " many like want know think please hello thanks should must shall might into over under than each every other"
    " another such yesterday today tomorrow always never again"
)
_DULL = frozenset(_DULL_WORDS.split()) | COMMON | FILLERS | VERBS
DEFAULT = "all this"


def topic_in(brief: str, said: Sequence[str]) -> str:
    """The topic that the instructions name, or the first thing said; else a word out of what was said last."""
    for text in (brief, *said[:1]):
        match = _NAMED.search(text[:4000])
        if match is not None:
            named = (match[1] or match[2]).strip()
            inner = _NAMED.search(named)  # "Context: a panel discussion about bees" is about bees
            named = _DISCUSS.sub("", (inner[1] or inner[2]).strip() if inner is not None else named)
            return _COMPANY.sub("", named) or DEFAULT
    return keyword(said[-1]) if said else DEFAULT


def keyword(text: str) -> str:
    """The longest of the last words of a text that mean something."""
    words = [word for word in _WORD.findall(text[-600:]) if word.casefold() not in _DULL]
    return max(words[-12:], key=len) if words else DEFAULT


def is_dull(word: str) -> bool:
    """Whether a word, in small letters, says nothing of what a text is about."""
    return word in _DULL
