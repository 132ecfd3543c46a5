"""The pages of trials: every state, filters, steps, and text that must stay text."""

from __future__ import annotations

import gc
import html
import re
import threading
import weakref
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from markupsafe import escape

from groundswell.engine.records import RunRecord
from groundswell.reporting.blocks import Transcripts
from groundswell.store.results import Results
from groundswell.web import events
from groundswell.web.dashboard import trials
from groundswell.web.services import Services
from tests.patience import PATIENCE
from tests.web.dashboard.scene import KEYS, LONG, UNSAFE, played, scripted_run
from tests.web.scene import Api, gated, serving


def opened(api: Api, path: str, status: int = 200) -> str:
    answer = api.http.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    return answer.text


def addresses(page: str) -> list[str]:
    """The addresses of the trials in a list."""
    return [html.unescape(each) for each in re.findall(r'class="name" id="trial-\d+" href="([^"]+)"', page)]


def text_of(api: Api, page: str, part: str) -> str:
    """A text that the page loads on demand."""
    found = re.search(rf'data-(?:load|rest)="([^"]+part={part}[^"]*)"', page)
    assert found is not None
    return api.http.get(html.unescape(found[1])).text


@pytest.fixture(scope="module")
def game(shared: Api) -> str:
    return played(shared, name="trials of a game", judge="emulated/keeper")


@pytest.fixture(scope="module")
def script(shared: Api) -> str:
    return scripted_run(shared, {**dict.fromkeys(KEYS, "say"), "long": "long", "rtl": "hebrew", "bad": "fail"})


def indexed(api: Api, address: str) -> str:
    """A list whose index is there."""
    while "Reading the transcripts" in (page := opened(api, address)):
        pass
    return page


def test_the_list_has_titles_outcomes_and_the_filters_of_the_experiment(shared: Api, game: str) -> None:
    page = indexed(shared, f"/runs/{game}/trials")
    assert "6 trials" in page
    assert len(addresses(page)) == 6
    assert "leaked" in page
    values = re.findall(r'<option value="(who leaked=[^"]+)"[^>]*>[^<]+\((\d+)\)', page)
    assert values
    for value, many in values:
        some = indexed(shared, f"/runs/{game}/trials?tag={quote(value)}")
        assert len(addresses(some)) == int(many)
        assert f'value="{value}" selected' in some
    assert "No trial matches" in indexed(shared, f"/runs/{game}/trials?tag=who+leaked%3Dnobody")


def test_tags_without_an_index_match_no_trial(
    shared: Api, script: str, game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "MOST_INDEXED", 0)
    trials._CACHES.pop(shared.server.services, None)
    for run in (script, game):
        page = indexed(shared, f"/runs/{run}/trials?tag=who+leaked%3Dnobody")
        assert "Tags are not available for this run" in page
        assert addresses(page) == []
        assert "match" not in page
    trials._CACHES.pop(shared.server.services)


