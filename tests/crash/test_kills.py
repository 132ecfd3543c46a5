"""Real processes that are really killed: by themselves at a commit, or by somebody else at any moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from groundswell.testing.crash import When
from tests.crash import experiment
from tests.crash.scene import Scene
from tests.crash.test_every_commit import WAYS
from tests.stores import MOSTLY_SQLITE


@pytest.fixture(params=MOSTLY_SQLITE)
def database(request: pytest.FixtureRequest) -> str:
    """The kind of a store."""
    kind: str = request.param
    return kind


def start(scene: Scene, commit: int = 0, when: When = "before") -> subprocess.Popen[bytes]:
    """A session in a process of its own."""
    script = [sys.executable, experiment.__file__, str(scene.path), str(scene.books.path)]
    return subprocess.Popen([*script, scene.kind, scene.schedule, str(commit), when], stdout=subprocess.PIPE)


def kill_at(scene: Scene, commit: int, when: When) -> None:
    """A session that kills itself at a commit."""
    with start(scene, commit, when) as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    scene.note_crash()


def kill_after(scene: Scene, commits: int) -> None:
    """A session that is killed from outside, wherever it is when its so-manieth commit is heard of."""
    with start(scene) as process:
        assert process.stdout is not None
        heard = [process.stdout.readline() for _ in range(commits)]
        process.kill()
    assert all(heard), "the session ended before it could be killed"
    scene.note_crash()


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("commit", [11, 5, 17])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("kind", "schedule"), WAYS, ids=["-".join(way) for way in WAYS])
def test_run_survives_its_own_death(
    tmp_path: Path, kind: str, schedule: str, when: When, commit: int, database: str
) -> None:
    scene = Scene(tmp_path, kind, schedule, database)
    kill_at(scene, commit, when)
    scene.check(scene.finish())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "schedule"), WAYS, ids=["-".join(way) for way in WAYS])
def test_run_survives_many_deaths(tmp_path: Path, kind: str, schedule: str, database: str) -> None:
    scene = Scene(tmp_path, kind, schedule, database)
    kill_at(scene, 7, "after")
    kill_at(scene, 3, "before")
    kill_at(scene, 6, "after")
    kill_after(scene, 4)
    with start(scene) as process:
        process.communicate()
    assert process.returncode == 0
    scene.check(scene.finish())


@pytest.mark.sampled
@pytest.mark.parametrize("commits", [6, 1, 13])
@pytest.mark.parametrize("kind", ["live", "batch"])
def test_run_survives_being_killed_by_another(tmp_path: Path, kind: str, commits: int, database: str) -> None:
    scene = Scene(tmp_path, kind, "stream", database)
    kill_after(scene, commits)
    scene.check(scene.finish())
