"""The environment and .env."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.providers.accounts.account import Key
from groundswell.providers.accounts.environment import Variables, parse, read_variables

PATH = Path("folder/.env")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1", {"A": "1"}),
        ("A=1\nB=2\n", {"A": "1", "B": "2"}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("  export A = 1  \n", {"A": "1"}),
        ("\n# a comment\n   # another\nA=1 # more\n", {"A": "1"}),
        ("A=1#2", {"A": "1#2"}),
        ("A= # nothing", {"A": ""}),
        ("A=", {"A": ""}),
        ("A=b=c==", {"A": "b=c=="}),
        ("A='1 # 2' # 3", {"A": "1 # 2"}),
        (r"A='\n$B'", {"A": r"\n$B"}),
        (r"A='it\'s \\ this'", {"A": "it's \\ this"}),
        (r'A="x\ny\t\"q\" \\ \$B \d"', {"A": 'x\ny\t"q" \\ \\$B \\d'}),
        ('A="ends in \\\\"\nB="1"', {"A": "ends in \\", "B": "1"}),
        ("A=#1", {"A": "#1"}),
        ("A=$B${C}", {"A": "$B${C}"}),
        ('A="two\nlines"\nB=1', {"A": "two\nlines", "B": "1"}),
        ("A=it's", {"A": "it's"}),
        ("A=1\nA=2", {"A": "2"}),
        ("", {}),
        ("exported=1", {"exported": "1"}),
    ],
)
def test_what_a_file_holds(text: str, found: dict[str, str]) -> None:
    assert parse(text, PATH) == found


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A=1\nsecret-words\n", 2),
        ("# x\n\nA B=secret-words", 3),
        ("=secret-words", 1),
        ("1A=secret-words", 1),
        ("A='secret-words\nB=2", 1),
        ('A=1\nB="secret-words', 2),
        ('A="secret-words" more', 1),
        ("A: secret-words", 1),
        ("secret_words", 1),
        ("A=1\n\n\n'a secret'=1", 4),
        ("A='two\nlines'\nsecret-words", 3),
    ],
)
def test_a_broken_line_is_named_and_not_shown(text: str, line: int) -> None:
    with pytest.raises(SettingsError) as raised:
        parse(text, PATH)
    assert str(raised.value).startswith(f"{PATH}: line {line}: expected NAME=value")
    assert "secret" not in str(raised.value)


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(st.dictionaries(NAMES, st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=20)))
def test_what_is_written_in_quotes_is_read_back(variables: dict[str, str]) -> None:
    assert parse("\n".join(f"{name}={quoted(text)}" for name, text in variables.items()), PATH) == variables


@given(st.text(st.sampled_from("AB=\"'#\n\\ \tx"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse(text, PATH)
    except SettingsError:
        return
    assert set(found) <= set(re.findall(r"\w+", text))
    assert all(value in text.replace("\\", "") or "\\" in text for value in found.values())


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("A=file\nB=file\nC=file\n")
    variables = read_variables({"A": "here", "C": ""}, path)
    assert [variables.get(name) for name in "ABCD"] == ["here", "file", None, None]
    assert [variables.place(name) for name in "AB"] == ["environment", str(path)]


def test_no_file_and_a_folder_of_that_name_are_nothing(tmp_path: Path) -> None:
    assert read_variables({}, tmp_path / "nowhere" / ".env").get("A") is None
    assert read_variables({}, tmp_path).get("A") is None


def test_a_file_that_is_not_text_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_bytes(b"A=\xff\xfe")
    with pytest.raises(SettingsError, match="is not text in UTF-8") as raised:
        read_variables({}, path)
    assert str(path) in str(raised.value)
    assert raised.value.__context__ is None


def test_a_key_is_stripped_and_must_fit_into_a_header() -> None:
    variables = Variables({"GOOD": "  k-1 \n", "LINES": "k\nk", "ODD": "clé", "EMPTY": " "}, {}, PATH)
    assert (variables.key("GOOD"), variables.key("EMPTY"), variables.key("NONE")) == (Key("k-1"), None, None)
    for name in ("LINES", "ODD"):
        with pytest.raises(SettingsError, match=f"^environment: {name}: has a line break or another character"):
            variables.key(name)


def test_variables_show_and_store_nothing() -> None:
    variables = Variables({"A": "planted"}, {"B": "planted"}, PATH)
    assert repr(variables) == str(variables) == "Variables(2 names)"
    with pytest.raises(TypeError):
        pickle.dumps(variables)
