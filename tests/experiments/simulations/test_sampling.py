"""Sampling: exact distributions, and the same entity for the same seed, type and number."""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import Dimension, Entity, EntityType
from groundswell.experiments.simulations.sampling import Names, first_free, profile, sample, sampled_id
from groundswell.experiments.simulations.templates import template

DRAWN = 4_000
P = 1e-4
"""Seeds are fixed: a right distribution passes or fails once and for all, and a wrong one fails by far."""


def values(seed: int = 5, **dimension: Any) -> list[Any]:
    type_ = EntityType("t", "T", dimensions=(Dimension(name="d", **dimension),))
    return [profile(type_, seed, number)["d"] for number in range(1, DRAWN + 1)]


def fits(found: list[Any], shares: dict[Any, float]) -> bool:
    counts = Counter(found)
    assert set(counts) <= set(shares)
    expected = [share * len(found) for share in shares.values()]
    return bool(stats.chisquare([counts[value] for value in shares], expected).pvalue > P)


@pytest.mark.parametrize(("share", "expected"), [(None, 0.5), (0.1, 0.1), (0.93, 0.93)])
def test_booleans_are_true_for_their_share(share: float | None, expected: float) -> None:
    assert fits(values(type="boolean", true_percentage=share), {True: expected, False: 1 - expected})


@pytest.mark.parametrize(("share", "value"), [(0, False), (1, True)])
def test_shares_at_the_ends_are_certain(share: float, value: bool) -> None:
    assert set(values(type="boolean", true_percentage=share)) == {value}


@pytest.mark.parametrize(
    ("weights", "shares"),
    [(None, [1 / 3] * 3), ((1, 2, 7), [0.1, 0.2, 0.7]), ((0.5, 0.25, 0.25), [0.5, 0.25, 0.25])],
)
def test_options_come_by_their_weights(weights: tuple[float, ...] | None, shares: list[float]) -> None:
    found = values(type="categorical", options=("a", "b", "c"), weights=weights)
    assert fits(found, dict(zip("abc", shares, strict=True)))


def test_an_option_without_weight_never_comes() -> None:
    assert set(values(type="categorical", options=("a", "b", "c"), weights=(0, 1, 0))) == {"b"}


@pytest.mark.parametrize("distribution", [None, "uniform"])
def test_whole_numbers_are_equally_likely_ends_included(distribution: Any) -> None:
    found = values(type="int", min_value=-3, max_value=6, distribution=distribution)
    assert fits(found, dict.fromkeys(range(-3, 7), 0.1))


def cut_normal(low: float, high: float, deviation: float) -> Any:
    middle = (low + high) / 2
    return stats.truncnorm((low - middle) / deviation, (high - middle) / deviation, middle, deviation)


@pytest.mark.parametrize("distribution", ["normal", "skewed"])
def test_whole_numbers_are_rounded_with_as_much_room_at_the_ends(distribution: Any) -> None:
    found = values(type="int", min_value=1, max_value=7, distribution=distribution)
    curve = cut_normal(0.5, 7.5, 1) if distribution == "normal" else stats.beta(2, 5, 0.5, 7)
    shares = {number: float(curve.cdf(number + 0.5) - curve.cdf(number - 0.5)) for number in range(1, 8)}
    assert fits(found, shares)


@pytest.mark.parametrize(
    ("distribution", "curve"),
    [
        (None, stats.uniform(-2, 10)),
        ("uniform", stats.uniform(-2, 10)),
        ("normal", cut_normal(-2, 8, 10 / 6)),
        ("skewed", stats.beta(2, 5, -2, 10)),
    ],
)
def test_numbers_follow_their_curve(distribution: Any, curve: Any) -> None:
    found = values(type="float", min_value=-2, max_value=8, distribution=distribution)
    assert stats.kstest(found, curve.cdf).pvalue > P
    at_the_ends = sum(value in (-2, 8) for value in found)
    assert at_the_ends <= 3, "nothing piles up at the ends"


def test_a_wrong_curve_would_be_found() -> None:
    found = values(type="float", min_value=-2, max_value=8, distribution="normal")
    assert stats.kstest(found, cut_normal(-2, 8, 10 / 5).cdf).pvalue < P
    skewed = values(type="float", min_value=0, max_value=1, distribution="skewed")
    assert stats.kstest(skewed, stats.beta(2, 4).cdf).pvalue < P


def test_dimensions_are_independent() -> None:
    type_ = EntityType("t", "T", dimensions=tuple(Dimension(name, "float", "", 0, 1) for name in ("a", "b")))
    drawn = [profile(type_, 3, number) for number in range(1, DRAWN + 1)]
    found = stats.pearsonr([each["a"] for each in drawn], [each["b"] for each in drawn])
    assert found.pvalue > P


@st.composite
def dimensions(draw: st.DrawFn, name: str) -> Dimension:
    kind = draw(st.sampled_from(["boolean", "categorical", "int", "float", "text"]))
    if kind == "boolean":
        return Dimension(name, "boolean", true_percentage=draw(st.none() | st.floats(0, 1)))
    if kind == "categorical":
        options = draw(st.lists(st.text("ab é", max_size=3), min_size=1, max_size=6, unique=True))
        weights = st.lists(st.floats(0.01, 1e6), min_size=len(options), max_size=len(options))
        return Dimension(name, "categorical", options=tuple(options), weights=draw(st.none() | weights.map(tuple)))
    if kind == "text":
        return Dimension(name, "text")
    ends = st.integers(-(10**15), 10**15) if kind == "int" else st.floats(-1e15, 1e15)
    low, high = sorted((draw(ends), draw(ends)))
    curve: Any = draw(st.sampled_from([None, "uniform", "normal", "skewed"]))
    return Dimension(name, "int" if kind == "int" else "float", "", low, high, distribution=curve)


