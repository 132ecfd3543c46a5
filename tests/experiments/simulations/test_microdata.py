"""Survey microdata: real respondents of the American National Election Study of 1996, and what files get wrong."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.datasets import anes96  # type: ignore[import-untyped]

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import PersonNames
from groundswell.experiments.simulations.microdata import (
    Codebook,
    Column,
    Microdata,
    draw,
    read_codebook,
    read_microdata,
)
from groundswell.experiments.simulations.names import gender_of, lists_of
from groundswell.experiments.simulations.sampling import sample
from tests.properties import examples

P = 1e-4
EDUCATION = {
    1: "grades 1 to 8",
    2: "some high school",
    3: "high school",
    4: "some college",
    5: "college degree",
    6: "master's degree",
    7: "doctorate",
}
CODEBOOK = """
name = "Voter"
source = "American National Election Study 1996"
weight = "weight"
region = "North America"
[columns.age]
description = "Age in years."
[columns.educ]
label = "education"
values.1 = "grades 1 to 8"
values.2 = "some high school"
values.3 = "high school"
values.4 = "some college"
values.5 = "college degree"
values.6 = "master's degree"
values.7 = "doctorate"
[columns.vote]
values = { 0 = "Clinton", 1 = "Dole" }
[columns.TVnews]
missing = [7]
"""


@pytest.fixture(scope="module")
def survey() -> pd.DataFrame:
    """The respondents; the study has no weights, so the young count twice and the oldest not at all."""
    data = anes96.load_pandas().data
    return data.assign(weight=(1.0 + (data["age"] < 35)) * (data["age"] < 85))


@pytest.fixture(scope="module")
def voters(survey: pd.DataFrame) -> Microdata:
    return read_microdata(survey.to_csv(index=False), "anes96.csv", "voter", read_codebook(CODEBOOK, "c.toml"))


def test_the_type_has_the_weighted_shares_of_the_data(voters: Microdata, survey: pd.DataFrame) -> None:
    age, education, vote, news = (
        next(each for each in voters.type.dimensions if each.name == name)
        for name in ("age", "education", "vote", "TVnews")
    )
    assert (age.type, age.min_value, age.max_value) == ("int", 19, survey.age[survey.weight > 0].max())
    assert age.mean == pytest.approx((survey.age * survey.weight).sum() / survey.weight.sum())
    shares = survey.groupby("educ").weight.sum() / survey.weight.sum()
    assert education.options == tuple(EDUCATION.values())
    assert education.weights == pytest.approx([shares[code] for code in EDUCATION], abs=1e-6)
    assert vote.options == ("Clinton", "Dole")
    assert news.max_value == 6, "missing codes are left out"
    assert age.source.startswith("American National Election Study 1996: ")
    assert age.source.endswith("respondents, weighted by weight")
    assert voters.type.person_names == PersonNames(None, "North America")


def test_drawn_people_have_the_weighted_margins_and_the_joint_distribution(
    voters: Microdata, survey: pd.DataFrame
) -> None:
    people = draw(voters, 3_000, 1)
    for each in people:
        voters.type.check(each.attributes)
    total = survey.weight.sum()
    for code, label in EDUCATION.items():
        for vote, name in ((0, "Clinton"), (1, "Dole")):
            wanted = survey.weight[(survey.educ == code) & (survey.vote == vote)].sum() / total
            found = sum(each.attributes["education"] == label and each.attributes["vote"] == name for each in people)
            assert stats.binomtest(found, len(people), wanted).pvalue > P, (label, name)
    young = sum(int(each.attributes["age"]) < 35 for each in people)
    assert stats.binomtest(young, 3_000, survey.weight[survey.age < 35].sum() / total).pvalue > P
    assert stats.binomtest(young, 3_000, (survey.age < 35).mean()).pvalue < P, "the weights matter"
    rows = {(int(row.age), EDUCATION[int(row.educ)], ("Clinton", "Dole")[int(row.vote)]) for row in survey.itertuples()}
    assert {(each.attributes["age"], each.attributes["education"], each.attributes["vote"]) for each in people} <= rows
    assert len({each.name for each in people}) == 3_000
    family = {name for names in lists_of("North America") for name in names.family}
    assert {each.name.split()[-1] for each in people} <= family


def test_seed_and_number_determine_the_respondent(voters: Microdata) -> None:
    assert draw(voters, 50, 1)[:20] == draw(voters, 20, 1)
    assert [each.attributes for each in draw(voters, 50, 2)] != [each.attributes for each in draw(voters, 50, 1)]
    assert len(draw(voters, None, 0)) == len(voters.respondents)
    assert [each.attributes for each in draw(voters, None, 0)] == voters.respondents
    assert len(sample(voters.type, 30, 0)) == 30, "the type can also be sampled"


TABLE = "sex,where,age,answer,w\nf,South Asia,31,1.0,2\nm,Oceania,,9,0.5\nM,Oceania,62,NA,1\n"


def test_names_fit_columns_and_missing_codes_are_left_out() -> None:
    book = Codebook(gender="sex", region="where", weight="w")
    data = read_microdata(TABLE, "t.csv", "t", book)
    assert data.weights == [2, 0.5, 1]
    assert data.respondents == [
        {"sex": "f", "where": "South Asia", "age": 31, "answer": 1},
        {"sex": "m", "where": "Oceania", "answer": 9},
        {"sex": "M", "where": "Oceania", "age": 62},
    ]
    people = draw(data, 100, 0)
    assert {(each.attributes["sex"], gender_of(each.name)) for each in people} == {
        ("f", "woman"),
        ("m", "man"),
        ("M", "man"),
    }
    for each in people:
        family = {name for names in lists_of(str(each.attributes["where"])) for name in names.family}
        assert each.name.split()[-1] in family


@pytest.mark.parametrize(
    ("text", "book", "columns", "said"),
    [
        (TABLE, {"weight": "x"}, (), "no column 'x'; there are sex, where"),
        (TABLE, {}, ("age", "y"), "no column 'y'"),
        (TABLE, {"columns": {"z": {}}}, (), "no column 'z'"),
        (TABLE, {"region": "Mars"}, (), "no column 'Mars'"),
        (TABLE.replace("0.5", "-1"), {"weight": "w"}, (), "row 3: weight '-1' must be a number of at least 0"),
        (TABLE.replace(",2\n", ",inf\n"), {"weight": "w"}, (), "row 2: weight 'inf'"),
        ("a,b\n1\n", {}, (), "row 2: 1 cells, but the header has 2"),
        ("a,a\n1,2\n", {}, (), "a unique name"),
        ("a,w\n1,0\n", {"weight": "w"}, (), "no respondents with a weight above 0"),
        ("", {}, (), "a unique name|no respondents"),
    ],
)
def test_files_that_are_wrong_say_where(text: str, book: Any, columns: tuple[str, ...], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read_microdata(text, "t.csv", "t", read_codebook(json.dumps(book), "book.json"), columns)


@pytest.mark.parametrize("text", ["[[", "{", "wieght = 'w'", "[columns.a]\nvalues = 3"])
def test_codebooks_that_are_wrong_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^book\.toml: "):
        read_codebook(text, "book.toml")


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.floats(0.1, 5)), min_size=1, max_size=8))
@settings(max_examples=examples(60))
def test_only_combinations_of_the_file_are_drawn(rows: list[tuple[int, str, float]]) -> None:
    text = "n,letter,w\n" + "".join(f"{n},{letter},{weight}\n" for n, letter, weight in rows)
    data = read_microdata(text, "t.csv", "t", Codebook(weight="w"))
    found = [(each.attributes["n"], each.attributes["letter"]) for each in draw(data, 200, 0)]
    assert set(found) <= {(n, letter) for n, letter, _ in rows}
    data.type.check(sample(data.type, 1, 0)[0].attributes)


def test_none_is_a_category_unless_it_is_declared_missing() -> None:
    given = "religion,region\nCatholic,NA\nNone,NA\nNone,EU\nNone,\n"
    labelled = Codebook(columns={"religion": Column(), "region": Column(values={"NA": "North America"})})
    religion, region = read_microdata(given, "a.csv", "voter", labelled).type.dimensions
    assert (set(religion.options), max(religion.weights or ())) == ({"Catholic", "None"}, 0.75)
    assert set(region.options) == {"North America", "EU"}
    declared = Codebook(columns={"religion": Column(missing=("None",))})
    assert "None" not in read_microdata(given, "a.csv", "voter", declared).type.dimensions[0].options
