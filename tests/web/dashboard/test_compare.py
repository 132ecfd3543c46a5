"""Choosing and comparing runs, on a page and over the API."""

from __future__ import annotations

import re

import pytest

from groundswell.reporting.words import visible
from tests.web.dashboard.report_pages import MARKUP, html, parts, play, stored
from tests.web.scene import Api


@pytest.fixture(scope="module")
def runs(shared: Api) -> tuple[str, str]:
    few = play(shared, name="few leaks", models=["emulated/leaker:0.1"], interactions=30)
    many = play(shared, name="many leaks", models=["emulated/leaker:0.9"], interactions=30, seed=4)
    return few, many


def test_runs_are_chosen_one_by_one(shared: Api, runs: tuple[str, str]) -> None:
    few, many = runs
    empty = html(shared, "/compare?q=leaks")
    assert "Choose two or more runs" in empty
    assert f'href="/compare?run={few}"' in empty
    one = html(shared, f"/compare?run={few}&q=leaks")
    assert "Choose another run" in one
    assert f'href="/compare?run={few}&amp;run={many}"' in one
    assert "No other run matches" in html(shared, f"/compare?run={few}&q=nobody-is-called-this")


def test_the_comparison_follows_the_page(shared: Api, runs: tuple[str, str]) -> None:
    few, many = runs
    page = html(shared, f"/compare?run={few}&run={many}")
    found = re.search(r'data-stream="([^"]+)"', page)
    assert "Preparing" in page
    assert found is not None
    report = parts(shared, found[1].replace("&amp;", "&"), "part-run")["report"]
    assert "Settings that differ" in report
    assert report.index("emulated/leaker:0.1") < report.index("emulated/leaker:0.9")
    assert report.index('id="settings"') < report.index('id="differences"') < report.index('id="difference-overall"')
    assert f'data-chart="/compare/charts/differences?run={few}&amp;run={many}"' in report
    again = html(shared, f"/compare?run={few}&run={many}")
    assert report in again
    assert "data-stream" not in again


@pytest.mark.slow
def test_files_of_a_comparison(shared: Api, runs: tuple[str, str]) -> None:
    query = "&".join(f"run={each}" for each in runs)
    svg = shared.http.get(f"/compare/figures/differences.svg?{query}")
    assert (svg.status_code, svg.headers["content-type"]) == (200, "image/svg+xml")
    assert "B − A low" in shared.http.get(f"/compare/figures/difference-overall.csv?{query}").text
    assert shared.http.get(f"/compare/charts/differences?{query}").json()["doc"]
    assert shared.http.get(f"/compare/charts/nothing?{query}").status_code == 404


def test_the_api_returns_the_same_blocks(shared: Api, runs: tuple[str, str]) -> None:
    found = shared("GET", f"/runs/compare?run={runs[0]}&run={runs[1]}")
    blocks = {block["id"]: block for block in found["blocks"]}
    assert found["kind"] == "Comparison"
    rows = {row[0]: row for row in blocks["difference-overall"]["rows"]}
    _, first, second, apart, verdict, p = rows["secrets revealed · share"]
    assert apart["value"] == pytest.approx(second["value"] - first["value"])
    assert apart["low"] > 0.3
    assert (verdict, p < 0.001) == ("yes", True)
    assert ["seed", "0", "4"] in blocks["settings"]["rows"]


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ("run={run}", 422, "give 2 to 8 different runs"),
        ("run={run}&run={run}", 422, "not 1"),
        ("run={run}&run=nobody", 404, "there is no run"),
        ("", 422, "run"),
    ],
    ids=["one", "twice", "unknown", "none"],
)
def test_what_the_api_refuses(shared: Api, runs: tuple[str, str], query: str, status: int, told: str) -> None:
    assert told in shared("GET", f"/runs/compare?{query.format(run=runs[0])}", status)["message"]


def test_too_many_and_unknown_runs_are_refused_by_the_page(shared: Api, runs: tuple[str, str]) -> None:
    records = [stored(shared, f"one of nine {at}", None, status="completed").id for at in range(9)]
    assert "give 2 to 8 different runs" in html(shared, "/compare?" + "&".join(f"run={id_}" for id_ in records), 422)
    assert "At most 8 runs" in html(shared, "/compare?" + "&".join(f"run={id_}" for id_ in records[:8]))
    assert "there is no run" in html(shared, f"/compare?run={runs[0]}&run=nobody", 404)


def test_runs_without_results_and_of_other_experiments_are_compared_by_settings(
    shared: Api, runs: tuple[str, str]
) -> None:
    waiting = stored(shared, f"{MARKUP} stopped", "secret-game/play", status="stopped")
    other = stored(shared, "also foreign", "foreign/one", status="completed", analysis="{}")
    path = f"/compare?run={runs[0]}&run={waiting.id}&run={other.id}"
    page = html(shared, path)
    report = parts(shared, path.replace("?", "/stream?"), "part-run")["report"]
    assert "The runs are of different experiments." in report
    assert "has no results yet: its status is stopped" in report
    assert 'id="differences"' not in report
    for text in (page.split("<main", 1)[1], report):
        assert "<img" not in text
        assert "<script" not in text
    assert visible(f"{MARKUP} stopped").replace("<", "&lt;").replace(">", "&gt;") in page


def test_the_list_of_runs_has_boxes_to_select_them(shared: Api, runs: tuple[str, str]) -> None:
    page = html(shared, "/runs?q=leaks")
    assert f'<input type="checkbox" data-select id="select-{runs[0]}" value="{runs[0]}"' in page
    assert "compare.js" in page
