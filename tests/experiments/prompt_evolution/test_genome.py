"""Text and genome are the same thing in two forms."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.genome import EXAMPLE, FORMAT, Genome, distance, examples_in, tokens

pieces = st.one_of(st.text(max_size=12), st.sampled_from([EXAMPLE, FORMAT, "Example: ", "\n\n", "\n", " "]))
texts = st.lists(pieces, max_size=8).map("".join)
genomes = st.builds(Genome, texts, st.lists(texts, max_size=3).map(tuple), texts)
lines = st.lists(st.sampled_from(["x", "## a", "## b", "### a", "# a", "", " ## a", "##"]), max_size=6).map("\n".join)
named = st.dictionaries(st.sampled_from(["a", "b", "a b"]), st.one_of(texts, lines), min_size=1)


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


@given(named)
def test_no_text_of_a_program_loses_anything(texts: dict[str, str]) -> None:
    genome = Genome.named(texts)
    assert genome.texts == texts
    assert msgspec.json.decode(msgspec.json.encode(genome), type=Genome) == genome
    for name, text in texts.items():
        assert genome.part(name).text == text
        assert genome.with_part(name, genome.part(name)) == genome
    assert hash(genome) == hash(Genome.named(dict(reversed(texts.items()))))


@given(st.lists(lines, min_size=2, max_size=2), st.lists(lines, min_size=2, max_size=2))
def test_different_texts_are_written_differently(one: list[str], other: list[str]) -> None:
    first, second = (Genome.named(dict(zip("ab", each, strict=True))) for each in (one, other))
    assert (first.text == second.text) == (first == second) == (one == other)


@given(genomes)
def test_a_prompt_is_its_own_only_part(genome: Genome) -> None:
    assert genome.part("") is genome
    assert genome.with_part("", genome) is genome
    assert b"texts" not in msgspec.json.encode(Genome("Think.", genome.examples, genome.answer_format))


def test_a_prompt_is_encoded_as_ever() -> None:
    whole = Genome("Think.", ("1 + 1 = 2",), "a number")
    assert msgspec.json.encode(Genome("")) == b'{"instruction":""}'
    assert msgspec.json.encode(whole) == b'{"instruction":"Think.","examples":["1 + 1 = 2"],"answer_format":"a number"}'


def test_texts_are_shown_under_their_names() -> None:
    assert Genome.named({"solve": "Solve it.", "plan": "Plan."}).text == "## plan\n\nPlan.\n\n## solve\n\nSolve it."
    assert Genome.named({"a": "## b\n\nx", "b": "y"}).text == "### a\n\n## b\n\nx\n\n### b\n\ny"


def test_examples_of_all_texts() -> None:
    genome = Genome.named({"a": "Think.\n\nExample: one", "b": "Say it.\n\nExample: two\n\nExample: three"})
    assert examples_in(genome) == ("one", "two", "three")


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"instruction": "Think.", "texts": {"a": "x"}}, "either texts with names or the parts of a prompt"),
        ({"instruction": "", "texts": {" ": "x"}}, "' ' is not a name"),
        ({"instruction": "", "texts": {"a\nb": "x"}}, "is not a name"),
    ],
)
def test_what_is_no_genome(parts: dict[str, object], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        Genome(**parts)  # type: ignore[arg-type]
