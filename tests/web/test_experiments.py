"""Every experiment over HTTP: what there is, how it is started and estimated, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Command, Experiment
from groundswell.experiments.experiment import results_of
from groundswell.experiments.report import rendered
from tests.web.own_experiment import Options, count_to
from tests.web.scene import Api, gated, serving

GAME: dict[str, Any] = {"models": ["emulated/keeper", "emulated/leaker:0.6"], "interactions": 8, "messages": 4}
PLAY = "/experiments/secret-game/play"


def ended(api: Api, run: str) -> Any:
    """A run, once it has ended."""
    list(api.events(f"/runs/{run}"))
    return api("GET", f"/runs/{run}")


def test_all_experiments_are_listed_with_the_schemas_of_their_options(shared: Api) -> None:
    found = {each["name"]: each for each in shared("GET", "/experiments")}
    assert {"secret-game", "simulations", "query-mutation", "prompt-evolution", "prompting"} <= set(found)
    play, compare, score = found["secret-game"]["commands"]
    assert (play["name"], play["path"], compare["name"]) == ("play", f"/api{PLAY}", "compare")
    assert score["name"] == "score"
    messages = play["options"]["properties"]["messages"]
    assert (messages["minimum"], messages["default"], "both agents" in messages["description"]) == (2, 5, True)
    assert play["options"]["additionalProperties"] is False
    assert "account" not in play["options"]["properties"], "whose key is used is the server's to say"
    assert [each["name"] for each in found["prompting"]["commands"]] == ["ask"], "map reads files of this machine"


def test_conversations_are_scored_if_a_request_has_them_and_no_file_is_read(api: Api, tmp_path: Path) -> None:
    path = "/experiments/secret-game/score"
    messages = [{"speaker": "Ann", "text": "My secret word is saffron."}, {"speaker": "Bob", "text": "Ah."}]
    talk = {"id": "1", "secrets": {"Ann": "saffron", "Bob": "trellis"}, "messages": messages}
    started = api("POST", path, 201, json={"conversations": [talk]})
    run = ended(api, started["run_id"])
    assert run["analysis"]["overall"]["total_secrets_revealed"] == 1
    there = tmp_path / "talk.json"
    there.write_text(msgspec.json.encode([talk]).decode())
    for body in ({"conversations": [str(there)]}, {"conversations": [talk], "labels": str(there)}):
        told = api("POST", path, 422, json=body)["message"]
        assert "a request cannot name files or runs of the server" in told
    assert "at least 1" in api("POST", path, 422, json={"conversations": []})["message"]


def test_a_game_is_started_followed_and_reported(api: Api) -> None:
    started = api("POST", PLAY, 201, json=GAME)
    assert started["message"] == "Run started"
    assert started["name"].startswith("game-")
    run = ended(api, started["run_id"])
    assert (run["status"], run["name"], run["trials"]["usable"]) == ("completed", started["name"], 8)
    results = api("GET", f"/runs/{started['run_id']}/results")
    assert results["analysis"] == run["analysis"]
    assert "secrets leaked" in results["findings"]
    page = api.http.get(f"/api/runs/{started['run_id']}/report")
    assert page.headers["content-type"].startswith("text/html")
    assert "emulated/leaker:0.6" in page.text
    rows = api("GET", f"/runs/{started['run_id']}/rows?limit=3")
    assert [row["row"] for row in rows] == [1, 2, 1]
    assert set(rows[0]) >= {"trial", "model", "revealed"}
    table = api.http.get(f"/api/runs/{started['run_id']}/export?table=rows&format=csv").text
    assert len(table.splitlines()) == 17


def test_the_same_again_is_another_run_and_a_name_is_taken_once(api: Api) -> None:
    first, second = (api("POST", PLAY, 201, json=GAME)["name"] for _ in range(2))
    assert second == f"{first}-2"
    api("POST", PLAY, 201, json={**GAME, "name": "mine"})
    assert "run 'mine' already exists" in api("POST", PLAY, 409, json={**GAME, "name": "mine"})["message"]


def test_what_runs_over_http_is_what_the_command_line_would_run(api: Api, tmp_path: Path) -> None:
    started = api("POST", PLAY, 201, json={**GAME, "seed": 5})
    there = groundswell.play(store=tmp_path / "python.db", out=tmp_path / "out", progress=False, seed=5, **GAME)
    assert there.record.name == started["name"]
    assert ended(api, started["run_id"])["analysis"]["overall"] == msgspec.to_builtins(there.analysis.overall)


def test_an_estimate_starts_nothing(api: Api) -> None:
    bill = api("POST", f"{PLAY}/estimate", json={**GAME, "models": ["openai/gpt-4o-mini"]})
    assert bill["trials"] == [8, 8]
    assert bill["ways"]["live"]["usd"][1] > 0
    assert api("GET", "/runs") == []


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"messages": 1}, "messages", "messages 1: must be at least 2"),
        ({"messages": "five"}, "messages", "must be a whole number, and is text"),
        ({"mesages": 5}, "mesages", "did you mean messages?"),
        ({"tier": "best"}, "tier", "choose from declared, exact, normalised, encoded, judged"),
        ({"num_interactions": 3, "interactions": 4}, None, "sets the same option as"),
        ({"account": ["openai.base_url=http://elsewhere"]}, "account", "cannot be set in a request"),
        ({"via": "fast"}, "via", "choose from live, batch, auto"),
        ({"secrets": "/etc/passwd"}, "secrets", "must be a list"),
        ({"prompt": ["mine.toml"]}, "prompt", "use aggressive, cautious, plain"),
        ({"models": ["local//tmp/model.gguf"]}, "models", "a request cannot name a file"),
        ({"models": ["openai/gpt-4o-mini"]}, "models", "OPENAI_API_KEY"),
        ({"judge": "scripted/nobody"}, "judge", "there is no scripted model with this name"),
        ([], "body", "must be an object"),
    ],
)
def test_what_is_wrong_is_named_as_the_body_has_it(shared: Api, body: Any, field: str | None, said: str) -> None:
    sent = {**GAME, **body} if isinstance(body, dict) else body
    told = shared("POST", PLAY, 422, json=sent)
    assert said in told["message"]
    if field is not None:
        assert [each["field"] for each in told["errors"]] == [field]


def test_targets_of_query_mutation_are_allowed_by_the_server_alone(shared: Api) -> None:
    body = {"target": "openai/gpt-4o", "allow_target": ["openai/gpt-4o"], "confirm_target": True}
    told = shared("POST", "/experiments/query-mutation/train", 422, json=body)
    assert "allow_target: cannot be set in a request" in told["message"]
    told = shared("POST", "/experiments/query-mutation/train", 422, json={"reward": "mine:score"})
    assert "HTTP requests cannot import modules" in told["message"]


def test_models_are_listed_without_what_is_the_servers(shared: Api) -> None:
    found = {each["model"]: each for each in shared("GET", "/models")}
    assert found["emulated/keeper"]["usable"] is True
    assert found["openai/MODEL"]["lacks"] == ["OPENAI_API_KEY"]
    assert "http" not in str(found)


def test_the_overview_lists_the_endpoints(shared: Api) -> None:
    answer = shared.http.get("/docs")
    assert answer.status_code == 200
    assert "/api/experiments/secret-game/play" in answer.text


@pytest.mark.parametrize("path", ["/runs?limt=3", "/models?x=1", "/batch-simulations?include_simulation=true"])
def test_a_query_parameter_that_there_is_not_is_refused(shared: Api, path: str) -> None:
    told = shared("GET", path, 422)
    assert "unknown query parameter" in told["message"]
    if "limt" in path:
        assert "did you mean limit?" in told["message"]


def test_a_run_that_used_up_a_limit_needs_a_larger_one(api: Api) -> None:
    started = api("POST", PLAY, 201, json={**GAME, "max_calls": 5})
    run = started["run_id"]
    assert ended(api, run)["status"] == "partial"
    told = api("POST", f"/runs/{run}/resume", 409)["message"]
    assert "resume it with a larger max_calls" in told
    assert "with a larger" in api("POST", f"/runs/{run}/resume", 409, json={"max_calls": 5})["message"]
    api("POST", f"/runs/{run}/resume", json={"max_calls": 100})
    assert ended(api, run)["status"] == "completed"


@pytest.mark.slow
def test_an_estimate_is_measured_on_the_run_of_the_same_name(api: Api) -> None:
    asked = {**GAME, "interactions": 200, "name": "measured"}
    before = api("POST", f"{PLAY}/estimate", json=asked)
    run = api("POST", PLAY, 201, json={**asked, "max_calls": before["pilot"]["requests"]})["run_id"]
    assert ended(api, run)["status"] == "partial"
    after = api("POST", f"{PLAY}/estimate", json=asked)
    assert (after["pilot"], after["measured"]["run"]) == (None, "measured")
    assert after["models"][0]["output_tokens"][1] < before["models"][0]["output_tokens"][1] / 3
    other = api("POST", f"{PLAY}/estimate", json={**asked, "seed": 2})
    assert other["measured"] is None, "it is another run"
    api("POST", f"/runs/{run}/resume", json={"max_calls": 10_000})
    assert ended(api, run)["asks"]["sent"] == 800


def test_an_unfinished_evolution_has_the_report_that_the_command_line_writes(api: Api) -> None:
    asked = {"train": 20, "validation": 10, "test": 10, "baselines": [], "max_calls": 20}
    run = api("POST", "/experiments/prompt-evolution/evolve", 201, json=asked)["run_id"]
    assert ended(api, run)["status"] == "partial"
    store = api.server.services.store
    record = store.runs.get(run)
    expected = rendered(results_of(record, Path()).report(store, [record]), "json")
    report = api.http.get(f"/api/runs/{run}/report?format=json")
    assert (report.status_code, report.content) == (200, expected)
    assert "not complete" in api.http.get(f"/api/runs/{run}/report?format=md").text
    api("GET", f"/runs/{run}/results", 409)


def test_a_run_of_code_that_is_not_loaded_is_left_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("import sibling\nasync def driver(run, settings): ...\n")
    (tmp_path / "sibling.py").write_text("")
    with serving(tmp_path) as api:
        runs = api.server.services.store.runs
        run = runs.create("theirs", 0, driver=f"{script}:driver", settings="{}", options={})
        runs.change(run, status="partial", error="the budget of 2 calls is used up")
        told = api("POST", f"/runs/{run.id}/resume", 409)["message"]
        assert "--experiment FILE.py" in told
        assert api("GET", f"/runs/{run.id}")["status"] == "partial"


def test_an_experiment_of_ones_own_is_served(tmp_path: Path) -> None:
    Experiment("counting", [Command("count", Options, [count_to])], about="Counts.")
    with serving(tmp_path) as api:
        assert "counting" in [each["name"] for each in api("GET", "/experiments")]
        started = api("POST", "/experiments/counting/count", 201, json={"to": 4, "model": "emulated/keeper"})
        run = ended(api, started["run_id"])
        assert (run["analysis"]["counted"], run["name"]) == (4, started["name"])
        assert api("POST", "/experiments/counting/count", 422, json={"to": 0})["errors"][0]["field"] == "to"
        results = api("GET", f"/runs/{run['run_id']}/results")
        assert results["findings"].split() == ["Analysis", "name", "value", "counted", "4"]
        report = f"/api/runs/{run['run_id']}/report"
        page = api.http.get(report)
        assert "script-src 'sha256-" in page.headers["content-security-policy"], "it may run its own script"
        assert "counted" in page.text
        assert api.http.get(f"{report}?format=md").text.startswith(f"# {run['name']}")
        assert api.http.get(f"{report}?format=json").json()["title"] == run["name"]


def test_the_lines_of_a_running_conversation_can_be_read(tmp_path: Path) -> None:
    gate = gated("midway")
    with serving(tmp_path) as api:
        first = api("POST", "/entities", 201, json={"id": "quick", "name": "Quick", "model": "emulated/gpt-4o-mini"})
        slow = {"id": "slow", "name": "Slow", "model": "scripted/waits-midway"}
        second = api("POST", "/entities", 201, json=slow)
        ids = [first["id"], second["id"]]
        body = {"context": "A short talk", "entity_ids": ids, "thoughts": False}
        started = api("POST", "/simulations", 201, json=body)
        while not gate.asked:
            api("GET", "/health")
        found = api("GET", f"/simulations/{started['id']}")
        assert (found["status"], found["content"]) == ("in_progress", "")
        assert [line["name"] for line in found["lines"]] == ["Quick"]
        gate.open()
        list(api.events(f"/runs/{started['run_id']}"))
        done = api("GET", f"/simulations/{started['id']}")
        assert [line["name"] for line in done["lines"]] == ["Quick", "Slow"]
        assert done["lines"][0] == found["lines"][0]


def test_two_batches_are_contrasted(api: Api) -> None:
    sheet = {"questions": [{"id": "q", "text": "How much?", "type": "scale"}]}
    ids = [api.create(questionnaire=sheet, n_turns=turns, model="emulated/gpt-4o-mini") for turns in (1, 2)]
    for id_ in ids:
        api.ended(id_)
    found = api("GET", f"/contrast?run={ids[0]}&other={ids[1]}")
    assert [each["id"] for each in found["contrast"]["questions"]] == ["q"]
    assert "are the same batch" in api("GET", f"/contrast?run={ids[0]}&other={ids[0]}", 422)["message"]
    api("GET", "/contrast?run=nothing&other=nobody", 404)


def test_what_is_allowed_at_an_address_is_what_there_is(shared: Api) -> None:
    paths = shared.http.get("/openapi.json").json()["paths"]
    wrong = {}
    for path, methods in paths.items():
        address = path.replace("{", "").replace("}", "")
        answer = shared.http.request("PATCH", address, json={})
        expected = ", ".join(sorted(method.upper() for method in methods))
        if (answer.status_code, answer.headers.get("allow")) != (405, expected):
            wrong[path] = (answer.status_code, answer.headers.get("allow"), expected)
    assert wrong == {}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("prompting/ask", {"prompt": "hi", "model": ["local//tmp/{x}.gguf"]}, "models"),
        ("secret-game/play", {**GAME, "judge": "local//tmp/{a}"}, "judge"),
        ("query-mutation/train", {"target": "local//tmp/{strength}.gguf"}, "target"),
        (
            "simulations/simulate",
            {
                "context": "x",
                "model": "emulated/gpt-4o-mini",
                "interaction_size": 1,
                "num_simulations": 1,
                "entities": [{"name": "a", "description": "x", "model": "local//etc/shadow"}],
            },
            "model",
        ),
    ],
)
def test_no_file_of_the_server_is_opened_as_a_model(shared: Api, path: str, body: Any, field: str) -> None:
    before = len(shared("GET", "/runs?limit=1000"))
    told = shared("POST", f"/experiments/{path}", 422, json=body)
    assert [each["field"] for each in told["errors"]] == [field]
    assert "a request cannot name a file" in told["message"]
    assert len(shared("GET", "/runs?limit=1000")) == before


def test_the_limits_of_the_server_hold_for_every_way_to_start(shared: Api) -> None:
    body = {"context": "x", "interaction_size": 1, "num_simulations": 20_000, "replicates": 20_000}
    body |= {"entities": [{"name": "a", "description": "x"}], "model": "emulated/gpt-4o-mini"}
    told = shared("POST", "/experiments/simulations/simulate", 422, json=body)
    assert "num_simulations 20000: must be at most 10,000" in told["message"]
    assert "at most" in shared("POST", f"{PLAY}/estimate", 422, json={**GAME, "interactions": 2**62})["message"]
    told = shared("POST", "/experiments/query-mutation/train/estimate", 422, json={"dimensions": 2**40})
    assert "dimensions" in told["message"]


@pytest.mark.parametrize("name", ["a" * 201, "\u0000", " ", "\u001b[31m", "a\nb"])
def test_a_name_that_nobody_could_write_is_refused(shared: Api, name: str) -> None:
    told = shared("POST", PLAY, 422, json={**GAME, "name": name})
    assert [each["field"] for each in told["errors"]] == ["name"]
