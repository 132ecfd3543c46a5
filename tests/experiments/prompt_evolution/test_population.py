"""Who lives, who becomes a parent, who goes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution.genome import Genome, distance
from groundswell.experiments.prompt_evolution.pareto import front
from groundswell.experiments.prompt_evolution.population import SELECTIONS, Member, Population, Selection

fitnesses = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def member(born: int, fitness: float) -> Member:
    return Member(born, Genome(f"Prompt {born}."), "insert", fitness=fitness)


@given(fitnesses, st.integers(1, 10), st.integers(0, 9), st.integers(0, 99))
def test_the_elite_stays(found: list[float], size: int, elite: int, seed: int) -> None:
    elite = min(elite, size - 1)
    population = Population()
    for born, fitness in enumerate(found):
        population = population.joined(member(born, fitness), size, elite, Random(seed + born))
        met = sorted(found[: born + 1], reverse=True)
        living = [each.fitness for each in population.members]
        assert living == sorted(living, reverse=True)
        assert len(living) == min(size, born + 1)
        assert living[:elite] == met[: min(elite, len(living))]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_fitter_are_parents_more_often(selection: Selection) -> None:
    population = Population(tuple(member(born, 1 - born / 10) for born in range(10)))
    draw = Random(1)
    drawn = Counter(population.parent(selection, 3, draw).born for _ in range(2000))
    assert drawn[0] > drawn[4] > drawn[9]
    assert [population.parent(selection, 3, Random(5)) for _ in range(2)] == [
        population.parent(selection, 3, Random(5)) for _ in range(2)
    ]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_equals_are_all_parents(selection: Selection) -> None:
    population = Population(tuple(member(born, 0.0) for born in range(4)))
    draw = Random(1)
    assert {population.parent(selection, 1, draw).born for _ in range(200)} == {0, 1, 2, 3}


def test_of_equals_the_cheaper_comes_first() -> None:
    dear, cheap = Member(0, Genome("a"), "seed", tokens=50.0), Member(1, Genome("b"), "seed", tokens=40.0)
    population = Population().joined(dear, 5, 1, Random(0)).joined(cheap, 5, 1, Random(0))
    assert [each.born for each in population.members] == [1, 0]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), max_size=20))
def test_a_front(points: list[tuple[int, int, int]]) -> None:
    found = front(points, lambda point: point)
    for point in points:
        beaten = any(all(a >= b for a, b in zip(one, point, strict=True)) and one != point for one in points)
        assert (point in found) is not beaten


@given(st.lists(st.sampled_from(["one", "one two", "two three", "four", "one two three four"]), max_size=20))
def test_the_spread_is_kept_up_to_date(texts: list[str]) -> None:
    population = Population()
    for born, text in enumerate(texts):
        child = Member(born, Genome(text), "insert", fitness=born % 3)
        population = population.joined(child, 6, 1, Random(born))
        pairs = [distance(one.genome, other.genome) for one, other in combinations(population.members, 2)]
        assert population.spread == pytest.approx(sum(pairs) / len(pairs) if pairs else 0.0, abs=1e-9)
        assert population.spread > 0 or not any(pairs)
        assert population.spread == 0 or any(pairs), "none at all is nothing, however it was come to"


def test_one_whose_fitness_is_an_estimate_is_not_the_best() -> None:
    guessed = Member(0, Genome("Guessed."), "insert", fitness=0.9, fate="middling")
    population = Population().joined(guessed, 5, 1, Random(0))
    assert population.best is None
    population = population.joined(member(1, 0.7), 5, 1, Random(0)).joined(member(2, 0.8), 5, 1, Random(0))
    assert [each.born for each in population.members] == [0, 2, 1]
    assert population.best == member(2, 0.8)
