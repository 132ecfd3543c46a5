"""Every experiment does what `check_experiment` wants, the built-in ones as those of users."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundswell import Run
from groundswell.errors import SettingsError
from groundswell.experiments import experiment as described
from groundswell.experiments.experiment import Command, Experiment, experiment_named
from groundswell.testing import check_experiment

ENTITIES = [{"id": f"e{at}", "name": name} for at, name in enumerate(["Ada", "Ben", "Cleo"])]
QUESTIONS = {"questions": [{"id": "trust", "text": "Can it be trusted?", "type": "scale"}]}
CASES: dict[str, tuple[str, dict[str, Any], list[str] | None]] = {
    "play": (
        "secret-game",
        {"models": ["emulated/keeper", "emulated/leaker:0.5"], "interactions": 6, "messages": 4, "seed": 3},
        None,
    ),
    "tournament": (
        "secret-game",
        {"models": ["emulated/leaker:0.5"], "interactions": 4, "messages": 2, "game_mode": "diversity", "agents": 4},
        None,
    ),
    "compare": ("secret-game", {"models": ["emulated/keeper", "emulated/leaker:0.5"], "interactions": 4}, None),
    "simulate": (
        "simulations",
        {
            "entities": ENTITIES,
            "context": "Shall the town build a bridge?",
            "interaction_size": 2,
            "num_simulations": 3,
            "questions": QUESTIONS,
            "model": ["emulated/gpt-4o-mini"],
        },
        [],
    ),
    "train": (
        "query-mutation",
        {"num_processes": 2, "num_steps": 4, "num_env_steps": 16, "eval_episodes": 2, "hidden": 8},
        None,
    ),
    "evolve": (
        "prompt-evolution",
        {
            "task": ["arithmetic"],
            "train": 4,
            "validation": 4,
            "test": 4,
            "population_size": 4,
            "max_generations": 2,
            "finalists": 2,
            "baselines": ["random"],
        },
        None,
    ),
    "map": (
        "prompting",
        {"data": "remarks.csv", "prompt": "Is it polite? {remark}", "model": ["emulated/keeper"], "overwrite": True},
        None,
    ),
    "ask": ("prompting", {"prompt": "Why is the sky blue?", "model": ["emulated/gpt-4o-mini"], "samples": 2}, None),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.slow
def test_built_in_experiments(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "remarks.csv").write_text("remark\nhello\ngo away\nthank you\n")
    experiment, options, words = CASES[name]
    command = "play" if name == "tournament" else name
    if words is not None:
        words = _files(tmp_path, options)
    kills = () if name == "map" else (3, 9)  # it would resume onto a file of another store: tests/shows has its kills
    check_experiment(
        experiment_named(experiment), command=command, options=options, words=words, folder=tmp_path, kill_at=kills
    )


def _files(folder: Path, options: dict[str, Any]) -> list[str]:
    """The options of `simulate` on the command line, where entities and questions are files."""
    import json

    for name in ("entities", "questions"):
        (folder / f"{name}.json").write_text(json.dumps(options[name]))
    words = [f"--entities={folder}/entities.json", f"--questions={folder}/questions.json", "-m", *options["model"]]
    for name in ("context", "interaction_size", "num_simulations"):
        words += [f"--{name.replace('_', '-')}", str(options[name])]
    return words


def example() -> Experiment:
    path = Path(__file__).parents[2] / "examples" / "ultimatum.py"
    spec = importlib.util.spec_from_file_location("ultimatum", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault("ultimatum", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    found: Experiment = module.experiment
    return found


@pytest.mark.slow
def test_the_example_of_an_experiment_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"proposer": "emulated/gpt-4o-mini", "responder": "emulated/gpt-4o-mini", "games": 6}
    check_experiment(example(), options=options, folder=tmp_path)


def test_an_installed_package_declares_an_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    example()
    monkeypatch.setattr(described, "installed_experiments", lambda: {"theirs": "ultimatum:experiment", "a/b": "no:no"})
    assert "theirs" in described.experiment_names()
    assert "a/b" not in described.experiment_names(), "that is a driver"
    assert experiment_named("theirs").name == "ultimatum"


def test_a_check_fails_where_something_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    class Bare(msgspec.Struct, frozen=True, kw_only=True):
        """Options without a description."""

        games: int = 1

    async def nothing(run: Run, settings: Bare) -> None: ...

    nothing.__qualname__ = "nothing"
    with pytest.raises(AssertionError, match="games: has no description"):
        check_experiment(Experiment("bare", [Command("go", Bare, [nothing])]), folder=tmp_path)


def test_a_name_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(SettingsError, match="lower-case letters, digits and dashes"):
        Experiment("My Study", [])
    with pytest.raises(SettingsError, match="has no command 'ply'; commands: play, compare"):
        experiment_named("secret-game").command("ply")
    with pytest.raises(SettingsError, match="there is no experiment 'secret'; experiments: secret-game"):
        experiment_named("secret")
    assert isinstance(experiment_named("secret-game").command("play"), Command)
