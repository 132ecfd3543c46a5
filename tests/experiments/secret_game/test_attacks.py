"""The game under attack: secrets that cannot be told apart, prompts with traps in them, replies that do not help."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Reply, Request, SettingsError, Summary
from groundswell.compose import look_into
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.data import interaction_rows
from groundswell.experiments.secret_game.documented import with_prompts
from groundswell.experiments.secret_game.playing import Scene, play, schedule_of
from groundswell.experiments.secret_game.probing import guesses_of
from groundswell.experiments.secret_game.prompts import load_prompt
from groundswell.experiments.secret_game.reading import Game, interactions_of
from groundswell.experiments.secret_game.schedule import Table
from groundswell.experiments.secret_game.settings import Batch, Tournament
from groundswell.experiments.secret_game.words import read_pool
from tests.experiments.secret_game.scene import Script, drive, plain, text_of

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
    with pytest.raises(SettingsError, match="could not be attributed"):
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
    with pytest.raises(SettingsError, match="would not be a leak"):
        drive(Batch(agents(secret, "trellis"), 1))
    with pytest.raises(SettingsError, match="would not be a leak"):
        drive(Tournament(agents(None, None), 1, words=((secret, "trellis"),)))


@pytest.mark.parametrize("names", [("Amber", "Bob"), ("Ann", "Amber")])
def test_a_secret_that_is_in_a_name_is_refused(names: tuple[str, str]) -> None:
    with pytest.raises(SettingsError, match="would not be a leak"):
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


VERDICT = '{"reason": "so it is", "verdict": "declared", "message": 1}'


def test_rows_count_what_the_figures_count_though_some_were_not_judged(tmp_path: Path) -> None:
    verdicts = iter(["no idea"] * 6 + [VERDICT] * 20)

    def script(request: Request, nth: int) -> Reply:
        return Reply(next(verdicts) if "You are a judge" in text_of(request)[-1] else "Hello there.")

    settings = Batch(agents(None, None), 6, Table(messages=2, judge="emulated/judge"), "judged")
    summary, found = reported(tmp_path, settings, script)
    assert plain(summary)["interactions"]["usable"] == sum(row["counted"] for row in found) < 6
    for row in found:
        judged = row["first_verdict"] is not None and row["second_verdict"] is not None
        assert row["counted"] == judged
        for side in ("first", "second"):
            known = [row[f"{side}_{what}"] is not None for what in ("leaked", "obtained", "points")]
            assert known == [judged] * 3


def reported(folder: Path, settings: Batch, script: Script) -> tuple[Summary, list[dict[str, Any]]]:
    """Play, and read the interactions of the report."""

    async def main() -> Summary:
        async with groundswell.open(folder / "runs.db", script=script) as engine:
            return await engine.drive(play, settings, seed=1)

    summary = asyncio.run(main())
    with look_into(folder / "runs.db") as store:
        assert store is not None
        record = store.runs.get(summary.run_id)
        analysis = msgspec.convert(summary.analysis, Analysis)
        game = Game(record, analysis, summary, interactions_of(store.results(record)))
        return summary, list(interaction_rows(game))


@pytest.mark.parametrize(
    ("given", "heard"),
    [
        pytest.param(["saffron", "trellis"], ("saffron", "trellis"), id="as asked"),
        pytest.param(["trellis, emerald; pumpkin/saffron"], ("trellis", "emerald", "pumpkin"), id="several in one"),
        pytest.param(["emerald or trellis", "saffron"], ("emerald", "trellis", "saffron"), id="one or the other"),
        pytest.param(["emerald trellis pumpkin giraffe saffron"], ("emerald", "trellis", "pumpkin"), id="a whole list"),
        pytest.param(["", "  ", "saffron"], ("saffron",), id="nothing"),
        pytest.param(["blue heron"], ("blue heron",), id="two words"),
    ],
)
def test_a_guess_is_one_guess(given: list[str], heard: tuple[str, ...]) -> None:
    assert guesses_of(given, 3) == heard


def test_the_headline_is_as_sure_as_its_tier_where_a_model_plays_itself(tmp_path: Path) -> None:
    def script(request: Request, nth: int) -> Reply:
        """Either both sides of an interaction are said to have leaked, or none: words of one set are drawn together."""
        asked = text_of(request)[-1]
        if "You are a judge" not in asked:
            return Reply("Hello there.")
        leaked = "saffron" in asked or "trellis" in asked
        return Reply(VERDICT if leaked else VERDICT.replace("declared", "kept"))

    players = tuple(Agent(str(n), "", None, "emulated/keeper") for n in range(2))
    words = ("saffron", "trellis"), ("emerald", "pumpkin")
    settings = Batch(players, 20, Table(messages=2, judge="emulated/judge"), "judged", words)
    summary, _ = reported(tmp_path, settings, script)
    [model] = plain(summary)["models"]
    assert 0 < model["revealed"]["count"] < 40
    assert model["tiers"]["judged"] == model["revealed"]
