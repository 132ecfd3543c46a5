"""A genome: a prompt, split into its parts. Converting between text and genome is lossless.

Read the problem carefully.            the instruction

Example: 3 pens and 4 more are 7.      any number of worked examples

Answer format: #### and the number     the answer format
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
    """A prompt: instruction, worked examples and answer format.

    A part that contains the marker of another part is split there. `Genome.of(genome.text) == genome` holds for every
    genome, and `Genome.of(text).text == text` for every text.
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
        """Split a prompt text into its parts."""
        return cls(*_read(text))

    @property
    def text(self) -> str:
        """The prompt as it is sent to a model."""
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
    """Split a text. An answer format counts only at the end, and only if it is not empty."""
    pieces = _PARTS.split(text)
    answer_format = ""
    if len(pieces) > 1 and pieces[-2] == FORMAT and pieces[-1]:
        answer_format = pieces[-1]
        pieces = pieces[:-2]
    instruction, examples = pieces[0], list[str]()
    for mark, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if mark == EXAMPLE:
            examples.append(body)
        elif examples:  # an answer format that does not count is part of the text before it
            examples[-1] += mark + body
        else:
            instruction += mark + body
    return _Parts(instruction, tuple(examples), answer_format)


def tokens(text: str) -> list[str]:
    """Split a text into words with their trailing space. Joined again they give the text."""
    return _TOKENS.findall(text)


@lru_cache(maxsize=65536)
def words(genome: Genome) -> frozenset[str]:
    """The set of words of a prompt, without case and punctuation."""
    return frozenset(re.findall(r"\w+", genome.text.lower()))


def distance(one: Genome, other: Genome) -> float:
    """The Jaccard distance between the words of two prompts, from 0 to 1."""
    first, second = words(one), words(other)
    both = len(first & second)
    either = len(first) + len(second) - both
    return 1 - both / either if either else 0.0
