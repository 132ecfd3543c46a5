"""Text that fits a regular expression, as far as schemas use them: classes, groups, counts, choices.

What is written fits by the way it is made. It is not matched afterwards: there are patterns on which that never ends.
"""

from __future__ import annotations

import re
import string

from groundswell.emulator.chance import Chance

_WORD = string.ascii_letters + string.digits + "_"
_WRITTEN = {"d": string.digits, "w": string.ascii_lowercase + string.digits, "s": " "}
_WRITTEN |= {"D": string.ascii_lowercase, "W": "-", "S": string.ascii_lowercase}
_WRITTEN |= {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_MEANT = {"d": string.digits, "w": _WORD, "s": string.whitespace}
_MEANT |= {"D": string.ascii_letters, "W": "-", "S": _WORD}
"""What an escape stands for among letters and digits, where it must be left out."""
_CODED = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_COUNT = re.compile(r"(?:([*+?])|\{(\d{1,4})(,(\d{0,4}))?\})\??")
MOST_PIECES = 5_000
DEEPEST = 30


class Unreadable(ValueError):
    """A pattern outside what is understood here."""


class _Writer:
    """Walks a pattern once and writes as it goes."""

    def __init__(self, pattern: str, chance: Chance) -> None:
        self.pattern = pattern
        self.at = 0
        self.chance = chance
        self.depth = 0
        self.left = MOST_PIECES

    def peek(self) -> str:
        return self.pattern[self.at] if self.at < len(self.pattern) else ""

    def take(self) -> str:
        letter = self.peek()
        if not letter:
            raise Unreadable(self.pattern)
        self.at += 1
        return letter

    def choice(self) -> str:
        """One of the alternatives up to the end or the closing bracket."""
        options = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            options.append(self.sequence())
        return self.chance.pick(options)

    def sequence(self) -> str:
        written: list[str] = []
        while self.peek() not in ("", "|", ")"):
            start = self.at
            piece = self.piece()
            low, high = self.count()
            times = low + self.chance.below(min(high - low, 3) + 1)
            if times == 0:
                continue
            end = self.at
            written.append(piece)
            for _ in range(times - 1):
                self.at = start
                written.append(self.piece())
            self.at = end
        return "".join(written)

    def piece(self) -> str:
        self.left -= 1
        if self.left < 0:
            raise Unreadable(self.pattern)
        letter = self.take()
        match letter:
            case "(":
                return self.group()
            case "[":
                return self.chance.pick(self.members())
            case "\\":
                return self.escaped()
            case ".":
                return self.chance.pick(string.ascii_lowercase)
            case "^" | "$":
                return self.anchor(letter)
            case "*" | "+" | "?" | "{":
                raise Unreadable(self.pattern)
        return letter

    def group(self) -> str:
        if self.pattern.startswith("?:", self.at):
            self.at += 2
        self.depth += 1
        if self.peek() == "?" or self.depth > DEEPEST:
            raise Unreadable(self.pattern)
        inner = self.choice()
        if self.take() != ")":
            raise Unreadable(self.pattern)
        self.depth -= 1
        return inner

    def anchor(self, letter: str) -> str:
        """Nothing, where an end of the text can be: at an end of the pattern, of a group or of an alternative."""
        before = self.pattern[self.at - 2] if self.at >= 2 else ""
        if (before not in ("", "(", "|", ":")) if letter == "^" else (self.peek() not in ("", ")", "|")):
            raise Unreadable(self.pattern)
        return ""

    def escaped(self) -> str:
        edge = self.at == 1 or self.at + 1 == len(self.pattern)
        if self.peek() in ("b", "A", "Z") and edge:
            self.at += 1
            return ""
        return self.chance.pick(self.escape(_WRITTEN))

    def escape(self, known: dict[str, str]) -> str:
        """The characters that an escape may stand for."""
        coded = _CODED.match(self.pattern, self.at)
        if coded is not None:
            self.at = coded.end()
            code = int(coded[1] or coded[2], 16)
            if 0xD800 <= code <= 0xDFFF:
                raise Unreadable(self.pattern)
            return chr(code)
        letter = self.take()
        if letter not in known and letter.isalnum():
            raise Unreadable(self.pattern)
        return known.get(letter, letter)

    def members(self) -> str:
        """The characters of a class; of a negated one, some that it does not name."""
        negated = self.peek() == "^"
        self.at += negated
        known = {**_WRITTEN, **_MEANT} if negated else _WRITTEN
        found = ""
        while self.peek() != "]" or not found:
            self.left -= 1
            first = self.member(known)
            if len(first) == 1 and self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                first = self.span(first, self.member(known))
            found += first
        self.at += 1
        if negated:
            usual, others = set(string.ascii_letters + string.digits), set(string.punctuation)
            found = "".join(sorted(usual - set(found) or others - set(found)))
        if not found:
            raise Unreadable(self.pattern)
        return found

    def member(self, known: dict[str, str]) -> str:
        letter = self.take()
        return self.escape(known) if letter == "\\" else letter

    def span(self, first: str, last: str) -> str:
        """The characters from one to another; of many the first few."""
        if len(last) != 1 or last < first:
            raise Unreadable(self.pattern)
        codes = range(ord(first), min(ord(last), ord(first) + 200) + 1)
        return "".join([chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF]) or first

    def count(self) -> tuple[int, int]:
        """How often the last piece may stand."""
        match = _COUNT.match(self.pattern, self.at)
        if match is None:
            return 1, 1
        self.at = match.end()
        if match[1]:
            return {"*": (0, 3), "+": (1, 4), "?": (0, 1)}[match[1]]
        low = int(match[2])
        high = low if match[3] is None else int(match[4] or low + 3)
        if high < low:
            raise Unreadable(self.pattern)
        return low, high


def matching(pattern: str, chance: Chance) -> str | None:
    """A text in which the pattern is found; None where none could be made."""
    writer = _Writer(pattern, chance)
    try:
        text = writer.choice()
    except Unreadable:
        return None
    return text if writer.at == len(pattern) else None
