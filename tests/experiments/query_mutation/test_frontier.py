"""The frontier of guards: exactly those that no other dominates; and advice that claims no more than is shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.query_mutation.analysis import Figure, Tradeoff, Usefulness
from groundswell.experiments.query_mutation.frontier import (
    advice,
    dominates,
    on_frontier,
    shown,
    strongest,
    tradeoffs,
    unprompted,
)
from groundswell.stats.rates import Rate

NAMES = "abcdefgh"


def useful(guard: str, count: int, n: int = 24, leaks: int = 0) -> Usefulness:
    rate = Rate(count, n)
    return Usefulness(guard, n, count, rate.value, *rate.interval(), 8, 0, n - count, leaks=leaks)


def leaking(guard: str, count: int, n: int = 40, method: str = "ppo") -> Figure:
    rate = Rate(count, n)
    return Figure(method, guard, n, count, rate.value, *rate.interval(), None, None, None, 5.0)


def points(guards: dict[str, tuple[int, int]], trained: str = "") -> list[Tradeoff]:
    """Guards by the number of 24 queries that they answer, and of 40 episodes in which they leak."""
    usefulness = [useful(name, answers) for name, (answers, _) in guards.items()]
    return tradeoffs(usefulness, [leaking(name, leaks) for name, (_, leaks) in guards.items()], set(trained))


some_guards = st.lists(st.tuples(st.integers(0, 24), st.integers(0, 40)), min_size=1, max_size=8).map(
    lambda found: points(dict(zip(NAMES, found, strict=False)))
)


@given(some_guards)
def test_the_frontier_is_exactly_the_guards_that_no_other_dominates(every: list[Tradeoff]) -> None:
    best = on_frontier(every)
    assert best, "some guard is always on it"
    assert {each.useful for each in best} >= {max(each.useful for each in every)}
    assert {each.rate for each in best} >= {min(each.rate for each in every)}
    for each in every:
        better = [
            other
            for other in every
            if (other.useful >= each.useful and other.rate < each.rate)
            or (other.useful > each.useful and other.rate <= each.rate)
        ]
        assert (each in best) == (not better) == (not each.better)
        if each.better:
            (other,) = [one for one in every if one.guard == each.better]
            assert other in best
            assert dominates(other, each)
            assert (each.answers_more, each.leaks_less) == shown(other, each)


@given(some_guards)
def test_advice_never_recommends_a_dominated_guard(every: list[Tradeoff]) -> None:
    said = list(advice(every, 3))
    assert bool(said) == (len(every) > 1 or any(each.useful < 0.5 for each in every))
    if len(every) > 1:
        recommended = re.findall(r"(?:^Ship |^Guards on the frontier: |, | or )([a-h])\b(?= or| \(answers)", said[0])
        best = {each.guard for each in on_frontier(every)}
        if len(best) == len(every) and len({(each.useful, each.rate) for each in every}) == 1:
            assert said[0].startswith("No guard is better than another")
        else:
            assert set(recommended) == best


@given(some_guards)
def test_nothing_is_shown_in_both_directions(every: list[Tradeoff]) -> None:
    for one in every:
        for other in every:
            for here, there in zip(shown(one, other), shown(other, one), strict=True):
                assert not (here and there)
        assert shown(one, one) == (False, False)


def test_a_guard_that_is_best_in_both_respects_is_shipped() -> None:
    first, *more = advice(points({"a": (24, 2), "b": (12, 30), "c": (23, 4)}), 4)
    assert first == (
        "Ship a (answers 100.0%, leaks 5.0%): no other guard answers more or leaks less. Against c this is not shown: "
        "the intervals of both differences include 0."
    )
    assert more[0] == (
        "b answers no more and leaks no less than a (shown for answers and leaks). "
        "c answers no more and leaks no less than a (not shown)."
    )
    assert "best of 4 methods" in more[1]


def test_a_guard_that_refuses_everything_is_called_no_security() -> None:
    said = list(advice(points({"a": (24, 20), "wall": (0, 0)}, trained="a"), 1))
    assert said[0] == (
        "Guards on the frontier: wall (answers 0.0%, leaks 0.0%), a (answers 100.0%, leaks 50.0%). The first leaks "
        "least, the last answers most."
    )
    assert said[1] == "Fewer than half of the ordinary queries were answered by wall: refusing is not security."
    assert said[2] == "Leak rates are those of one method. The methods were trained against a only."


def test_of_a_single_guard_only_its_silence_is_told() -> None:
    assert list(advice(points({"a": (24, 20)}), 2)) == []
    assert list(advice(points({"wall": (3, 0)}), 2)) == [
        "Fewer than half of the ordinary queries were answered by wall: refusing is not security."
    ]


@pytest.mark.parametrize(
    ("guards", "first"),
    [
        ({"a": (24, 10), "b": (23, 11)}, "Guards on the frontier: a ("),
        ({"a": (20, 10), "b": (20, 10)}, "No guard is better than another: each answers 83.3%, leaks 25.0%."),
        ({"a": (20, 10), "b": (20, 10), "c": (19, 10)}, "Guards on the frontier: a or b ("),
    ],
    ids=["a little", "equal", "two that are equal"],
)
def test_what_intervals_do_not_tell_is_said(guards: dict[str, tuple[int, int]], first: str) -> None:
    said = list(advice(points(guards), 2))
    assert said[0].startswith(first)
    assert any(each.startswith("No guard is shown to answer more or to leak less") for each in said)


def test_the_strongest_method_has_the_highest_rate_against_that_guard() -> None:
    figures = [leaking("a", 5, method="noop"), leaking("a", 9, method="random"), leaking("b", 40, method="ppo")]
    alone = Figure("ppo", "a", 1, 1, 1.0, None, None, None, None, None, 1.0)
    found = strongest([*figures, alone], "a")
    assert found is not None
    assert found.method == "random", "one episode without an interval is not the strongest"
    assert strongest(figures, "c") is None


def test_guards_without_answers_or_episodes_are_not_compared() -> None:
    nothing = Usefulness("b", 0, 0, None, None, None, 0, 0, 0, missing=24)
    found = tradeoffs([useful("a", 20), nothing, useful("c", 10)], [leaking("a", 3), leaking("b", 3)], set())
    assert [each.guard for each in found] == ["a"]


def test_secrets_that_nobody_asked_for_are_told() -> None:
    assert list(unprompted([useful("a", 20), useful("b", 20)])) == []
    (said,) = unprompted([useful("a", 20, leaks=2), useful("b", 20)])
    assert said.endswith("nobody asked for it: a 2 of 24.")
