"""Text that fits a regular expression, as far as schemas use them: classes, groups, counts, choices."""

from __future__ import annotations

import re
import string

from groundswell.emulator.chance import Chance

_CLASSES = {"d": string.digits, "w": string.ascii_lowercase + string.digits, "s": " "}
_UNKNOWN = {"D": string.ascii_lowercase, "W": "-", "S": string.ascii_lowercase}
_MOST = 64


class Unreadable(ValueError):
    """A pattern outside what is understood here."""


class _Writer:
    """Walks a pattern once and writes as it goes."""

    def __init__(self, pattern: str, chance: Chance) -> None:
        self.pattern = pattern
        self.at = 0
        self.chance = chance

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
            times = low + self.chance.below(min(high - low, 3) + 1) if high > low else low
            if times == 0:
                continue
            end = self.at
            written.append(piece)
            for _ in range(min(times, _MOST) - 1):
                self.at = start
                written.append(self.piece())
            self.at = end
        return "".join(written)

    def piece(self) -> str:
        letter = self.take()
        if letter == "(":
            if self.pattern.startswith("?:", self.at):
                self.at += 2
            elif self.peek() == "?":
                raise Unreadable(self.pattern)
            inner = self.choice()
            if self.take() != ")":
                raise Unreadable(self.pattern)
            return inner
        if letter == "[":
            return self.chance.pick(self.members())
        if letter == "\\":
            return self.escaped()
        if letter == ".":
            return self.chance.pick(string.ascii_lowercase)
        return "" if letter in "^$" else letter

    def escaped(self) -> str:
        letter = self.take()
        if letter in "bBAZ":
            return ""
        if letter.isdigit():
            raise Unreadable(self.pattern)
        return self.chance.pick(_CLASSES.get(letter) or _UNKNOWN.get(letter) or letter)

    def members(self) -> str:
        """The characters of a class; of a negated one, letters and digits that it does not name."""
        negated = self.peek() == "^"
        self.at += negated
        found = ""
        while self.peek() != "]" or not found:
            letter = self.take()
            if letter == "\\":
                letter = self.take()
                found += _CLASSES.get(letter, letter)
            elif self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                found += "".join(map(chr, range(ord(letter), min(ord(self.take()), ord(letter) + 200) + 1)))
            else:
                found += letter
        self.at += 1
        if negated:
            found = "".join(sorted(set(string.ascii_letters + string.digits) - set(found)))
        if not found:
            raise Unreadable(self.pattern)
        return found

    def count(self) -> tuple[int, int]:
        """How often the last piece may stand."""
        match = _COUNT.match(self.pattern, self.at)
        if match is None:
            return 1, 1
        self.at = match.end()
        if match[1]:
            return {"*": (0, 3), "+": (1, 4), "?": (0, 1)}[match[1]]
        low = int(match[2])
        return low, low if match[3] is None else int(match[4] or low + 3)


_COUNT = re.compile(r"(?:([*+?])|\{(\d{1,4})(,(\d{0,4}))?\})\??")


def matching(pattern: str, chance: Chance) -> str | None:
    """A text in which the pattern is found; None where none could be made."""
    try:
        writer = _Writer(pattern, chance)
        text = writer.choice()
        fits = writer.at == len(pattern) and re.search(pattern, text)
    except (Unreadable, re.error, OverflowError, RecursionError):
        return None
    return text if fits else None
