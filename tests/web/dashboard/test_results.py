"""The results of a run as a page: its states, its parts, its files, and text that is not trusted."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundswell import Command, Experiment, Run
from groundswell.engine.records import Counters
from groundswell.reporting.blocks import Figure, Text
from groundswell.web.access import Signer
from tests.web.dashboard.report_pages import MARKUP, PAGE, html, parts, play, stored
from tests.web.own_experiment import Counted, Options, count_to
from tests.web.scene import Api, gated, serving

TOKEN = "of-a-test-and-of-no-worth"


@pytest.fixture(scope="module")
def run(shared: Api) -> str:
    return play(shared, name="a game")


def ready(api: Api, run: str) -> str:
    """The page of a run, once its report is built."""
    page = html(api, f"/runs/{run}/results")
    if "Preparing the report" in page:
        parts(api, f"/runs/{run}/results/stream", "part-run")
        page = html(api, f"/runs/{run}/results")
    return page


def test_the_page_is_there_at_once_and_the_report_follows(shared: Api) -> None:
    run = play(shared, seed=5)
    first = html(shared, f"/runs/{run}/results")
    assert "Preparing the report…" in first
    assert f'data-stream="/runs/{run}/results/stream"' in first
    found = parts(shared, f"/runs/{run}/results/stream", "secrets leaked")
    second = html(shared, f"/runs/{run}/results")
    assert "Preparing" not in second
    assert "data-stream" not in second
    assert found["report"] in second


def test_findings_come_first_and_the_contents_follow(shared: Api, run: str) -> None:
    page = ready(shared, run)
    order = [page.index(f'id="{each}"') for each in ("part-findings", "key-figures", "part-figures", "part-tables")]
    assert order == sorted(order)
    assert page.index('id="part-findings"') < page.index('aria-label="Contents"') < page.index('id="part-figures"')
    assert '<a href="#part-run">Run details</a>' in page


def test_transcripts_are_linked_and_not_packed(shared: Api, run: str) -> None:
    page = ready(shared, run)
    assert f'8 trials have ended. <a href="/runs/{run}/trials">' in page
    assert 'class="message side-0"' in page
    assert "text/plain" not in page
    assert "data:text/csv" not in page


def test_figures_and_tables_are_files(shared: Api, run: str) -> None:
    page = ready(shared, run)
    assert f'data-chart="/runs/{run}/charts/leak-rates"' in page
    svg = shared.http.get(f"/runs/{run}/figures/leak-rates.svg")
    assert svg.headers["content-type"] == "image/svg+xml"
    assert svg.headers["content-disposition"] == 'attachment; filename="leak-rates.svg"'
    assert b"<svg" in svg.content
    rows = list(csv.DictReader(io.StringIO(shared.http.get(f"/runs/{run}/figures/models.csv").text)))
    assert [row["model"] for row in rows] == ["emulated/keeper", "emulated/leaker:0.5"]
    assert float(rows[0]["declared low"]) == 0


@pytest.mark.parametrize(
    "path", ["figures/models.svg", "figures/nothing.csv", "figures/leak-rates.png", "charts/models"]
)
def test_files_that_are_not_there(shared: Api, run: str, path: str) -> None:
    assert shared.http.get(f"/runs/{run}/{path}").status_code == 404


@pytest.mark.parametrize("figure", ["leak-rates", "pairs", "survival", "messages", "comparisons", "tokens"])
def test_figures_are_charts(shared: Api, run: str, figure: str) -> None:
    assert shared.http.get(f"/runs/{run}/charts/{figure}").json()["doc"]


def test_a_run_in_progress_says_what_is_missing_and_its_report_follows(shared: Api) -> None:
    gate = gated("results")
    started = shared(
        "POST", "/experiments/secret-game/play", 201, json={"models": ["scripted/waits-results"], "interactions": 2}
    )
    path = f"/runs/{started['run_id']}/results"
    assert "No results yet" in html(shared, path)
    assert shared.http.get(f"/runs/{started['run_id']}/charts/leak-rates").status_code == 409
    gate.open()
    assert "part-findings" in parts(shared, f"{path}/stream", "part-run")["report"]


def test_a_run_that_ended_without_results_says_so(shared: Api) -> None:
    record = stored(shared, "ended early", "secret-game/play", status="stopped", error="it was cancelled <b>")
    page = html(shared, f"/runs/{record.id}/results")
    assert "This run has no results" in page
    assert "it was cancelled &lt;b&gt;" in page


def test_a_run_of_an_unknown_experiment_has_the_default_report(shared: Api) -> None:
    record = stored(shared, "foreign", "foreign/one", status="completed", analysis='{"heads": 0.25}')
    page = ready(shared, record.id)
    assert 'id="run-figures"' in page
    assert "0.25" in page


def test_a_script_without_an_analysis_has_the_default_report_when_it_has_ended(shared: Api) -> None:
    record = stored(shared, "a script", None, status="completed", counters=Counters(planned=2, usable=2))
    assert 'id="run-figures"' in ready(shared, record.id)


def test_text_that_is_not_trusted_is_shown_as_text(shared: Api) -> None:
    run = play(shared, models=["scripted/markup"], name=MARKUP, interactions=2)
    page = ready(shared, run)
    assert "<img" not in page.split("<main", 1)[1]
    assert "<script" not in page.split("<main", 1)[1]
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 2


def failing(found: Any) -> Iterator[Text]:
    raise KeyError("no such <column>")


def badly_drawn(found: Any) -> Iterator[Figure]:
    def draw(canvas: Any) -> None:
        raise ValueError("no data to draw")

    yield Figure(id="bad", title="Bad", columns={"a": "count"}, rows=[(17,)], size=(4, 2), draw=draw)


async def count_once(run: Run, settings: Options) -> Counted:
    return await count_to(run, settings)


async def count_again(run: Run, settings: Options) -> Counted:
    return await count_to(run, settings)


@pytest.mark.parametrize(
    ("driver", "blocks", "told", "instead"),
    [
        (
            count_once,
            failing,
            "the `blocks` function of this experiment failed (KeyError: &#39;no such &lt;column&gt;&#39;)",
            "run-figures",
        ),
        (
            count_again,
            badly_drawn,
            "figure bad cannot be drawn (ValueError: no data to draw)",
            '<th scope="row" class="n">17</th>',
        ),
    ],
    ids=["blocks", "draw"],
)
@pytest.mark.slow
def test_errors_of_an_experiment_are_warnings(
    tmp_path: Path, driver: Any, blocks: Any, told: str, instead: str
) -> None:
    name = f"faulty-{blocks.__name__.replace('_', '-')}"
    Experiment(name, [Command("count", Options, [driver], blocks=blocks)])
    with serving(tmp_path) as api:
        started = api("POST", f"/experiments/{name}/count", 201, json={"to": 2})
        list(api.events(f"/runs/{started['run_id']}"))
        html(api, f"/runs/{started['run_id']}/results")
        found = parts(api, f"/runs/{started['run_id']}/results/stream", "notice")["report"]
    assert told in found
    assert instead in found


def test_a_run_that_is_not_there(shared: Api) -> None:
    assert "there is no run" in html(shared, "/runs/nobody/results", 404)


def test_who_has_a_share_link_can_only_read(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as api:
        run, other = play(api), play(api, seed=3)
        shown = {"Cookie": f"groundswell_share={Signer(TOKEN).share(run, 60)}", **PAGE}
        del api.http.headers["authorization"]
        page = api.http.get(f"/runs/{run}/results", headers=shown)
        assert page.status_code == 200
        assert "/compare" not in page.text
        assert api.http.get(f"/runs/{run}/figures/models.csv", headers=shown).status_code == 200
        assert api.http.get(f"/compare?run={run}&run={other}", headers=shown).status_code == 303
        assert api.http.get(f"/runs/{other}/results", headers=shown).status_code == 303
