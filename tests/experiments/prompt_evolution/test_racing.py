"""Racing: blocks that cover the problems, and comparisons that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.fitness import PLAIN, Weights, worth
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.racing import (
    Racer,
    Rivals,
    Rules,
    blocks,
    chance_of_better,
    difference,
)

RULES = Rules()
SCORES = st.sampled_from([0.0, 0.5, 1.0])
SPARSE = st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=12, max_size=12)


def behind(one: Racer, other: Racer, doubt: float = RULES.doubt) -> bool:
    return chance_of_better(one, other, other.scores) < doubt


@given(st.integers(0, 60), st.integers(1, 50), st.floats(1, 3), st.integers(1, 300))
def test_blocks_begin_with_the_gate_and_end_with_all_problems(
    gate: int, block: int, growth: float, problems: int
) -> None:
    found = list(blocks(Rules(growth=growth), gate, block, problems))
    assert found[0] == min(gate or block, problems)
    assert found[-1] == problems
    assert found == sorted(set(found)), "each block has new problems"
    sizes = [end - start for start, end in pairwise(found)]
    assert sizes[:-1] == sorted(sizes[:-1])


def test_without_racing_there_is_one_block() -> None:
    assert list(blocks(Rules(racing=False), 8, 5, 30)) == [30]


@pytest.mark.parametrize(
    ("one", "other", "strata", "expected"),
    [
        ([1, 0, 1, 0], [1, 1, 0, 0], [1, 1, 0, 0], 0.0),
        ([None, None, 1, 0], [1, 1, 0, 0], [1, 1, 0, 0], 0.25),
        ([1, None, 1, None], [1, 1, 0, 0], [1, 1, 0, 0], 0.5),
        ([None, None, None, 1], [1, 1, 1, 0], [1, 1, 1, 0], 0.25),
        ([0, 1], [1, 1], [1, None], -1.0),
        ([], [1, 1], [1, 1], 0.0),
    ],
    ids=["all seen", "half of the failures", "one of each", "the only failure", "unknown to the parent", "nothing"],
)
def test_a_difference_weighs_what_the_parent_solves_and_fails_by_their_number(
    one: list[float | None], other: list[float | None], strata: list[float | None], expected: float
) -> None:
    assert difference(Racer(one), Racer(other), strata)[0] == pytest.approx(expected)


@pytest.mark.parametrize("more", [0, 12], ids=["gate", "gate and a block"])
def test_a_redrawn_parent_is_not_better_although_the_gate_has_its_failures(more: int) -> None:
    """The child is as good as its parent. The plain mean on the gate says otherwise; the stratified one does not."""
    draw, problems = Random(1), 40
    plain, stratified = list[float](), list[float]()
    for _ in range(2_000):
        chances = [draw.betavariate(3, 1) for _ in range(problems)]
        parent, whole = (_drawn(chances, draw) for _ in range(2))
        failed = [at for at in range(problems) if not parent[at]]
        solved = [at for at in range(problems) if parent[at]]
        met = {*draw.sample(failed, min(5, len(failed))), *draw.sample(solved, min(3, len(solved)))}
        met |= set(draw.sample([at for at in range(problems) if at not in met], more))
        child = [score if at in met else None for at, score in enumerate(whole)]
        plain.append(fmean(whole[at] - parent[at] for at in met))
        stratified.append(difference(Racer(child), Racer(parent), parent)[0])
    assert fmean(plain) > 0.04
    assert fmean(stratified) == pytest.approx(0, abs=0.02)


def _drawn(chances: Sequence[float], draw: Random) -> list[float]:
    return [float(draw.random() < chance) for chance in chances]


@given(st.lists(st.tuples(SCORES, SCORES), max_size=30), SPARSE)
def test_the_chances_of_two_add_up_to_one(pairs: list[tuple[float, float]], strata: list[float | None]) -> None:
    one, other = Racer([mine for mine, _ in pairs]), Racer([theirs for _, theirs in pairs])
    whole = chance_of_better(one, other, strata) + chance_of_better(other, one, strata)
    assert whole == pytest.approx(1)
    assert chance_of_better(one, one, strata) == 0.5


@given(st.integers(2, 40))
def test_more_problems_of_the_same_kind_are_more_evidence(problems: int) -> None:
    parent = Racer([1.0, 0.0] * problems)
    chances = [chance_of_better(Racer([0.0] * seen), parent, parent.scores) for seen in (problems, 2 * problems)]
    assert 0.5 > chances[0] > chances[1]


def test_a_race_has_three_ends() -> None:
    good, fair = Racer([1.0] * 40), Racer([1.0, 0.0] * 20)
    rivals = Rivals.of([fair], [good] * 6 + [fair] * 3)
    assert rivals is not None
    assert rivals.standing(Racer([0.0] * 10), RULES) == "behind"
    assert rivals.standing(Racer([1.0, 0.0] * 5), RULES) == "middling"
    assert rivals.standing(Racer([1.0] * 10), RULES) == "ahead"
    assert rivals.expected(Racer([1.0, 0.0] * 5)) == pytest.approx(0.5)


def test_a_child_of_two_must_not_be_behind_either() -> None:
    fair, good = Racer([1.0, 0.0] * 20), Racer([1.0] * 40)
    rivals = Rivals.of([fair, good], [good])
    assert rivals is not None
    assert rivals.standing(Racer([1.0, 0.0] * 10), RULES) == "behind"


@pytest.mark.parametrize(("tokens", "standing"), [(10, "ahead"), (60, "middling"), (100, "behind")])
def test_where_fitness_is_more_than_accuracy_races_are_about_all_of_it(tokens: int, standing: str) -> None:
    """The parent writes 80 tokens, the best 50. All are equally accurate."""
    weights, right = Weights(accuracy=0.5, efficiency=0.5), (1.0, 0.0) * 5

    def born(used: int) -> Racer:
        return Racer(right, worth(Genome("Solve."), right, used, 100, 1.0).beside(weights))

    rivals = Rivals.of([born(80)], [born(used) for used in (50, 50, 80, 90)])
    assert rivals is not None
    assert rivals.standing(born(tokens), RULES) == standing


@given(st.integers(1, 200), st.floats(0.01, 1), st.sampled_from([0.0, 0.007, 0.5, 1.0]))
def test_rounding_is_no_difference(problems: int, weight: float, score: float) -> None:
    one = (score,) * problems
    third = [sum([each] * 3) / 3 for each in one]
    assert not behind(Racer(one, weight * 0.3), Racer(third, weight * 0.1 * 3), 0.4)
    assert not behind(Racer((1.0,) * 20, -0.02), Racer((0.938,) * 20)), "better at what counts more"


@given(st.lists(SCORES, max_size=12))
def test_where_fitness_is_accuracy_races_are_about_scores(scores: list[float]) -> None:
    assert worth(Genome("Solve."), scores, 10, 100, 1.0).beside(PLAIN) == 0


def test_the_best_are_a_group_if_the_population_is_large_enough() -> None:
    living = [Racer([1.0, None], 0.5), Racer([0.0, 1.0]), *[Racer([0.0])] * 6]
    few, many = (Rivals.of([living[0]], living[:count]) for count in (4, 8))
    assert few is not None
    assert many is not None
    assert few.best == Racer([1.0, None], 0.5)
    assert many.best == Racer([0.5, 1.0], 0.25)
    assert Rivals.of([living[0]], []) is None
    assert Rivals.of([], living) is None


@given(SPARSE, st.lists(SPARSE, min_size=1, max_size=20))
def test_one_that_does_as_the_best_do_is_expected_to_do_as_they_do(
    parent: list[float | None], living: list[list[float | None]]
) -> None:
    rivals = Rivals.of([Racer(parent)], [Racer(each) for each in living])
    assert rivals is not None
    known = [score for score in rivals.best.scores if score is not None]
    if known:
        assert rivals.expected(rivals.best) == pytest.approx(fmean(known))
    assert rivals.standing(rivals.best, RULES) != "middling"


def test_what_is_missing_is_not_compared() -> None:
    assert chance_of_better(Racer([None, None, 1.0]), Racer([1.0, 1.0, None]), [1.0, 1.0, 1.0]) == 0.5


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"block": 0}, "block 0"),
        ({"growth": 0.5}, "growth 0.5"),
        ({"doubt": 0.6}, "doubt 0.6"),
        ({"hopeless": 0}, "hopeless 0"),
    ],
)
def test_rules_that_make_no_sense(rules: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Rules(**rules)  # type: ignore[arg-type]
