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


def member(born: int, fitness: float, error: float = 0.0) -> Member:
    return Member(born, Genome(f"Prompt {born}."), "insert", fitness=fitness, error=error)


@given(fitnesses, st.integers(1, 10), st.integers(0, 9), st.integers(0, 99))
def test_the_elite_stays(found: list[float], size: int, elite: int, seed: int) -> None:
    elite = min(elite, size - 1)
    population = Population()
    for born, fitness in enumerate(found):
        population = population.joined(member(born, fitness), size, elite)
        met = sorted(found[: born + 1], reverse=True)
        living = [each.fitness for each in population.members]
        assert living == sorted(living, reverse=True)
        assert len(living) == min(size, born + 1)
        assert living[:elite] == met[: min(elite, len(living))]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_fitter_are_parents_more_often(selection: Selection) -> None:
    population = Population(tuple(member(born, 1 - born / 10, 2.0) for born in range(10)))
    draw = Random(1)
    drawn = Counter(population.parent(selection, 3, draw).born for _ in range(2000))
    assert drawn[0] > drawn[4] > drawn[9]
    assert [population.parent(selection, 3, Random(5)) for _ in range(2)] == [
        population.parent(selection, 3, Random(5)) for _ in range(2)
    ]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_equals_are_all_parents(selection: Selection) -> None:
    population = Population(tuple(member(born, 0.0, 0.1) for born in range(4)))
    draw = Random(1)
    assert {population.parent(selection, 1, draw).born for _ in range(200)} == {0, 1, 2, 3}


def test_of_equals_the_cheaper_comes_first() -> None:
    dear, cheap = Member(0, Genome("a"), "seed", tokens=50.0), Member(1, Genome("b"), "seed", tokens=40.0)
    population = Population().joined(dear, 5, 1).joined(cheap, 5, 1)
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
        population = population.joined(child, 6, 1)
        pairs = [distance(one.genome, other.genome) for one, other in combinations(population.members, 2)]
        assert population.spread == pytest.approx(sum(pairs) / len(pairs) if pairs else 0.0, abs=1e-9)
        assert population.spread > 0 or not any(pairs)
        assert population.spread == 0 or any(pairs), "none at all is nothing, however it was come to"


def test_uncertain_candidates_get_a_chance_that_certain_ones_do_not() -> None:
    best, unsure, sure = member(0, 0.6, 0.0), member(1, 0.5, 0.5), member(2, 0.5, 0.0)
    draw = Random(1)
    drawn = Counter(Population((best, unsure, sure)).parent("thompson", 1, draw).born for _ in range(2000))
    assert drawn[0] > drawn[1] > 100
    assert drawn[2] == 0


def test_new_estimates_change_the_order() -> None:
    population = Population((member(0, 0.6), member(1, 0.5)))
    assert [each.born for each in population.sorted([member(0, 0.4), member(1, 0.5)]).members] == [1, 0]
