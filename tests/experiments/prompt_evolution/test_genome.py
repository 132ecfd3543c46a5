"""Text and genome are the same thing in two forms."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution.genome import EXAMPLE, FORMAT, Genome, distance, tokens

pieces = st.one_of(st.text(max_size=12), st.sampled_from([EXAMPLE, FORMAT, "Example: ", "\n\n", "\n", " "]))
texts = st.lists(pieces, max_size=8).map("".join)
genomes = st.builds(Genome, texts, st.lists(texts, max_size=3).map(tuple), texts)


@given(texts)
def test_no_text_loses_anything(text: str) -> None:
    assert Genome.of(text).text == text


@given(genomes)
def test_no_genome_loses_anything(genome: Genome) -> None:
    assert Genome.of(genome.text) == genome
    assert msgspec.json.decode(msgspec.json.encode(genome), type=Genome) == genome


def test_the_parts_of_a_prompt() -> None:
    genome = Genome("Think.", ("1 + 1 = 2", "2 + 2 = 4"), "#### number")
    assert genome.text == "Think.\n\nExample: 1 + 1 = 2\n\nExample: 2 + 2 = 4\n\nAnswer format: #### number"


@pytest.mark.parametrize(
    ("text", "genome"),
    [
        ("Think.", Genome("Think.")),
        ("Think.\n\nExample: one", Genome("Think.", ("one",))),
        ("Think.\n\nAnswer format: a number", Genome("Think.", (), "a number")),
        ("Think.\n\nAnswer format: ", Genome("Think.\n\nAnswer format: ")),
        ("Think.\n\nAnswer format: x\n\nExample: y", Genome("Think.\n\nAnswer format: x", ("y",))),
    ],
)
def test_a_text_is_read(text: str, genome: Genome) -> None:
    assert Genome.of(text) == genome


@given(texts)
def test_tokens_are_the_text(text: str) -> None:
    assert "".join(tokens(text)) == text


@given(genomes, genomes)
def test_distance(one: Genome, other: Genome) -> None:
    assert 0 <= distance(one, other) == distance(other, one) <= 1
    assert distance(one, one) == 0


def test_half_of_the_words_differ() -> None:
    assert distance(Genome("Count the pens"), Genome("count THE pens, please, slowly now")) == 0.5
