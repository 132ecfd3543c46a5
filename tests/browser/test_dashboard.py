"""The dashboard from beginning to end: start a study, watch it, read, fork and export; resume; log in; share."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from groundswell.program.request import Request
from groundswell.transports.scripted import scripted_model
from tests.browser.conftest import Open
from tests.web.scene import Api, gated, serving

pytestmark = pytest.mark.slow
TOKEN = "of-a-test-and-of-no-worth"
EVIL = "<img src=x onerror=alert(1)><script>alert(1)</script> & <b>bold</b>"


@scripted_model("html-replies")
def markup(request: Request) -> str:
    """A model whose replies are HTML."""
    return EVIL


def unexplained(complaints: list[str]) -> list[str]:
    """What is on the console, except what Bokeh says about its log level."""
    return [each for each in complaints if "setting log level" not in each]


def test_a_study_is_started_watched_read_forked_and_exported(tmp_path: Path, browse: Open) -> None:
    gate = gated("watched")
    with serving(tmp_path) as api:
        seen = browse(f"{api.server.url}/start/secret-game/play")
        page = seen.page
        page.locator("#field-models input").first.fill("scripted/waits-watched")
        page.get_by_label("Interactions", exact=True).fill("6")
        page.get_by_label("Messages", exact=True).fill("2")
        page.wait_for_selector("#plan:has-text('6 trials')")
        page.get_by_role("button", name=re.compile("^Start")).click()
        page.wait_for_url(re.compile(r"/runs/\w+$"))

        page.locator(".chip.running").wait_for()
        page.get_by_text("6 running").wait_for()
        page.evaluate("window.sameDocument = true")
        gate.open()
        page.locator("#heading .chip.completed").wait_for()
        assert page.locator("#overview .figures b").first.inner_text() == "6"
        assert page.evaluate("window.sameDocument"), "the page changed without a reload"

        page.locator("#overview").get_by_role("link", name="Trials").click()
        page.locator("a.name").first.click()
        page.locator(".message .said", has_text="I waited.").first.wait_for()
        page.locator("#fork-1").click()
        page.locator("[name=name]").fill("a fork")
        page.get_by_role("button", name="Start the fork").click()
        page.wait_for_url(re.compile(r"/runs/\w+/trials$"))
        fork = page.url.split("/")[-2]
        list(api.events(f"/runs/{fork}"))
        assert api("GET", f"/runs/{fork}")["asks"]["cached"] == 6, "replies before the position are reused"

        page.goto(f"{api.server.url}/runs/{fork}")
        page.locator("#run-menu summary").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Export as CSV").click()
        exported = Path(download.value.path()).read_text()
        assert len(exported.splitlines()) == 7
        assert unexplained(seen.complaints) == []


def test_a_killed_run_is_resumed(tmp_path: Path, browse: Open) -> None:
    store = tmp_path / "runs.db"
    command = [sys.executable, "-m", "groundswell", "play", "-m", "emulated/keeper", "-n", "3000", "--messages", "2"]
    killed = subprocess.Popen(
        [*command, "--name", "killed", "--store", str(store)], cwd=tmp_path, stderr=subprocess.PIPE
    )
    with serving(tmp_path) as api:
        while not [each for each in api("GET", "/runs") if each["trials"]["usable"] > 100]:
            assert killed.poll() is None, killed.communicate()[1].decode()
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
        [run] = api("GET", "/runs")
        seen = browse(f"{api.server.url}/runs?status=interrupted")
        seen.page.get_by_role("link", name="killed").click()
        seen.page.locator(".chip.interrupted").wait_for()
        seen.page.get_by_role("button", name="Resume").click()
        seen.page.locator("#heading .chip.completed").wait_for()
        found = api("GET", f"/runs/{run['run_id']}")
        assert found["trials"] == {"planned": 3000, "usable": 3000, "missing": 0}
        assert unexplained(seen.complaints) == []


def outer_address(api: Api) -> str:
    """The address of a server as other machines see it, if this machine has one."""
    port = api.server.url.rpartition(":")[2]
    found = {str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    host = next((each for each in found if not each.startswith("127.")), "127.0.0.1")
    return f"http://{host}:{port}"


def test_other_machines_log_in_and_share(tmp_path: Path, browse: Open) -> None:
    with serving(tmp_path, host="0.0.0.0", token=TOKEN) as api:
        address = outer_address(api)
        store = api.server.services.store
        run, hidden = store.runs.create("shared", 1), store.runs.create("not shared", 1)
        seen = browse(f"{address}/runs/{run.id}")
        page = seen.page
        page.get_by_label("Token").fill("of-another-server-and-wrong")
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("This is not the token").wait_for()
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{address}/runs/{run.id}")
        page.locator("#run-menu summary").click()
        page.get_by_role("button", name="Share").click()
        link = page.locator("#share-link")
        link.wait_for()
        page.wait_for_function("document.querySelector('#share-link').value !== ''")

        guest = browse(link.input_value())
        guest.page.get_by_text("read only").wait_for()
        assert guest.page.url.startswith(f"{address}/runs/{run.id}")
        assert guest.page.locator("button[data-call]").count() == 0
        guest.page.goto(f"{address}/runs/{hidden.id}")
        guest.page.get_by_role("heading", name="Log in").wait_for()

        page.get_by_role("button", name="Log out").click()
        page.get_by_role("heading", name="Log in").wait_for()
        assert not [each for each in unexplained(seen.complaints) if "401" not in each]


@pytest.mark.parametrize("width", [1280, 390])
def test_markup_in_replies_is_text_on_every_page(tmp_path: Path, browse: Open, width: int) -> None:
    with serving(tmp_path) as api:
        models, name = ["scripted/html-replies"], EVIL[:60]
        options: dict[str, Any] = {"models": models, "interactions": 2, "messages": 2, "name": name}
        run = api("POST", "/experiments/secret-game/play", 201, json=options)["run_id"]
        list(api.events(f"/runs/{run}"))
        [trial, _] = api("GET", f"/runs/{run}/trials")
        seen = browse(f"{api.server.url}/runs/{run}/trials/{trial['key']}", width=width)
        seen.page.locator(".message .said", has_text=EVIL).first.wait_for()
        for path in ("", "/results", "/trials"):
            seen.page.goto(f"{api.server.url}/runs/{run}{path}")
            seen.page.get_by_text("<img src=x", exact=False).first.wait_for()
            assert seen.page.locator("main img").count() == 0
            wide = seen.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width + 1, f"{path} is {wide} pixels wide"
        assert unexplained(seen.complaints) == []
        assert seen.blocked == []


def test_a_lost_server_is_said_and_found_again(tmp_path: Path, browse: Open) -> None:
    with serving(tmp_path) as api:
        port = int(api.server.url.rpartition(":")[2])
        seen = browse(f"{api.server.url}/runs")
        seen.page.get_by_text("No runs yet").wait_for()
    seen.page.get_by_text("The connection to the server is lost").wait_for()
    with serving(tmp_path, port=port):
        seen.page.locator(".disconnected").wait_for(state="hidden")


def test_the_theme_is_kept(tmp_path: Path, browse: Open) -> None:
    with serving(tmp_path) as api:
        page = browse(f"{api.server.url}/runs").page
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.get_by_role("button", name="Switch between dark and light").click()
        dark = page.evaluate(ground)
        assert light != dark
        page.goto(f"{api.server.url}/models")
        assert page.evaluate(ground) == dark
