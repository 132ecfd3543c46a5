"""Studies and questionnaires over HTTP: started, checked, compared and started again; and answers of every kind."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

import groundswell
from tests.web.scene import Api, serving

PATH = "/experiments/simulations/study"
PEOPLE = [{"id": f"p{at}", "name": f"Person {at}"} for at in range(12)]
STUDY: dict[str, Any] = {
    "entities": PEOPLE,
    "model": ["emulated/person:hears=will die:-0.9"],
    "questions": {"questions": [{"id": "plan", "text": "{frame}?", "type": "choice", "options": ["yes", "no"]}]},
    "factors": {"frame": {"gain": "200 are saved", "loss": {"text": "400 will die", "temperature": 0.5}}},
    "contrasts": [{"name": "framing", "question": "plan", "compare": ["gain", "loss"], "effect": 0.2}],
}


def ended(api: Api, run: str) -> Any:
    list(api.events(f"/runs/{run}"))
    return api("GET", f"/runs/{run}")


def test_the_schema_of_a_study_takes_what_the_server_takes(shared: Api) -> None:
    found = {each["name"]: each for each in shared("GET", "/experiments")}
    schema = next(each for each in found["simulations"]["commands"] if each["name"] == "study")["options"]
    assert "file" not in schema["properties"], "a request cannot name files"
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert list(validator.iter_errors(STUDY)) == []
    for wrong in ({"factors": {"x": {"a": 3}}}, {"contrasts": [{"name": "a"}]}, {"within": "x"}, {"file": "x.toml"}):
        assert list(validator.iter_errors({**STUDY, **wrong})), wrong
        shared("POST", f"{PATH}/check", 422, json={**STUDY, **wrong})


def test_a_study_is_the_same_over_http_and_in_python(api: Api, tmp_path: Path) -> None:
    checked = api("POST", f"{PATH}/check", json=STUDY)
    assert checked["trials"] == 12
    assert checked["notes"][0] == "12 entities in 2 conditions, 6 in each; 12 simulations"
    assert checked["notes"][1].startswith("Power of 'framing': ")
    assert checked["config"].startswith("# groundswell study --config run.toml\n")
    started = api("POST", PATH, 201, json=STUDY)
    run = ended(api, started["run_id"])
    there = groundswell.study(store=tmp_path / "python.db", out=tmp_path / "out", progress=False, **STUDY)
    [contrast] = run["analysis"]["contrasts"]
    [wanted] = there.analysis.contrasts
    assert (contrast["values"], contrast["p"]) == (wanted.values, wanted.p)
    assert started["name"] == there.record.name
    table = api.http.get(f"/api/runs/{started['run_id']}/results").json()["data"]
    assert "framing: " in table["findings"]
    batch = f"/api/batch-simulations/batch-{started['run_id']}/export"
    rows = api.http.get(batch, params={"table": "answers"}).json()
    assert {(row["condition"], row["factor.frame"], row["question_type"]) for row in rows} == {
        ("gain", "gain", "choice"),
        ("loss", "loss", "choice"),
    }
    assert api.http.get(batch, params={"table": "scores"}).json() == []
    query = {"run": f"{started['name']}:gain", "other": f"{started['name']}:loss"}
    compared = api("GET", "/contrast", params=query)["contrast"]
    assert (compared["one"], compared["entities"]) == ("study:gain", [6, 6])
    assert compared["questions"][0]["gaps"][0]["one"] == contrast["values"]["gain"]


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"factors": {"frame": {"gain": ""}}}, "factors", "'frame' needs at least two levels"),
        ({"within": ["order"]}, "within", "there is no factor 'order'"),
        ({"questions": "questions.json"}, "questions", "must be an object or a list, and is text"),
        ({"contrasts": [{"name": "a", "question": "b", "compare": ["gain", "loss"]}]}, "contrasts", "no question 'b'"),
        (
            {"factors": {"x": {"a": "", "b": {"model": "emulated/nobody"}}}, "contrasts": []},
            "factors",
            "emulated/nobody",
        ),
        ({"factors": {"x": {"a": "", "b": {"model": "local//tmp/a.gguf"}}}, "contrasts": []}, "factors", "name a file"),
        ({"factors": {"x": {"a": "", "b": {"model": "openai/gpt-4o"}}}, "contrasts": []}, "factors", "OPENAI_API_KEY"),
        ({"seats": [{"model": "openai/gpt-4o"}]}, "seats", "OPENAI_API_KEY"),
        (
            {
                "context": "A talk.",
                "n_turns": 1,
                "scores": {"judges": ["openai/gpt-4o"], "lines": [{"id": "s", "text": "Tone?", "type": "scale"}]},
            },
            "scores",
            "OPENAI_API_KEY",
        ),
    ],
)
def test_what_is_wrong_is_named_as_the_body_has_it(
    shared: Api, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], field: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    told = shared("POST", PATH, 422, json={**STUDY, **body})
    assert said in told["message"]
    assert [each["field"] for each in told["errors"]] == [field]


def test_levels_keep_to_the_limits_of_the_server(tmp_path: Path) -> None:
    with serving(tmp_path, max_turns=3) as api:
        long = {"x": {"a": "", "b": {"n_turns": 4}}}
        told = api("POST", PATH, 422, json={**STUDY, "context": "A talk.", "factors": long, "contrasts": []})
        assert "exceeds the limit of 3 turns" in told["message"]


def test_the_form_of_a_study_has_its_design_and_is_filled_in_again(api: Api) -> None:
    empty = html.unescape(api.http.get("/start/simulations/study").text)
    for name in ("factors", "within", "stratify", "contrasts", "questions", "sample"):
        assert f'data-field="{name}"' in empty
    run = api("POST", PATH, 201, json={**STUDY, "within": ["frame"]})["run_id"]
    page = api.http.get(f"/runs/{run}").text
    assert f"/start/simulations/study?from={run}" in page
    filled = html.unescape(api.http.get(f"/start/simulations/study?from={run}").text)
    assert "The form has the options of run" in filled
    assert '"loss": {' in filled
    assert '"gain": "200 are saved"' in filled
    assert re.search(r'data-name="within"[^>]*>\s*frame</textarea>', filled)
    assert re.search(r'data-name="compare"[^>]*>\s*\[\s*"gain",\s*"loss"\s*\]</textarea>', filled)
    batch = {"entities": PEOPLE, "context": "A panel", "interaction_size": 2, "num_simulations": 1}
    other = api("POST", "/experiments/simulations/simulate", 201, json=batch)["run_id"]
    assert f"/start/simulations/simulate?from={other}" in api.http.get(f"/runs/{other}").text


QUESTIONS: list[dict[str, Any]] = [
    {"id": "one", "text": "Which?", "type": "choice", "options": ["yes", "no"]},
    {"id": "some", "text": "Which ones?", "type": "multi", "options": ["bus", "tram", "car"], "least": 1, "most": 2},
    {"id": "rank", "text": "In which order?", "type": "ranking", "options": ["bus", "tram", "car"]},
    {"id": "step", "text": "How much?", "type": "scale", "low": 0, "high": 10},
    {"id": "many", "text": "How many, after {one}?", "type": "number", "min": 0, "max": 9, "whole": True},
    {"id": "grid", "text": "How good is", "type": "matrix", "rows": {"bus": "the bus?"}, "options": ["fine", "poor"]},
    {"id": "why", "text": "Why?", "when": {"one": ["yes"], "step": "0.."}},
]


def test_a_batch_can_be_a_survey_with_questions_of_every_kind(api: Api) -> None:
    how = {"shuffle_questions": True, "one_by_one": True, "decline": True}
    sheet = {"questions": QUESTIONS, **how}
    id_ = api.create(n_turns=0, interaction_size=1, model="emulated/person", questionnaire=sheet)
    assert api.ended(id_)["status"] == "completed"
    for simulation in api.batch(id_)["simulations"]:
        given = {each["question"]: each for each in simulation["answers"]}
        assert list(given) == ["one", "some", "rank", "step", "many", "grid.bus", "why"]
        assert sorted(given["rank"]["value"]) == ["bus", "car", "tram"]
        assert 1 <= len(given["some"]["value"]) <= 2
        assert given["grid.bus"]["value"] in ("fine", "poor")
        assert isinstance(given["many"]["value"], int)
        assert given["why"]["missing"] == ("" if given["one"]["value"] == "yes" else "skipped")
        assert simulation["content"] == ""


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"type": "slider"}, "questionnaire.questions.0.type", "input should be"),
        ({"most": 4}, "questionnaire.questions.0.most", "most: not allowed for a question of type choice"),
        ({"type": "multi", "most": 4}, "questionnaire.questions.0.most", "0 to 4 of 2 options is not possible"),
        ({"when": {"gone": 1}}, "questionnaire.questions", "'gone' is not the id of an earlier question"),
        ({"rows": {"a": 1}}, "questionnaire.questions.0.rows.a", ""),
    ],
)
def test_questions_that_are_wrong_are_named(shared: Api, change: dict[str, Any], field: str, said: str) -> None:
    told = shared.create(422, questionnaire={"questions": [{**QUESTIONS[0], **change}]})
    assert [each["field"] for each in told["errors"]] == [field]
    assert said in f"{told['message']} {told['errors']}"


def test_a_survey_needs_questions(shared: Api) -> None:
    told = shared.create(422, n_turns=0)
    assert [each["field"] for each in told["errors"]] == ["n_turns"]
    assert "without a conversation, there must be questions" in told["message"]
