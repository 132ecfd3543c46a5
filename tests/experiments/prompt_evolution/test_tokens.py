"""Token operators: what they leave as it is, and that chance is all of the seed's."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution import tokens
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.tokens import CROSSOVERS, MUTATIONS
from tests.experiments.prompt_evolution.test_genome import genomes

ONE = Genome("Solve the problem. Check the result.", ("1 + 1 = 2",), "#### number")
OTHER = Genome("You are a teacher. Work step by step. Be brief.")
seeds = st.integers(0, 2**32)


@given(st.sampled_from(sorted(MUTATIONS)), genomes, seeds)
def test_mutations(name: str, genome: Genome, seed: int) -> None:
    child = MUTATIONS[name](genome, Random(seed))
    assert child == MUTATIONS[name](genome, Random(seed))
    assert child.instruction.strip() or not genome.instruction.strip()
    assert Genome.of(child.text) == child


@given(st.sampled_from(sorted(CROSSOVERS)), genomes, genomes, seeds)
def test_crossovers(name: str, one: Genome, other: Genome, seed: int) -> None:
    child = CROSSOVERS[name](one, other, Random(seed))
    assert child == CROSSOVERS[name](one, other, Random(seed))
    assert Genome.of(child.text) == child


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_changes_something(name: str) -> None:
    children = {MUTATIONS[name](ONE, Random(seed)).text for seed in range(50)}
    assert len(children - {ONE.text}) > 3


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
    assert found == {"Verify it.", "Double-check it.", "Go over it.", "Confirm it."}


def test_sentences_are_put_between_sentences() -> None:
    found = [tokens.insert(Genome("Solve this. Be kind."), Random(seed)).text for seed in range(200)]
    whole = [text for text in found if text.count(".") == 3]
    assert all("Solve this." in text and "Be kind." in text for text in whole)
    assert 0 < len(whole) < len(found)
