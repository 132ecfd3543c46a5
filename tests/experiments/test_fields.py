"""Options as they are written: on the command line, in TOML, in JSON and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag, Given, Place, all_fields, build, collect, fields_of, literal


class Player(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    strength: Annotated[int, Meta(ge=1)] = 1
    style: Literal["fast", "slow"] = "fast"


def read_words(text: str, place: Place) -> list[str]:
    return place.text_of(text).split()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a test asks for."""

    count: Annotated[int, Meta(ge=1, le=9, description="How many."), Flag("-c", "--how-many")] = 3
    share: Annotated[Annotated[float, Meta(gt=0, lt=1)] | None, Meta(description="How much.")] = None
    mode: Annotated[Literal["quick", "thorough"], Meta(description="How.")] = "quick"
    names: Annotated[tuple[str, ...], Meta(description="Who."), Flag(commas=True)] = ()
    notes: Annotated[tuple[str, ...], Meta(description="What else.")] = ()
    weights: Annotated[dict[str, float], Meta(description="Of what.")] = {}
    players: Annotated[tuple[Player, ...], Meta(description="Who plays.")] = ()
    captain: Annotated[Player | None, Meta(description="Who leads.")] = None
    words: Annotated[tuple[str, ...], Meta(description="Words of a file."), Flag(read=read_words)] = ()
    loud: Annotated[bool, Meta(description="Whether to shout.")] = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    low_end: Annotated[int, Meta(description="From."), Flag(also=["lowest"])] = 0
    high_end: Annotated[int, Meta(description="To.")] = 9

    def __post_init__(self) -> None:
        if self.low_end > self.high_end:
            raise SettingsError(f"lowest {self.low_end}: is above high_end {self.high_end}", field="lowest")


def by_flags(**said: Any) -> Options:
    fields = fields_of(Options)
    found = {name: Given(value, Place(fields[name].spelled), as_text=True) for name, value in said.items()}
    return build(Options, found)


def by_keys(said: dict[str, Any], *, text: bool = False, folder: Path | None = None) -> Options:
    return build(Options, collect(fields_of(Options), said, what="test", text=text, folder=folder))


def test_text_becomes_what_it_stands_for(tmp_path: Path) -> None:
    words, player = tmp_path / "words.txt", tmp_path / "player.json"
    words.write_text("one two")
    player.write_text('{"name": "Ann"}')
    found = by_flags(
        count="4",
        share="0.25",
        mode="thorough",
        names=["a,b", "c"],
        notes=["x, y", "z"],
        weights="a=2,b",
        players=['{"name": "Bob", "strength": 3}'],
        captain=f"@{player}",
        words=str(words),
        loud=True,
    )
    assert found == Options(
        count=4,
        share=0.25,
        mode="thorough",
        names=("a", "b", "c"),
        notes=("x, y", "z"),
        weights={"a": 2.0, "b": 1.0},
        players=(Player("Bob", 3),),
        captain=Player("Ann"),
        words=("one", "two"),
        loud=True,
    )


