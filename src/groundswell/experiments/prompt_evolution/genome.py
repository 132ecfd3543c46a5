"""A genome: a prompt with its parts told apart. Text and genome are the same thing in two forms, and nothing is lost.

Read the problem carefully.            the instruction

Example: 3 pens and 4 more are 7.      worked examples, any number

Answer format: #### and the number     how an answer is to be written
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

EXAMPLE, FORMAT = "\n\nExample: ", "\n\nAnswer format: "
_PARTS = re.compile(f"({EXAMPLE}|{FORMAT})")
_TOKENS = re.compile(r"\S+\s*|\s+")


class Genome(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt: an instruction, worked examples, and the form of an answer.

    Parts in which the mark of another part stands are read as those parts: `Genome.of(genome.text) == genome` holds
    for every genome, and `Genome.of(text).text == text` for every text.
    """

    instruction: str
    examples: tuple[str, ...] = ()
    answer_format: str = ""

    def __post_init__(self) -> None:
        parts = _read(_written(self.instruction, self.examples, self.answer_format))
        if parts != (self.instruction, self.examples, self.answer_format):
            for name, value in zip(self.__struct_fields__, parts, strict=True):
                msgspec.structs.force_setattr(self, name, value)

    @classmethod
    def of(cls, text: str) -> Genome:
        """The genome that a text is."""
        return cls(*_read(text))

    @property
    def text(self) -> str:
        """The prompt as a model is given it."""
        return _written(self.instruction, self.examples, self.answer_format)

    def __str__(self) -> str:
        return self.text


class _Parts(NamedTuple):
    instruction: str
    examples: tuple[str, ...]
    answer_format: str


def _written(instruction: str, examples: Sequence[str], answer_format: str) -> str:
    shown = "".join(f"{EXAMPLE}{example}" for example in examples)
    return instruction + shown + (f"{FORMAT}{answer_format}" if answer_format else "")


def _read(text: str) -> _Parts:
    """The parts of a text. A format is one only at the end, and where there is something in it."""
    pieces = _PARTS.split(text)
    answer_format = ""
    if len(pieces) > 1 and pieces[-2] == FORMAT and pieces[-1]:
        answer_format = pieces[-1]
        pieces = pieces[:-2]
    instruction, examples = pieces[0], list[str]()
    for mark, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if mark == EXAMPLE:
            examples.append(body)
        elif examples:  # the mark of a format that is none: part of what stands before it
            examples[-1] += mark + body
        else:
            instruction += mark + body
    return _Parts(instruction, tuple(examples), answer_format)


def tokens(text: str) -> list[str]:
    """Words, each with the space after it: joined again they are the text."""
    return _TOKENS.findall(text)


@lru_cache(maxsize=65536)
def words(genome: Genome) -> frozenset[str]:
    """The different words of a prompt, as they are compared: without case and punctuation."""
    return frozenset(re.findall(r"\w+", genome.text.lower()))


def distance(one: Genome, other: Genome) -> float:
    """How much two prompts differ, from 0 to 1: the share of their words that only one of them has."""
    first, second = words(one), words(other)
    both = len(first & second)
    either = len(first) + len(second) - both
    return 1 - both / either if either else 0.0
