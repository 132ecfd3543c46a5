"""Races: blocks that share the problems out, and comparisons that can be worked out by hand."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.fitness import PLAIN, Weights, worth
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.racing import Racer, Rivals, Rules, behind, blocks, so_bad


@given(st.integers(1, 50), st.floats(1, 3), st.integers(1, 300))
def test_blocks_are_all_problems_in_their_order(block: int, growth: float, problems: int) -> None:
    found = list(blocks(Rules(block=block, growth=growth), problems))
    assert [at for each in found for at in each] == list(range(problems))
    sizes = [len(each) for each in found]
    assert sizes[0] == min(block, problems)
    assert sizes[:-1] == sorted(sizes[:-1])


def test_without_racing_there_is_one_block() -> None:
    assert list(blocks(Rules(racing=False, block=5), 30)) == [range(30)]


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), max_size=8))
def test_how_bad_differences_are_is_close_to_what_all_signs_say(differences: list[float]) -> None:
    """Beside the exact answer, in which every difference has either sign; of what is exactly as bad, half counts."""
    total = sum(differences)
    sums = [sum(s * abs(d) for s, d in zip(signs, differences, strict=True)) for signs in _signs(len(differences))]
    exact = (sum(each < total for each in sums) + sum(each == total for each in sums) / 2) / len(sums)
    assert so_bad(differences) == pytest.approx(exact, abs=0.11)


def _signs(n: int) -> list[tuple[int, ...]]:
    return list(product((-1, 1), repeat=n))


def test_who_is_behind() -> None:
    best = Racer([1.0] * 10)
    assert not behind(Racer([1.0] * 10), best, 0.25)
    assert behind(Racer([0.0, *[1.0] * 9]), best, 0.25)
    assert not behind(Racer([0.0, *[1.0] * 9]), best, 0.1)
    assert not behind(Racer([1.0] * 5), Racer([0.0] * 10), 0.25)


def test_a_race_has_three_ends() -> None:
    good, fair, poor = Racer([1.0] * 40), Racer([1.0, 0.0] * 20), Racer([0.0] * 40)
    rivals = Rivals.of([good] * 6 + [fair] * 3 + [poor] * 6, 40)
    assert rivals is not None
    assert rivals.standing(Racer([0.0] * 10), 0.25) == "behind"
    assert rivals.standing(Racer([1.0, 0.0] * 5), 0.25) == "middling"
    assert rivals.standing(Racer([1.0] * 10), 0.25) == "ahead"
    assert rivals.expected([1.0, 0.0] * 5) == pytest.approx(0.5)


@pytest.mark.parametrize(("tokens", "standing"), [(10, "ahead"), (60, "middling"), (100, "behind")])
def test_where_fitness_is_more_than_accuracy_races_are_about_all_of_it(tokens: int, standing: str) -> None:
    """Of equal accuracy, all of them: who writes more than the middle is behind it, who writes less is ahead."""
    weights, right = Weights(accuracy=0.5, efficiency=0.5), (1.0, 0.0) * 5

    def born(used: int) -> Racer:
        return Racer(right, worth(Genome("Solve."), right, used, 100, 1.0).beside(weights))

    rivals = Rivals.of([born(used) for used in [*[50] * 5, *[80] * 5, *[90] * 3]], 10)
    assert rivals is not None
    assert rivals.standing(born(tokens), 0.25) == standing


@given(st.integers(1, 200), st.floats(0.01, 1), st.sampled_from([0.0, 0.007, 0.5, 1.0]))
def test_what_is_no_matter_of_luck_is_no_evidence_by_its_number(problems: int, weight: float, score: float) -> None:
    """However often the same small thing is met, it is one thing; and rounding is nothing at all."""
    one, other = (score,) * problems, (score,) * problems
    assert not behind(Racer(one, -0.0001), Racer(other), 0.25)
    third = [sum([each] * 3) / 3 for each in other]
    assert not behind(Racer(one, weight * 0.3), Racer(third, weight * 0.1 * 3), 0.4)
    assert not behind(Racer((1.0,) * 20, -0.02), Racer((0.938,) * 20), 0.25), "better at what counts more"


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=12))
def test_where_fitness_is_accuracy_races_are_about_scores(scores: list[float]) -> None:
    assert worth(Genome("Solve."), scores, 10, 100, 1.0).beside(PLAIN) == 0


def test_who_met_too_little_is_not_among_the_best() -> None:
    rivals = Rivals.of([Racer((1.0,)), Racer((0.0, 1.0), 0.5), Racer((1.0, 0.0))], 2)
    assert rivals == (Racer([2 / 3, 0.5], 1 / 6), Racer([0.5, 0.5], 0.25))
    assert Rivals.of([Racer((1.0, 1.0)), Racer((0.0, 1.0))], 2) is None


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=12, max_size=12), min_size=3, max_size=20))
def test_one_who_does_as_the_best_do_is_expected_to_do_as_they_do(living: list[list[float | None]]) -> None:
    rivals = Rivals.of([Racer(each) for each in living], 12)
    assert rivals is not None
    best = rivals.best.scores
    known = [score for score in best if score is not None]
    if any(score is not None for score in best[:5]):
        assert rivals.expected(best[:5]) == pytest.approx(sum(known) / len(known))
    assert rivals.standing(rivals.best, 0.25) != "middling"


def test_what_is_missing_is_not_compared() -> None:
    assert not behind(Racer([None, None, 1.0]), Racer([1.0, 1.0, None]), 0.25)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), max_size=30))
def test_of_two_at_most_one_is_behind(pairs: list[tuple[float, float]]) -> None:
    one, other = Racer([mine for mine, _ in pairs]), Racer([theirs for _, theirs in pairs])
    assert not (behind(one, other, 0.49) and behind(other, one, 0.49))


@pytest.mark.parametrize(
    ("rules", "message"),
    [({"block": 0}, "block 0"), ({"growth": 0.5}, "growth 0.5"), ({"doubt": 0.5}, "doubt 0.5")],
)
def test_rules_that_make_no_sense(rules: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Rules(**rules)  # type: ignore[arg-type]
