"""The driver: one run that can be stopped and gone on with."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from groundswell import RunOptions
from groundswell.engine.options import Limits
from groundswell.experiments.checks import Check
from groundswell.experiments.secret_game.selftest import driving, games, ordinary, reckoning
from groundswell.experiments.secret_game.selftest.games import Games
from groundswell.experiments.secret_game.selftest.ordinary import false_alarms
from tests.experiments.secret_game.selftest.conftest import SMALL, drive


@pytest.mark.slow
def test_a_run_that_was_stopped_comes_to_the_same_verdict(
    tmp_path: Path, played: Games, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reckoning, "checks", lambda: iter(()))
    stopped = drive(tmp_path / "one.db", SMALL, options=RunOptions(limits=Limits(calls=900)))
    assert stopped.status == "partial"
    assert stopped.analysis is None
    gone_on = drive(tmp_path / "one.db", SMALL, options=RunOptions())
    assert gone_on.status == "completed"
    verdict = msgspec.to_builtins(gone_on.analysis)
    assert verdict["passed"] is True, [check for check in verdict["checks"] if not check["passed"]]
    ends, *rest = verdict["checks"]
    assert ends["found"].startswith(f"{gone_on.trials.planned:,} of")
    told = {check.name: check.found for check in games.checks(played)}
    assert {check["name"]: check["found"] for check in rest if check["name"] in told} == told


@pytest.mark.slow
def test_a_run_without_games_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "plan", lambda seed, size: [])
    monkeypatch.setattr(ordinary, "READ", 20)
    verdict = msgspec.to_builtins(drive(tmp_path / "none.db", SMALL).analysis)
    assert verdict["passed"] is False
    assert verdict["failed"] == sum(not check["passed"] for check in verdict["checks"]) > 30


def test_one_check_that_fails_is_enough() -> None:
    right, wrong = (Check("a", "b", "c", "d", 1, passed) for passed in (True, False))
    assert driving.verdict([right, right], false_alarms([]), 1).passed is True
    assert driving.verdict([right, wrong], false_alarms([]), 1).passed is False
