"""The start page: a form for every command, checks, texts to copy, and forms that are filled in from a run."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from groundswell import Command, Experiment
from groundswell.experiments.experiment import EXPERIMENTS, experiment_named
from groundswell.experiments.results import remember_config
from groundswell.experiments.simulations.entities import Entity
from groundswell.known_models import examine
from groundswell.web.dashboard import start
from groundswell.web.dashboard.forms import Form, Input, _input, form_of
from groundswell.web.dashboard.start import start_again
from tests.web.own_experiment import Options, count_to
from tests.web.scene import Api, gated, serving

HTML = {"Accept": "text/html"}
ATTACK = "<img src=x onerror=alert(1)><script>alert(1)</script>"
COMMANDS = [
    (name, command.name) for name in EXPERIMENTS for command in experiment_named(name).commands if command.over_http
]
GAME: dict[str, Any] = {"models": ["emulated/keeper", "emulated/leaker:0.6"], "interactions": 8, "messages": 4}
PLAY = "/experiments/secret-game/play"


def opened(api: Api, path: str, status: int = 200) -> str:
    answer: httpx.Response = api.http.get(path, headers=HTML)
    assert answer.status_code == status, answer.text[:500]
    return answer.text


def play_form(**values: Any) -> Form:
    return form_of(experiment_named("secret-game").command("play"), values, "emulated/keeper")


def named(form: Form, name: str) -> Input:
    every = [*form.usual, *(one for section in form.sections for one in section.inputs)]
    return next(one for one in every if one.name == name)


def test_all_experiments_and_commands_are_listed(shared: Api) -> None:
    text = opened(shared, "/start")
    for experiment, command in COMMANDS:
        assert f'href="/start/{experiment}/{command}"' in text
    assert 'href="/start/prompting/map"' not in text, "it reads files of this machine"
    assert "groundswell map" in text


@pytest.mark.parametrize(("experiment", "command"), COMMANDS)
def test_every_command_has_a_form_whose_defaults_check_or_name_a_field(
    shared: Api, experiment: str, command: str
) -> None:
    text = opened(shared, f"/start/{experiment}/{command}")
    options = {each["name"]: each for each in shared("GET", "/experiments")}[experiment]["commands"]
    properties = next(each for each in options if each["name"] == command)["options"]["properties"]
    assert set(re.findall(r'data-field="(\w+)"', text)) == set(properties)
    answer = shared.http.post(f"/api/experiments/{experiment}/{command}/check", json={})
    if answer.status_code == 200:
        assert answer.json()["data"]["command_line"].startswith("groundswell ")
    else:
        assert answer.status_code == 422
        [error] = answer.json()["errors"]
        assert f'data-field="{error["field"]}"' in text
        assert not re.match(r"--|[A-Z]+:", error["message"]), "as the form names it, not as a flag"


def test_the_usual_options_come_first_and_those_of_every_run_last() -> None:
    form = play_form()
    assert [one.name for one in form.usual][:3] == ["models", "interactions", "messages"]
    assert [section.title for section in form.sections][-2:] == ["Limits", "Common options"]
    assert {one.name for one in form.sections[-1].inputs} >= {"name", "seed", "via"}
    assert named(form, "tier").choices == ("declared", "exact", "normalised", "encoded", "judged"), "in their own order"


def test_options_become_inputs_by_their_schema() -> None:
    form = play_form()
    messages = named(form, "messages")
    assert (messages.kind, messages.least, messages.most, messages.hint) == ("number", 2, 1000, "5")
    assert (named(form, "thoughts").kind, named(form, "judge").offers) == ("switch", "models")
    models = named(form, "models")
    assert (models.kind, models.parts[0].offers, models.hint) == ("rows", "models", "emulated/keeper")
    assert named(form, "secrets").kind == "json"
    [text, prompt] = named(form, "prompt").parts[0].parts
    assert (text.kind, prompt.kind, [one.name for one in prompt.parts][:2]) == ("long", "group", ["name", "system"])
    simulate = form_of(experiment_named("simulations").command("simulate"), {})
    questions, questionnaire = named(simulate, "questions").parts
    assert (questions.kind, questionnaire.kind) == ("rows", "group")
    fields = {one.name: one for one in questions.parts[0].parts}
    assert (fields["type"].kind, fields["options"].kind, fields["low"].kind) == ("choice", "lines", "number")
    assert fields["text"].required


def test_values_are_filled_in_and_open_their_section() -> None:
    form = play_form(models=["a", "b"], thoughts=True, prompt=[{"name": "n", "system": "s", "opening": "o"}])
    assert [one.value for one in named(form, "models").parts[1:]] == ["a", "b"]
    row = named(form, "prompt").parts[1]
    assert (row.kind, row.chosen, row.parts[1].parts[1].value) == ("either", 1, "s")
    game = next(section for section in form.sections if section.title == "Game")
    assert game.is_filled
    assert not form.sections[-1].is_filled


def test_text_of_a_json_input_is_quoted() -> None:
    assert named(play_form(secrets="a file"), "secrets").json == '"a file"'
    assert named(play_form(), "secrets").json == ""


@pytest.mark.parametrize(
    ("value", "chosen"),
    [(3, 1), (2.5, 2), (True, 3), ("text", 0), ([1], 4)],
    ids=["int", "float", "bool", "text", "list"],
)
def test_a_value_opens_the_alternative_of_its_type(value: Any, chosen: int) -> None:
    kinds = ("string", "integer", "number", "boolean", "array")
    made = _input({"anyOf": [{"type": each} for each in kinds]}, {}, value)
    assert (made.kind, made.chosen, made.parts[chosen].value) == ("either", chosen, value)


def test_entities_that_the_form_leaves_out_are_counted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    count = api.server.services.catalogue.count_entities()
    assert "does not list" not in opened(api, "/start/simulations/simulate")
    monkeypatch.setattr(start, "MOST_ENTITIES", count - 1)
    assert "does not list 1 of the entities" in opened(api, "/start/simulations/simulate")


def test_models_are_those_of_the_account_settings_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, seen = ("openai.base_url=https://mine.example/v1",), list[Sequence[str]]()

    def examined(overrides: Sequence[str] = ()) -> dict[str, Any]:
        seen.append(overrides)
        return examine(overrides)

    monkeypatch.setattr(start, "examine", examined)
    with serving(tmp_path, account=given) as api:
        opened(api, "/start/secret-game/play")
    assert seen == [given]


def test_a_check_names_the_run_and_starts_nothing(api: Api) -> None:
    found = api("POST", f"{PLAY}/check", json={**GAME, "seed": 3})
    assert found["name"].startswith("game-")
    assert (found["trials"], found["missing"]) == (8, [])
    assert "--seed 3" in found["command_line"]
    assert "groundswell.play(" in found["python"]
    assert f"{api.server.url}/api{PLAY}" in found["curl"]
    assert "interactions = 8" in found["config"]
    assert api("GET", "/runs") == []
    three = ["emulated/keeper", "emulated/leaker", "emulated/leaker:0.6"]
    found = api("POST", "/experiments/secret-game/compare/check", json={"models": three, "interactions": 5})
    assert found["trials"] == 15


def test_a_check_fills_in_the_model_of_the_server(shared: Api) -> None:
    found = shared("POST", "/experiments/prompting/ask/check", json={"prompt": "hi"})
    assert "emulated/keeper" in found["command_line"]
    assert "emulated/keeper" not in found["curl"]


def test_a_model_without_a_key_can_be_checked_and_says_what_to_set(shared: Api) -> None:
    found = shared("POST", f"{PLAY}/check", json={"models": ["openai/gpt-4o-mini"]})
    [missing] = found["missing"]
    assert missing["field"] == "models"
    assert "OPENAI_API_KEY" in missing["message"]


def test_errors_of_a_check_are_those_of_a_start(shared: Api) -> None:
    for body in ({"messages": 1}, {"models": ["scripted/nobody"]}, {"secrets": [["a", "b"]]}):
        assert shared("POST", f"{PLAY}/check", 422, json=body) == shared("POST", PLAY, 422, json=body)


def test_a_token_is_never_in_a_text_to_copy(tmp_path: Path) -> None:
    token = "a-token-of-24-characters"
    with serving(tmp_path, token=token) as api:
        found = api("POST", f"{PLAY}/check", json=GAME)
        assert "$GROUNDSWELL_TOKEN" in found["curl"]
        assert token not in str(found)


def test_a_form_is_filled_in_from_a_run(api: Api) -> None:
    run = api("POST", PLAY, 201, json={**GAME, "seed": 7, "name": "mine", "prompt": ["aggressive"]})["run_id"]
    address = start_again(api.server.services.run(run))
    assert address == f"/start/secret-game/play?from={run}"
    text = opened(api, address)
    assert "The form has the options of run mine" in text
    assert 'value="emulated/leaker:0.6"' in text
    assert re.search(r'data-name="interactions"[^>]*value="8"', text)
    assert re.search(r'data-name="seed"[^>]*value="7"', text)
    assert 'value="mine"' not in text.partition("<datalist")[0], "the name is taken"


def test_entities_of_a_run_are_selected_again(api: Api) -> None:
    body = {"entities": ["entity-id-2", "entity-id-3"], "context": "A panel", "interaction_size": 2}
    started = api("POST", "/experiments/simulations/simulate", 201, json={**body, "num_simulations": 1})
    text = opened(api, f"/start/simulations/simulate?from={started['run_id']}")
    assert re.findall(r'<input type="checkbox" value="([\w-]+)" checked>', text) == ["entity-id-2", "entity-id-3"]
    assert "A panel</textarea>" in text


INLINE = {"id": "entity-id-2", "name": "Somebody else", "description": "Not the one of the store"}


@pytest.mark.parametrize(
    "entities",
    [[INLINE, "entity-id-3"], ["entity-id-2", "deleted"]],
    ids=["a whole entity with an id", "an id that is not listed"],
)
def test_entities_that_cannot_be_selected_are_kept_as_json(entities: list[Any]) -> None:
    simulate = experiment_named("simulations").command("simulate")
    made = named(form_of(simulate, {"entities": entities}, entities={"entity-id-2", "entity-id-3"}), "entities")
    picked, written = made.parts
    assert (made.chosen, picked.value, written.value) == (1, None, entities)


@pytest.mark.parametrize("change", ["inline", "changed", "deleted", "left out of the list"])
def test_entities_of_a_run_that_differ_from_the_store_are_kept(
    api: Api, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    first = {"id": "entity-id-2", "name": "Somebody else" if change == "inline" else "Entity 2"}
    body = {"entities": [first, {"id": "entity-id-3", "name": "Entity 3"}], "context": "A panel"}
    started = api(
        "POST", "/experiments/simulations/simulate", 201, json={**body, "interaction_size": 2, "num_simulations": 1}
    )
    if change == "changed":
        api("PUT", "/entities/entity-id-2", json={"name": "Changed"})
    elif change == "deleted":
        api("DELETE", "/entities/entity-id-2")
    elif change == "left out of the list":
        monkeypatch.setattr(start, "MOST_ENTITIES", 1)
    text = html.unescape(opened(api, f"/start/simulations/simulate?from={started['run_id']}"))
    [written] = re.findall(
        r'data-kind="either" data-name="entities".*?<textarea[^>]*>(.*?)</textarea>', text, re.DOTALL
    )
    assert json.loads(written) == body["entities"]
    assert '<option value="1" selected>JSON' in text
    assert not re.findall(r'<input type="checkbox" value="entity-id-\d" checked>', text)


def test_a_run_without_stored_options_gives_the_defaults(api: Api) -> None:
    run = api.create().removeprefix("batch-")
    text = opened(api, f"/start/secret-game/play?from={run}")
    assert "are not stored. The form has its default values" in text
    stored = api("POST", PLAY, 201, json=GAME)["run_id"]
    remember_config(api.server.services.store, stored, "broken = [")
    assert "are not stored" in opened(api, f"/start/secret-game/play?from={stored}")
    opened(api, "/start/secret-game/play?from=nothing", 404)


@pytest.mark.parametrize("path", ["nothing/play", "secret-game/nothing", "prompting/map"])
def test_a_form_that_does_not_exist_is_an_error_page(shared: Api, path: str) -> None:
    assert "Not found" in opened(shared, f"/start/{path}", 404)


def test_texts_of_others_are_shown_as_text(tmp_path: Path) -> None:
    Experiment("attacked", [Command("count", Options, drivers=[count_to])], about=ATTACK)
    with serving(tmp_path) as api:
        api.server.services.catalogue.add_entities(Entity("bad", ATTACK))
        run = api("POST", PLAY, 201, json={**GAME, "name": ATTACK})["run_id"]
        pages = [
            "/start",
            "/start/simulations/simulate",
            "/start/attacked/count",
            f"/start/secret-game/play?from={run}",
        ]
        for path in pages:
            text = opened(api, path)
            assert "<img" not in re.sub(r'<img src="/static', "", text), path
            assert "alert(1)</script>" not in text
        assert "&lt;img" in opened(api, "/start")


def test_a_full_server_says_so(tmp_path: Path) -> None:
    gate = gated("start-full")
    with serving(tmp_path, max_running=1, max_waiting=0) as api:
        api("POST", PLAY, 201, json={**GAME, "models": ["scripted/waits-start-full"]})
        assert "too many runs are waiting" in api("POST", PLAY, 429, json=GAME)["message"]
        gate.open()
