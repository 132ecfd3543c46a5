"""The report of an evolution in a browser: nothing fails, no screen is too narrow, and problems can be filtered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Open
from tests.browser.test_report import looked_at, shown
from tests.experiments.prompt_evolution.evolutions import evolved, large, whole, write_report

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = write_report(tmp_path_factory.mktemp("report"), evolved(whole(large(500)))).page
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
    assert len(seen["drawings"]) == 7
    assert opened.complaints == []


def test_problems_are_filtered_by_outcome_and_by_whose_reply_is_right(report: Path, browse: Open) -> None:
    page = (opened := browse(report)).page
    page.get_by_text("Showing 10 of 10").wait_for()
    page.get_by_label("outcome").select_option(label="seed right, evolved wrong (1)")
    page.get_by_text("Showing 1 of 1 (10 in total)").wait_for()
    assert shown(opened)[0].startswith("Problem 9: ")
    assert page.locator(".talk[open] mark.green").count() == 1
    page.get_by_label("outcome").select_option(label="all")
    page.get_by_label("whose reply is right").select_option(label="random search (8)")
    page.get_by_text("Showing 8 of 8 (10 in total)").wait_for()
