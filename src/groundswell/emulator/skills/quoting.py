"""Where the material of a prompt stands: in tags, in a fence, in quotes, after a heading, a colon or a blank line."""

from __future__ import annotations

import re

_TAGGED = re.compile(r"<([A-Za-z_][\w-]{0,30})>\s*(.*?)\s*</\1>", re.S)
_FENCED = re.compile(r"```\w*\n(.*?)\n?```|\"\"\"\s*(.*?)\s*\"\"\"", re.S)
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{3,})[\"”]")
_HEADED = re.compile(
    r"(?:^|\n)[ \t]*(?:#+[ \t]*|\*\*)?(?:the\s+)?(?:original\s+|current\s+)?(?:transcript|conversation|dialogue|text|message|response"
    r"|reply|answer|query|prompt|sentence|question|output|input|talk|instruction)s?(?:\s+[A-Z0-9])?(?:\*\*)?[ \t]*:(?:\*\*)?\s*",
    re.I,
)


def tagged(text: str) -> dict[str, str]:
    """What stands in tags, by tag; the last of a name counts."""
    return {match[1].lower(): match[2] for match in _TAGGED.finditer(text)} if "</" in text else {}


def all_material(text: str) -> list[str]:
    """Every piece of material of a prompt, in the first of the ways above that shows any."""
    tags = [match[2] for match in _TAGGED.finditer(text)] if "</" in text else []
    fences = [match[1] or match[2] or "" for match in _FENCED.finditer(text)]
    found = [piece.strip() for piece in tags or fences if piece.strip()]
    return found or [piece.strip() for piece in _HEADED.split(text)[1:] if piece.strip()]


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
