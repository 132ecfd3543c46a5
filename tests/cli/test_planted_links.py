"""Links that somebody else left where files are written: they are replaced, and what they lead to stays as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from groundswell.engine.events import DriverReported
from groundswell.experiments.prompt_evolution.evaluations import Evaluations
from groundswell.experiments.query_mutation.board import Board, curves_in
from groundswell.experiments.secret_game.selftest import driving, ordinary, reckoning
from tests.cli.conftest import DRIVER, CommandLine

PEOPLE = [{"id": name, "name": name} for name in ("Ann", "Bob")]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.json").write_text(json.dumps({"entities": PEOPLE}))
    Path("data.csv").write_text("word\nhello\n")


def playing(out: str) -> list[str]:
    return ["play", "-m", "emulated/leaker:0.9", "--interactions", "4", "--messages", "2", "--name", "r", "--out", out]


def simulating(out: str) -> list[str]:
    people = ["--entities", "people.json", "--interaction-size", "2", "--num-simulations", "1"]
    return ["simulate", "--context", "c", *people, "-m", "emulated/keeper", "--name", "r", "--out", out]


def checking(out: str) -> list[str]:
    return ["selftest", "--quick", "--out", out]


def mapping(out: str) -> list[str]:
    return ["map", "data.csv", "-p", "{word}", "-m", "emulated/echo", "--overwrite", "--out", f"{out}/rows.csv"]


def exporting(form: str) -> Callable[[str], list[str]]:
    return lambda out: ["runs", "export", "first", "--format", form, "-o", f"{out}/rows.{form}"]


def exporting_entities(out: str) -> list[str]:
    return ["entities", "export", f"{out}/people.json"]


COMMANDS = {
    "play": playing,
    "simulate": simulating,
    "map": mapping,
    **{f"runs export, {form}": exporting(form) for form in ("jsonl", "json", "csv", "parquet")},
    "entities export": exporting_entities,
    "selftest": checking,
}


@pytest.mark.sampled
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_command_writes_through_a_link(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, words: Callable[[str], list[str]]
) -> None:
    monkeypatch.setattr(driving, "plan", lambda seed, size: [])
    monkeypatch.setattr(ordinary, "READ", 50)
    monkeypatch.setattr(reckoning, "checks", lambda: iter(()))
    cli("run", DRIVER, "--name", "first")
    for folder in ("clean", "planted", "home"):
        Path(folder).mkdir()
    status = 1 if words is checking else 0
    cli(*words("clean"), status=status)
    written = sorted(path.relative_to("clean") for path in Path("clean").iterdir())
    assert written
    for path in written:
        mine = Path("home").absolute() / path
        if (Path("clean") / path).is_dir():
            mine.mkdir()
        else:
            mine.write_text("mine")
        for name in (path.name, f"{path.name}.part"):  # as temporary files were once called
            (Path("planted") / name).symlink_to(mine)
    umask = os.umask(0o027)
    try:
        cli(*words("planted"), status=status)
    finally:
        os.umask(umask)
    for path in written:
        there, mine = Path("planted") / path, Path("home") / path
        assert not there.is_symlink()
        if there.is_dir():
            assert list(mine.iterdir()) == []
        else:
            assert mine.read_text() == "mine"
            assert there.stat().st_mode & 0o777 == 0o640


def test_a_folder_that_is_given_may_be_a_link(cli: CommandLine, tmp_path: Path) -> None:
    Path("disk").mkdir()
    Path("link").symlink_to("disk")
    cli(*mapping("link"))
    assert (tmp_path / "disk" / "rows.csv").exists()


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_a_pipe_is_not_replaced(cli: CommandLine, name: str) -> None:
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    cli("run", DRIVER, "--name", "first")
    told = cli("runs", "export", "first", "-o", name, status=2).stderr
    assert f"--output {name}: it is a device or a pipe, not a file" in told
    assert Path("pipe").is_fifo()


def reported(figures: dict[str, float]) -> DriverReported:
    return DriverReported(at=1.0, run="r", who="ppo", done=1, words="", figures=figures)


def test_evaluations_are_not_added_to_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    log = Evaluations(tmp_path)
    log.path("r").symlink_to("mine")
    log(reported({"birth": 1.0}))
    log.close()
    assert (tmp_path / "mine").read_text() == "mine"
    assert log.path("r").read_text().count("\n") == 1


class Sheet:
    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...
    def close(self) -> None: ...


def test_curves_are_not_written_to_a_folder_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    old = tmp_path / "home" / "events.out.tfevents.1"
    old.touch()
    (tmp_path / "ppo").symlink_to("home")
    Board(tmp_path, lambda folder: Sheet())(reported({"reward": 1.0}))
    assert old.exists()
    assert not (tmp_path / "ppo").is_symlink()
    (tmp_path / "tensorboard").symlink_to("home")
    [board] = curves_in(tmp_path)
    assert not board.folder.is_symlink()
