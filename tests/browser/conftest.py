"""A real browser: Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Opened:
    """A page that is open in the browser, with everything that it asked for and complained about."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.blocked: list[str] = []
        """Requests that the page's policy stopped before they left."""
        page.on("requestfinished", lambda request: self.requests.append(request.url))
        page.on("requestfailed", self._failed)
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))

    def _failed(self, request: Any) -> None:
        stopped = "BLOCKED_BY_CSP" in (request.failure or "") or request.failure == "csp"
        (self.blocked if stopped else self.requests).append(request.url)

    def text(self) -> str:
        """What can be read."""
        found: str = self.page.locator("main").inner_text()
        return found


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def _chromium() -> Iterator[Any]:
    """One browser for a module: while it is open, Playwright's event loop runs, and other tests need their own."""
    if BROWSER is None:
        pytest.skip("there is no chromium here")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def browse(_chromium: Any) -> Iterator[Open]:
    """Open a file or an address in a window of its own: `browse(path, width=390, dark=True)`."""
    contexts = []

    def opened(place: Path | str, *, width: int = 1280, height: int = 900, dark: bool = False) -> Opened:
        size = {"width": width, "height": height}
        context = _chromium.new_context(viewport=size, color_scheme="dark" if dark else "light")
        context.set_default_timeout(PATIENCE * 1000)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.goto(place if isinstance(place, str) else place.absolute().as_uri())
        return found

    yield opened
    for context in contexts:
        context.close()
