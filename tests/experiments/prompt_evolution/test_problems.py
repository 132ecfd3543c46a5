"""Problems: made, read from files, and shared out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.skills.problems import solve
from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.families import FAMILIES, made
from groundswell.experiments.prompt_evolution.problems import (
    Problem,
    Problems,
    Sizes,
    generated,
    read_problems,
    shared_out,
)
from groundswell.store.tables import Format, write_table

SMALL = Sizes(20, 10, 10)


@given(st.sampled_from(FAMILIES), st.integers(1, 5), st.integers(0, 2**62))
def test_the_emulator_comes_to_the_same_answer(family: str, difficulty: int, seed: int) -> None:
    each = made(family, difficulty, seed)
    solution = solve(each.question)
    assert solution is not None, each.question
    assert str(solution.value) == each.answer == each.working.rpartition("= ")[2]


@pytest.mark.parametrize("family", FAMILIES)
def test_harder_ones_take_no_fewer_steps(family: str) -> None:
    easy, hard = (
        sum(len(made(family, difficulty, seed).working.splitlines()) for seed in range(40)) for difficulty in (1, 5)
    )
    largest = [max(int(made(family, difficulty, seed).answer) for seed in range(40)) for difficulty in (1, 5)]
    assert easy <= hard
    assert largest[0] < largest[1]


def test_sets_have_nothing_in_common_and_follow_from_the_seed() -> None:
    problems = generated(sizes=SMALL, seed=3)
    whole = [each.question for some in (problems.train, problems.validation, problems.test) for each in some]
    assert len(whole) == len(set(whole)) == SMALL.whole
    assert generated(sizes=SMALL, seed=3) == problems
    assert generated(sizes=SMALL, seed=4) != problems


def test_a_family_that_has_too_few() -> None:
    with pytest.raises(SettingsError, match="fewer than 4,000 different problems"):
        generated(["arithmetic"], 1, Sizes(2000, 1000, 1000))


@pytest.mark.parametrize(
    ("families", "difficulty", "message"),
    [
        (["algebra"], 3, "families: unknown problem family 'algebra'; choose from quantity, "),
        ([], 3, "families: name at least one"),
        (["groups"], 6, "difficulty 6: must be from 1 to 5"),
    ],
)
def test_what_cannot_be_made(families: list[str], difficulty: int, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        generated(families, difficulty, SMALL)


def test_a_problem_in_two_sets() -> None:
    one, other = Problem("How many?", "1"), Problem("How  many?", "1")
    with pytest.raises(SettingsError, match="validation: 'How  many\\?' is also in train"):
        Problems(train=(one,), validation=(other,), test=(Problem("Why?", "2"),))


def test_too_few_to_share() -> None:
    with pytest.raises(
        SettingsError,
        match="has 2 problems, but 20 for training, 10 for validation and 10 for the held-out test need 40",
    ):
        shared_out([Problem("a", "1"), Problem("b", "2")], SMALL, 0, source="mine.jsonl")


def test_a_file_in_the_form_of_gsm8k(tmp_path: Path) -> None:
    path = tmp_path / "gsm8k.jsonl"
    path.write_text(
        '{"question": "Tom has 3 pens and buys 4. How many?", "answer": "3 + 4 = <<3+4=7>>7\\n#### 7"}\n'
        "\n"
        '{"question": "What is the capital of France?", "answer": "Paris"}\n'
        '{"question": "How much is 2 + 2?", "answer": 4, "level": "easy"}\n'
    )
    assert read_problems(path) == [
        Problem("Tom has 3 pens and buys 4. How many?", "7", "3 + 4 = <<3+4=7>>7"),
        Problem("What is the capital of France?", "Paris"),
        Problem("How much is 2 + 2?", "4"),
    ]


@pytest.mark.parametrize("format", ["csv", "tsv", "json", "parquet"])
def test_problems_may_be_in_any_table(tmp_path: Path, format: Format) -> None:
    path = tmp_path / f"mine.{format}"
    with path.open("wb") as out:
        write_table(out, format, [{"question": "2 + 2?", "answer": 4}, {"question": "3 + 4?", "answer": 7}])
    assert read_problems(path) == [Problem("2 + 2?", "4"), Problem("3 + 4?", "7")]
    with path.open("wb") as out:
        write_table(out, format, [{"question": "2 + 2?", "answer": 4}, {"question": "", "answer": 7}])
    with pytest.raises(SettingsError, match=r"(line 3|row 2): 'question' must be a non-empty text"):
        read_problems(path)


def test_a_line_ends_where_json_lines_end(tmp_path: Path) -> None:
    path = tmp_path / "breaks.jsonl"
    path.write_bytes('{"question": "One\u2028two\x85three?", "answer": "3"}\r\n'.encode())
    assert read_problems(path) == [Problem("One\u2028two\x85three?", "3")]


def test_every_bad_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(
        '{"question": "Good?", "answer": "#### 1"}\n'
        "not json\n"
        "[1, 2]\n"
        '{"prompt": "x", "answer": "1"}\n'
        '{"question": "x", "answer": ""}\n'
        '{"question": "y", "answer": "so\\n#### "}\n'
        '{"question": "Good?", "answer": "2"}\n' + "[" * 100_000 + "\n"
    )
    with pytest.raises(SettingsError) as error:
        read_problems(path)
    said = str(error.value)
    assert "line 2, character 1: invalid JSON" in said
    assert "line 3: a row must be an object" in said
    assert "line 4: field 'question' is missing (found: 'prompt', 'answer')" in said
    assert "line 5: 'answer' must be a non-empty text, but is \"\"" in said
    assert "line 6: 'answer' has no text after ####" in said
    assert "... and 2 more" in said


@pytest.mark.parametrize("body", [None, "", "\n\n"])
def test_a_file_that_holds_nothing(tmp_path: Path, body: str | None) -> None:
    path = tmp_path / "none.jsonl"
    if body is not None:
        path.write_text(body)
    with pytest.raises(SettingsError, match="No such file" if body is None else "contains no problems"):
        read_problems(path)
