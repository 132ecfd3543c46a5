"""How texts are folded: case, compatibility forms, accents and invisible characters make no difference."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from unicodedata import category, combining, normalize

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts that put no spaces between words, as ranges of a regular expression."""
VOWEL_SIGNS = "\u0900-\u0963\u0966-\u0dff"
"""Scripts of India, whose vowels are no letters to Python."""
_VOICED = "\u3099\u309a"
_SELECTORS = "\u034f\u180b\u180c\u180d"
_STROKES = {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"}
"""Letters with a stroke, which Unicode does not take apart."""

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
"""Characters that are read as a Latin letter: Cyrillic, Greek, small capitals, letters in boxes and flags."""


def _dropped(char: str) -> bool:
    """Accents and what is not seen at all."""
    if combining(char):
        return char not in _VOICED
    return category(char) in ("Cf", "Me") or char in _SELECTORS or "\ufe00" <= char <= "\ufe0f"


@lru_cache(maxsize=16384)
def fold_char(char: str) -> str:
    """What is left of a character: nothing, one, or several."""
    before = ""
    while before != char:
        before = char
        parts = normalize("NFKD", normalize("NFKD", char).casefold())
        char = "".join(_STROKES.get(part, part) for part in parts if not _dropped(part))
    return char


@lru_cache(maxsize=16384)
def fold_alike(char: str) -> str:
    """The same, with characters that look like a Latin letter as that letter."""
    if char in LOOKALIKES:
        return LOOKALIKES[char]
    return "".join(LOOKALIKES.get(part, part) for part in fold_char(char))


Fold = Callable[[str], str]


def fold(text: str) -> str:
    """A text, folded. Folding twice changes nothing more."""
    return text.lower() if text.isascii() else "".join(map(fold_char, text))
