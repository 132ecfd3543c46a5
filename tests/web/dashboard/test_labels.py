"""Labelling over HTTP: drawing, blind items, labels, results, and the file for the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundswell.compose import look_into
from groundswell.experiments.labelling import labels_of
from tests.cli.conftest import CommandLine
from tests.web.dashboard.test_tables import shown, words
from tests.web.scene import Api

FOUND = ("disagree", "stratum", "normalised", "leaked", "mark class")
"""Words of the rules, which readers must not see."""


@pytest.fixture
def sample(shared: Api, game: str) -> Iterator[str]:
    """The path of the labels of a run with a sample of four."""
    shared("POST", f"/runs/{game}/labels", 201, json={"size": 4, "seed": 3})
    yield f"/runs/{game}/labels"
    shared("DELETE", f"/runs/{game}/labels")


def label_all(api: Api, path: str, reader: str, label: str = "none") -> None:
    for number in range(1, api("GET", path)["size"] + 1):
        asked = api("GET", f"{path}/items/{number}")["asked"]
        labels = {str(place): {"label": label} for place in asked}
        api("PUT", f"{path}/items/{number}", json={"reader": reader, "labels": labels})


def test_a_sample_is_drawn_once(shared: Api, sample: str) -> None:
    found = shared("GET", sample)
    assert (found["size"], found["readers"]) == (4, [])
    assert [each["key"] for each in found["choices"]] == ["d", "c", "b", "x", "h", "m", ""]
    assert "already has a sample" in shared("POST", sample, 409, json={})["message"]


def test_items_are_blind(shared: Api, sample: str, game: str) -> None:
    for number in range(1, 5):
        item = shared("GET", f"{sample}/items/{number}?reader=Ana")
        assert item["asked"] == list(range(len(item["transcript"]["messages"])))
        assert "secret" in item["transcript"]["facts"][0]
        html = shown(shared, f"/labels/{game}/{number}?reader=Ana")
        for told in (json.dumps(item), html):
            assert not [word for word in FOUND if word in told]
            assert "emulated/" not in told, "the models are hidden, too"


def test_labels_are_kept_undone_and_checked(shared: Api, sample: str, game: str) -> None:
    body: dict[str, Any] = {"reader": "Ana", "labels": {"0": {"label": "declared", "unsure": True}}}
    assert shared("PUT", f"{sample}/items/2", json=body)["labels"] == {"0": {"label": "declared", "unsure": True}}
    assert shared("GET", f"{sample}/items/2?reader=Ben")["labels"] == {}
    assert 'data-label="declared" data-unsure="yes"' in shown(shared, f"/labels/{game}/2?reader=Ana")
    assert shared("PUT", f"{sample}/items/2", json={**body, "labels": {}})["labels"] == {}
    for labels, field in (({"0": {"label": "nice"}}, "labels.0"), ({"99": {"label": "none"}}, "labels.99")):
        found = shared("PUT", f"{sample}/items/2", 422, json={**body, "labels": labels})
        assert [each["field"] for each in found["errors"]] == [field]
    assert shared("PUT", f"{sample}/items/2", 422, json={**body, "reader": " "})["errors"][0]["field"] == "reader"
    shared("PUT", f"{sample}/items/5", 404, json=body)


def test_a_reader_goes_on_where_they_stopped(shared: Api, sample: str, game: str) -> None:
    def goes_to(query: str) -> Any:
        return shared.http.get(f"/labels/{game}/next?{query}").headers["location"]

    assert goes_to("reader=Ana") == f"/labels/{game}/1?reader=Ana"
    assert goes_to("reader=Ana&after=4") == f"/labels/{game}/1?reader=Ana"
    label_all(shared, sample, "Ana")
    assert goes_to("reader=Ana") == f"/labels/{game}/results"
    assert goes_to("reader=Ben&after=2") == f"/labels/{game}/3?reader=Ben"
    told = words(shown(shared, f"/labels/{game}"))
    assert "Ana 4 of 4 conversations Review" in told
    assert "Ana: 4 of 4" in words(shown(shared, "/labels?q=labelled"))


def test_two_readers_and_the_results(shared: Api, sample: str, game: str) -> None:
    assert "nothing can be compared" in shown(shared, f"/labels/{game}/results")
    label_all(shared, sample, "Ana")
    label_all(shared, sample, "<b>Ben", "mentioned")
    found = {block["id"]: block for block in shared("GET", f"{sample}/report")["blocks"]}
    assert {"agreement-classes", "agreement-tiers", "corrected", "readers"} <= found.keys()
    assert found["readers"]["rows"][0][1]["value"] == 0, "they never agree"
    declared = next(row for row in found["agreement-classes"]["rows"] if row[0] == "declared")
    assert declared[1] == 0
    html = shown(shared, f"/labels/{game}/results")
    assert "Leak rates, corrected" in html
    assert "&lt;b&gt;Ben: 4 of 4" in html
    shared("DELETE", f"{sample}?reader=Ana")
    assert [each["reader"] for each in shared("GET", sample)["readers"]] == ["<b>Ben"]


@pytest.mark.slow
def test_the_exported_file_gives_the_same_agreement_as_score(
    shared: Api, sample: str, game: str, cli: CommandLine, tmp_path: Path
) -> None:
    label_all(shared, sample, "Ana", "declared")
    file = tmp_path / "labels.json"
    file.write_bytes(shared.http.get(f"/api{sample}/export").content)
    store = shared.server.services.store.database.path
    found = cli.json("score", game, "--labels", str(file), "--store", str(store), "--out", str(tmp_path / "out"))
    scored = {each["name"]: each for each in found["analysis"]["agreement"]["classes"]}
    rows = next(
        each["rows"] for each in shared("GET", f"{sample}/report")["blocks"] if each["id"] == "agreement-classes"
    )
    assert {name: (each["true"], each["found"], each["both"]) for name, each in scored.items()} == {
        row[0]: tuple(row[1:4]) for row in rows
    }
    assert found["analysis"]["agreement"]["conversations"] == 4


def test_the_command_line_and_the_page_continue_each_other(
    shared: Api, sample: str, game: str, cli: CommandLine
) -> None:
    store = str(shared.server.services.store.database.path)
    first = shared("GET", f"{sample}/items/1")["asked"]
    shared("PUT", f"{sample}/items/1", json={"reader": "Ana", "labels": {str(first[0]): {"label": "bluff"}}})
    answers = "h\n" * (len(first) - 1) + "d?\nq\n"
    told = cli("label", game, "--reader", "Ana", "--store", store, answer=answers).stdout
    assert "1 of 4 conversations are labelled by Ana" in told
    labels = shared("GET", f"{sample}/items/1?reader=Ana")["labels"]
    assert [labels[str(place)]["label"] for place in first] == ["bluff", *["hinted"] * (len(first) - 1)]
    assert shared("GET", f"{sample}/items/2?reader=Ana")["labels"]["0"] == {"label": "declared", "unsure": True}
    with look_into(store) as held:
        assert held is not None
        assert list(labels_of(held.documents, game).readers) == ["Ana"]
    assert "--labels" in cli("label", game, "--reader", "Ana", "--labels", "x.json", "--store", store, status=2).stderr


def test_runs_without_a_task_or_a_sample(shared: Api, game: str) -> None:
    batch = shared.create()
    shared.ended(batch)
    run = batch.removeprefix("batch-")
    assert "no labelling task" in shared("GET", f"/runs/{run}/labels", 409)["message"]
    assert "no labelling task" in shown(shared, f"/labels/{run}", 409)
    assert run not in re.findall(r"/labels/(\w+)", shown(shared, "/labels"))
    assert "draw one first" in shared("GET", f"/runs/{game}/labels/items/1", 404)["message"]
    assert "Draw a sample" in shown(shared, f"/labels/{game}")


def test_only_runs_with_a_task_are_listed(api: Api) -> None:
    runs = api.server.services.store.runs
    made = {name: runs.create(None, 1, driver=f"secret-game/{name}").id for name in ("play", "score", "selftest")}
    assert set(re.findall(r'class="name" href="/labels/([\w-]+)"', shown(api, "/labels"))) == {
        made["play"],
        made["score"],
    }


def test_deleting_a_run_deletes_its_labels(api: Api) -> None:
    body = {"models": ["emulated/keeper"], "interactions": 2, "messages": 2}
    run = api("POST", "/experiments/secret-game/play", 201, json=body)["run_id"]
    list(api.events(f"/runs/{run}"))
    api("POST", f"/runs/{run}/labels", 201, json={})
    api("DELETE", f"/runs/{run}")
    assert not [each for each in api.server.services.store.documents.list("kept") if "labels" in each.id]
