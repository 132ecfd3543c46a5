"""Results and comparisons in a browser: reports that arrive, runs that are selected, and no complaints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import Open, Opened
from tests.web.dashboard.report_pages import MARKUP, play
from tests.web.scene import Api, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("compare")) as api:
        yield api


@pytest.fixture(scope="module")
def runs(api: Api) -> tuple[str, str]:
    return play(api, name="plain"), play(api, name=MARKUP, models=["scripted/markup"], interactions=4)


@pytest.fixture
def visit(browse: Open, api: Api) -> Any:
    """Open a page of the server: `visit("/runs", width=390)`."""
    return lambda path, **look: browse(f"{api.server.url}{path}", **look)


def complaints(seen: Opened) -> list[str]:
    """Everything on the console, except what Bokeh says about its log level."""
    return [each for each in seen.complaints if "setting log level" not in each]


def test_a_report_arrives_without_a_reload(visit: Any, runs: tuple[str, str]) -> None:
    seen: Opened = visit(f"/runs/{runs[0]}/results")
    seen.page.wait_for_selector("#part-run")
    assert "secrets leaked" in seen.text()
    seen.page.get_by_role("link", name="Run details").click()
    assert seen.page.url.endswith("#part-run")
    assert seen.page.locator(".chart svg").count() > 3
    seen.page.locator("#leak-rates").scroll_into_view_if_needed()
    seen.page.wait_for_selector("#leak-rates .chart-interactive")  # charts that a stream brought are upgraded, too
    assert complaints(seen) == []
    assert seen.blocked == []


@pytest.mark.parametrize("width", [390, 1280])
def test_markup_of_models_and_users_is_text(visit: Any, runs: tuple[str, str], width: int) -> None:
    seen: Opened = visit(f"/runs/{runs[1]}/results", width=width)
    seen.page.wait_for_selector("#part-run")
    assert seen.text().count(MARKUP) >= 2
    assert seen.page.locator("main img, main script").count() == 0
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints(seen) == []


def test_runs_are_selected_and_compared(visit: Any, runs: tuple[str, str]) -> None:
    seen: Opened = visit("/runs")
    link = seen.page.locator("#compare-selected")
    seen.page.locator(f"#select-{runs[0]}").check()
    assert not link.is_visible()
    seen.page.locator("input[type=search]").fill("script")  # the other run is in another view of the list
    seen.page.wait_for_selector(f"#row-{runs[0]}", state="detached")
    seen.page.locator(f"#select-{runs[1]}").check()
    assert link.inner_text() == "Compare 2 runs"
    seen.page.locator("input[type=search]").fill("")
    seen.page.wait_for_selector(f"#row-{runs[0]}")
    assert seen.page.locator(f"#select-{runs[0]}").is_checked()
    link.click()
    seen.page.wait_for_selector("#part-run")
    assert "Settings that differ" in seen.text()
    assert seen.page.url.endswith(f"/compare?run={runs[0]}&run={runs[1]}")
    assert complaints(seen) == []


def test_the_figure_of_a_comparison_is_a_chart(visit: Any, api: Api, runs: tuple[str, str]) -> None:
    seen: Opened = visit(f"/compare?run={runs[0]}&run={play(api, name='another', seed=9)}")
    seen.page.wait_for_selector("#part-run")
    seen.page.locator("#differences").scroll_into_view_if_needed()
    seen.page.wait_for_selector("#differences .chart-interactive")
    assert complaints(seen) == []


def test_a_comparison_begins_with_the_keyboard_and_a_search(visit: Any, runs: tuple[str, str]) -> None:
    seen: Opened = visit("/compare", width=390)
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("plain")
    seen.page.wait_for_selector(f"#offered a[href='/runs/{runs[1]}/results']", state="detached")
    seen.page.get_by_role("link", name="Choose plain").press("Enter")
    seen.page.wait_for_selector("text=Choose another run")
    seen.page.get_by_role("link", name="Choose").first.press("Enter")
    seen.page.wait_for_selector("#part-run")
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert seen.page.locator("main img, main script").count() == 0
    assert complaints(seen) == []
