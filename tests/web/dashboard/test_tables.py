"""The pages of entities, batches, models and the cache."""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from groundswell.engine.events import BatchChanged
from groundswell.experiments.simulations.catalogue import ENTITY
from groundswell.experiments.simulations.entities import Entity
from groundswell.program.request import Reply, Usage, encode_settlement
from groundswell.web.cache import DAY
from tests.store.planted import Planted
from tests.web.scene import Api, serving

EVIL = "<img src=x onerror=alert(1)><script>alert(1)</script>"
PAGES = (
    "/entities",
    "/new-entity",
    "/import-entities",
    "/entity-types",
    "/new-entity-type",
    "/batches",
    "/models",
    "/cache",
    "/labels",
)
SECRET = "sk-planted-0123456789abcdef"


def shown(api: Api, path: str, status: int = 200) -> str:
    """A page as a browser gets it."""
    answer: httpx.Response = api.http.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    return answer.text


def words(html: str) -> str:
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_a_title_a_heading_and_no_inline_scripts(shared: Api, path: str) -> None:
    html = shown(shared, path)
    assert "<h1>" in html
    assert not re.search(r"<script(?![^>]*src=)|<[^>]*\son\w+=", html)


def test_an_empty_store_offers_three_ways_to_begin(api: Api) -> None:
    for number in range(1, 5):
        api("DELETE", f"/entities/entity-id-{number}")
    html = shown(api, "/entities")
    assert all(address in html for address in ('href="/entity-types"', 'href="/new-entity"', 'href="/import-entities"'))
    assert "No entities yet" in html
    assert "The cache is empty" in shown(api, "/cache")
    assert "No batches in flight" in shown(api, "/batches")
    assert "No runs to label yet" in shown(api, "/labels")


@pytest.mark.slow
def test_entities_are_found_by_any_text_and_by_type(api: Api) -> None:
    api("POST", "/entities/sample", 201, json={"template": "human", "count": 60, "seed": 7})
    api("POST", "/entities", 201, json={"id": "evil", "name": EVIL, "attributes": {"works as": "lamp_lighter%"}})
    html = shown(api, "/entities?q=LAMP_lighter%25")
    assert "1 entity matches" in html
    assert EVIL not in html
    assert "&lt;img src=x onerror" in html
    assert "No entity matches" in shown(api, "/entities?q=lampXlighter")
    first, second = shown(api, "/entities?entity_type_id=human"), shown(api, "/entities?entity_type_id=human&offset=50")
    assert "60 entities match" in first
    assert "51 to 60 of 60" in words(second)
    assert {each["id"] for each in api("GET", "/entities?q=entity-id-3")} == {"entity-id-3"}


def test_an_entity_its_form_and_its_type(api: Api) -> None:
    api("POST", "/entities/sample", 201, json={"template": "human", "count": 1, "seed": 7})
    entity = api("GET", "/entities/human-7-1")
    html = shown(api, "/entities/human-7-1")
    assert all(name in html for name in entity["attributes"])
    form = shown(api, "/entities/human-7-1/edit")
    assert 'data-send="PUT /api/entities/human-7-1"' in form
    assert f'name="attributes.age" step="1" value="{entity["attributes"]["age"]}"' in form
    assert 'data-send="POST /api/entities"' in shown(api, "/new-entity?entity_type_id=human")
    type_page = shown(api, "/entity-types/human")
    assert "18 to 90" in type_page
    assert "Depends on age, education." in type_page
    assert "Source: Round figures chosen for variety" in type_page
    assert "&#34;dimensions&#34;" in shown(api, "/entity-types/human/edit")
    assert "no entity" in shown(api, "/entities/nobody", 404)
    assert "no entity type" in shown(api, "/entity-types/nothing", 404)


def test_attributes_that_a_type_does_not_have_are_kept_in_its_form(api: Api) -> None:
    api("POST", "/entities/sample", 201, json={"template": "human", "count": 1, "seed": 7})
    assert 'name="attributes"' not in shown(api, "/entities/human-7-1/edit")
    old = Entity("old", "Old", entity_type_id="human", attributes={"age": 41, "height": 180})
    api.server.services.store.documents.add((ENTITY, "old", msgspec.json.encode(old).decode()))
    form = shown(api, "/entities/old/edit")
    assert "Other attributes as JSON" in form
    assert re.search(r'name="attributes" [^>]*>{\s*&#34;height&#34;: 180\s*}</textarea>', form)


