"""Crashes in the session that recovers from a crash, and waves of which it cannot be told what became."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from groundswell.testing.crash import CrashPoint
from tests.crash.scene import Scene
from tests.crash.test_every_commit import WAYS, crashes


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("kind", "schedule"), WAYS, ids=["-".join(way) for way in WAYS])
def test_run_survives_crash_after_crash(tmp_path: Path, kind: str, schedule: str, seed: int, database: str) -> None:
    scene, random = Scene(tmp_path, kind, schedule, database), Random(seed)
    assert crashes(scene, CrashPoint(random.randint(8, 30), "before"))
    for _ in range(6):
        if not crashes(scene, CrashPoint(random.randint(2, 9), random.choice(["before", "after"]))):
            break
    scene.check(scene.finish())


@pytest.mark.sampled
@pytest.mark.parametrize("commit", [5, 6, 7, 8, 12, 16])
def test_nothing_is_sent_while_a_wave_is_undecided(tmp_path: Path, commit: int, database: str) -> None:
    scene = Scene(tmp_path, "batch", "waves", database)
    assert crashes(scene, CrashPoint(commit, "before"))
    scene.check(scene.finish(undecided=3))


@pytest.mark.sampled
@pytest.mark.parametrize("at", [0.5, 1.5, 2.5, 3.5])
def test_a_run_may_be_closed_while_a_batch_is_in_flight(tmp_path: Path, at: float, database: str) -> None:
    scene = Scene(tmp_path, "batch", "waves", database)
    with pytest.raises(asyncio.CancelledError):
        scene.session(CrashPoint(0, "before"), interrupt_at=at)
    assert len(scene.books.entries()) >= 1
    scene.check(scene.finish())
