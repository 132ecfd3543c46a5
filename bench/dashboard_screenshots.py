"""Screenshots of every page of the dashboard: `python bench/dashboard_screenshots.py [FOLDER]`. About three minutes.

Runs all four experiments with emulated models, and starts a server on their store. On it are a run in progress and a
run that waits for a batch, both with an emulated provider, so that they have costs. Opens every page in Chromium: light
and dark, on a desktop and on a phone. Prints everything that a page complains about on its console, and exits with 1 if
there was anything. The default folder is docs/images/dashboard; then docs/dashboard-gallery.md is written, too.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from dashboard import server, started
from groundswell.emulator.latency import Latency
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.server import running
from groundswell.emulator.settings import BatchTimes, Settings
from screenshots import IMAGES, reports

SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}
PROVIDER = Settings(
    limits=RateLimits(requests_per_minute=6_000), latency=Latency(0.4, 0.5), batch=BatchTimes(working=36_000)
)
"""A provider that lets runs wait: its rate limit is low, and its batches take hours."""
LOOKS = tuple(product(SCREENS, ("light", "dark")))
COLOURS = 128
"""Colours of a stored image. Pages have few, and the files are a quarter as large."""


TITLES = {
    "runs": "The list of runs",
    "run": "A run in progress",
    "run-ended": "A run that has ended",
    "results": "The results of a run",
    "results-figures": "Figures of a secret game",
    "results-evolution": "Figures of a prompt evolution",
    "results-mutation": "Figures of a query mutation",
    "trials": "The trials of a run",
    "trial": "One trial as a chat",
    "start": "All experiments",
    "start-form": "The form of the secret game",
    "start-simulate": "The form of simulations, with the entity picker",
    "compare": "Two runs compared",
    "entities": "Entities",
    "entity": "One entity",
    "labels": "Runs to label",
    "label": "A conversation to label",
    "batches": "Batches in flight",
    "models": "Models and accounts",
    "cache": "The reply cache",
    "login": "The login of a server that others can reach",
    "error": "An address that does not exist",
}
"""All pages, in the order of the gallery."""
GALLERY = """\
# Dashboard gallery

Every page of the [dashboard](dashboard.md), light and dark, on a desktop and on a phone. The command
`python bench/dashboard_screenshots.py` takes the pictures, with runs of emulated models, and writes this page.
"""


def addresses(url: str) -> dict[str, str]:
    """The addresses of all pages but that of a run in progress, by name."""
    runs = {each["name"]: each["run_id"] for each in httpx.get(f"{url}/api/runs").json()["data"]}
    game = runs["secret-game"]
    found = httpx.get(f"{url}/api/runs/{game}/trials?limit=100").json()["data"]
    trial = next(each["key"] for each in found if "declared" in str(each["result"]))
    entity = httpx.get(f"{url}/api/entities?limit=1").json()["data"][0]["id"]
    httpx.post(f"{url}/api/runs/{game}/labels", json={"size": 20}).raise_for_status()
    return {
        "runs": "/runs",
        "run-ended": f"/runs/{game}",
        "results": f"/runs/{game}/results",
        "results-figures": f"/runs/{game}/results#part-figures",
        "results-evolution": f"/runs/{runs['prompt-evolution']}/results#part-figures",
        "results-mutation": f"/runs/{runs['query-mutation']}/results#part-figures",
        "trials": f"/runs/{game}/trials",
        "trial": f"/runs/{game}/trials/{trial}",
        "start": "/start",
        "start-form": "/start/secret-game/play",
        "start-simulate": "/start/simulations/simulate",
        "compare": f"/compare?run={game}&run={runs['leak-rates']}",
        "entities": "/entities",
        "entity": f"/entities/{entity}",
        "labels": "/labels",
        "label": f"/labels/{game}/1?reader=reader",
        "batches": "/batches",
        "models": "/models",
        "cache": "/cache",
        "error": "/runs/none",
    }


def gallery() -> str:
    """The page of the documentation that shows all pictures."""
    found = [GALLERY]
    for name, title in TITLES.items():
        found.append(f"\n## {title}\n\n")
        for screen, scheme in LOOKS:
            where = " on a phone" if screen == "phone" else ""
            found.append(f"![{title}{where}, {scheme}](images/dashboard/{name}-{screen}-{scheme}.png)\n")
    return "".join(found)


def take(browser: Browser, address: str, image: Path, screen: str, scheme: str) -> list[str]:
    """Take one screenshot, and return what the page complained about."""
    width, height = SCREENS[screen]
    dark = "dark" if scheme == "dark" else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=dark)  # type: ignore[arg-type]
    tab, complaints = context.new_page(), list[str]()
    tab.on("console", lambda message: complaints.extend([message.text] if message.type in ("warning", "error") else []))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(address)
    if "/results" in address:
        tab.locator(".report").first.wait_for()
        if "#" in address:
            tab.evaluate("document.querySelector(location.hash).scrollIntoView()")
    tab.wait_for_timeout(3_000 if "/runs/" in address or "/start/" in address or "/compare" in address else 500)
    tab.screenshot(path=image)
    context.close()
    Image.open(image).convert("RGB").quantize(COLOURS).save(image, optimize=True)
    expected = {"/runs/none": "404", "/start/": "422"}  # Chromium reports what a form lacks, too
    known = [status for part, status in expected.items() if part in address]
    return [each for each in complaints if not any(status in each for status in known)]


def take_all(browser: Browser, url: str, pages: dict[str, str], images: Path) -> list[str]:
    """Take the screenshots of these pages, and return what they complained about."""
    complaints = []
    for (name, path), (screen, scheme) in product(pages.items(), LOOKS):
        image = images / f"{name}-{screen}-{scheme}.png"
        complaints += [f"{image.name}: {each}" for each in take(browser, f"{url}{path}", image, screen, scheme)]
    return complaints


def photograph(browser: Browser, url: str, images: Path) -> list[str]:
    """Take the screenshots of all pages but the login, and return what they complained about."""
    models = ["openai/gpt-4o-mini", "openai/gpt-4o"]
    started(url, interactions=200, messages=6, models=models, via="batch", name="overnight")
    live = started(url, interactions=10_000, messages=12, models=models, temperature=0, budget=5, name="live")
    time.sleep(15)  # its charts show the time since its start
    complaints = take_all(browser, url, {"run": f"/runs/{live}"}, images)
    httpx.post(f"{url}/api/runs/{live}/cancel")  # it would slow the other pages down
    return complaints + take_all(browser, url, addresses(url), images)


def main() -> None:
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES / "dashboard"
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        store = Path(place) / "groundswell.db"
        reports(Path(place))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with running(PROVIDER) as provider:
            os.environ |= {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "emulated"}
            with server(store) as (url, _):
                complaints = photograph(browser, url, images)
        os.environ["GROUNDSWELL_TOKEN"] = "a-token-for-screenshots"
        with server(store) as (url, _):
            complaints += take_all(browser, url, {"login": "/login"}, images)
        browser.close()
    print(f"{len(list(images.glob('*.png')))} screenshots in {images}")
    if len(sys.argv) == 1:
        (IMAGES.parent / "dashboard-gallery.md").write_text(gallery())
    if complaints:
        raise SystemExit("\n".join(complaints))


if __name__ == "__main__":
    main()
