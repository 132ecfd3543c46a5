"""The list of runs: search, filters, pages, and rows that change."""

from __future__ import annotations

import json
import re

import httpx
import pytest

from groundswell.web.dashboard.line_charts import Series, chart, nice_top
from tests.web.scene import Api

PAGE = {"Accept": "text/html"}
SCRIPT = "<img src=x onerror=alert(1)><script>alert(1)</script>"


def opened(api: Api, path: str) -> str:
    answer = httpx.get(f"{api.server.url}{path}", headers=PAGE)
    assert answer.status_code == 200, answer.text
    return answer.text


def titles(page: str) -> list[str]:
    return re.findall(r'class="name"[^>]*>([^<]*)<', page)


def test_an_empty_store_says_how_to_begin(api: Api) -> None:
    assert "No runs yet" in opened(api, "/runs")


def test_the_start_page_is_the_list(api: Api) -> None:
    assert httpx.get(f"{api.server.url}/", follow_redirects=True, headers=PAGE).url.path == "/runs"


def test_runs_are_found_by_text_experiment_and_status(api: Api) -> None:
    runs = api.server.services.store.runs
    for name, driver, status in (
        ("alpha", "secret-game/play", "completed"),
        ("beta", "secret-game/play", "failed"),
        ("gamma 100%", "simulations/simulate", "completed"),
        ("delta", None, "running"),
    ):
        runs.change(runs.create(name, 1, driver=driver), status=status)
    assert titles(opened(api, "/runs")) == ["delta", "gamma 100%", "beta", "alpha"]
    assert titles(opened(api, "/runs?q=ALPH")) == ["alpha"]
    assert titles(opened(api, "/runs?q=100%25")) == ["gamma 100%"]
    assert titles(opened(api, "/runs?experiment=secret-game")) == ["beta", "alpha"]
    assert titles(opened(api, "/runs?status=completed&q=a")) == ["gamma 100%", "alpha"]
    assert titles(opened(api, "/runs?status=interrupted")) == ["delta"], "no process works on it"
    assert titles(opened(api, "/runs?status=running")) == []
    assert "No run matches" in opened(api, "/runs?q=nothing")


def test_long_lists_have_pages(api: Api) -> None:
    runs = api.server.services.store.runs
    for number in range(60):
        runs.create(f"run {number}", 1)
    first, second = opened(api, "/runs?q=run"), opened(api, "/runs?q=run&offset=50")
    assert len(titles(first)) == 50
    assert titles(second) == [f"run {number}" for number in range(9, -1, -1)]
    assert "60 runs match" in first
    assert "offset=50" in first


@pytest.mark.parametrize("query", ["offset=50", "offset=1000&status=completed", "offset=60&status=interrupted"])
def test_after_the_end_of_the_list_is_its_last_page(api: Api, query: str) -> None:
    runs = api.server.services.store.runs
    for number in range(3):
        runs.change(runs.create(f"run {number}", 1), status="completed" if "completed" in query else "running")
    page = opened(api, f"/runs?{query}")
    assert titles(page) == ["run 2", "run 1", "run 0"]
    assert "No run" not in page


def test_the_pages_of_an_open_list_follow_its_length(api: Api) -> None:
    runs = api.server.services.store.runs
    oldest, *_ = [runs.create(f"run {number}", 1) for number in range(51)]
    with httpx.stream("GET", f"{api.server.url}/runs/stream?q=run&offset=0") as events:
        lines = events.iter_lines()
        assert "1 to 50 of 51" in next(line for line in lines if line.startswith("data:"))
        runs.delete(oldest)
        changed = json.loads(next(line for line in lines if line.startswith("data:")).removeprefix("data:"))
        assert "run 50" in changed["list"], "the rows are the same, but the links to pages are not"
        assert "of 51" not in changed["list"]


def test_names_are_text(api: Api) -> None:
    runs = api.server.services.store.runs
    runs.change(runs.create(SCRIPT, 1), status="failed", error=SCRIPT)
    page = opened(api, f"/runs?q={SCRIPT}")
    assert "<img src=x" not in page
    assert "<script>alert" not in page
    assert "&lt;img src=x" in page


def test_rows_change_while_the_page_is_open(api: Api) -> None:
    runs = api.server.services.store.runs
    run = runs.create("changes", 1)
    with httpx.stream("GET", f"{api.server.url}/runs/stream") as events:
        lines = events.iter_lines()
        assert "pending" in next(line for line in lines if line.startswith("data:"))
        runs.change(run, status="failed")
        assert "failed" in next(line for line in lines if line.startswith("data:"))


def test_an_unknown_page_is_an_error_page(shared: Api) -> None:
    answer = httpx.get(f"{shared.server.url}/nowhere", headers=PAGE)
    assert answer.status_code == 404
    assert "<h1>Not found</h1>" in answer.text
    assert httpx.get(f"{shared.server.url}/api/nowhere", headers=PAGE).json()["status"] == "error"


@pytest.mark.parametrize("name", ["dashboard.js", "dashboard.css", "report.css", "bokeh.js", "icon.svg"])
def test_static_files_are_kept_by_browsers(shared: Api, name: str) -> None:
    page = opened(shared, "/runs")
    address = next(iter(re.findall(rf'"(/static/{name}\?v=[0-9a-f]+)"', page)), f"/static/{name}")
    answer = httpx.get(f"{shared.server.url}{address}")
    assert answer.status_code == 200
    assert ("immutable" in answer.headers["cache-control"]) == ("?v=" in address)
    plain = httpx.get(f"{shared.server.url}{address}", headers={"Accept-Encoding": "identity"})
    assert plain.content == answer.content


@pytest.mark.parametrize("name", ["pages.py", "..%2Fpages.py", "../pages.py", "nothing.js", ".css", "x"])
def test_other_files_are_not_served(shared: Api, name: str) -> None:
    assert httpx.get(f"{shared.server.url}/static/{name}").status_code == 404


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (0.03, 0.04), (1, 1), (1.1, 2), (7, 8), (9, 10), (51, 80), (1000, 1000)]
)
def test_axes_end_at_round_values(most: float, top: float) -> None:
    assert nice_top(most) == pytest.approx(top)


def test_a_line_has_a_gap_where_a_value_is_missing() -> None:
    made = chart("Cost", [Series("spent", "red", [(0, 0), (1, None), (2, 1)])], str, start=0, end=2)
    assert made.lines[0].path == "M0.0 84.0M320.0 0.0"
    assert made.lines[0].latest == "1"
