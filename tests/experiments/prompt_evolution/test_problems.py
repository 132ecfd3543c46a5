"""Problems: made, read from files, and shared out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from groundswell.emulator.skills.problems import solve
from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.families import FAMILIES, made
from groundswell.experiments.prompt_evolution.problems import (
    Problem,
    Problems,
    Sizes,
    generated,
    picked,
    read_problems,
    shared_out,
)
from groundswell.store.tables import Format, format_of, write_table

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


def test_sets_have_nothing_in_common_in_another_spelling() -> None:
    problems = [Problem(f"What is {n} + 1?", str(n + 1)) for n in range(8)]
    for other in ("what is 3 + 1?", "What  is\n3 + 1? ", "What is 3\u00a0+ 1?"):
        with pytest.raises(SettingsError, match=r"test: .* is also in train"):
            Problems(train=tuple(problems[2:4]), validation=tuple(problems[:2]), test=(Problem(other, "4"),))
        with pytest.raises(SettingsError, match=r"^1 of the 2 problems for the held-out test are also in train, for"):
            shared_out(problems, test=[Problem(other, "4"), Problem("Why?", "5")])


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


def question(number: int, split: str = "") -> dict[str, object]:
    return {"question": f"What is {number} + 1?", "answer": number + 1} | ({"split": split} if split else {})


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        write_table(out, format_of(path) or "jsonl", rows)


LAYOUTS = {
    "files": ["train.jsonl", "validation.jsonl", "test.jsonl"],
    "shards": ["data/train-00000-of-00002.parquet", "data/dev-00000-of-00001.parquet", "data/test-0.parquet"],
    "folders": ["train/0.csv", "val/0.csv", "test/0.csv"],
    "names with more": ["gsm_training.tsv", "gsm_valid_2.tsv", "gsm_eval.tsv"],
}


@pytest.mark.parametrize("pattern", ["", "**/*"], ids=["folder", "pattern"])
@pytest.mark.parametrize("names", LAYOUTS.values(), ids=LAYOUTS)
def test_files_that_name_their_split(tmp_path: Path, names: list[str], pattern: str) -> None:
    for at, name in enumerate(names):
        write_rows(tmp_path / "set" / name, [question(10 * at + n) for n in range(3 + at)])
    (tmp_path / "set" / "dataset_info.json").write_text('{"description": "sums"}')
    problems = read_problems(tmp_path / "set" / pattern)
    found = shared_out(problems)
    assert [len(found.train), len(found.validation), len(found.test)] == [3, 4, 5]
    assert {int(each.answer) // 10 for each in found.test} == {2}
    assert not any(each.split for each in (*found.train, *found.validation, *found.test))


def test_rows_that_name_their_split(tmp_path: Path) -> None:
    rows = [question(n, split) for n, split in enumerate(["train"] * 6 + ["test"] * 2)]
    write_rows(tmp_path / "mine.jsonl", rows)
    problems = read_problems(tmp_path / "mine.jsonl")
    found = shared_out(problems)
    assert {each.answer for each in found.test} == {"7", "8"}
    assert [len(found.train), len(found.validation)] == [3, 3]
    assert shared_out(problems, Sizes(4, 2, 1)).train != found.train
    write_rows(tmp_path / "mine.jsonl", [*rows, question(20, "extra"), question(21)])
    with pytest.raises(
        SettingsError, match="line 9: split is 'extra'; use train, validation, test\nline 10: split is ''"
    ):
        read_problems(tmp_path / "mine.jsonl")
    write_rows(tmp_path / "mine.jsonl", [question(n, "level 1") for n in range(8)])
    assert {each.split for each in read_problems(tmp_path / "mine.jsonl")} == {""}


def test_a_dataset_without_a_test_split_is_tested_on_its_validation_split() -> None:
    splits = ["train"] * 6 + ["validation"] * 3
    problems = [Problem(f"What is {n}?", str(n), split=split) for n, split in enumerate(splits)]
    found = shared_out(problems)
    assert {each.answer for each in found.test} == {"6", "7", "8"}
    assert [len(found.train), len(found.validation)] == [3, 3]
    with_test = shared_out(problems, test=[Problem("Why?", "1")])
    assert [len(with_test.train), len(with_test.validation), len(with_test.test)] == [6, 3, 1]


@pytest.mark.parametrize(
    ("splits", "sizes", "message"),
    [
        (["validation", "test"], None, "has the splits validation and test, but no train split"),
        (["train", "test"], None, "has 1 problems for training and validation, but 1 for training and 1 for valid"),
        (["train", "train", "test"], Sizes(1, 1, 2), "has 1 problems for the held-out test, but 2 for the held-out"),
    ],
)
def test_splits_that_do_not_do(splits: list[str], sizes: Sizes | None, message: str) -> None:
    problems = [Problem(f"What is {n}?", str(n), split=split) for n, split in enumerate(splits)]
    with pytest.raises(SettingsError, match=message):
        shared_out(problems, sizes)


def test_a_problem_in_two_splits_is_counted(tmp_path: Path) -> None:
    write_rows(tmp_path / "train.jsonl", [question(n) for n in range(4)])
    write_rows(tmp_path / "test.jsonl", [question(n) for n in range(2, 9)])
    with pytest.raises(SettingsError, match=r"^2 of the 7 problems for the held-out test are also in train"):
        shared_out(read_problems(tmp_path))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train_test.jsonl"], "train_test.jsonl: the name says test and train; rename the file"),
        (["notes.txt"], "no files of problems there; they end in .ndjson, .pq, .csv, .tsv, .json, .jsonl, .parquet"),
    ],
)
def test_folders_that_do_not_do(tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        (tmp_path / name).write_text('{"question": "a", "answer": "1"}')
    with pytest.raises(SettingsError, match=message):
        read_problems(tmp_path)


def test_a_bad_row_in_a_folder_is_told_with_its_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "data" / "train.jsonl", [question(1), {"question": "a"}])
    with pytest.raises(SettingsError, match=r"data.train.jsonl, line 2: field 'answer' is missing"):
        read_problems(tmp_path)


def test_a_question_of_several_columns(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"context": "Tom has 3 pens.", "ask": "How many?", "n": 2, "list": ["a", "b"], "none": null, "answer": "3"}\n'
    )

    def asked(template: str) -> str:
        return read_problems(path, template=template)[0].question

    assert asked("{context}\n\nQ: {ask}") == "Tom has 3 pens.\n\nQ: How many?"
    assert asked("{{{n}}} {list} {none}|{context}") == '{2} ["a","b"] |Tom has 3 pens.'
    with pytest.raises(
        SettingsError, match=r"line 1: column 'passage' of question_template is missing \(found: 'context'"
    ):
        asked("{passage} {ask}")
    with pytest.raises(SettingsError, match="all columns of question_template are empty"):
        asked("Q: {none}")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{context", "'{' at character 1 is not the name of a column in braces"),
        ("{context}}", "'}' at character 10 is not"),
        ("a {} b", "'{}' at character 3 is not"),
        ("plain", "names no column"),
        ("{{context}}", "names no column"),
    ],
)
def test_templates_that_are_wrong(tmp_path: Path, template: str, message: str) -> None:
    write_rows(tmp_path / "mine.jsonl", [question(1)])
    with pytest.raises(SettingsError, match=f"^question_template: {message}"):
        read_problems(tmp_path / "mine.jsonl", template=template)


@pytest.mark.parametrize("template", ["{question.__class__}", "{question!r}", "{question:>9}", "{0}", "{question[0]}"])
def test_a_template_has_only_names_of_columns(template: str) -> None:
    rows = [("row 1", {"question": "Why?", "answer": "1"})]
    with pytest.raises(SettingsError, match=re.escape(f"column {template[1:-1]!r} of question_template is missing")):
        picked(rows, "mine", template=template)
    assert picked([("row 1", {template[1:-1]: "Why?", "answer": "1"})], "mine", template=template)[0].question == "Why?"


NAMES = st.text(st.characters(exclude_characters="{}", codec="utf-8"), min_size=1, max_size=5)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=9)


@given(st.dictionaries(NAMES, TEXTS, min_size=1, max_size=4), st.lists(TEXTS, min_size=5, max_size=5))
def test_a_template_joins_columns_as_they_are(cells: dict[str, str], between: list[str]) -> None:
    """All text of the template and of the columns is there, in order, with braces as they were written."""
    assume(any(cell.strip() for cell in cells.values()) and "answer" not in cells)
    escaped = [text.replace("{", "{{").replace("}", "}}") for text in between]
    template = escaped[-1] + "".join(f"{{{name}}}{text}" for name, text in zip(cells, escaped, strict=False))
    (found,) = picked([("row 1", {**cells, "answer": "1"})], "mine", template=template)
    assert found.question == between[-1] + "".join(
        cell + text for cell, text in zip(cells.values(), between, strict=False)
    )
