"""A genome: a prompt, split into its parts, or the texts of a program, by name.

Converting between a prompt and its genome is lossless:

Read the problem carefully.            the instruction

Example: 3 pens and 4 more are 7.      any number of worked examples

Answer format: #### and the number     the answer format

Each text of a program is such a prompt too: `part` gives it as a genome, and `with_part` replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from groundswell.errors import SettingsError

EXAMPLE, FORMAT = "\n\nExample: ", "\n\nAnswer format: "
_PARTS = re.compile(f"({EXAMPLE}|{FORMAT})")
_TOKENS = re.compile(r"\S+\s*|\s+")


class Genome(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt: instruction, worked examples and answer format. Or several texts by name, for a program that uses them.

    A part that contains the marker of another part is split there. `Genome.of(genome.text) == genome` holds for every
    prompt, and `Genome.of(text).text == text` for every text.
    """

    instruction: str
    examples: tuple[str, ...] = ()
    answer_format: str = ""
    texts: dict[str, str] = {}
    """The texts of a program, sorted by name; empty for a prompt. A genome with texts has no other parts."""

    def __post_init__(self) -> None:
        if self.texts:
            if self.instruction or self.examples or self.answer_format:
                raise SettingsError("texts: a genome has either texts with names or the parts of a prompt, not both")
            if bad := [name for name in self.texts if not name.strip() or "\n" in name]:
                raise SettingsError(f"texts: {bad[0]!r} is not a name; use a word", field="texts")
            msgspec.structs.force_setattr(self, "texts", dict(sorted(self.texts.items())))  # as stores sort them
            return
        parts = _read(_written(self.instruction, self.examples, self.answer_format))
        if parts != (self.instruction, self.examples, self.answer_format):
            for name, value in zip(parts._fields, parts, strict=True):
                msgspec.structs.force_setattr(self, name, value)

    @classmethod
    def of(cls, text: str) -> Genome:
        """Split a prompt text into its parts."""
        return cls(*_read(text))

    @classmethod
    def named(cls, texts: Mapping[str, str]) -> Genome:
        """The texts of a program."""
        return cls("", texts=dict(texts))

    def part(self, name: str) -> Genome:
        """One of the texts as a prompt; the prompt itself for the name ""."""
        return Genome.of(self.texts[name]) if name else self

    def with_part(self, name: str, new: Genome) -> Genome:
        """The genome with another text under this name; the new prompt itself for the name ""."""
        return Genome.named({**self.texts, name: new.text}) if name else new

    @property
    def text(self) -> str:
        """The prompt as it is sent to a model; or all texts, each under a heading with its name."""
        if self.texts:
            return _under_headings(self.texts)
        return _written(self.instruction, self.examples, self.answer_format)

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.text)


class _Parts(NamedTuple):
    instruction: str
    examples: tuple[str, ...]
    answer_format: str


def _written(instruction: str, examples: Sequence[str], answer_format: str) -> str:
    shown = "".join(f"{EXAMPLE}{example}" for example in examples)
    return instruction + shown + (f"{FORMAT}{answer_format}" if answer_format else "")


def _under_headings(texts: Mapping[str, str]) -> str:
    """The texts as one. No line of a text begins like a heading, so different texts give different results."""
    mark = "##"
    while any(f"\n{mark} " in f"\n{text}" for text in texts.values()):
        mark += "#"
    return "\n\n".join(f"{mark} {name}\n\n{text}" for name, text in texts.items())


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
def examples_in(genome: Genome) -> tuple[str, ...]:
    """The worked examples of a prompt, or of all texts."""
    return tuple(each for name in genome.texts or [""] for each in genome.part(name).examples)


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