@st.composite
def types(draw: st.DrawFn) -> EntityType:
    made = [draw(dimensions(f"d{number}")) for number in range(draw(st.integers(0, 4)))]
    names = draw(st.lists(st.from_regex(r"[A-Za-z ]{0,5}[A-Za-z]", fullmatch=True), max_size=8))
    return EntityType(
        draw(st.from_regex(r"[a-z][a-z0-9._-]{0,63}", fullmatch=True)), "T", "", tuple(made), tuple(names)
    )


@given(types(), st.integers(-(2**63), 2**63), st.integers(1, 12), st.integers(1, 10**6))
def test_what_is_sampled_fits_its_type(type_: EntityType, seed: int, count: int, first: int) -> None:
    found = sample(type_, count, seed, first)
    assert len({entity.id for entity in found}) == count
    for entity in found:
        type_.check(entity.attributes)
        assert list(entity.attributes) == [each.name for each in type_.dimensions if each.type != "text"]
        assert entity.entity_type_id == type_.id


@given(types(), st.integers(0, 100), st.integers(1, 20), st.integers(1, 20), st.integers(1, 50))
def test_more_or_later_ones_are_the_same_ones(type_: EntityType, seed: int, few: int, more: int, first: int) -> None:
    every = sample(type_, few + more, seed, first)
    assert sample(type_, few, seed, first) == every[:few]
    assert sample(type_, more, seed, first + few) == every[few:]


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1), st.integers())
def test_names_do_not_repeat_as_long_as_they_last(names: list[str], seed: int) -> None:
    type_ = EntityType("t", "T", names=tuple(names))
    different = len(set(names))
    found = [entity.name for entity in sample(type_, 2 * different, seed)]
    assert sorted(found[:different]) == sorted(set(names))
    assert sorted(found[different:]) == sorted(f"{name} 2" for name in set(names))


def test_a_type_without_names_gives_its_own() -> None:
    assert [entity.name for entity in sample(EntityType("t", "Robot"), 2, 0, 5)] == ["Robot 5", "Robot 6"]


def test_a_name_that_is_as_long_as_can_be_gets_its_number() -> None:
    long = EntityType("t", "T", names=("x" * 200,))
    assert [len(Names(long, 0).of(number)) for number in (1, 2, 11)] == [200, 200, 200]
    assert Names(long, 0).of(11).endswith("x 11")


def test_seeds_and_types_differ_and_a_new_dimension_changes_no_other() -> None:
    human = template("human")
    ten = sample(human, 10, 1)
    assert ten != sample(human, 10, 2)
    other = msgspec.structs.replace(human, id="other")
    assert [each.attributes for each in sample(other, 10, 1)] != [each.attributes for each in ten]
    more = msgspec.structs.replace(human, dimensions=(Dimension("new", "boolean"), *human.dimensions))
    for before, after in zip(ten, sample(more, 10, 1), strict=True):
        assert before.attributes.items() <= after.attributes.items()


@pytest.mark.parametrize(
    ("taken", "count", "first", "free"),
    [((), 3, 1, 1), (range(1, 17), 10, 1, 17), ((1, 2, 9), 4, 1, 3), ((1, 2, 9), 7, 1, 10), ((12,), 3, 11, 13)],
    ids=["none", "sixteen", "a gap that is large enough", "a gap that is not", "not before the first"],
)
def test_the_first_number_from_which_on_all_are_free(taken: Sequence[int], count: int, first: int, free: int) -> None:
    human = template("human")
    held = {sampled_id(human, 7, number) for number in taken}
    assert first_free(human, count, 7, first, held.intersection) == free


def test_these_are_drawn_for_good() -> None:
    """Entities are named by how they were drawn: another version must draw the same under the same name."""
    [entity] = sample(template("human"), 1, 7, 3)
    assert isinstance(entity, Entity)
    assert (entity.id, entity.name, entity.attributes["age"], entity.attributes["political_leaning"]) == PINNED


PINNED = ("human-7-3", "Eftychia Chatzi", 54, 0.5423)


BEFORE = {
    "human": "d4265d03a91ee8e285e53fbdc03e772b697976a02b81d7289bc327859ad870f0",
}


def test_types_without_tables_are_drawn_as_before_there_were_tables() -> None:
    """The template `human` of earlier versions, which stores still have: the same people with the same names."""
    told = tomllib.loads((Path(__file__).parent / "human_without_tables.toml").read_text())
    people = sample(msgspec.convert({**told, "id": "human"}, EntityType), 1000, 7)
    assert hashlib.sha256(msgspec.json.encode(people)).hexdigest() == BEFORE["human"]


@pytest.mark.parametrize(("count", "first", "field"), [(0, 1, "count"), (100_001, 1, "count"), (1, 0, "first")])
def test_counts_that_make_no_sense(count: int, first: int, field: str) -> None:
    with pytest.raises(SettingsError, match=f"{field} ") as caught:
        sample(template("human"), count, 0, first)
    assert caught.value.field == field
