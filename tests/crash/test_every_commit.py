"""A crash in process at every commit of a run, just before it is durable and just after."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from groundswell import StoreError
from groundswell.testing.crash import CrashPoint, When
from tests.crash.scene import Scene, uninterrupted

WAYS = [("live", "stream"), ("live", "waves"), ("batch", "narrow"), ("batch", "waves")]
SHARES = 4
"""The commits are shared out over so many tests, so that they can run side by side."""
CRASHES: list[tuple[When, int]] = [(when, share) for share in range(1, SHARES + 1) for when in ("before", "after")]
"""Just after one commit is nearly just before the next."""


@pytest.mark.sampled
@pytest.mark.parametrize(("when", "share"), CRASHES)
@pytest.mark.parametrize(
    ("kind", "schedule", "database"),
    [
        *((*way, "sqlite") for way in WAYS),
        *(pytest.param(*way, "postgres", marks=pytest.mark.slow) for way in WAYS[::3]),
        *(pytest.param(*way, "postgres", marks=pytest.mark.campaign) for way in WAYS[1:3]),
    ],
    indirect=["database"],
)
def test_run_survives_a_crash_at_any_commit(
    tmp_path: Path, kind: str, schedule: str, when: When, share: int, database: str
) -> None:
    for commit in count(share, SHARES):
        folder = tmp_path / str(commit)
        folder.mkdir()
        scene = Scene(folder, kind, schedule, database)
        if not crashes(scene, CrashPoint(commit, when)):
            assert commit > 20, "the run must have enough commits to be worth crashing"
            return
        scene.check(scene.finish())


def crashes(scene: Scene, point: CrashPoint) -> bool:
    """Run until the crash point; returns whether it was reached."""
    try:
        scene.session(point)
    except StoreError:
        assert point.crashed
        scene.note_crash()
        return True
    assert not point.crashed
    return False


def test_all_ways_find_the_same() -> None:
    found = [uninterrupted(*way)[0] for way in WAYS]
    assert all(outcomes == found[0] for outcomes in found)
