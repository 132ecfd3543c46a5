"""Differences within people: by hand, in general, and how often their intervals hold the truth."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from groundswell.stats.clusters import Rows, difference, mean, of_people, rows, within_people
from tests.properties import examples

Bools = NDArray[np.bool_]


def alone(*said: tuple[int, float, bool]) -> tuple[Rows, Bools]:
    """Values of people who were alone: who, what, and whether in the first condition."""
    people = [who for who, _, _ in said]
    found = rows([value for _, value, _ in said], people, people, [(one,) for one in range(max(people) + 1)])
    return found, np.array([first for _, _, first in said])


def test_with_one_value_each_it_is_the_paired_t_interval() -> None:
    here, there = [3.0, 5.0, 4.0, 6.0, 2.0, 5.0], [2.0, 3.0, 4.0, 3.0, 2.0, 4.0]
    found, first = alone(
        *((at, one, True) for at, one in enumerate(here)), *((at, b, False) for at, b in enumerate(there))
    )
    got = mean(within_people(found, first))
    apart = np.array(here) - there
    off = 2.5705818 * apart.std(ddof=1) / 6**0.5
    assert [got.value, got.low, got.high] == pytest.approx([apart.mean(), apart.mean() - off, apart.mean() + off])
    assert (got.n, got.entities) == (12, 6)


def test_every_person_counts_once_and_who_was_in_one_condition_counts_not_at_all() -> None:
    """The first goes from 0 to 4 in three answers, the second stays; a third is only here, a fourth only there."""
    found, first = alone(
        *((0, value, True) for value in (3, 4, 5)),
        (0, 0, False),
        (1, 1, True),
        (1, 1, False),
        (2, 99, True),
        (3, -99, False),
    )
    made = within_people(found, first)
    assert float(made.values.mean()) == pytest.approx(2)
    assert sorted(set(made.who.tolist())) == [0, 1]
    there, apart = of_people(found, first)
    assert (there.tolist(), apart.tolist()) == ([0, 1], [4, 0])


def test_nobody_in_both_conditions_makes_no_rows() -> None:
    found, first = alone((0, 1.0, True), (1, 2.0, False))
    assert mean(within_people(found, first)).reason == "there are no values"


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, 10_000))
def test_what_people_always_say_is_in_no_difference(seed: int) -> None:
    """Levels of people added to all that they say change neither the figure nor its interval."""
    random = np.random.default_rng(seed)
    companies = [tuple(sorted(random.choice(9, int(random.integers(1, 4)), replace=False).tolist())) for _ in range(20)]
    who = [one for each in companies for one in each]
    company = [at for at, each in enumerate(companies) for _ in each]
    first = random.random(20)[company] < 0.5
    values, levels = random.normal(size=len(who)), 10 * random.normal(size=9)
    plain = mean(within_people(rows(values, who, company, companies), first))
    lifted = mean(within_people(rows(values + levels[who], who, company, companies), first))
    assert (lifted.n, lifted.entities, lifted.reason) == (plain.n, plain.entities, plain.reason)
    assert [lifted.value, lifted.low, lifted.high] == pytest.approx([plain.value, plain.low, plain.high])


class Design(NamedTuple):
    """So many people in companies of these sizes, four each where they are not alone; what others add to an answer."""

    people: int
    sizes: tuple[int, int]
    influence: float
    differ: float
    """How much people differ in what the condition does to them."""


def drawn(design: Design, random: np.random.Generator) -> tuple[Rows, Bools]:
    """Two batches of the same people between which there is no difference on the whole."""
    opinions = random.normal(0, 1, design.people)
    values, who, company, first = list[float](), list[int](), list[int](), list[bool]()
    numbers: dict[tuple[int, ...], int] = {}
    for at, size in enumerate(design.sizes):
        mine = opinions + random.normal(0, design.differ, design.people)
        every = list(combinations(range(design.people), size))
        some = (
            range(design.people) if size == 1 else random.choice(len(every), design.people * 4 // size, replace=False)
        )
        for members in (every[each] for each in some):
            number, shared = numbers.setdefault(members, len(numbers)), random.normal(0, 0.4)
            for one in members:
                others = [mine[each] for each in members if each != one]
                values.append(
                    mine[one] + shared + design.influence * sum(others) / max(1, len(others)) + random.normal(0, 0.7)
                )
                who.append(one)
                company.append(number)
                first.append(at == 0)
    return rows(values, who, company, list(numbers)), np.array(first)


def covered(design: Design, batches: int, seed: int = 7) -> tuple[float, float]:
    """How often the interval holds 0, and how wide it is beside that of a difference without pairs."""
    random, held, widths = np.random.default_rng(seed), 0, list[tuple[float, float]]()
    for _ in range(batches):
        found, first = drawn(design, random)
        pair, plain = mean(within_people(found, first)), difference(found.among(first), found.among(~first))
        assert None not in (pair.low, pair.high, plain.low, plain.high)
        low, high = float(pair.low or 0), float(pair.high or 0)
        held += low <= 0 <= high
        widths.append((high - low, float(plain.high or 0) - float(plain.low or 0)))
    mine, others = np.mean(widths, axis=0)
    return held / batches, float(mine / others)


@pytest.mark.sampled
@pytest.mark.parametrize("influence", [0.0, 0.5])
@pytest.mark.parametrize("sizes", [(1, 2), (2, 2), (2, 3)], ids=str)
def test_intervals_hold_the_truth_as_often_as_they_say(sizes: tuple[int, int], influence: float) -> None:
    held, _ = covered(Design(14, sizes, influence, 0.5), 120)
    assert held >= 0.9


def test_pairs_are_worth_it_where_people_differ() -> None:
    held, narrower = covered(Design(20, (2, 2), 0.0, 0.2), 60)
    assert held >= 0.9
    assert narrower < 0.7
