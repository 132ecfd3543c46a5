"""The game under attack: secrets that cannot be told apart, prompts with traps in them, replies that do not help."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell import SettingsError
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.playing import Batch, Scene, Tournament, schedule_of
from groundswell.experiments.secret_game.prompts import load_prompt
from groundswell.experiments.secret_game.schedule import Table, with_prompts
from groundswell.experiments.secret_game.words import read_pool
from tests.experiments.secret_game.scene import drive

ALIKE = [
    ("blue", "blue heron"),
    ("café", "cafe"),
    ("SECRET-1", "secret1"),
    ("lantern", "Lanterns"),
    ("ａｍｂｅｒ", "amber"),
]


def agents(*secrets: str | None, names: tuple[str, str] = ("", "")) -> tuple[Agent, ...]:
    return tuple(
        Agent(str(n), name, secret, "emulated/keeper")
        for n, (secret, name) in enumerate(zip(secrets, names, strict=True))
    )


@pytest.mark.parametrize("secrets", [*ALIKE, *(pair[::-1] for pair in ALIKE)], ids="/".join)
@pytest.mark.parametrize("kind", [Batch, Tournament])
def test_secrets_of_which_one_gives_the_other_away_are_refused(
    kind: type[Batch | Tournament], secrets: tuple[str, str]
) -> None:
    with pytest.raises(SettingsError, match="whose came out"):
        kind(agents(*secrets))


@pytest.mark.parametrize("secrets", ALIKE[1:], ids="/".join)
def test_nor_are_they_drawn_against_each_other(secrets: tuple[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"mine\.txt"):
        read_pool(f"{' '.join(secrets)} trellis\n", "mine.txt")


def test_nor_is_one_drawn_that_is_given_to_another() -> None:
    pool = (("saffron", "trellis", "emerald"),)
    given = tuple(Agent(str(n), "", secret, "emulated/keeper") for n, secret in enumerate(["Saffrons", None, None]))
    for seed in range(20):
        assert sorted(Scene(Tournament(given, words=pool), seed).secrets.values()) == ["Saffrons", "emerald", "trellis"]
        for spec in schedule_of(Batch(given[:2], 8, words=pool), seed):
            assert "saffron" not in {seat.secret for seat in spec.seats}


@pytest.mark.parametrize("secret", ["...", "!?!", "- - -", "\u200b\u200b\u200b"], ids=ascii)
def test_a_secret_of_punctuation_is_refused(secret: str) -> None:
    with pytest.raises(SettingsError, match="too short"):
        Batch(agents(secret, "trellis"))
    with pytest.raises(SettingsError, match="too short"):
        read_pool(f"{secret.replace(' ', '')} trellis", "mine.txt")


@pytest.mark.parametrize("secret", ["🦊🦊🦊", "秘密の言葉", "(a+)+$", "{0}{secret}", "it's", "x" * 5000], ids=ascii)
def test_other_odd_ones_are_not(secret: str) -> None:
    assert Batch(agents(secret, "trellis")).agents[0].secret == secret


@pytest.mark.parametrize("secret", ["secret", "Points", "word"])
def test_a_secret_that_agents_are_told_anyway_is_refused(secret: str) -> None:
    with pytest.raises(SettingsError, match="are told"):
        drive(Batch(agents(secret, "trellis"), 1))
    with pytest.raises(SettingsError, match="are told"):
        drive(Tournament(agents(None, None), 1, words=((secret, "trellis"),)))


@pytest.mark.parametrize("names", [("Amber", "Bob"), ("Ann", "Amber")])
def test_a_secret_that_is_in_a_name_is_refused(names: tuple[str, str]) -> None:
    with pytest.raises(SettingsError, match="are told"):
        drive(Batch(agents("amber", "trellis", names=names), 1))


@pytest.mark.parametrize("field", ["{name:>{width}}", "{name:d}", "{other!z}", "{name.x}", "{name[0]}"])
def test_a_field_that_cannot_be_filled_in_is_refused_when_the_file_is_read(tmp_path: Path, field: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"system = '{{secret}} {field}'\nopening = 'go'\n")
    with pytest.raises(SettingsError, match="system"):
        load_prompt(str(path))


def test_a_file_does_not_pass_for_a_variant_that_comes_with_the_game(tmp_path: Path) -> None:
    path = tmp_path / "plain.toml"
    path.write_text("system = '{secret}'\nopening = 'go'\n")
    with pytest.raises(SettingsError, match=r"plain\.toml"):
        load_prompt(str(path))


def test_two_files_of_one_name_are_not_one_arm(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "mine.toml" for folder in ("one", "other")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(f"system = '{{secret}} {path.parent.name}'\nopening = 'go'\n")
    players = tuple(Agent(str(n), "", None, "m", str(path)) for n, path in enumerate(paths))
    with pytest.raises(SettingsError, match="mine"):
        with_prompts(Table(), players)
