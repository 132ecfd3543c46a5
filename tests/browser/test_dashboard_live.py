"""Pages that change while somebody uses them: focus, menus, hidden pages, deleted runs and refused filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Open, Opened
from tests.web.scene import Api, Gate, gated, serving

pytestmark = pytest.mark.slow

Visit = Callable[..., Opened]
FOCUSED = "document.activeElement.closest('tr')?.id + ' ' + document.activeElement.tagName"
HIDDEN = """hidden => {
  Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path) as api:
        yield api


@pytest.fixture
def visit(browse: Open, api: Api) -> Visit:
    return lambda path, **look: browse(f"{api.server.url}{path}", **look)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that a run waits for. It is open at the end, so that the run ends."""
    gate = gated("live-pages")
    yield gate
    gate.open()


@pytest.fixture
def run(api: Api, gate: Gate) -> str:
    """A run that goes on until the gate is opened."""
    batch = api.create(model="scripted/waits-live-pages", num_simulations=1)
    api.until(batch, "in_progress")
    return str(batch.removeprefix("batch-"))


def changed(page: Any, selector: str) -> None:
    """Wait until the text of an element is another one."""
    before = page.locator(selector).inner_text()
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector).innerText !== text", arg=[selector, before]
    )


def test_a_row_that_changes_keeps_its_menu_and_the_focus(visit: Visit, run: str) -> None:
    page = visit("/runs").page
    menu = page.locator(f"#menu-{run}")
    menu.locator("summary").click()
    marked = page.locator(f"#row-{run} a.name").evaluate("link => { link.seen = true; return link.textContent }")
    for _ in range(2):
        changed(page, f"#row-{run} td[data-label=Started]")
    assert marked
    assert page.locator(f"#row-{run} a.name").evaluate("link => link.seen"), "clicks on it are not lost"
    assert menu.get_attribute("open") is not None
    assert page.evaluate(FOCUSED) == f"row-{run} SUMMARY"
    page.keyboard.press("Escape")
    assert menu.get_attribute("open") is None


def test_a_page_that_is_not_visible_has_no_stream(api: Api, visit: Visit, run: str) -> None:
    page = visit("/runs").page
    changed(page, f"#row-{run} td[data-label=Started]")

    def streams() -> int:
        return api.server.services.streams

    assert streams() == 1
    page.evaluate(HIDDEN, True)
    while streams():
        page.wait_for_timeout(20)
    page.evaluate(HIDDEN, False)
    changed(page, f"#row-{run} td[data-label=Started]")
    assert streams() == 1


def test_a_run_that_is_deleted_is_said(api: Api, visit: Visit, run: str) -> None:
    page = visit(f"/runs/{run}").page
    changed(page, "#heading")
    api("DELETE", f"/runs/{run}")
    page.get_by_text("This run has been deleted.").wait_for()


def test_a_filter_that_is_refused_is_said(visit: Visit) -> None:
    seen = visit("/runs")
    seen.page.get_by_label("Search").fill("x" * 201)
    seen.page.locator(".toast.wrong").wait_for()
    assert [each for each in seen.complaints if "422" not in each] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_run_at_its_limit_is_resumed_with_a_larger_one(api: Api, visit: Visit, width: int) -> None:
    options = {"models": ["emulated/keeper", "emulated/leaker"], "interactions": 20, "messages": 4, "max_calls": 7}
    run = api("POST", "/experiments/secret-game/play", 201, json=options)["run_id"]
    list(api.events(f"/runs/{run}"))
    page = visit(f"/runs/{run}", width=width).page
    page.locator("#resume summary").click()
    page.locator("#resume button").click()
    page.locator("#resume .errors", has_text="resume it with a larger max_calls").wait_for()
    page.locator("[name=max_calls]").fill("500")
    page.locator("#resume button").click()
    page.locator("#heading .chip.completed").wait_for()
    assert api("GET", f"/runs/{run}")["trials"] == {"planned": 20, "usable": 20, "missing": 0}
