"""The start page in a real browser: inputs, checks while typing, estimates, and the start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from groundswell.experiments.simulations.entities import Entity
from tests.browser.conftest import Open, Opened
from tests.web.scene import Api, gated, serving

pytestmark = pytest.mark.slow

ATTACK = "<img src=x onerror=alert(1)><script>alert(1)</script>"
Visit = Callable[..., Opened]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("start")) as api:
        api.server.services.catalogue.add_entities(Entity("bad", ATTACK))
        yield api


@pytest.fixture
def visit(browse: Open, api: Api) -> Visit:
    """Open a page of the server: `visit("/start", width=390)`."""
    return lambda path, *, at=api, **look: browse(f"{at.server.url}{path}", **look)


def body_of(page: Any) -> Any:
    """The body that the form would send, as the text for curl shows it."""
    text = page.locator("#text-curl").text_content()
    return json.loads(text.partition("-d '")[2].rstrip("'").replace("'\"'\"'", "'"))


def test_a_game_is_filled_in_estimated_and_started(visit: Visit, api: Api) -> None:
    opened = visit("/start/secret-game/play")
    page = opened.page
    page.locator("#field-models input").first.fill("emulated/keeper")
    page.get_by_role("button", name="Add another").click()
    page.keyboard.type("emulated/leaker:0.6")
    page.get_by_label("Interactions", exact=True).fill("8")
    page.locator("summary", has_text="Limits").click()
    page.get_by_label("Max calls").fill("500")
    page.wait_for_selector("#estimate[data-state=done]")
    assert page.locator("#plan").inner_text().startswith("8 trials.")
    assert "Requests" in page.locator("#estimate").inner_text()
    start = page.get_by_role("button", name="Start: no cost")
    assert body_of(page) == {"models": ["emulated/keeper", "emulated/leaker:0.6"], "interactions": 8, "max_calls": 500}
    assert opened.complaints == []
    with page.expect_navigation():
        start.click()
    [run] = [each for each in api("GET", "/runs") if each["name"].startswith("game-")]
    assert page.url == f"{api.server.url}/runs/{run['run_id']}"


def test_an_error_is_shown_beside_its_field_and_the_estimate_is_marked(visit: Visit) -> None:
    page = visit("/start/secret-game/play").page
    interactions, messages = page.get_by_label("Interactions", exact=True), page.get_by_label("Messages", exact=True)
    interactions.fill("4")
    page.wait_for_selector("#estimate[data-state=done]")
    messages.fill("1")
    page.wait_for_selector("#error-messages:not([hidden])")
    assert page.locator("#error-messages").inner_text() == "messages 1: must be at least 2"
    assert messages.get_attribute("aria-invalid") == "true"
    assert "error-messages" in messages.get_attribute("aria-describedby")
    assert page.locator("#summary").inner_text() == "messages 1: must be at least 2"
    assert "earlier values" in page.locator("#estimate").inner_text()
    assert page.locator("button.primary").is_disabled()
    messages.press("Control+a")
    messages.press_sequentially("e")
    page.get_by_text("messages: is not a number").first.wait_for()
    messages.fill("3")
    page.wait_for_selector("#estimate[data-state=done]")
    assert page.locator("#error-messages").is_hidden()
    assert page.locator("button.primary").is_enabled()


def test_a_model_without_a_key_has_an_estimate_and_cannot_be_started(visit: Visit) -> None:
    page = visit("/start/prompting/ask").page
    page.get_by_label("Prompt").fill("Why?")
    page.locator("#field-models input").first.fill("openai/gpt-4o-mini")
    page.wait_for_selector("#error-models:not([hidden])")
    assert "OPENAI_API_KEY" in page.locator("#error-models").inner_text()
    page.wait_for_selector("#estimate[data-state=done]")
    assert "$" in page.locator("#estimate").inner_text()
    assert page.locator("button.primary").is_disabled()


def test_a_questionnaire_and_entities_are_put_together(visit: Visit) -> None:
    opened = visit("/start/simulations/simulate", width=390, dark=True)
    page = opened.page
    page.get_by_label("Search entities").fill("entity 1")
    page.get_by_role("button", name="Select all").click()
    page.get_by_label("Search entities").fill("")
    page.get_by_label("Entity 2").check()
    assert page.locator(".picker output").inner_text() == "2 selected"
    page.get_by_label("Context").fill("It's a panel\nabout <b>tea</b>")
    page.get_by_label("Interaction size").fill("2")
    page.get_by_label("Num simulations").fill("1")
    page.get_by_role("button", name="Add question").click()
    row = page.locator("#field-questions .row").first
    row.locator("[data-name=id]").fill("tea")
    row.locator("[data-name=text]").fill("Do you like tea?")
    row.locator("[data-name=type]").select_option(label="choice")
    row.locator("[data-name=options]").fill("yes\nno")
    page.get_by_role("button", name="Add question").click()  # an empty row is left out
    page.wait_for_selector("#estimate[data-state=done]")
    assert body_of(page) == {
        "entities": ["entity-id-1", "entity-id-2"],
        "context": "It's a panel\nabout <b>tea</b>",
        "interaction_size": 2,
        "num_simulations": 1,
        "questions": [{"id": "tea", "text": "Do you like tea?", "type": "choice", "options": ["yes", "no"]}],
    }
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert ATTACK in page.locator(".picker").inner_text()
    assert all("422" in each for each in opened.complaints), "only that values were not complete yet"


def test_json_that_is_not_valid_is_an_error_of_its_field(visit: Visit) -> None:
    page = visit("/start/secret-game/play").page
    page.locator("summary", has_text="Game").click()
    page.get_by_label("Secrets").fill("[[")
    page.wait_for_selector("#error-secrets:not([hidden])")
    assert "secrets: is not valid JSON" in page.locator("#error-secrets").inner_text()
    page.get_by_label("Secrets").fill('[["saffron", "trellis"]]')
    page.wait_for_selector("#error-secrets", state="hidden")
    page.get_by_role("tab", name="TOML file").click()
    page.wait_for_function("document.querySelector('#text-config').textContent.includes('saffron')")
    assert page.locator("#text-config").is_visible()
    assert page.locator("#text-curl").is_hidden()


def test_a_full_server_is_said_beside_the_button(visit: Visit, tmp_path: Path) -> None:
    gate = gated("start-button")
    with serving(tmp_path, max_running=1, max_waiting=0) as full:
        full("POST", "/experiments/prompting/ask", 201, json={"prompt": "x", "models": ["scripted/waits-start-button"]})
        page = visit("/start/prompting/ask", at=full).page
        page.get_by_label("Prompt").fill("Why?")
        page.locator("button.primary:enabled").click()
        page.wait_for_selector("#refused:not([hidden])")
        assert "too many runs are waiting" in page.locator("#refused").inner_text()
        gate.open()
