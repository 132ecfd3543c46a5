"""Dimensions that depend on each other, margins, names by region and gender, and implausible combinations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.catalogue import Catalogue
from groundswell.experiments.simulations.entities import (
    Check,
    Condition,
    Dimension,
    Entity,
    EntityType,
    PersonNames,
    Table,
)
from groundswell.experiments.simulations.names import (
    gender_of,
    known_given_names,
    lists_of,
    name_lists,
    regions,
)
from groundswell.experiments.simulations.sampling import implausible, profile, sample
from groundswell.experiments.simulations.templates import template, templates
from groundswell.store.journal import Store
from tests.properties import examples

DRAWN = 3_000
P = 1e-4
"""Seeds are fixed: a right distribution passes or fails once and for all, and a wrong one fails by far."""

AGE = Dimension("age", "int", min_value=0, max_value=99)
SCHOOL = Dimension(
    "school",
    "categorical",
    options=("none", "some", "much"),
    weights=(1, 1, 2),
    tables=(
        Table({"age": "..5"}, weights=(1, 0, 0)),
        Table({"age": "6..29", "glad": True}, weights=(1, 2, 1)),
        Table({"age": "6..29"}, weights=(0, 1, 0)),
    ),
)
GLAD = Dimension("glad", "boolean", true_percentage=0.5, tables=(Table({"age": (90, "91..")}, true_percentage=1),))
PAY = Dimension(
    "pay",
    "float",
    min_value=0,
    max_value=10,
    tables=(
        Table({"school": ("none", "some")}, max_value=2),
        Table({"school": "much"}, distribution="normal", mean=6, standard_deviation=1),
    ),
)
DEPENDENT = EntityType("dependent", "D", dimensions=(SCHOOL, PAY, AGE, GLAD))


def profiles(type_: EntityType, seed: int = 3, count: int = DRAWN) -> list[dict[str, Any]]:
    return [profile(type_, seed, number) for number in range(1, count + 1)]


def is_share(count: int, total: int, expected: float) -> bool:
    return bool(stats.binomtest(count, total, expected).pvalue > P)


def test_the_first_table_that_applies_is_used() -> None:
    found = profiles(DEPENDENT)
    young = [each for each in found if each["age"] <= 5]
    assert young
    assert {each["school"] for each in young} == {"none"}
    glad = [each for each in found if 6 <= each["age"] <= 29 and each["glad"]]
    counts = Counter(each["school"] for each in glad)
    expected = [len(glad) * share for share in (0.25, 0.5, 0.25)]
    assert stats.chisquare([counts[name] for name in ("none", "some", "much")], expected).pvalue > P
    assert {each["school"] for each in found if 6 <= each["age"] <= 29 and not each["glad"]} == {"some"}
    older = [each for each in found if each["age"] >= 30]
    assert is_share(sum(each["school"] == "much" for each in older), len(older), 0.5)
    assert all(each["glad"] for each in found if each["age"] >= 90)
    assert max(each["pay"] for each in found if each["school"] != "much") <= 2
    high = [each["pay"] for each in found if each["school"] == "much"]
    assert stats.kstest(high, stats.norm(6, 1).cdf).pvalue > P
    assert list(found[0]) == ["school", "pay", "age", "glad"], "the order of the dimensions, not of their dependence"


def test_a_table_does_not_change_dimensions_that_do_not_depend_on_it() -> None:
    free = tuple(msgspec.structs.replace(each, tables=()) for each in DEPENDENT.dimensions)
    plain = EntityType("dependent", "D", dimensions=free)
    for before, after in zip(profiles(plain, count=50), profiles(DEPENDENT, count=50), strict=True):
        assert before["age"] == after["age"]


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ({"ghost": 1}, "no such dimension; there are age, sex"),
        ({"note": "x"}, "text is not sampled"),
        ({"sex": "x"}, "'x' is none of f, m"),
        ({"sex": ("f", 1)}, "1 is none of f, m"),
        ({"age": 200}, "200 is not from 0 to 99"),
        ({"age": "120.."}, "no value from 0 to 99 is in the range"),
        ({"age": "9..3"}, "no value"),
        ({"age": ".."}, "is no range"),
        ({"age": "old"}, "is no range"),
        ({"age": True}, "no whole number"),
        ({}, "0 conditions"),
    ],
)
def test_conditions_that_cannot_be_fulfilled_are_refused(when: dict[str, Condition], said: str) -> None:
    sex = Dimension("sex", "categorical", options=("f", "m"))
    table = Table(when, true_percentage=1)
    with pytest.raises(SettingsError, match=said):
        EntityType("t", "T", "", (AGE, sex, Dimension("note", "text"), Dimension("x", "boolean", tables=(table,))))
    with pytest.raises(SettingsError, match=said):
        EntityType("t", "T", "", (AGE, sex, Dimension("note", "text")), checks=(Check({"age": 1}, when, ""),))


@pytest.mark.parametrize(
    ("tables", "values", "said"),
    [
        (501, 1, "501 tables given; at most 500"),
        (21, 100, "2,100 values in the conditions"),
        (1, 101, "101 values given"),
    ],
)
def test_what_would_take_long_is_refused(tables: int, values: int, said: str) -> None:
    table = Table({"age": ("..5",) * values}, true_percentage=1)
    with pytest.raises(SettingsError, match=said):
        EntityType("t", "T", dimensions=(AGE, Dimension("x", "boolean", tables=(table,) * tables)))


def test_dimensions_cannot_depend_on_each_other_in_a_circle() -> None:
    def one(name: str, on: str) -> Dimension:
        return Dimension(name, "boolean", tables=(Table({on: True}, true_percentage=1),))

    with pytest.raises(SettingsError, match=r"tables depend on each other: .*a"):
        EntityType("t", "T", "", (one("a", "b"), one("b", "c"), one("c", "a")))
    with pytest.raises(SettingsError, match="depend on each other"):
        EntityType("t", "T", "", (one("a", "a"),))


@pytest.mark.parametrize(
    ("dimension", "said"),
    [
        ({"type": "text", "tables": (Table({"a": 1}, weights=(1,)),)}, "tables: not allowed"),
        ({"type": "boolean", "tables": (Table({"a": 1}),)}, "table 1 has no distribution; give some of true_percent"),
        ({"type": "boolean", "tables": (Table({"a": 1}, weights=(1,)),)}, "table 1: weights: not allowed"),
        ({"type": "boolean", "tables": (Table({"a": 1}, true_percentage=2),)}, "table 1: true_percentage: 2 must be"),
        ({"type": "int", "min_value": 0, "max_value": 9, "tables": (Table({"a": 1}, max_value=10),)}, "10 is outside"),
        ({"type": "int", "min_value": 0, "max_value": 9, "mean": 3}, "mean: only allowed with"),
        ({"type": "int", "min_value": 0, "max_value": 9, "distribution": "normal", "mean": 10}, "10 is not from 0"),
        (
            {"type": "int", "min_value": 0, "max_value": 9, "distribution": "normal", "standard_deviation": 10},
            "must be above 0 and at most 9",
        ),
    ],
)
def test_distributions_that_make_no_sense_are_refused(dimension: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Dimension("d", **dimension)


MARGINS = {"school": {"none": 0.2, "some": 0.5, "much": 0.3}, "age": {"..29": 0.5, "30..59": 0.3, "60..": 0.2}}


def with_margins(margins: dict[str, dict[str, float]], type_: EntityType = DEPENDENT, **more: Any) -> EntityType:
    return msgspec.structs.replace(type_, margins=margins, **more)


def groups_of(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**each, "age": "..29" if each["age"] < 30 else "60.." if each["age"] > 59 else "30..59"} for each in found]


def test_margins_are_reached_and_the_tables_still_hold() -> None:
    found = profiles(with_margins(MARGINS))
    for name, shares in MARGINS.items():
        for value, wanted in shares.items():
            count = sum(each[name] == value for each in groups_of(found))
            assert is_share(count, len(found), wanted), (name, value, count / len(found))
    assert {each["school"] for each in found if each["age"] <= 5} == {"none"}
    without = groups_of(profiles(DEPENDENT))
    assert not is_share(sum(each["age"] == "..29" for each in without), len(without), 0.5), "margins change something"


@given(st.floats(0.1, 0.9), st.floats(0.1, 0.9))
@settings(max_examples=examples(40))
def test_any_margins_that_can_be_reached_are_reached(glad: float, young: float) -> None:
    margins = {"glad": {"true": glad, "false": 1 - glad}, "age": {"..49": young, "50..": 1 - young}}
    plain = Dimension("glad", "boolean", tables=(Table({"age": "..49"}, true_percentage=0.3),))
    found = profiles(EntityType("t", "T", dimensions=(AGE, plain), margins=margins), count=800)
    assert is_share(sum(each["glad"] for each in found), 800, glad)
    assert is_share(sum(each["age"] < 50 for each in found), 800, young)


def test_seed_and_number_determine_an_entity_with_margins_and_checks() -> None:
    checks = (Check({"school": "much"}, {"glad": False}, "sad"),)
    type_ = with_margins(MARGINS, checks=checks)
    every = sample(type_, 30, 5)
    assert sample(type_, 10, 5) == every[:10]
    assert sample(type_, 20, 5, first=11) == every[10:]
    assert [each.attributes for each in sample(type_, 30, 6)] != [each.attributes for each in every]


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ({"school": {"none": 0.5, "some": 0.3}}, "shares add up to 0.8"),
        ({"school": {"none": -0.5, "some": 1.5}}, "must be from 0 to 1"),
        ({"school": {"none": 0.5, "lots": 0.5}}, "'lots' is none of"),
        ({"age": {"..29": 0.5, "29..": 0.5}}, "'..29' and '29..' overlap"),
        ({"ghost": {"a": 1}}, "no such dimension"),
    ],
)
def test_margins_that_are_no_shares_are_refused(margins: dict[str, dict[str, float]], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        with_margins(margins)
    assert caught.value.field == "margins"


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ({"school": {"much": 1.0}, "age": {"..5": 1.0}}, "but none of 20,000 sampled profiles has it"),
        ({"school": {"none": 0.1, "some": 0.9}, "age": {"..5": 0.5, "6..": 0.5}}, "contradict each other"),
        ({"age": {"99": 0.9, "..98": 0.1}}, "would be accepted"),
    ],
    ids=["never produced", "contradiction", "too far"],
)
def test_margins_that_cannot_be_reached_are_refused(margins: dict[str, dict[str, float]], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        sample(with_margins(margins), 1, 0)
    assert caught.value.field == "margins"


def test_implausible_combinations_are_not_sampled_but_found() -> None:
    check = Check({"school": "much"}, {"age": ("30..39", 50)}, "too early")
    type_ = msgspec.structs.replace(DEPENDENT, checks=(check,))
    found = profiles(type_)
    assert not [each for each in found if each["school"] == "much" and (30 <= each["age"] <= 39 or each["age"] == 50)]
    assert [each for each in profiles(DEPENDENT) if each["school"] == "much" and 30 <= each["age"] <= 39]
    assert sum(each["school"] == "much" for each in found) > 0.2 * len(found)
    reasons = implausible(type_)
    assert reasons({"school": "much", "age": 50}, "A") == ["too early"]
    assert reasons({"school": "much"}, "A") == [] == reasons({"school": "some", "age": 50}, "A")


def test_a_type_that_only_produces_implausible_entities_is_refused() -> None:
    checks = (Check({"age": "0.."}, {"age": "..99"}, "all"),)
    with pytest.raises(SettingsError, match="checks: none of 500 draws") as caught:
        sample(msgspec.structs.replace(DEPENDENT, checks=checks), 1, 0)
    assert caught.value.field == "checks"


def test_five_thousand_people_have_fitting_names_without_numbers() -> None:
    people = sample(template("human"), 5_000, 2)
    assert len({each.name for each in people}) == len(people)
    assert not [each.name for each in people if any(letter.isdigit() or letter == "." for letter in each.name)]
    reasons = implausible(template("human"))
    for each in people:
        given_name, family = each.name.split(" ")
        fitting = lists_of(str(each.attributes["region"]))
        [chosen] = [names for names in fitting if family in names.family]
        gender = each.attributes["gender"]
        allowed = {"woman": chosen.women, "man": chosen.men}.get(str(gender), chosen.women + chosen.men)
        assert given_name in allowed, each
        assert reasons(each.attributes, each.name) == []


def test_when_all_names_are_used_initials_come_before_numbers() -> None:
    one = EntityType("t", "T", person_names=PersonNames(region="Oceania"))
    names = [each.name for each in sample(one, 100_000, 0)]
    assert len(set(names)) == len(names)
    assert not any(name[-1].isdigit() for name in names)
    assert any("." in name for name in names)


def test_own_names_of_two_parts_are_combined_before_they_repeat() -> None:
    own = EntityType("t", "T", names=("Ann Lee", "Bo Ek", "Cy Orr"))
    names = [each.name for each in sample(own, 60, 0)]
    assert sorted(names[:3]) == ["Ann Lee", "Bo Ek", "Cy Orr"]
    assert len(set(names)) == 60
    assert {name.split()[0] for name in names} == {"Ann", "Bo", "Cy"}
    assert not any(letter.isdigit() for name in names for letter in name)


def test_the_name_lists_contradict_each_other_nowhere() -> None:
    women, men = known_given_names()
    assert not women & men
    family = Counter(name for names in name_lists() for name in names.family)
    assert [name for name, count in family.items() if count > 1] == []
    for region in regions():
        fewest = min(min(len(each.women), len(each.men)) * len(each.family) for each in lists_of(region))
        assert fewest * len(lists_of(region)) >= 5_000, region


@pytest.mark.parametrize(
    ("name", "gender"),
    [("Astrid Haugland", "woman"), ("Ana Lucía Barrantes", "woman"), ("Lars X. Nygaard", "man"), ("Xyz Abc", None)],
)
def test_the_gender_of_a_name(name: str, gender: str | None) -> None:
    assert gender_of(name) == gender


@pytest.mark.parametrize("name", ["fantasy_character", "human", "organization"])
def test_nobody_of_a_template_is_implausible(name: str) -> None:
    reasons = implausible(template(name))
    assert [each for each in sample(template(name), 1_000, 4) if reasons(each.attributes, each.name)] == []


def test_people_of_the_template_are_not_contradictory() -> None:
    people = [each.attributes for each in sample(template("human"), 4_000, 1)]
    assert not [each for each in people if each["education"] == "doctorate" and int(each["age"]) < 24]
    assert not [each for each in people if each["occupation"] == "retired" and int(each["age"]) < 45]
    poorly = [each for each in people if each["education"] == "primary school"]
    highly = [each for each in people if each["education"] == "master's degree"]
    rich = [sum(each["income_bracket"] == "highest fifth" for each in group) / len(group) for group in (poorly, highly)]
    assert rich[0] < 0.05
    assert rich[1] > 0.2


def test_every_figure_of_the_templates_has_a_source_where_it_has_tables() -> None:
    for type_ in templates():
        assert [each.name for each in type_.dimensions if each.tables and not each.source] == []


def test_the_catalogue_finds_implausible_entities(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    catalogue = Catalogue(store.documents)
    human = catalogue.type_named("human")
    odd = Entity("odd", "Astrid Haugland", "", {"gender": "man", "age": 19, "education": "doctorate"}, "human")
    fine = Entity("fine", "Astrid Haugland", "", {"gender": "woman", "age": 30}, "human")
    free = Entity("free", "Astrid", "", {"gender": "man"})
    assert catalogue.bring([], [odd, fine, free]).implausible == 1
    assert catalogue.implausible([odd, fine, free]) == {
        "odd": ["a doctorate before 24", "Astrid is the name of a woman, but gender is man"]
    }
    assert human.person_names == PersonNames("gender", "region")
    unreachable = msgspec.structs.replace(human, margins={"age": {"18": 1.0}})
    for call in (catalogue.add_type, catalogue.change_type):
        with pytest.raises(SettingsError, match="margins"):
            call(unreachable)
    store.close_reading()
