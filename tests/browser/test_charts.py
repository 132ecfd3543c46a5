"""Interactive charts in a browser, under the dashboard's content security policy."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import bokeh
import pytest

import groundswell.web
from groundswell.reporting.blocks import Estimate
from groundswell.reporting.figures import on_page, share_figure, svg_of
from groundswell.reporting.interactive import chart_of

pytestmark = pytest.mark.slow

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'"
)
EVIL = "<img src onerror=alert()>"
STYLE = ":root{--ink:#111111;--faint:#777777;--panel:#ffffff;--ground:#ffffff;--grid:#dddddd;--blue:#0000ff}"
DARK = "@media (prefers-color-scheme:dark){:root{--blue:#00ff00}}"
SCRIPT = Path(groundswell.web.__file__).parent / "dashboard" / "static" / "charts.js"
LIBRARY = Path(bokeh.__file__).parent / "server" / "static" / "js" / "bokeh.min.js"
PAINTED = """([red, green, blue]) => {
  const found = [];
  const walk = node => {
    if (node.tagName === 'CANVAS') found.push(node);
    for (const child of [...(node.shadowRoot?.children ?? []), ...node.children]) walk(child);
  };
  for (const box of document.querySelectorAll('.chart-interactive')) walk(box);
  for (const canvas of found) {
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    for (let at = 0; at < data.length; at += 4)
      if (data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] === 255) {
        const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width, place = at / 4;
        return [box.x + (place % canvas.width) / scale, box.y + Math.floor(place / canvas.width) / scale];
      }
  }
  return null;
}"""
TOOLTIP = """() => {
  const found = [];
  const walk = node => {
    if (node.classList?.contains('bk-tooltip-content')) found.push(node);
    for (const child of [...(node.shadowRoot?.children ?? []), ...(node.children ?? [])]) walk(child);
  };
  walk(document.body);
  return found.length ? found.map(each => [each.textContent, each.querySelectorAll('img').length]) : null;
}"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server with one page that has a chart that works and one that fails."""
    rows = [(EVIL, Estimate(0.5, 0.3, 0.7, 5, 10)), ("llama", Estimate(0.1, 0.05, 0.2, 1, 10))]
    block = share_figure(id="shares", title="Shares", caption="", columns=("model", "leaked"), rows=rows)
    svg = on_page(block, svg_of(block))
    charts = "".join(f'<div class="chart" data-chart="/{name}.json">{svg}</div>' for name in ("good", "bad"))
    head = f'<!doctype html><link rel="icon" href="data:,"><style>{STYLE}{DARK}</style>'
    files = {
        "/": ("text/html", f"{head}<main>{charts}</main><script src='/static/charts.js'></script>".encode()),
        "/good.json": ("application/json", json.dumps(chart_of(block)).encode()),
        "/bad.json": ("application/json", b"{}"),
        "/static/charts.js": ("text/javascript", SCRIPT.read_bytes()),
        "/static/bokeh.js": ("text/javascript", LIBRARY.read_bytes()),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = files[self.path]
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(_chromium: Any, address: str) -> Iterator[tuple[Any, list[str]]]:
    """The page in a window of its own, and what the console said."""
    context = _chromium.new_context(viewport={"width": 900, "height": 1200}, color_scheme="light")
    opened, said = context.new_page(), list[str]()
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(f"error: {error}"))
    opened.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    opened.goto(address)
    opened.locator(".chart svg").first.wait_for(state="hidden")
    opened.wait_for_function(PAINTED, arg=[0, 0, 255])
    yield opened, said
    context.close()


def complaints(said: list[str]) -> list[str]:
    """What the console said, except what the broken chart and reading the canvas cause."""
    expected = ("log: [bokeh", "warning: This chart stays a picture", "warning: Canvas2D: Multiple readback")
    return [each for each in said if not each.startswith(expected)]


def test_a_chart_is_drawn_and_tells_its_values(page: tuple[Any, list[str]]) -> None:
    opened, said = page
    x, y = opened.evaluate(PAINTED, [0, 0, 255])
    opened.mouse.move(x + 40, y + 40)
    opened.mouse.move(x, y + 2)
    assert opened.wait_for_function(TOOLTIP).json_value() == [[f"{EVIL}: 50.0% (30.0% to 70.0%), n 10", 0]]
    assert not complaints(said)


def test_the_picture_is_hidden_only_where_there_is_a_chart(page: tuple[Any, list[str]]) -> None:
    opened, said = page
    good, bad = opened.locator(".chart").all()
    assert not good.locator("svg").first.is_visible()
    assert bad.locator("svg").first.is_visible()
    assert bad.locator(".chart-interactive").count() == 0
    assert not complaints(said)


def test_a_new_theme_changes_the_colours(page: tuple[Any, list[str]]) -> None:
    opened, said = page
    opened.emulate_media(color_scheme="dark")
    opened.wait_for_function(PAINTED, arg=[0, 255, 0])
    assert opened.locator(".chart-interactive").count() == 1
    opened.add_style_tag(content=":root{--blue:#ff0000 !important}")
    opened.evaluate("document.dispatchEvent(new Event('themechange'))")
    opened.wait_for_function(PAINTED, arg=[255, 0, 0])
    assert not complaints(said)
