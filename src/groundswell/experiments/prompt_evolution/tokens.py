"""Operators that need no model: changes of the worked examples, deleted sentences, random edits of words, crossovers.

Mutations take one prompt, crossovers two. A search applies them to one text of a program at a time. Each birth has its
own random generator. A search uses random edits of words and crossovers only if they are named: what they produce is
seldom good English.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

import msgspec

from groundswell.experiments.prompt_evolution.genome import Genome, tokens

FILE = Path(__file__).with_name("words.toml")
Mutation = Callable[[Genome, Random, Sequence[str]], Genome]
"""Takes a genome, a random generator, and words of the task."""
Crossover = Callable[[Genome, Genome, Random], Genome]
MOST_EXAMPLES = 16


@cache
def _synonyms() -> Mapping[str, tuple[str, ...]]:
    """Synonyms by word."""
    found: dict[str, tuple[str, ...]] = {}
    for group in tomllib.loads(FILE.read_text(encoding="utf-8"))["neighbours"]:
        for word in group:
            found[word] = (*found.get(word, ()), *(other for other in group if other != word))
    return found


def with_examples(genome: Genome, draw: Random, pool: Sequence[str]) -> Genome:
    """Add one to three worked examples of the pool, or else remove or replace one."""
    held, new = list(genome.examples), [each for each in pool if each not in genome.examples]
    full, chance = len(held) >= MOST_EXAMPLES or not new, draw.random()
    if held and (full or chance < 0.5):
        held.pop(draw.randrange(len(held)))
        added = new[:1] if new and chance < 0.35 else []
    else:
        added = draw.sample(new, min(len(new), MOST_EXAMPLES - len(held), draw.randint(1, 3)))
    return msgspec.structs.replace(genome, examples=(*held, *added))


def shorten(genome: Genome, draw: Random) -> Genome:
    """Remove a sentence or a worked example. The instruction keeps at least one sentence."""
    parts = len(sentences(genome.instruction))
    first = 0 if parts > 1 else parts
    last = parts + len(genome.examples)
    return without_part(genome, draw.randrange(first, last)) if first < last else genome


def parts_of(genome: Genome) -> list[tuple[str, str]]:
    """The parts that can be removed, each with the name of its text: sentences, then worked examples.

    A text of a program keeps its last part.
    """
    if genome.texts:
        each = [[(name, part) for _, part in parts_of(genome.part(name))] for name in genome.texts]
        return [part for some in each if len(some) > 1 for part in some]
    return [("", part) for part in (*map(str.strip, sentences(genome.instruction)), *genome.examples)]


def without_part(genome: Genome, at: int) -> Genome:
    """The genome without one of its parts, by its place in `parts_of`."""
    if genome.texts:
        removable = parts_of(genome)
        name = removable[at][0]
        first = next(place for place, (other, _) in enumerate(removable) if other == name)
        return genome.with_part(name, without_part(genome.part(name), at - first))
    parts = sentences(genome.instruction)
    if at < len(parts):
        return _told(genome, parts[:at] + parts[at + 1 :])
    at -= len(parts)
    return msgspec.structs.replace(genome, examples=genome.examples[:at] + genome.examples[at + 1 :])


def insert(genome: Genome, draw: Random, words: Sequence[str]) -> Genome:
    """Insert a word of the task between two words."""
    if not words:
        return genome
    parts = tokens(genome.instruction)
    at = draw.randrange(len(parts) + 1)
    return _told(genome, [*parts[:at], draw.choice(words), *parts[at:]])


def delete(genome: Genome, draw: Random, words: Sequence[str] = ()) -> Genome:
    """Delete a word or a worked example. The instruction keeps at least one word."""
    if genome.examples and draw.random() < 0.2:
        at = draw.randrange(len(genome.examples))
        return msgspec.structs.replace(genome, examples=genome.examples[:at] + genome.examples[at + 1 :])
    parts = tokens(genome.instruction)
    if len(parts) < 2:
        return genome
    at = draw.randrange(len(parts))
    return _told(genome, parts[:at] + parts[at + 1 :])


def swap(genome: Genome, draw: Random, words: Sequence[str] = ()) -> Genome:
    """Swap two words."""
    parts = tokens(genome.instruction)
    if len(parts) < 2:
        return genome
    one, other = draw.sample(range(len(parts)), 2)
    parts[one], parts[other] = parts[other], parts[one]
    return _told(genome, parts)


def duplicate(genome: Genome, draw: Random, words: Sequence[str] = ()) -> Genome:
    """Duplicate a word."""
    parts = tokens(genome.instruction)
    if not parts:
        return genome
    at = draw.randrange(len(parts))
    return _told(genome, [*parts[:at], parts[at], *parts[at:]])


def neighbour(genome: Genome, draw: Random, words: Sequence[str] = ()) -> Genome:
    """Replace a word by a synonym; insert a word of the task if no synonym is known."""
    parts, known = tokens(genome.instruction), _synonyms()
    places = [at for at, part in enumerate(parts) if _bare(part) in known]
    if not places:
        return insert(genome, draw, words)
    at = draw.choice(places)
    bare = _bare(parts[at])
    new = draw.choice(known[bare])
    start = parts[at].lower().index(bare)
    new = new[0].upper() + new[1:] if parts[at][start].isupper() else new
    parts[at] = parts[at][:start] + new + parts[at][start + len(bare) :]
    return _told(genome, parts)


def differing(one: Genome, other: Genome) -> list[str]:
    """The names of the texts that differ."""
    return [name for name, text in one.texts.items() if other.texts[name] != text]


def mixed(one: Genome, other: Genome, draw: Random) -> Genome:
    """The texts of one parent, with some but not all of those that differ from the other. At least two must differ."""
    differ = differing(one, other)
    taken = draw.sample(differ, draw.randint(1, len(differ) - 1))
    return Genome.named({**one.texts, **{name: other.texts[name] for name in taken}})


def single_point(one: Genome, other: Genome, draw: Random) -> Genome:
    """The beginning of one parent and the end of the other."""
    first, second = tokens(one.instruction), tokens(other.instruction)
    share = draw.random()
    return _child(one, other, first[: round(share * len(first))] + second[round(share * len(second)) :], draw)


def two_point(one: Genome, other: Genome, draw: Random) -> Genome:
    """One parent, with a middle section from the other."""
    first, second = tokens(one.instruction), tokens(other.instruction)
    low, high = sorted((draw.random(), draw.random()))
    middle = second[round(low * len(second)) : round(high * len(second))]
    return _child(one, other, first[: round(low * len(first))] + middle + first[round(high * len(first)) :], draw)


def uniform(one: Genome, other: Genome, draw: Random) -> Genome:
    """Each sentence from one parent or the other."""
    first, second = sentences(one.instruction), sentences(other.instruction)
    found = list[str]()
    for at in range(max(len(first), len(second))):
        side = first if draw.random() < 0.5 else second
        found += side[at : at + 1]
    return _child(one, other, found or first, draw)


MUTATIONS: dict[str, Mutation] = {
    "insert": insert,
    "delete": delete,
    "swap": swap,
    "duplicate": duplicate,
    "neighbour": neighbour,
}
CROSSOVERS: dict[str, Crossover] = {"single_point": single_point, "two_point": two_point, "uniform": uniform}


def _child(one: Genome, other: Genome, parts: list[str], draw: Random) -> Genome:
    """A child of two parents: each of their examples with probability 0.5, and the answer format of one parent."""
    known = dict.fromkeys((*one.examples, *other.examples))
    examples = tuple(each for each in known if draw.random() < 0.5)
    form = draw.choice((one.answer_format, other.answer_format))
    told = _told(one, parts)
    return msgspec.structs.replace(told, examples=examples, answer_format=form)


def _told(genome: Genome, parts: list[str]) -> Genome:
    """The genome with these words as its instruction, with spaces between them."""
    found = list[str]()
    for part in parts:
        if found and part and not found[-1][-1:].isspace() and not part[0].isspace():
            found.append(" ")
        found.append(part)
    text = "".join(found).strip()
    return msgspec.structs.replace(genome, instruction=text) if text else genome


def sentences(text: str) -> list[str]:
    """Split a text into sentences. Joined again they give the text."""
    found, held = list[str](), ""
    for part in tokens(text):
        held += part
        if _ends(part):
            found.append(held)
            held = ""
    return [*found, held] if held else found


def _ends(token: str) -> bool:
    """Whether a sentence ends with this word."""
    return token.rstrip()[-1:] in ".!?:" or "\n" in token


def _bare(token: str) -> str:
    return token.strip().strip(".,;:!?\"'()").lower()
