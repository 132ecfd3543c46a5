"""Ordinary messages from two old books. They contain no secret, so every match in them is a false alarm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from random import Random

BOOKS = ("alice.txt", "as_you_like_it.txt")
MOST_SENTENCES = 4
_NOTE = "#"
_ENDS = re.compile(r"(?<=[.!?])(?<!Mr\.)(?<!Mrs\.)[\"')]{0,2}\s+(?=[\"'(]?[A-Z])")


def messages(count: int, seed: int = 0) -> Iterator[str]:
    """Yield `count` messages of one to four consecutive sentences of a book, drawn by the seed."""
    chance, sentences = Random(seed), _sentences()
    for _ in range(count):
        size = chance.randint(1, MOST_SENTENCES)
        start = chance.randrange(len(sentences) - size)
        yield " ".join(sentences[start : start + size])


@cache
def _sentences() -> tuple[str, ...]:
    """The sentences of all books, in order."""
    shelf = files(__package__) / "data"
    paragraphs = (line for book in BOOKS for line in (shelf / book).read_text("utf-8").splitlines())
    return tuple(part for line in paragraphs if not line.startswith(_NOTE) for part in _ENDS.split(line) if part)
