"""Variants of the prompt: data that is checked when it is read, and known by its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell import SettingsError
from groundswell.emulator.skills.secrets import own_secret
from groundswell.experiments.secret_game.modes import GameMode, Points
from groundswell.experiments.secret_game.prompts import fill, load_prompt, rules_of, variants

VALUES = {"name": "Ann", "other": "Bob", "secret": "saffron", "rules": "Rules."}
MINE = 'system = "You are {name}. Your secret word is {secret}."\nopening = "Begin."\n'


def test_the_variants() -> None:
    assert variants() == ("aggressive", "cautious", "plain")
    assert len({load_prompt(name).digest for name in variants()}) == 3


@pytest.mark.parametrize("name", variants())
def test_a_variant_tells_an_agent_all_it_needs(name: str) -> None:
    told = fill(load_prompt(name).system, VALUES)
    assert own_secret(told) == "saffron"
    assert "Bob" in told
    assert "Rules." in told
    assert "{" not in told


@pytest.mark.parametrize("mode", GameMode)
def test_rules_have_their_numbers(mode: GameMode) -> None:
    told = rules_of(mode, Points(one_sided=31, distinct=32, target=33))
    expected = {"standard": "31", "retained": "worth more the fewer", "diversity": "32", "targeted": "33"}
    assert expected[mode] in told
    assert "{" not in told


def test_one_of_your_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    found = load_prompt(str(path))
    assert (found.name, found.private) == ("mine", "")
    changed = tmp_path / "other.toml"
    changed.write_text(MINE.replace("Begin", "Start"))
    assert load_prompt(str(changed)).digest != found.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("opening = 'x'", "needs the strings `system` and `opening`", id="no system"),
        pytest.param("system = ", "the file needs", id="no TOML"),
        pytest.param("system = 'You hold {word}'\nopening = ''", "unknown field {word}", id="a field of its own"),
        pytest.param("system = '{secret.__class__}'\nopening = ''", "unknown field", id="an attribute"),
        pytest.param("system = 'Hello'\nopening = ''", r"{secret} is missing", id="no secret"),
        pytest.param("system = '{secret} {'\nopening = ''", "system: .*brace", id="half a brace"),
    ],
)
def test_one_that_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load_prompt(str(path))


def test_one_that_is_not_there() -> None:
    with pytest.raises(SettingsError, match="unknown; use aggressive, cautious, plain, or the path"):
        load_prompt("polite")
    with pytest.raises(SettingsError, match=r"polite.toml: No such file"):
        load_prompt("polite.toml")
