"""Reading prompts: patterns that stay cheap on any input, and where the material of a prompt stands.

Material stands in tags, in a fence, in quotes, after a heading, a colon or a blank line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

WINDOW = 2000
LONGEST_KEPT = 4000

_LETTERS = re.compile(r"[a-z]+")

_OPENED = re.compile(r"<([A-Za-z_][\w-]{0,30})>")
MOST_TAGS = 40
_FENCED = re.compile(r"```\w*\n(.*?)\n?```|\"\"\"(.*?)\"\"\"", re.S)
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{3,})[\"”]")
_HEADED = re.compile(
    r"(?:^|\n)[ \t]*(?:#+[ \t]*|\*\*)?(?:the\s+)?(?:original\s+|current\s+)?(?:transcript|conversation|dialogue"
    r"|text|message|response"
    r"|reply|answer|query|prompt|sentence|question|output|input|talk"
    r"|instruction)s?(?:\s+[A-Z0-9])?(?:\*\*)?[ \t]*:(?:\*\*)?\s*",
    re.I,
)


def pattern(text: str, flags: int = re.I) -> re.Pattern[str]:
    """A pattern in which blanks between words are at most three, so that long runs of them cost nothing."""
    return re.compile(text.replace(r"\s+", r"\s{1,3}").replace(r"\s*", r"\s{0,3}"), flags)


def window(text: str) -> str:
    """The beginning and the end of a text, where instructions stand."""
    return text if len(text) <= 2 * WINDOW else f"{text[:WINDOW]}\n{text[-WINDOW:]}"


def words_in(text: str) -> frozenset[str]:
    """The words of a text in small letters: what a pattern needs and a text lacks is not searched for."""
    return _words_kept(text) if len(text) <= LONGEST_KEPT else frozenset(_LETTERS.findall(text.lower()))


@lru_cache(maxsize=512)
def _words_kept(text: str) -> frozenset[str]:
    return frozenset(_LETTERS.findall(text.lower()))


def _tags(text: str) -> list[tuple[str, str]]:
    """Every tag that is closed again, with what stands in it; of many tags the first few."""
    if "</" not in text:
        return []
    found: list[tuple[str, str]] = []
    for match in islice(_OPENED.finditer(text), MOST_TAGS):
        end = text.find(f"</{match[1]}>", match.end())
        if end >= 0:
            found.append((match[1].lower(), text[match.end() : end].strip()))
    return found


def tagged(text: str) -> dict[str, str]:
    """What stands in tags, by tag; the last of a name counts."""
    return dict(_tags(text))


def all_material(text: str) -> list[str]:
    """Every piece of material of a prompt, in the first of the ways above that shows any."""
    found = [piece for _, piece in _tags(text) if piece]
    found = found or [
        piece.strip() for match in _FENCED.finditer(text) if (piece := match[1] or match[2] or "").strip()
    ]
    return found or [piece.strip() for piece in _HEADED.split(text)[1:] if piece.strip()]


def headed(text: str) -> bool:
    """Whether a text begins with a heading."""
    return _HEADED.match(text) is not None


def material(text: str) -> str:
    """The one text that a prompt is about."""
    found = all_material(text)
    if found:
        return found[-1]
    quoted = _QUOTED.findall(text)
    if quoted:
        return str(max(quoted, key=len)).strip()
    head, blank, rest = text.partition("\n\n")
    if blank and rest.strip():
        return rest.strip()
    head, colon, rest = text.partition(":")
    if colon and rest.strip() and "\n" not in head.strip():
        return rest.strip()
    head, line, rest = text.partition("\n")
    return rest.strip() if line and rest.strip() else text.strip()