def test_a_trial_is_plain_until_the_transcripts_are_ready(
    shared: Api, game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = addresses(indexed(shared, f"/runs/{game}/trials"))[0]
    made, gate = trials._transcripts, threading.Event()

    def slow(here: Services, record: RunRecord) -> Transcripts | None:
        gate.wait(PATIENCE)
        return made(here, record)

    monkeypatch.setattr(trials, "_transcripts", slow)
    monkeypatch.setattr(trials, "_block_of_report", lambda here, record: None)
    monkeypatch.setattr(trials, "INDEX_WAIT_SECONDS", 0.01)
    trials._CACHES.pop(shared.server.services)
    page = opened(shared, address)
    assert 'class="legend"' not in page
    stream = re.search(r'data-stream="([^"]+)"', page)
    assert stream is not None
    assert '"messages"' in text_of(shared, page, "exchange")  # this does not wait for the transcripts
    with shared.http.stream("GET", html.unescape(stream[1])) as response:
        lines = response.iter_lines()
        assert "legend" not in next(line for line in lines if line.startswith("data"))
        gate.set()
        assert any("legend" in line for line in lines)
    ended = opened(shared, address)
    assert 'class="legend"' in ended
    assert "data-stream" not in ended


def test_a_trial_takes_its_transcript_from_the_report_of_the_results_page(
    shared: Api, game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = addresses(opened(shared, f"/runs/{game}/trials"))[0]
    while "data-stream" in opened(shared, f"/runs/{game}/results"):
        pass
    trials._CACHES.pop(shared.server.services)
    monkeypatch.setattr(trials, "_transcripts", lambda here, record: None)
    assert 'class="legend"' in opened(shared, address)
    trials._CACHES.pop(shared.server.services)


def test_the_stream_searches_again_only_after_a_change(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, calls = trials._listed, list[int]()

    def counted(*given: Any) -> trials.Listed:
        calls.append(1)
        return listed(*given)

    gate = gated("search")
    run = api.create(model="scripted/waits-search", num_simulations=1).removeprefix("batch-")
    api.until(f"batch-{run}", "in_progress")
    while not addresses(opened(api, f"/runs/{run}/trials")):
        pass
    monkeypatch.setattr(trials, "_listed", counted)
    monkeypatch.setattr(events, "PARTS_EVERY", 0.01)
    monkeypatch.setattr(events, "HEARTBEAT", 0.2)
    with api.http.stream("GET", f"/runs/{run}/trials-stream") as response:
        lines = response.iter_lines()
        assert any("still there" in line for line in lines)  # after twenty looks without a change
        before = len(calls)
        gate.open()
        assert "event: end" in list(lines)
    assert before < 5
    assert len(calls) > before


@pytest.mark.parametrize(("pause", "changing"), [(0, False), (1_000_000, True)], ids=["unchanged", "paused"])
def test_the_stream_of_a_trial_renders_it_only_after_a_change_and_a_pause(
    api: Api, monkeypatch: pytest.MonkeyPatch, pause: float, changing: bool
) -> None:
    rendered, calls, replies = trials._shown, list[int](), count(1)

    def counted(*given: Any) -> trials.TrialView:
        calls.append(1)
        return rendered(*given)

    gate = gated("render")
    run = api.create(model="scripted/waits-render", num_simulations=1).removeprefix("batch-")
    api.until(f"batch-{run}", "in_progress")
    while not (found := addresses(opened(api, f"/runs/{run}/trials"))):
        pass
    monkeypatch.setattr(trials, "_shown", counted)
    monkeypatch.setattr(trials, "PAUSE", pause)
    monkeypatch.setattr(events, "PARTS_EVERY", 0.01)
    monkeypatch.setattr(events, "HEARTBEAT", 0.2)
    if changing:
        monkeypatch.setattr(Results, "newest_reply", lambda results, row: next(replies))
    with api.http.stream("GET", found[0].replace("/trials/", "/trial-stream/")) as response:
        lines = response.iter_lines()
        assert any("still there" in line for line in lines)  # after twenty looks
        before = len(calls)
        gate.open()
        assert any("I waited." in line for line in lines), "the end is shown without a pause"
    assert before == 1


@pytest.mark.slow
def test_the_cache_does_not_keep_a_server_alive(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        run = played(api)
        indexed(api, f"/runs/{run}/trials")
        gone = weakref.ref(api.server.services)
    del api
    gc.collect()
    assert gone() is None


def test_status_and_search(shared: Api, script: str) -> None:
    assert len(addresses(opened(shared, f"/runs/{script}/trials"))) == 7
    assert addresses(opened(shared, f"/runs/{script}/trials?status=missing")) == [
        f"/runs/{script}/trials/bad?status=missing"
    ]
    assert len(addresses(opened(shared, f"/runs/{script}/trials?status=usable"))) == 6
    assert len(addresses(opened(shared, f"/runs/{script}/trials?q=hebrew"))) == 1
    assert len(addresses(opened(shared, f"/runs/{script}/trials?q=50%25"))) == 1
    assert "No trial matches" in opened(shared, f"/runs/{script}/trials?q=%25nothing&status=unfinished")
    assert "422" not in opened(shared, f"/runs/{script}/trials?status=strange")


@pytest.mark.parametrize("key", KEYS)
def test_any_key_has_a_page(shared: Api, script: str, key: str) -> None:
    page = opened(shared, f"/runs/{script}/trials/{quote(key, safe='')}")
    assert f"<bdi>{escape(key)}</bdi>" in page
    assert '"type": "reply"' in text_of(shared, page, "exchange")
    assert text_of(shared, page, "spec") == '"say"'


def test_text_of_models_stays_text(shared: Api, script: str) -> None:
    page = opened(shared, f"/runs/{script}/trials/a%2Fb%2Fc")
    assert UNSAFE not in page
    assert html.escape(UNSAFE) in page
    assert "I think &lt;b&gt;." in page
    assert "7 tokens in, 5 out" in page
    missing = opened(shared, f"/runs/{script}/trials/bad")
    assert UNSAFE not in missing
    assert "content_filter" in missing
    assert "Fork from here" not in missing  # a script made this run


def test_long_messages_are_clipped_until_asked_for(shared: Api, script: str) -> None:
    page = opened(shared, f"/runs/{script}/trials/long")
    assert len(page) < 100_000
    shown = re.search(r"x{100,}", page)
    assert shown is not None
    assert shown[0] + text_of(shared, page, "message") == LONG


def test_steps_follow_the_filters(shared: Api, script: str) -> None:
    page = opened(shared, f"/runs/{script}/trials/long?status=usable")
    assert "5 of 6" in page
    following = re.search(r'href="([^"]+)" rel="next"', page)
    assert following is not None
    assert following[1] == f"/runs/{script}/trials/rtl?status=usable"
    last = opened(shared, following[1])
    assert 'rel="next"' not in last
    assert 'rel="prev" data-key="k"' in last
    assert "1 match" in opened(shared, f"/runs/{script}/trials/long?status=missing")


def test_a_trial_of_a_game_shows_findings_and_can_be_forked(shared: Api, game: str) -> None:
    pages = [opened(shared, each) for each in addresses(opened(shared, f"/runs/{game}/trials"))]
    leak = next(page for page in pages if 'class="findings"' in page)
    assert re.search(r'<mark class="orange" title="secret of [^"]+: declared', leak)
    assert re.search(r"<li><mark[^>]+>[^<]+</mark> secret of Agent \d: declared", leak)
    assert "Fork from here" in leak
    assert 'data-fork="3"' in leak
    assert "Other requests" in leak  # those of the judge
    assert '<option value="interactions" label="6">' in leak
    assert '"messages"' in text_of(shared, leak, "exchange")
    assert '"lines"' in text_of(shared, leak, "result")


def test_what_is_not_there(shared: Api, script: str) -> None:
    assert "Not found" in opened(shared, "/runs/nothing/trials", 404)
    assert "Not found" in opened(shared, f"/runs/{script}/trials/nothing", 404)
    assert shared.http.get(f"/runs/{script}/trial-text/bad?part=result").status_code == 404
    assert shared.http.get(f"/runs/{script}/trial-text/bad?part=exchange&at=9").status_code == 404
    assert shared.http.get(f"/runs/{script}/trial-text/bad?part=message&at=9").status_code == 404


def test_a_running_trial_is_followed_until_it_ends(api: Api) -> None:
    gate = gated("trials")
    run = api.create(model="scripted/waits-trials", num_simulations=1).removeprefix("batch-")
    api.until(f"batch-{run}", "in_progress")
    while not (found := addresses(opened(api, f"/runs/{run}/trials"))):
        pass
    page = opened(api, found[0])
    assert "unfinished" in page
    assert "(no reply yet)" in page
    stream = re.search(r'data-stream="([^"]+)"', page)
    assert stream is not None
    with api.http.stream("GET", html.unescape(stream[1])) as response:
        lines = response.iter_lines()
        assert "no reply yet" in next(line for line in lines if line.startswith("data"))
        gate.open()
        assert any("I waited." in line for line in lines)
    api.ended(f"batch-{run}")
    ended = opened(api, found[0])
    assert "data-stream" not in ended
    assert "I waited." in ended
    with api.http.stream("GET", f"/runs/{run}/trials-stream") as response:
        assert "event: end" in list(response.iter_lines())


def test_a_stopped_run_has_unfinished_trials(api: Api) -> None:
    gate = gated("stopped")
    run = api.create(model="scripted/waits-stopped", num_simulations=1).removeprefix("batch-")
    api.until(f"batch-{run}", "in_progress")
    while not addresses(opened(api, f"/runs/{run}/trials")):
        pass
    api("POST", f"/runs/{run}/cancel")
    gate.open()
    list(api.events(f"/runs/{run}"))
    (found,) = addresses(opened(api, f"/runs/{run}/trials?status=unfinished"))
    page = opened(api, found)
    assert "unfinished" in page
    assert "data-stream" not in page
