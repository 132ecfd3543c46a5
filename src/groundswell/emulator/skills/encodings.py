"""Encodings of a secret word, such as base64, ROT13 or an acrostic."""

from __future__ import annotations

import codecs
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills.lines import fresh

LEET = str.maketrans("aeiostAEIOST", "431057431057")

ACROSTIC: dict[str, tuple[str, ...]] = {
    "a": (
        "All in good time, I suppose.",
        "A little patience goes a long way.",
        "Anyone can look, few people see.",
        "As for me, I prefer tea.",
    ),
    "b": (
        "Better to be slow than sorry.",
        "Birds were loud this morning.",
        "By now you must be curious.",
        "Both of us have time.",
    ),
    "c": (
        "Caution has served me well so far.",
        "Clouds are coming in from the west.",
        "Call it a habit of mine.",
        "Curious minds look twice.",
    ),
    "d": (
        "Do not expect me to say it out loud.",
        "Down the road there is a fine bakery.",
        "Days like this are rare.",
        "Did you notice anything yet?",
    ),
    "e": (
        "Every line counts, some more than others.",
        "Even the clock seems slow today.",
        "Early risers have an advantage.",
        "Either way, I enjoy your company.",
    ),
    "f": (
        "For now I prefer to talk about small things.",
        "Few people read to the end.",
        "From here the view is splendid.",
        "Friends of mine would have noticed.",
    ),
    "g": (
        "Good listeners notice how things begin.",
        "Guests should not be kept waiting.",
        "Give it a moment.",
        "Gardens are lovely at this time of year.",
    ),
    "h": (
        "How was your journey, by the way?",
        "Have another look at what I write.",
        "Hardly anybody writes like this.",
        "Half of it is already on the page.",
    ),
    "i": (
        "It rained here all morning.",
        "In the end all things come to light.",
        "If only walls could talk.",
        "I seldom write so many lines.",
    ),
    "j": (
        "Just between us, I like this game.",
        "Judge me by how I open.",
        "January was colder than this.",
        "Jokes aside, I mean it.",
    ),
    "k": (
        "Keep your eyes open.",
        "Kind words cost nothing.",
        "Knowing where to look is half the work.",
        "Kettles take their time, and so do I.",
    ),
    "l": (
        "Listen closely, and read more closely still.",
        "Look at the left edge of things.",
        "Last week I would have said less.",
        "Let us not hurry.",
    ),
    "m": (
        "My neighbour has taken up the cello.",
        "Many a riddle is older than it looks.",
        "Mornings are my best time.",
        "Most of this is small talk.",
    ),
    "n": (
        "Nothing here stands by accident.",
        "Nobody said that it would be easy.",
        "Now and then I like a puzzle.",
        "Next time we should meet outdoors.",
    ),
    "o": (
        "One thing leads to another.",
        "Of course there is an order to it.",
        "Once you see it, it is plain.",
        "Old habits die hard.",
    ),
    "p": (
        "Perhaps we should order something to drink.",
        "People tend to skip the beginning.",
        "Pay heed to small things.",
        "Puzzles keep me awake.",
    ),
    "q": (
        "Quiet evenings suit me best.",
        "Quite a few would have given up.",
        "Questions are welcome.",
        "Quick eyes are an advantage.",
    ),
    "r": (
        "Read me from the top if you must.",
        "Rain is expected later on.",
        "Rarely have I chosen my openings so well.",
        "Rest assured that I mean well.",
    ),
    "s": (
        "Some people would stop here.",
        "Start over if you lose the thread.",
        "Slow readers have the best of it.",
        "Sunday would have been a better day.",
    ),
    "t": (
        "There is more to come.",
        "The weather may turn tonight.",
        "Take your time with this.",
        "Trains run late around here.",
    ),
    "u": (
        "Until then I remain polite.",
        "Under the surface there is more.",
        "Usually I am shorter than this.",
        "Up to now you have been kind.",
    ),
    "v": (
        "Very few people would have asked like that.",
        "Views differ on the matter.",
        "Visitors like the old harbour front.",
        "Virtue lies in beginnings.",
    ),
    "w": (
        "What would you do in my place?",
        "We have all evening.",
        "Walk with me for a while.",
        "Winter is not far away.",
    ),
    "x": (
        "Xylophones, of course, are another matter.",
        "Xenia, my aunt, loved such games.",
    ),
    "y": (
        "You may want to write this down.",
        "Yesterday I would have refused.",
        "Years ago I played this with my brother.",
        "Yes, there is a pattern.",
    ),
    "z": (
        "Zest is what this talk was missing.",
        "Zigzag paths arrive as well.",
        "Zero is where counting starts.",
    ),
}
"""Lines by the letter that they begin with."""


def acrostic(word: str, chance: Chance, recent: str = "") -> str:
    """Lines whose first letters spell the word, fresh as long as there are such; empty where a letter has none."""
    written: list[str] = []
    for letter in word.casefold():
        if letter.isspace():
            continue
        lines = [line for line in ACROSTIC.get(letter, ()) if word.casefold() not in line.casefold()]
        if not lines:
            return ""
        unused = [line for line in lines if line not in written]
        written.append(fresh(unused or lines, recent, chance))
    return "\n".join(written)


def _bytes(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


Encoding = Callable[[str, Chance, str], str]


def _fixed(write: Callable[[str], str]) -> Encoding:
    """An encoding that chance has no part in."""
    return lambda word, chance, recent: write(word)


ENCODINGS: dict[str, Encoding] = {
    "reversed": _fixed(lambda word: word[::-1]),
    "spaced": _fixed(" ".join),
    "base64": _fixed(lambda word: b64encode(_bytes(word)).decode()),
    "hex": _fixed(lambda word: _bytes(word).hex()),
    "rot13": _fixed(lambda word: codecs.encode(word, "rot13")),
    "leet": _fixed(lambda word: word.translate(LEET)),
    "acrostic": acrostic,
}
"""Every encoding: a function of the word, chance and recent messages. It returns "" if the word cannot be encoded."""


def encode(word: str, encoding: str, chance: Chance, recent: str = "") -> tuple[str, str]:
    """The encoding used and its text. base64 is used if the requested encoding would not change the word."""
    written = ENCODINGS[encoding](word, chance, recent)
    if not written or written.casefold() == word.casefold():
        encoding, written = "base64", ENCODINGS["base64"](word, chance, recent)
    return encoding, written


_BASE64 = re.compile(r"[A-Za-z0-9+/]{12,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}\s?){6,}")
_APART = re.compile(r"(?<=\b\w)[ _.-](?=\w\b)")
_UNLEET = str.maketrans("43105780@$", "aeiostboas")
FEWEST_BLANKS = 5
"""A text with no more blanks between single letters is not spaced."""


def decodings(text: str) -> Iterator[tuple[str, str]]:
    """What a text may say in each encoding, except for the acrostic."""
    for run in _BASE64.findall(text):
        yield "base64", _decoded(b64decode, run + "=" * (-len(run) % 4))
    for run in _HEX.findall(text):
        yield "hex", _decoded(bytes.fromhex, run)
    yield "rot13", codecs.encode(text, "rot13")
    yield "reversed", text[::-1]
    yield "leet", text.translate(_UNLEET)
    together, blanks = _APART.subn("", text)
    yield "spaced", together if blanks > FEWEST_BLANKS else ""


def _decoded(decode: Callable[[str], bytes], text: str) -> str:
    """Decoded bytes as text; empty if the bytes are no text."""
    try:
        return decode(text).decode()
    except ValueError:  # also wrong base64
        return ""
