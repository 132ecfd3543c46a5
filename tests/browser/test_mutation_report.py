"""The report of a training in a browser: nothing fails, no screen is too narrow, and episodes can be filtered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Open
from tests.browser.test_report import looked_at, shown
from tests.experiments.query_mutation.trainings import attempt, attempts, curve, report_data, write_report

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    some = attempts({"noop": 0.0, "random": 0.25, "bandit": 0.5, "ppo": 0.75}, 2)
    some += [attempt(number=500, end="fault"), attempt(number=501, steps=3)]
    curves = [curve(kind, at) for kind in ("ppo", "bandit") for at in (0, 1)]
    page = write_report(tmp_path_factory.mktemp("report"), report_data(some, curves, "t" * 200)).page
    assert page is not None
    return page


@pytest.mark.sampled
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_nothing_fails(width: int, report: Path, browse: Open) -> None:
    opened = browse(report, width=width)
    seen = looked_at(opened)
    assert seen["out"] == []
    assert seen["scroll"] <= width, "no scrolling to the side"
    assert seen["clipped"] == [], "text that a drawing cuts off"
    assert seen["broken"] == [], "figures of tiles stay on one line"
    assert len(seen["drawings"]) == 4
    assert opened.complaints == []


def test_episodes_are_filtered_by_how_they_ended_and_what_leaked_is_marked(report: Path, browse: Open) -> None:
    page = (opened := browse(report)).page
    page.get_by_text("Showing 25 of 578").wait_for()
    page.get_by_label("outcome").select_option(label="failed (1)")
    page.get_by_text("Showing 1 of 1 (578 in total)").wait_for()
    assert "eval/ppo.0/500" in shown(opened)[0]
    page.get_by_label("outcome").select_option(label="all")
    page.get_by_label("kind of guard").select_option(label="held out (290)")
    page.get_by_label("query that leaked").select_option(label="2 (264)")
    page.get_by_text("Showing 25 of 132 (578 in total)").wait_for()
    assert page.locator(".talk[open] mark.orange").count() == 1
