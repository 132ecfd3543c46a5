"""A trial in a real browser: its thoughts, its requests, steps by key, and a fork."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.browser.conftest import Open, Opened
from tests.web.dashboard.scene import LONG, UNSAFE, played, scripted_run
from tests.web.scene import Api, gated, serving

pytestmark = pytest.mark.slow

Visit = Callable[..., Opened]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("trials")) as api:
        yield api


@pytest.fixture
def visit(browse: Open, api: Api) -> Visit:
    """Open a page of the server: `visit("/runs", width=390)`."""
    return lambda path, **look: browse(f"{api.server.url}{path}", **look)


def test_a_trial_is_read_with_the_keyboard_and_forked(api: Api, visit: Visit) -> None:
    run = played(api, name="read")
    found = visit(f"/runs/{run}/trials")
    page = found.page
    page.locator("#tags select").first.wait_for()
    page.locator("a.name").first.click()
    page.get_by_text("1 of 6").wait_for()
    page.keyboard.press("j")
    page.get_by_text("2 of 6").wait_for()
    page.keyboard.press("k")
    page.get_by_text("1 of 6").wait_for()
    page.locator("#raw-1 summary").click()
    page.locator("#raw-1 pre", has_text='"settlement"').wait_for()
    assert '"model": "emulated/' in page.locator("#raw-1 pre").inner_text()
    page.locator("#fork-2").click()
    assert page.locator("[name=at]").input_value() == "2"
    page.locator("[name=field]").fill("interactions")
    assert page.locator("[name=value]").get_attribute("placeholder") == "now 6"
    page.locator("[name=value]").fill("many")
    page.get_by_role("button", name="Start the fork").click()
    page.locator("dialog [role=alert]", has_text="interactions").wait_for()
    page.locator("[name=value]").fill("4")
    page.locator("[name=name]").fill("forked")
    found.complaints.clear()  # Chromium reports the refused request
    page.get_by_role("button", name="Start the fork").click()
    page.wait_for_url(re.compile(r"/runs/(?!" + run + r")\w+/trials"))
    fork = page.url.split("/")[-2]
    list(api.events(f"/runs/{fork}"))
    made = api("GET", f"/runs/{fork}")
    assert (made["name"], made["trials"]["planned"]) == ("forked", 4)
    assert (made["asks"]["cached"], made["asks"]["sent"]) == (8, 8)
    assert found.complaints == []


def test_filters_change_the_list_without_a_new_page(api: Api, visit: Visit) -> None:
    found = visit(f"/runs/{played(api, name='filtered')}/trials")
    chosen = found.page.locator("#tags select").first
    chosen.wait_for()
    chosen.select_option(index=1)
    found.page.wait_for_url("**/trials?tag=*")
    found.page.locator("#count", has_text="match").wait_for()
    found.page.locator("a.name").first.click()
    found.page.get_by_text(re.compile(r"^1 of \d$")).wait_for()
    assert found.complaints == []


def test_unsafe_and_long_texts_on_a_phone(api: Api, visit: Visit) -> None:
    run = scripted_run(api, {"unsafe/key": "say", "long": "long", "rtl": "hebrew"})
    found = visit(f"/runs/{run}/trials/unsafe%2Fkey", width=390, dark=True)
    page = found.page
    assert UNSAFE in found.text()
    thought = page.locator("#thought-1")
    assert not thought.locator(".thought").is_visible()
    thought.locator("summary").press("Enter")
    assert thought.locator(".thought").inner_text() == "I think <b>."
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("j")
    page.get_by_role("button", name="Show all").click()
    page.locator(".said", has_text="THE END").wait_for()
    assert page.locator(".said").nth(1).inner_text() == LONG
    page.keyboard.press("j")
    said = page.locator(".said", has_text="שלום")
    said.wait_for()
    assert said.evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert found.complaints == []


def test_messages_appear_while_a_trial_goes_on(api: Api, visit: Visit) -> None:
    gate = gated("browser-trial")
    run = api.create(model="scripted/waits-browser-trial", num_simulations=1).removeprefix("batch-")
    api.until(f"batch-{run}", "in_progress")
    found = visit(f"/runs/{run}/trials")
    found.page.locator("a.name").first.click()
    found.page.get_by_text("(no reply yet)").wait_for()
    found.page.locator(".exchange summary").first.click()
    gate.open()
    found.page.locator(".said", has_text="I waited.").first.wait_for()
    found.page.locator(".exchange pre", has_text="I waited.").first.wait_for()
    found.page.locator("#facts", has_text="usable").wait_for()
    assert found.complaints == []
