"""Templates: what they fill in, and how mistakes in them are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.prompting.templates import as_text, check_columns, escaped, parse_template

NAMES = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), min_size=1)


def fill(template: str, **row: object) -> str:
    return parse_template(template, "--prompt").fill(row)


@given(st.text())
def test_any_text_can_be_written_as_a_template(text: str) -> None:
    assert fill(escaped(text)) == text


@given(st.lists(st.tuples(st.text(), NAMES)), st.text())
def test_columns_of_any_name_are_filled_in_and_nothing_else_is_touched(pieces: list[tuple[str, str]], end: str) -> None:
    template = "".join(f"{escaped(text)}{{{name}}}" for text, name in pieces) + escaped(end)
    row = {name: f"<{name}>" for _, name in pieces}
    read = parse_template(template, "--prompt")
    assert read.fill(row) == "".join(f"{text}<{name}>" for text, name in pieces) + end
    assert read.columns == list(dict.fromkeys(name for _, name in pieces))


def test_a_cell_with_braces_is_not_a_template() -> None:
    assert fill("{a}", a="{b} {{}}", b="no") == "{b} {{}}"


@pytest.mark.parametrize(
    ("value", "text"),
    [("as it is", "as it is"), (3, "3"), (1.5, "1.5"), (True, "true"), (None, "null"), (["ä"], '["ä"]')],
)
def test_what_is_not_text_is_json(value: object, text: str) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("a { b", "unclosed { at character 3"),
        ("a } b", "unmatched } at character 3; write }} for a brace"),
        ("one\ntwo {}", "empty {} at line 2, character 5"),
        ("{a{b}}", "unclosed { at character 1"),
    ],
)
def test_a_mistake_is_told_with_its_place(template: str, told: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_template(template, "--prompt")
    assert str(error.value).startswith("--prompt: ")
    assert told in str(error.value)


def test_an_unknown_column_is_told_with_those_there_are_and_the_one_that_was_meant() -> None:
    with pytest.raises(
        SettingsError, match=r"no column 'qestion'; did you mean \{question\}\? \(columns: id, question;"
    ):
        check_columns(["qestion"], ["id", "question"], "--prompt")
    check_columns(["id"], ["id", "question"], "--prompt")


@pytest.mark.parametrize("text", ["{row.__class__}", "{0}", "{a!r}", "{a:>10}"])
def test_nothing_but_names_means_anything(text: str) -> None:
    """These are names of columns that the data does not have, and are refused as such."""
    assert parse_template(text, "--prompt").columns == [text[1:-1]]
