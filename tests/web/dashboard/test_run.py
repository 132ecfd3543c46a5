"""The page of one run: limits, decisions, waves, latencies, faults, budget, and how to resume it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.latency import Latency
from groundswell.emulator.server import running
from groundswell.emulator.settings import BatchTimes, Settings
from groundswell.engine.monitor import WaveTimes
from groundswell.store.results import Spread
from groundswell.web.dashboard.run import timeline
from tests.web.scene import Api, serving

PLAY = "/experiments/secret-game/play"
GAME = {"models": ["openai/gpt-4o-mini", "openai/gpt-4o"], "interactions": 20, "messages": 4}
LATENCY = Latency(0.4, 0.1)
"""A run of four messages takes longer than a second, so samples are taken of it."""
AT_ONCE = BatchTimes(validating=0, working=0, finalizing=0)
FAULTS = (Rule("429", times=30, retry_after=0.1), Rule("filter", rate=0.2))
"""The provider refuses the first requests and filters some replies."""


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Api]:
    """A server whose OpenAI account is an emulated provider, with the settings that a test gives."""
    with running(Settings(batch=AT_ONCE, **getattr(request, "param", {}))) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
        with serving(tmp_path, account=("openai.batch_poll=0.02",)) as api:
            yield api


def words(html: str) -> str:
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def ended(api: Api, **options: Any) -> tuple[str, str]:
    """The id of a run that has ended, and its page."""
    run: str = api("POST", PLAY, 201, json={**GAME, **options})["run_id"]
    list(api.events(f"/runs/{run}"))
    return run, api.http.get(f"/runs/{run}", headers={"Accept": "text/html"}).text


@pytest.mark.slow
@pytest.mark.parametrize("api", [{"faults": FAULTS, "latency": LATENCY}], indirect=True, ids=["slow, with faults"])
def test_a_live_run_shows_decisions_faults_latencies_and_cost(api: Api) -> None:
    _, html = ended(api, budget=5)
    shown = words(html)
    assert re.search(r"Decisions [\d:]+ openai/gpt-4o\S*: [a-z]", shown), shown[300:2500]
    assert re.search(r"Seconds per reply Replies Median 90% 99% Longest live \d+", shown)
    assert re.search(r"Faults by kind Requests content filter \d+", shown)
    assert re.search(r"openai/gpt-4o-mini \d+ [\d,]+ [\d,]+ \$0\.\d+", shown), "tokens and cost by model"
    assert re.search(r"\$0\.\d+ of \$5\.00", shown), "the budget"
    assert "missing" in shown
    assert "sk-planted" not in html


def test_batches_are_a_timeline(api: Api) -> None:
    _, html = ended(api, via="batch", interactions=4, messages=2)
    shown = words(html)
    assert re.search(r"Waves and batches Wave Transport Requests Took Time 1 openai openai batch 2 ", shown), shown
    assert 'class="span"' in html


def test_the_timeline_names_stragglers_and_open_waves() -> None:
    waves = [WaveTimes(1, "a", "openai_batch", 10, 100.0, 150.0), WaveTimes(2, "a", "live", 5, 150.0)]
    first, second = timeline(waves, {1: Spread(10.0, 45.0), 2: Spread(10.0, 12.0)}, 200.0)
    assert (first.left, first.width, first.open) == (0, 50, False)
    assert first.note == "half took 10.0 s, the last 45.0 s"
    assert (second.left, second.width, second.open, second.note) == (50, 50, True, "")
    assert timeline([], {}, 0) == []


def test_a_run_at_its_limit_asks_for_a_larger_one(api: Api) -> None:
    run, html = ended(api, max_calls=5)
    assert f'data-send="POST /api/runs/{run}/resume"' in html
    assert re.search(r'name="max_calls"[^>]*placeholder="5"', html)
    assert 'name="accept_changes"' in html
    assert 'data-call="POST' not in html[html.index('id="actions"') : html.index('id="run-menu"')]
    api("POST", f"/runs/{run}/resume", json={"max_calls": 1_000, "retry_missing": True})
    list(api.events(f"/runs/{run}"))
    assert api("GET", f"/runs/{run}")["trials"] == {"planned": 20, "usable": 20, "missing": 0}
