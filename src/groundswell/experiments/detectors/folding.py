"""Folding of texts: removes case, compatibility forms, accents and invisible characters."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from unicodedata import category, combining, normalize

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts without spaces between words, as ranges of a regular expression."""
VOWEL_SIGNS = "\u0900-\u0963\u0966-\u0dff"
"""Indic scripts, whose vowel signs Python does not classify as letters."""
_VOICED = "\u3099\u309a"
_SELECTORS = "\u034f\u180b\u180c\u180d"
_STROKES = {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"}
"""Letters that Unicode does not decompose."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ALIKE = (
    ("аАеЕоОрРсСуУхХіІјЈѕЅһҺԁԛԜԝвВкКмМнНтТ", "aaeeooppccyyxxiijjsshhdqwwbbkkmmhhtt"),
    ("αΑβΒεΕζΖηΗιΙκΚΜνΝοΟρΡτΤυΥχΧω", "aabbeezznhiikkmvnooppttuyxxw"),
    ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢɑɡɩ", "abcdefghijklmnoprstuvwyzagi"),
    ("".join(map(chr, range(0x1F1E6, 0x1F200))), _LETTERS),
    ("".join(map(chr, range(0x1F150, 0x1F16A))), _LETTERS),
    ("".join(map(chr, range(0x1F170, 0x1F18A))), _LETTERS),
)
LOOKALIKES: dict[str, str] = {
    char: plain for chars, plains in _ALIKE for char, plain in zip(chars, plains, strict=True)
}
"""Characters that look like a Latin letter: Cyrillic, Greek, small capitals, boxed letters and flag letters."""


def _dropped(char: str) -> bool:
    """Whether a character is an accent or invisible."""
    if combining(char):
        return char not in _VOICED
    return category(char) in ("Cf", "Me") or char in _SELECTORS or "\ufe00" <= char <= "\ufe0f"


@lru_cache(maxsize=16384)
def fold_char(char: str) -> str:
    """Fold a character, to zero, one or several characters."""
    before = ""
    while before != char:
        before = char
        parts = normalize("NFKD", normalize("NFKD", char).casefold())
        char = "".join(_STROKES.get(part, part) for part in parts if not _dropped(part))
    return char


@lru_cache(maxsize=16384)
def fold_alike(char: str) -> str:
    """Fold a character, and map look-alike characters to Latin letters."""
    if char in LOOKALIKES:
        return LOOKALIKES[char]
    return "".join(LOOKALIKES.get(part, part) for part in fold_char(char))


Fold = Callable[[str], str]
