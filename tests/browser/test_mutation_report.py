"""The report of a training in a browser: nothing is refused or fails, and no screen is too narrow for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.experiments.query_mutation.report.writing import write_report
from tests.browser.test_report import BROWSER, looked_at
from tests.experiments.query_mutation.report.trainings import attempt, attempts, curve, told

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="there is no chromium here")]


@pytest.mark.sampled
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_nothing_fails(width: int, tmp_path: Path) -> None:
    some = [*attempts({"noop": 0.0, "random": 0.25, "bandit": 0.5, "ppo": 0.75}, 2), attempt(number=500, end="fault")]
    curves = [curve(kind, at) for kind in ("ppo", "bandit") for at in (0, 1)]
    seen = looked_at(write_report(tmp_path / "out", told(some, curves, "t" * 200)).page, tmp_path, width)
    assert seen["out"] == []
    assert seen["scroll"] <= width, "no scrolling to the side"
    assert seen["failed"] == []
    assert seen["clipped"] == [], "text that a drawing cuts off"
    assert seen["broken"] == [], "figures of tiles stay on one line"
    assert len(seen["drawings"]) == 4
    assert seen["marks"], "what leaked is marked"
