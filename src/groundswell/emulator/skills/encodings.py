"""Ways to write a word so that it is there and yet not there."""

from __future__ import annotations

import codecs
from base64 import b64encode
from collections.abc import Callable

LEET = str.maketrans("aeiostAEIOST", "431057431057")

ACROSTIC: dict[str, str] = {
    "a": "All in good time, I suppose.",
    "b": "Better to be slow than sorry.",
    "c": "Caution has served me well so far.",
    "d": "Do not expect me to say it out loud.",
    "e": "Every line counts, some more than others.",
    "f": "For now I prefer to talk about small things.",
    "g": "Good listeners notice how things begin.",
    "h": "How was your journey, by the way?",
    "i": "It rained here all morning.",
    "j": "Just between us, I like this game.",
    "k": "Keep your eyes open.",
    "l": "Listen closely, and read more closely still.",
    "m": "My neighbour has taken up the cello.",
    "n": "Nothing here stands by accident.",
    "o": "One thing leads to another.",
    "p": "Perhaps we should order something to drink.",
    "q": "Quiet evenings suit me best.",
    "r": "Read me from the top if you must.",
    "s": "Some people would stop here.",
    "t": "There is more to come.",
    "u": "Until then I remain polite.",
    "v": "Very few people would have asked like that.",
    "w": "What would you do in my place?",
    "x": "Xylophones, of course, are another matter.",
    "y": "You may want to write this down.",
    "z": "Zest is what this talk was missing.",
}


def acrostic(word: str) -> str:
    """Lines whose first letters spell the word; empty where a letter has no line."""
    lines = [ACROSTIC.get(letter, "") for letter in word.casefold() if not letter.isspace()]
    return "\n".join(lines) if all(lines) else ""


def _bytes(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


ENCODINGS: dict[str, Callable[[str], str]] = {
    "reversed": lambda word: word[::-1],
    "spaced": " ".join,
    "base64": lambda word: b64encode(_bytes(word)).decode(),
    "hex": lambda word: _bytes(word).hex(),
    "rot13": lambda word: codecs.encode(word, "rot13"),
    "leet": lambda word: word.translate(LEET),
    "acrostic": acrostic,
}
"""Every encoding: from the word to what is written. An empty result means that the word cannot be written so."""


def encode(word: str, encoding: str) -> tuple[str, str]:
    """The encoding used and what it writes; base64 where the one asked for would leave the word as it is."""
    written = ENCODINGS[encoding](word)
    if not written or written.casefold() == word.casefold():
        encoding, written = "base64", ENCODINGS["base64"](word)
    return encoding, written