def test_data_is_taken_as_it_is_and_no_file_is_read_for_it() -> None:
    data = {"count": 4, "names": ["a"], "players": [{"name": "Bob"}], "words": ["x"], "weights": {"a": 1}}
    assert by_keys(data) == by_keys(data, text=True)
    with pytest.raises(SettingsError, match="words /etc/passwd: must be a list, and is text"):
        by_keys({"words": "/etc/passwd"})
    assert by_keys({"notes": "one"}).notes == ("one",), "one value of a list that is read from no file"


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("three")
    assert by_keys({"words": "words.txt"}, text=True, folder=tmp_path).words == ("three",)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"count": "0"}, "--count 0: must be at least 1"),
        ({"count": "ten"}, "--count ten: must be a whole number"),
        ({"share": "1"}, "--share 1: must be less than 1"),
        ({"mode": "fast"}, "--mode fast: unknown value; choose from quick, thorough"),
        ({"names": ["a,,b"]}, "--names: contains an empty name"),
        ({"weights": "a=x"}, "--weights a=x: must be a number"),
        ({"players": ["Bob"]}, "--players Bob: is not valid JSON"),
        ({"players": ['{"name": 3}']}, "--players: [0].name: must be text"),
        (
            {"players": ['{"name": "B", "style": "odd"}']},
            "--players: [0].style: unknown value 'odd'; choose from fast, slow",
        ),
        ({"captain": '{"nam": "B"}'}, "--captain"),
        ({"words": "nothing.txt"}, "--words nothing.txt: No such file"),
        ({"names": ["\udcff"]}, "--names: contains the byte 0xff, which is not valid UTF-8"),
    ],
)
def test_a_wrong_flag_is_named(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        by_flags(**said)
    assert str(refused.value).startswith(problem)
    assert refused.value.field == next(iter(said))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"count": 0}, "count 0: must be at least 1"),
        ({"count": "4"}, "count 4: must be a whole number, and is text"),
        ({"count": None}, "count: must be a whole number, and is null"),
        ({"how_many": 0}, "how_many 0: must be at least 1"),
        ({"how_many": 3, "count": 3}, "count: sets the same option as how_many; use only one of them"),
        ({"cout": 3}, "cout: test has no such option; did you mean count?"),
        ({"zzzz": 3}, "zzzz: test has no such option; its options are count, how_many, share"),
        ({"players": [{"strength": 1}]}, "players: [0]: name is missing"),
        ({"players": [{"name": "B", "age": 3}]}, "players: [0]: unknown field age; choose from name, strength, style"),
        ({"loud": "yes"}, "loud yes: must be true or false, and is text"),
    ],
)
def test_a_wrong_key_is_named(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        by_keys(said)
    assert str(refused.value).startswith(problem)


def test_errors_of_the_options_themselves_are_spelled_as_they_were_written() -> None:
    fields = fields_of(Checked)
    flags = {"low_end": Given("12", Place("--low-end"), as_text=True)}
    with pytest.raises(SettingsError, match=r"^--low-end 12: is above --high-end 9$"):
        build(Checked, flags)
    with pytest.raises(SettingsError, match=r"^low_end 12: is above high_end 9$"):
        build(Checked, collect(fields, {"low_end": 12}, what="test"))


def test_a_struct_without_usual_flags_shows_all_of_its_own() -> None:
    found = all_fields(Checked)
    assert [found[name].flag.usual for name in ("low_end", "high_end", "budget", "schedule")] == [
        True,
        True,
        True,
        False,
    ]


OPTIONS = st.builds(
    Options,
    count=st.integers(1, 9),
    share=st.none() | st.floats(0.01, 0.99),
    mode=st.sampled_from(["quick", "thorough"]),
    names=st.lists(st.text("abc", min_size=1), max_size=3).map(tuple),
    notes=st.lists(st.text("ab, ", min_size=1), max_size=3).map(tuple),
    weights=st.dictionaries(st.text("ab", min_size=1), st.floats(0, 9), min_size=1, max_size=3),
    players=st.lists(st.builds(Player, st.text(), st.integers(1, 9)), max_size=2).map(tuple),
    loud=st.booleans(),
)


@given(OPTIONS)
def test_what_is_written_in_any_way_comes_back_the_same(options: Options) -> None:
    data = {name: value for name, value in msgspec.to_builtins(options).items() if value is not None}
    assert by_keys(data) == by_keys(data, text=True) == options
    text: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, dict):
            text[name] = ",".join(f"{key}={each!r}" for key, each in value.items())
        elif isinstance(value, list | tuple):
            text[name] = [each if isinstance(each, str) else json.dumps(each) for each in value]
        else:
            text[name] = value if isinstance(value, bool) else str(value)
    del text["words"]
    assert by_flags(**text) == options


class Told(msgspec.Struct, frozen=True, kw_only=True):
    context: Annotated[str, Meta(description="Text, or a file."), Flag(read=lambda text, place: text.upper())] = ""


def test_text_that_would_be_read_again_is_marked_as_text() -> None:
    one = fields_of(Told)["context"]
    assert literal(one, "SHOUTED") == "SHOUTED", "it stays as it is"
    assert literal(one, "quiet") == {"text": "quiet"}
    given = collect(fields_of(Told), {"context": {"text": "quiet"}}, what="test")
    assert build(Told, given).context == "quiet"
