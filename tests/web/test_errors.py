"""Every error in the one envelope, with the right status and the field that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from groundswell.errors import StoreFull
from groundswell.experiments.simulations.reading import Readings
from tests.web.scene import REQUEST, Api, serving

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "num_simulations is text": ({"num_simulations": "3"}, "num_simulations"),
    "num_simulations is too many": ({"num_simulations": 7}, "num_simulations"),
    "num_simulations is none": ({"num_simulations": 0}, "num_simulations"),
    "num_simulations is a fraction": ({"num_simulations": 2.5}, "num_simulations"),
    "more than the server takes": ({"num_simulations": 10_001, "replicates": 5_000}, "num_simulations"),
    "interaction_size above the entities": ({"interaction_size": 5}, "interaction_size"),
    "an unknown entity": ({"entity_ids": ["entity-id-1", "nobody"]}, "entity_ids"),
    "an entity twice": ({"entity_ids": ["entity-id-1", "entity-id-1"]}, "entity_ids"),
    "no entity": ({"entity_ids": []}, "entity_ids"),
    "more entities than the server takes": ({"entity_ids": [f"e{n}" for n in range(1_001)]}, "entity_ids"),
    "a blank name": ({"name": " "}, "name"),
    "a name of two lines": ({"name": "one\ntwo"}, "name"),
    "a blank context": ({"context": "  "}, "context"),
    "too many turns": ({"n_turns": 201}, "n_turns"),
    "too many turns in all rounds": ({"n_turns": 150, "simulation_rounds": 2}, "n_turns"),
    "an unknown field": ({"num_simulation": 3}, "num_simulation"),
    "an unknown style": ({"style": "shouting"}, "style"),
    "a temperature of nothing": ({"temperature": 3}, "temperature"),
    "a model that nobody has": ({"model": "emulated/nobody"}, "model"),
    "a file as a model": ({"model": "local//etc/passwd"}, "model"),
    "metadata that is a list": ({"metadata": []}, "metadata"),
    "an attribute that nobody has": ({"by": ["sex"]}, "by"),
    "a budget below nothing": ({"budget": -1}, "budget"),
    "a question without an id": ({"questionnaire": {"questions": [{"text": "Why?"}]}}, "questionnaire.questions.0.id"),
    "a choice of one": (
        {"questionnaire": {"questions": [{"id": "q", "text": "Why?", "type": "choice", "options": ["a"]}]}},
        "questionnaire.questions.0.options",
    ),
    "a question twice": (
        {"questionnaire": {"questions": [{"id": "q", "text": "Why?"}, {"id": "q", "text": "How?"}]}},
        "questionnaire.questions",
    ),
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(("changes", "field"), WRONG.values(), ids=WRONG)
def test_a_field_that_is_wrong_is_named(shared: Api, changes: dict[str, Any], field: str) -> None:
    total = shared.http.get("/api/batch-simulations").headers["X-Total-Count"]
    found = shared.create(422, **changes)
    assert field in [each["field"] for each in found["errors"]]
    assert all(each["message"] for each in found["errors"])
    assert shared.http.get("/api/batch-simulations").headers["X-Total-Count"] == total


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_turn": 3}, "unknown field; did you mean n_turns?"),
        ({"zebra": 3}, "unknown field; known fields: context, entity_ids, n_turns, "),
        ({"questionnaire": {"questions": [{"id": "q", "text": "?", "tipe": "text"}]}}, "did you mean type?"),
        ({"entity_ids": []}, "must not be empty; give at least 1"),
        ({"model": "local/nothere"}, "model 'local/nothere': unknown name, use smollm2"),
    ],
    ids=["near", "far", "inside", "empty", "local"],
)
def test_what_is_wrong_is_said_in_plain_words(shared: Api, changes: dict[str, Any], said: str) -> None:
    [error] = shared.create(422, **changes)["errors"]
    assert said in error["message"]
    assert "path" not in error["message"]


def test_all_fields_that_are_missing_are_named(shared: Api) -> None:
    found = shared("POST", "/batch-simulations", 422, json={})
    needed = {"name", "context", "entity_ids", "interaction_size", "num_simulations"}
    assert {each["field"] for each in found["errors"]} == needed


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/batch-simulations/", 404),
        ("GET", "/batch-simulations/batch-none", 404),
        ("GET", "/batch-simulations/none", 404),
        ("GET", "/batch-simulations/batch-%00%ff", 404),
        ("POST", "/batch-simulations/batch-none/cancel", 404),
        ("POST", "/batch-simulations/batch-none/resume", 404),
        ("GET", "/batch-simulations/batch-none/events", 404),
        ("GET", "/batch-simulations/batch-none/export", 404),
        ("GET", "/batch-simulations/batch-none/analysis", 404),
        ("GET", "/simulations/sim-none-1", 404),
        ("GET", "/simulations/sim", 404),
        ("GET", "/simulations?batch_id=batch-none", 404),
        ("GET", "/runs/none", 404),
        ("GET", "/runs/none/trials/x", 404),
        ("DELETE", "/runs/none", 404),
        ("PUT", "/batch-simulations", 405),
        ("GET", "/batch-simulations?limit=0", 422),
        ("GET", "/batch-simulations?limit=many", 422),
        ("GET", "/batch-simulations?offset=99999999999999999999", 422),
        ("GET", "/batch-simulations?include_simulations=perhaps", 422),
    ],
)
def test_errors_of_addresses(shared: Api, method: str, path: str, status: int) -> None:
    shared(method, path, status)


@pytest.mark.parametrize(("error", "status"), [(StoreFull("/secret/path"), 503), (KeyError("inner thing"), 500)])
def test_what_went_wrong_inside_is_not_told(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def broken(self: Readings, **how: Any) -> Any:
        raise error

    with serving(tmp_path) as api:
        monkeypatch.setattr(Readings, "records", broken)
        told = api.http.get("/api/batch-simulations")
        assert told.status_code == status
        assert told.json()["status"] == "error"
        assert not any(word in told.text for word in ("secret", "inner", "Traceback", "KeyError"))
        assert told.headers["x-content-type-options"] == "nosniff"
        api("GET", "/health")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/health", "GET"),
        ("HEAD", "/api/health", "GET"),
        ("HEAD", "/api/batch-simulations", "GET, POST"),
        ("POST", "/api/batch-simulations/batch-x", "DELETE, GET"),
        ("PATCH", "/api/entities/x", "DELETE, GET, PUT"),
    ],
)
def test_a_method_that_is_not_allowed_says_which_are(shared: Api, method: str, path: str, allowed: str) -> None:
    answer = shared.http.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_the_page_of_docs_needs_no_other_site(shared: Api) -> None:
    page = shared.http.get("/docs")
    assert page.status_code == 200
    assert "/api/batch-simulations" in page.text
    assert "<script" not in page.text
    assert "<code>progress</code> on every change" in page.text
    assert "`" not in page.text
    assert "http" not in page.text.replace("/openapi.json", "")


def test_openapi_has_the_examples_of_the_document(shared: Api) -> None:
    found = shared.http.get("/openapi.json").json()
    assert found["components"]["schemas"]["BatchBody"]["examples"] == [REQUEST]
    created = found["paths"]["/api/batch-simulations"]["post"]["responses"]["201"]
    assert created["content"]["application/json"]["example"] == {
        "status": "success",
        "data": {"id": "batch-12345", "message": "Batch simulation started"},
    }