def test_no_page_shows_a_key_or_a_part_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("BOX_KEY", SECRET)
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    Path("groundswell.toml").write_text(
        '[accounts.box]\ndialect = "openai"\nbase_url = "http://127.0.0.1:9/hidden/v1"\nkey_env = "BOX_KEY"\n'
        'rate_limit_per_minute = 1234\n[models]\nmine = "box/tiny"\n'
    )
    with serving(tmp_path) as api:
        models = shown(api, "/models")
        for html in (models, *(shown(api, path) for path in PAGES)):
            assert not [SECRET[at : at + 6] for at in range(3, len(SECRET) - 6) if SECRET[at : at + 6] in html]
            assert "127.0.0.1:9" not in html
    told = words(models)
    assert "from OPENAI_API_KEY" in told
    assert "set GROQ_API_KEY" in told
    assert "1,234 requests per minute" in told
    assert re.search(r"mine box/tiny ready unknown unknown", told)
    assert "gpt-4o-mini openai/gpt-4o-mini ready $0.15 $0.60" in told
    assert "Runs that name no model use emulated/keeper" in told


def test_broken_settings_are_named_without_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: Api
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("groundswell.toml").write_text("[accounts.x]\nbase_url = 'nonsense'\n")
    html = shown(api, "/models")
    assert "cannot be read" in html
    assert "nonsense" not in html


def test_the_cache_is_counted_cleared_and_shrunk(api: Api) -> None:
    now, reply = time.time(), encode_settlement(Reply("x" * 10, Usage(1_000, 20)))
    with closing(sqlite3.connect(api.server.services.store.database.name)) as store, store:
        rows = [(number.to_bytes(16), reply, now - 10 * number * DAY) for number in range(3)]
        store.executemany("INSERT INTO cache VALUES (?, ?, ?, NULL)", rows)
    found = api("GET", "/cache")
    assert (found["replies"], found["input_tokens"], found["reused"]) == (3, 3_000, 0)
    assert found["newest"] - found["oldest"] == pytest.approx(20 * DAY)
    assert "3 replies" in words(shown(api, "/cache"))
    assert "Clear everything" in shown(api, "/cache")
    assert api("DELETE", "/cache?older_than_days=15")["message"].startswith("1 reply removed, 2 kept")
    cleared = api("DELETE", "/cache")
    assert (cleared["removed"], cleared["kept"]) == (2, 0)
    assert "The cache is empty" in shown(api, "/cache")
    assert api("POST", "/cache/shrink")["message"].startswith("The file")
    assert api("DELETE", "/cache?older_than_days=-1", 422)["errors"][0]["field"] == "older_than_days"


def test_batches_in_flight_and_their_last_known_state(api: Api) -> None:
    store = api.server.services.store
    planted = Planted(store.database.name)
    planted.send(planted.run("evil <b>"), 1, 2, "batch_1")
    [wave] = store.waves.open()
    [row] = api("GET", "/provider-batches")
    assert (row["batch"], row["state"], row["requests"]) == (wave.batch, None, wave.size)
    html = shown(api, "/batches")
    assert "batch_1" in html
    assert "evil &lt;b&gt;" in html
    said: dict[str, Any] = {"state": "in_progress", "done": 1, "failed": 1, "total": wave.size}
    api.server.services.batch_states.on_event(
        BatchChanged(run="", at=0.0, account=wave.account, batch=wave.batch or "", **said)
    )
    told = words(shown(api, "/batches"))
    assert f"in progress 1 of {wave.size} 1 failed" in told
    with api.http.stream("GET", "/batches/stream") as stream:
        event = next(line for line in stream.iter_lines() if line.startswith("data: "))
    assert str(wave.batch) in event
    problem = api("POST", f"/provider-batches/{row['run_id']}/{row['wave']}/cancel", 409)["message"]
    assert "cannot be cancelled" in problem
    api("POST", f"/provider-batches/{row['run_id']}/99/cancel", 404)
    store.waves.give_up(wave)
    told = words(shown(api, "/batches"))
    assert "No batches in flight" in told
    assert f"Ended Batch Run Requests Ended Took Estimated cost {wave.batch}" in told
