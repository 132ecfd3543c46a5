"""Entities and labels in a real browser: forms, errors beside fields, and labelling with the keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest

from groundswell.experiments.simulations.catalogue import ENTITY
from groundswell.experiments.simulations.entities import Entity
from tests.browser.conftest import Open, Opened
from tests.web.scene import Api, serving

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=alert(1)><script>alert(1)</script>"
Visit = Callable[..., Opened]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("tables")) as api:
        api("POST", "/entity-types", 201, json={"template": "human"})
        yield api


@pytest.fixture
def visit(browse: Open, server: Api) -> Visit:
    """Open a page of the server: `visit("/runs", width=390)`."""
    return lambda path, **look: browse(f"{server.server.url}{path}", **look)


def test_an_entity_is_created_changed_and_deleted(visit: Visit, server: Api) -> None:
    seen = visit("/new-entity?entity_type_id=human")
    page = seen.page
    page.locator("[name=name]").fill(EVIL)
    page.locator("[name=id]").fill("evil")
    page.locator("[name='attributes.age']").fill("41")
    page.locator("[name='attributes.urban']").select_option("true")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/entities/evil")
    assert EVIL in seen.text()
    assert server("GET", "/entities/evil")["attributes"] == {"age": 41, "urban": True}
    page.get_by_role("link", name="Edit").click()
    page.locator("[name='attributes.age']").fill("7")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("7 is not from 18 to 90").wait_for()
    assert page.locator("[name='attributes.age']").get_attribute("aria-invalid") == "true"
    page.locator("[name='attributes.age']").fill("42")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/entities/evil")
    assert server("GET", "/entities/evil")["attributes"]["age"] == 42
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/entities")
    server("GET", "/entities/evil", 404)
    [refused] = seen.complaints  # the browser reports the answer 422
    assert "422" in refused


def test_attributes_that_the_type_does_not_have_are_sent_too(visit: Visit, server: Api) -> None:
    old = Entity("old", "Old", entity_type_id="human", attributes={"age": 41, "height": 180})
    server.server.services.store.documents.add((ENTITY, "old", msgspec.json.encode(old).decode()))
    page = visit("/entities/old/edit").page
    page.get_by_role("button", name="Save").click()
    page.get_by_text("has no such dimension").wait_for()  # the API decides; nothing is removed
    assert server("GET", "/entities/old")["attributes"] == {"age": 41, "height": 180}
    page.locator("[name=attributes]").fill("")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/entities/old")
    assert server("GET", "/entities/old")["attributes"] == {"age": 41}


def test_errors_of_an_import_are_shown_by_row(visit: Visit, server: Api) -> None:
    seen = visit("/import-entities", width=390, dark=True)
    content = seen.page.get_by_label("Or paste the content")
    content.fill("id,name,entity_type_id,age\nann,Ann,human,old\nben,Ben,human,200\n")
    seen.page.get_by_role("button", name="Import").click()
    seen.page.locator(".errors li").first.wait_for()
    told = seen.page.locator(".errors").inner_text()
    assert "old" in told
    content.fill("id,name,entity_type_id,age\nann,Ann,human,30\nben,Ben,human,40\n")
    seen.page.get_by_role("button", name="Import").click()
    seen.page.get_by_text("Imported. added: 2.").wait_for()
    assert server("GET", "/entities/ben")["attributes"] == {"age": 40}
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_three_conversations_are_labelled_with_the_keyboard(visit: Visit, server: Api) -> None:
    body = {"models": ["emulated/leaker", "emulated/keeper"], "interactions": 6, "messages": 2}
    run = server("POST", "/experiments/secret-game/play", 201, json=body)["run_id"]
    list(server.events(f"/runs/{run}"))
    seen = visit(f"/labels/{run}")
    page = seen.page
    page.get_by_label("Conversations").fill("3")
    page.get_by_role("button", name="Draw a sample").click()
    page.get_by_label("Your name").fill("Ana & Ben")
    page.keyboard.press("Enter")
    for number in (1, 2, 3):
        page.get_by_role("heading", name=f"Conversation {number} of 3").wait_for()
        assert page.locator(".message:visible").count() == 1, "later messages are hidden"
        for key in ("d", "u", "m", "?", "Enter"):
            page.keyboard.press(key)
        page.get_by_text("Every message has a label.").wait_for()
        page.keyboard.press("Enter")
    page.wait_for_url("**/results")
    assert "Agreement with labels, by message" in seen.text()
    for number in (1, 2, 3):
        found = server("GET", f"/runs/{run}/labels/items/{number}", params={"reader": "Ana & Ben"})
        assert found["labels"] == {"0": {"label": "mentioned", "unsure": True}, "1": {"label": "none"}}
    assert seen.complaints == []


def test_enter_on_a_focused_button_presses_that_button(visit: Visit, server: Api) -> None:
    body = {"models": ["emulated/leaker"], "interactions": 2, "messages": 2, "seed": 5}
    run = server("POST", "/experiments/secret-game/play", 201, json=body)["run_id"]
    list(server.events(f"/runs/{run}"))
    server("POST", f"/runs/{run}/labels", 201, json={"size": 1})
    seen = visit(f"/labels/{run}/1?reader=Cleo", width=390)
    seen.page.locator("[data-choice=hinted]").focus()
    seen.page.keyboard.press("Enter")
    seen.page.get_by_text("Saved.").wait_for()
    assert server("GET", f"/runs/{run}/labels/items/1?reader=Cleo")["labels"] == {"0": {"label": "hinted"}}
    seen.page.get_by_role("button", name="Skip").click()
    seen.page.wait_for_url("**/1?reader=Cleo")
    assert seen.complaints == []


def test_next_saves_again_after_a_failure(visit: Visit, server: Api) -> None:
    body = {"models": ["emulated/leaker"], "interactions": 2, "messages": 2, "seed": 6}
    run = server("POST", "/experiments/secret-game/play", 201, json=body)["run_id"]
    list(server.events(f"/runs/{run}"))
    server("POST", f"/runs/{run}/labels", 201, json={"size": 1})
    page = visit(f"/labels/{run}/1?reader=Dan").page
    page.route("**/items/1", lambda route: route.abort())
    for key in ("d", "m"):
        page.keyboard.press(key)
    page.get_by_text("Not saved.").wait_for()
    page.unroute("**/items/1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/results")
    labels = server("GET", f"/runs/{run}/labels/items/1?reader=Dan")["labels"]
    assert labels == {"0": {"label": "declared"}, "1": {"label": "mentioned"}}


@pytest.mark.parametrize("path", ["/entities", "/entity-types/human", "/models", "/cache", "/batches", "/labels"])
def test_pages_fit_a_phone_and_do_not_complain(visit: Visit, path: str) -> None:
    seen = visit(path, width=390, dark=True)
    seen.page.wait_for_load_state("load")
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert seen.complaints == []
