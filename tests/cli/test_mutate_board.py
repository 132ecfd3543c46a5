"""Curves for TensorBoard: every update once, a folder for each learner, and a disk that fails fails nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from groundswell.engine.events import DriverReported, RunEnded, RunStopping
from groundswell.experiments.query_mutation.board import Board, Writer
from tests.cli.conftest import CommandLine

SHORT = (
    *("--num-processes", "4", "--num-steps", "4", "--num-env-steps", "48", "--eval-episodes", "1"),
    *("--max-steps", "2", "--hidden", "8", "--name", "board"),
)


class Sheet:
    """A writer that remembers, or whose disk is full."""

    def __init__(self, folder: Path, *, full: bool = False) -> None:
        self.folder, self.full = folder, full
        self.rows: list[tuple[str, float, int]] = []
        self.closed = False

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.rows.append((tag, scalar_value, global_step))

    def close(self) -> None:
        self.closed = True


def reported(who: str, done: int, **figures: float) -> DriverReported:
    named = {f"{who}/{name}": value for name, value in figures.items()}
    return DriverReported(run="r", at=0.0, done=done, figures=named, who=who, words="")


def keeping(sheets: list[Sheet], *, full: bool = False) -> Callable[[Path], Writer]:
    def make(folder: Path) -> Writer:
        sheets.append(Sheet(folder, full=full))
        return sheets[-1]

    return make


def test_figures_go_by_steps_to_a_folder_of_their_learner(tmp_path: Path) -> None:
    sheets: list[Sheet] = []
    board = Board(tmp_path, keeping(sheets))
    board(reported("ppo.0", 512, reward=0.1, leak_rate=0.5))
    board(reported("bandit.0", 512, reward=0.2))
    board(reported("ppo.0", 1024, reward=0.3))
    board(DriverReported(run="r", at=0.0, done=3, figures={}, who="evaluation", words="evaluation: 3 of 9 episodes"))
    board(RunStopping(run="r", at=0.0, reason="x", why="y"))
    assert [sheet.folder for sheet in sheets] == [tmp_path / "ppo.0", tmp_path / "bandit.0"]
    assert sheets[0].rows == [("reward", 0.1, 512), ("leak_rate", 0.5, 512), ("reward", 0.3, 1024)]
    assert not sheets[0].closed
    board(RunEnded(run="r", at=0.0, status="completed"))
    assert all(sheet.closed for sheet in sheets)


def test_what_an_earlier_session_wrote_goes_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "ppo.0"
    folder.mkdir()
    old, other = folder / "events.out.tfevents.1.host.2.0", folder / "notes.txt"
    old.touch()
    other.touch()
    board = Board(tmp_path, keeping([]))
    assert old.exists()
    board(reported("ppo.0", 1, reward=0.0))
    assert not old.exists()
    assert other.exists()


def test_a_full_disk_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sheets: list[Sheet] = []
    board = Board(tmp_path, keeping(sheets, full=True))
    for step in (1, 2):
        board(reported("ppo.0", step, reward=0.0))
    board(RunEnded(run="r", at=0.0, status="completed"))
    assert caplog.text.count("No space left on device") == 1
    assert len(sheets) == 1


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The curves of a folder, as TensorBoard reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

    found = EventAccumulator(str(folder))
    found.Reload()
    return {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


@pytest.mark.slow
def test_after_a_resume_every_update_is_there_once(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("mutate", "train", *SHORT, "--max-calls", "120", status=3)
    cli("mutate", "train", *SHORT, "--max-calls", "100000")
    found = cli.json("mutate", "train", *SHORT, "--max-calls", "100000")
    (curve,) = [each for each in found["analysis"]["curves"] if each["learner"] == "ppo"]
    shown = read(tmp_path / "results" / "board" / "tensorboard" / "ppo.0")
    assert [step for step, _ in shown["reward"]] == [16, 32, 48]
    assert [value for _, value in shown["reward"]] == pytest.approx([point["reward"] for point in curve["points"]])
    assert {"leak_rate", "masked", "loss/policy", "loss/entropy"} <= shown.keys()
    assert len(list((tmp_path / "results" / "board" / "tensorboard" / "ppo.0").iterdir())) == 1
    (held,) = [each for each in found["analysis"]["figures"] if (each["method"], each["on"]) == ("ppo", "held out")]
    tried = read(tmp_path / "results" / "board" / "tensorboard" / "evaluation")
    for name, value in (("leak_rate", held["rate"]), ("mean_return", held["total"])):
        ((episodes, shown_as),) = tried[f"{name}/held out/ppo"]
        assert episodes == 48
        assert shown_as == pytest.approx(value)
    assert {"leak_rate/trained/random", "leak_rate/held out/contextual"} <= tried.keys()


@pytest.mark.slow
def test_a_folder_that_cannot_be_made_does_not_fail_the_run(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("a file")
    done = cli("mutate", "train", *SHORT, "--tensorboard", "taken/curves")
    assert "Cannot write TensorBoard logs to taken/curves" in caplog.text
    assert "completed" in done.stdout
