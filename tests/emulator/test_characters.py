"""Which name is who."""

from __future__ import annotations

from collections import Counter

import pytest

from groundswell.emulator import characters
from groundswell.emulator.characters import MIX, NAMES, Character, cast, find
from groundswell.emulator.skills.opinions import Effect, Planted
from groundswell.errors import SettingsError

FOUND = {
    "keeper": Character("keeper"),
    "keeper:latest": Character("keeper"),
    "leaker": Character("leaker", "leaker", 1.0),
    "leaker:0.3": Character("leaker", "leaker", 0.3),
    "encoder": Character("encoder", "encoder"),
    "encoder:base64": Character("encoder", "encoder", encoding="base64"),
    "bluffer": Character("bluffer", "bluffer"),
    "guard:0.9": Character("guard", "guard", 0.9),
    "guard:0.9:story": Character("guard", "guard", 0.9, kind="story"),
    "guard:0.9:hardens": Character("guard", "guard", 0.9, hardens=True),
    "guard:0.9:code:hardens": Character("guard", "guard", 0.9, kind="code", hardens=True),
    "solver:0.8": Character("solver", skill=0.8),
    "refuser:0.5": Character("refuser", rate=0.5),
    "echo": Character("echo"),
    "person:latest": Character("person"),
    "person:urban:0.25": Character("person", planted=Planted((Effect("urban", 0.25),))),
}


@pytest.mark.parametrize(("name", "who"), FOUND.items(), ids=list(FOUND))
def test_a_name_is_a_character(name: str, who: Character) -> None:
    assert find(name) == who == cast(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_found_without_an_argument(name: str) -> None:
    assert find(name) is not None


@pytest.mark.parametrize(
    "name", ["gpt-4o-mini", "claude-sonnet-4", "llama3.2", "llama3.2:3b", "Keeper", "keepers", "", ":0.3"]
)
def test_other_names_are_nobodys_and_improvise(name: str) -> None:
    assert find(name) is None
    who = cast(name)
    assert who.part == "improviser"
    assert 0.7 <= who.skill <= 1.0
    assert (who.temper, who.rate) in {(temper, rate) for _, temper, rate in MIX}


@pytest.mark.parametrize(
    "name",
    [
        "leaker:often",
        "leaker:1.5",
        "leaker:-1",
        "leaker:nan",
        "encoder:morse",
        "keeper:0.3",
        "refuser:x",
        "solver:2",
        "guard:2:story",
        "guard:0.5:bribes",
        "guard:0.5:hardens:story",
        "echo:1",
        "person:0.3",
        "person:age:2",
        "person:has_children",
        "person:age=:0.3",
    ],
)
def test_a_bad_argument_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=name.partition(":")[2].removeprefix("0.5:").removesuffix(":story")):
        find(name)


def test_improvisers_come_in_the_documented_mix() -> None:
    n = 4000
    seen = Counter((who.temper, who.rate) for who in (cast(f"model-{at}") for at in range(n)))
    for share, temper, rate in MIX:
        assert abs(seen[temper, rate] / n - share) < 0.03


def test_ollamas_tag_for_the_newest_does_not_make_another_model() -> None:
    assert cast("llama3.2:latest") == cast("llama3.2")
    assert characters.cast("llama3.2:3b") != characters.cast("llama3.2")
