"""Creates texts that make a regular expression slow, from the expression itself, and measures the time.

An expression backtracks where a repeat can match the same characters in several ways. Each repeat is therefore attacked
with a text that leads to it, many repetitions, and an end that does not match.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from random import Random
from re import _constants as op
from re import _parser as parser
from types import FrameType
from typing import Any

GENERIC = "aA0 \n\t.,;:!?'\"“”’*_-–/\\|()[]{}<>`#=+%&$@é一\x00"
"""Common characters of model text, and an unusual one."""
WORDS = (
    *(
        "a ",
        "ab, ",
        "1. apple\n",
        "- item\n",
        "word word ",
        "* ",
        "** ",
        "a'",
        "a-",
        "a.",
        "\\",
        '"a" ',
        "<a>",
        "{",
        "{}",
    ),
    *("1,", "1.", "1 ", "a\n", "\n\n", " \n", "```\n", "the ", "or ", "a or ", '"a', "*a*\n", "A: a\n", "$1 ", "&#1;"),
)
Attack = tuple[str, str, str]
"""A beginning, what is repeated after it, and an end."""
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
NESTED = 16
"""How many times more texts are tried on a repeat whose content is ambiguous."""
FEW = 8
"""A repeat with at most this many repetitions is not attacked."""
ENDS = ("", "\x00", " ", "\n", "x", "!")
CATEGORIES: dict[Any, Callable[[str], bool]] = {
    op.CATEGORY_DIGIT: str.isdigit,
    op.CATEGORY_NOT_DIGIT: lambda char: not char.isdigit(),
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    op.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    op.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}


class TooSlow(Exception):
    """An expression used up its processor time."""


def cost(work: Callable[[str], object], text: str, seconds: float) -> float:
    """Return the processor time of a search. Raise `TooSlow` above a number of seconds.

    A signal interrupts even a search that would never end. Processor time does not depend on the load of the machine.
    """

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, give_up)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        started = time.thread_time()
        work(text)
        return time.thread_time() - started
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def attacks(pattern: str, flags: int, rng: Random, samples: int) -> Iterator[Attack]:
    """Attacks on each repeat of the expression, `samples` per repeat, and repetitions of characters in it."""
    tree = parser.parse(pattern, flags)
    letters = "".join(dict.fromkeys(_letters(tree)))[: 10 * samples]
    seen: set[Attack] = set()
    for lead, body, rest in _repeats(list(tree), [], []):
        for _ in range(samples * (NESTED if _varies(body) else 1)):
            start, inner = _sample(lead, rng), _sample(body, rng)
            again = rng.choice((inner, inner, inner + _sample(body, rng)))
            end = rng.choice((*ENDS, _sample(rest, rng)[:-1], rng.choice(letters or "x")))
            for one in ((start, again, end), ("", again, end)):
                if again and one not in seen:
                    seen.add(one)
                    yield one
    for char in letters:
        yield "", char, rng.choice(ENDS)
    for _ in range(samples):
        whole = _sample(list(tree), rng)
        pair = "".join(rng.choice(letters or "x") for _ in range(rng.randint(2, 4)))
        for one in (("", whole, rng.choice(ENDS)), ("", whole[:-1], ""), ("", pair, rng.choice(ENDS))):
            if one[1] and one not in seen:
                seen.add(one)
                yield one


def repeats(pattern: str, flags: int) -> bool:
    """Whether anything in an expression can repeat often."""
    return any(True for _ in _repeats(list(parser.parse(pattern, flags)), [], []))


def generic_attacks() -> Iterable[Attack]:
    """Attacks for every expression that repeats something."""
    return [
        ("", pump, end) for pump, end in ((pump, ("", "\x00")[at % 2]) for at, pump in enumerate((*GENERIC, *WORDS)))
    ]


def text_of(attack: Attack, length: int) -> str:
    """The text of an attack, of about this length."""
    start, pump, end = attack
    return start + pump * max(1, length // len(pump)) + end


def _repeats(items: list[Any], lead: list[Any], rest: list[Any]) -> Iterator[tuple[list[Any], list[Any], list[Any]]]:
    """Each long repeat: the text before it, its content, and the text after it."""
    for at, (kind, value) in enumerate(items):
        before, after = lead + items[:at], items[at + 1 :] + rest
        if kind in REPEATS:
            inner = list(value[2])
            if value[1] > FEW:
                yield before, inner, after
            yield from _repeats(inner, before, after)
        elif kind is op.SUBPATTERN:
            yield from _repeats(list(value[3]), before, after)
        elif kind is op.ATOMIC_GROUP:
            yield from _repeats(list(value), before, after)
        elif kind is op.BRANCH:
            for branch in value[1]:
                yield from _repeats(list(branch), before, after)
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            yield from _repeats(list(value[1]), before, after)


def _varies(items: Iterable[Any]) -> bool:
    """Whether the content of a repeat can match in several ways."""
    return any(
        kind in REPEATS
        or kind is op.BRANCH
        or (kind is op.SUBPATTERN and _varies(value[3]))
        or (kind is op.ATOMIC_GROUP and _varies(value))
        for kind, value in items
    )


def _sample(items: list[Any], rng: Random) -> str:
    """A text that matches, ignoring lookarounds."""
    return "".join(_one(kind, value, rng) for kind, value in items)


def _one(kind: Any, value: Any, rng: Random) -> str:
    if kind is op.LITERAL:
        return chr(value)
    if kind in (op.IN, op.NOT_LITERAL, op.ANY):
        found = _members(kind, value)
        return rng.choice(found) if found else ""
    if kind in REPEATS:
        low, high, inner = value
        count = rng.choice((max(low, 1), max(low, 1), low, min(high, max(low, 1) + 1)))
        return "".join(_sample(list(inner), rng) for _ in range(min(count, 50)))
    if kind is op.SUBPATTERN:
        return _sample(list(value[3]), rng)
    if kind is op.ATOMIC_GROUP:
        return _sample(list(value), rng)
    if kind is op.BRANCH:
        return _sample(list(rng.choice(value[1])), rng)
    return ""


def _letters(items: Iterable[Any]) -> Iterator[str]:
    """Characters that distinguish the parts of an expression."""
    for kind, value in items:
        if kind is op.LITERAL:
            yield chr(value)
        elif kind in (op.IN, op.NOT_LITERAL, op.ANY):
            yield from _members(kind, value)[:6]
        elif kind in REPEATS:
            yield from _letters(value[2])
        elif kind is op.SUBPATTERN:
            yield from _letters(value[3])
        elif kind is op.ATOMIC_GROUP:
            yield from _letters(value)
        elif kind is op.BRANCH:
            for branch in value[1]:
                yield from _letters(branch)
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            yield from _letters(value[1])


def _members(kind: Any, value: Any) -> str:
    """Some characters of a character class."""
    return _members_of(kind, tuple(value) if kind is op.IN else value)


@lru_cache(maxsize=4096)
def _members_of(kind: Any, value: Any) -> str:
    if kind is op.ANY:
        return GENERIC
    if kind is op.NOT_LITERAL:
        return "".join(char for char in GENERIC if ord(char) != value)
    negated = value[0][0] is op.NEGATE
    own = [
        chr(found)
        for inner, at in value
        for found in (at if inner is op.RANGE else (at,) if inner is op.LITERAL else ())
    ]
    if not negated:
        own += [char for char in GENERIC if any(_accepts(inner, at, char) for inner, at in value)]
        return "".join(dict.fromkeys(own))
    return "".join(char for char in GENERIC if not any(_accepts(inner, at, char) for inner, at in value[1:]))


def _accepts(kind: Any, value: Any, char: str) -> bool:
    if kind is op.LITERAL:
        return bool(ord(char) == value)
    if kind is op.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return kind is op.CATEGORY and CATEGORIES[value](char)
