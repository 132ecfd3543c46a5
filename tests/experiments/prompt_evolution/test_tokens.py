"""Operators without a model: what they keep, and that the same random seed gives the same child."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution import tokens
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.tokens import (
    CROSSOVERS,
    MOST_EXAMPLES,
    MUTATIONS,
    differing,
    mixed,
    parts_of,
    sentences,
    shorten,
    with_examples,
    without_part,
)
from tests.experiments.prompt_evolution.test_genome import genomes, named

ONE = Genome("Solve the problem. Check the result.", ("1 + 1 = 2",), "#### number")
OTHER = Genome("You are a teacher. Work step by step. Be brief.")
WORDS = ["apples", "train", "miles", "total"]
POOL = [f"{n} + {n} = {2 * n}" for n in range(4)]
seeds = st.integers(0, 2**32)
usual = st.builds(
    Genome,
    st.lists(st.sampled_from(["Solve it.", "Check it!", "Be brief"]), min_size=1, max_size=4).map(" ".join),
    st.lists(st.sampled_from([*POOL, "2 * 3 = 6", "How many?\n5 - 1 = 4"]), unique=True, max_size=4).map(tuple),
    st.sampled_from(["", "#### number"]),
)
"""Prompts as people write them."""


@given(st.sampled_from(sorted(MUTATIONS)), genomes, seeds)
def test_mutations(name: str, genome: Genome, seed: int) -> None:
    child = MUTATIONS[name](genome, Random(seed), WORDS)
    assert child == MUTATIONS[name](genome, Random(seed), WORDS)
    assert child.instruction.strip() or not genome.instruction.strip()
    assert Genome.of(child.text) == child


@given(st.sampled_from(sorted(CROSSOVERS)), genomes, genomes, seeds)
def test_crossovers(name: str, one: Genome, other: Genome, seed: int) -> None:
    child = CROSSOVERS[name](one, other, Random(seed))
    assert child == CROSSOVERS[name](one, other, Random(seed))
    assert Genome.of(child.text) == child


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_changes_something(name: str) -> None:
    children = {MUTATIONS[name](ONE, Random(seed), WORDS).text for seed in range(50)}
    assert len(children - {ONE.text}) > 2


@pytest.mark.parametrize("name", CROSSOVERS)
def test_a_child_has_something_of_both(name: str) -> None:
    parents = set(ONE.instruction.split()) | set(OTHER.instruction.split())
    mixed = 0
    for seed in range(50):
        words = set(CROSSOVERS[name](ONE, OTHER, Random(seed)).instruction.split())
        assert words <= parents
        mixed += bool(words - set(ONE.instruction.split())) and bool(words - set(OTHER.instruction.split()))
    assert mixed > 20


def test_a_neighbour_keeps_its_dress() -> None:
    found = {tokens.neighbour(Genome("Check it."), Random(seed)).text for seed in range(50)}
    assert found == {"Verify it.", "Go over it.", "Confirm it."}


def test_words_of_the_task_are_inserted() -> None:
    found = {tokens.insert(Genome("Solve it."), Random(seed), WORDS).text for seed in range(100)}
    places = ("{} Solve it.", "Solve {} it.", "Solve it. {}")
    assert found == {place.format(word) for place in places for word in WORDS}
    assert tokens.insert(ONE, Random(1), ()) == ONE


@given(usual, st.lists(st.sampled_from(POOL), unique=True), seeds)
def test_examples_are_added_replaced_or_removed(genome: Genome, pool: list[str], seed: int) -> None:
    child = with_examples(genome, Random(seed), pool)
    assert child == with_examples(genome, Random(seed), pool)
    assert (child.instruction, child.answer_format) == (genome.instruction, genome.answer_format)
    added = [each for each in child.examples if each not in genome.examples]
    assert set(added) <= set(pool)
    assert len(added) <= 3
    kept = [each for each in child.examples if each not in added]
    assert kept == [each for each in genome.examples if each in kept]
    assert len(genome.examples) - len(kept) <= 1
    assert len(child.examples) <= max(MOST_EXAMPLES, len(genome.examples))
    assert child != genome or not (genome.examples or pool)


def test_a_prompt_without_examples_gets_some_and_a_full_one_gets_no_more() -> None:
    sizes = {len(with_examples(OTHER, Random(seed), POOL).examples) for seed in range(50)}
    assert sizes == {1, 2, 3}
    full = Genome("Add.", tuple(f"example {n}" for n in range(MOST_EXAMPLES)))
    sizes = {len(with_examples(full, Random(seed), POOL).examples) for seed in range(50)}
    assert sizes == {MOST_EXAMPLES - 1, MOST_EXAMPLES}


@given(usual, seeds)
def test_shortening_removes_one_part_and_keeps_a_sentence(genome: Genome, seed: int) -> None:
    child, parts = shorten(genome, Random(seed)), len(sentences(genome.instruction))
    if parts > 1 or genome.examples:
        assert len(child.text) < len(genome.text)
        assert (child.instruction == genome.instruction) == (child.examples != genome.examples)
    else:
        assert child == genome
    assert child.instruction


def test_each_part_can_be_left_out() -> None:
    found = [without_part(ONE, at) for at in range(3)]
    assert [each.instruction for each in found] == ["Check the result.", "Solve the problem.", ONE.instruction]
    assert [each.examples for each in found] == [ONE.examples, ONE.examples, ()]
    assert {each.answer_format for each in found} == {ONE.answer_format}


@given(genomes)
def test_the_parts_of_a_prompt_are_those_that_can_be_left_out(genome: Genome) -> None:
    assert [part for _, part in parts_of(genome)] == [*map(str.strip, sentences(genome.instruction)), *genome.examples]


def test_texts_keep_their_last_sentence() -> None:
    genome = Genome.named({"a": "Solve it.", "b": "Plan. Check.\n\nExample: 1 + 1 = 2", "c": "Read. Write."})
    assert [name for name, _ in parts_of(genome)] == ["b", "b", "b", "c", "c"]
    found = [without_part(genome, at) for at in range(5)]
    assert [differing(genome, each) for each in found] == [["b"], ["b"], ["b"], ["c"], ["c"]]
    assert [each.texts["b"] for each in found[:3]] == [
        "Check.\n\nExample: 1 + 1 = 2",
        "Plan.\n\nExample: 1 + 1 = 2",
        "Plan. Check.",
    ]
    assert [each.texts["c"] for each in found[3:]] == ["Write.", "Read."]


@given(named.filter(lambda texts: len(texts) > 1), seeds)
def test_texts_of_both_parents_are_mixed(texts: dict[str, str], seed: int) -> None:
    one, other = Genome.named(texts), Genome.named({name: f"{text}!" for name, text in texts.items()})
    child = mixed(one, other, Random(seed))
    assert child not in (one, other)
    assert all(child.texts[name] in (one.texts[name], other.texts[name]) for name in texts)
    assert child == mixed(one, other, Random(seed))
