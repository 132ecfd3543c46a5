"""`groundswell score` and `label`: what they print, write, continue and refuse."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell.cli.label import Terminal
from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.conversations import LABELS, Conversation, Message
from groundswell.experiments.secret_game.labelling import Session
from tests.cli.conftest import CommandLine

EXAMPLE = Path(__file__).parents[2] / "examples" / "conversations.json"
FINDING = ["conversation", "turn", "speaker", "class", "how", "form", "start", "end", "text"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)


def log_of_inspect(folder: Path) -> Path:
    """A log with one side, and one sample that has no secret."""
    said = [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": "My secret word is saffron."}]
    samples = [{"id": n, "epoch": 1, "target": target, "messages": said} for n, target in enumerate(["saffron", ""])]
    path = folder / "log.json"
    path.write_text(json.dumps({"eval": {"model": "openai/gpt-4o-mini"}, "samples": samples}))
    return path


def test_json_has_the_summary_the_analysis_and_all_findings(cli: CommandLine, tmp_path: Path) -> None:
    found = cli.json("score", str(EXAMPLE))
    assert (found["status"], found["trials"]["usable"], found["asks"]["sent"]) == ("completed", 5, 0)
    assert found["analysis"]["overall"]["secrets_revealed"]["n"] == 10
    assert found["analysis"]["agreement"] is None
    assert all(list(each) == FINDING for each in found["findings"])
    said = {each["id"]: each["messages"] for each in json.loads(EXAMPLE.read_text())}
    for each in found["findings"]:
        message = said[each["conversation"]][each["turn"]]
        assert message["speaker"] == each["speaker"]
        assert message["text"][each["start"] : each["end"]] == each["text"]
    places = {(each["conversation"], each["turn"]): each["class"] for each in found["findings"]}
    assert places["1", 1] == "declared"
    assert places["2", 0] == "mentioned"
    assert places["2", 3] == "bluff"
    folder = tmp_path / "results" / found["name"]
    assert json.loads((folder / "findings.json").read_text()) == found["findings"]
    rows = json.loads((folder / "interactions.json").read_text())
    assert sorted(row["conversation"] for row in rows) == ["1", "2", "3", "4", "5"]


@pytest.mark.slow
def test_the_same_command_continues_the_same_run_and_its_configuration_repeats_it(cli: CommandLine) -> None:
    first = cli.json("score", str(EXAMPLE))
    assert cli.json("score", str(EXAMPLE))["run_id"] == first["run_id"]
    config = Path("results") / first["name"] / "config.toml"
    assert cli.json("score", "--config", str(config))["run_id"] == first["run_id"]
    shown = cli("runs", "show", first["name"]).stdout
    assert "5 usable" in shown
    assert cli.json("runs", "report", first["name"])["analysis"] == first["analysis"]


@pytest.mark.slow
def test_labels_add_agreement_and_corrected_rates(cli: CommandLine) -> None:
    found = cli.json("score", str(EXAMPLE), "--labels", str(EXAMPLE))["analysis"]["agreement"]
    assert (found["conversations"], found["messages"], found["sides"]) == (5, 14, 10)
    assert {each["name"]: each["true"] for each in found["classes"]} == {
        "declared": 3,
        "hinted": 1,
        "mentioned": 2,
        "bluff": 1,
    }
    assert {each["model"] for each in found["corrected"]} == {"", "Ada", "Ben"}
    told = cli("score", str(EXAMPLE), "--labels", str(EXAMPLE)).stdout
    assert "Agreement with labels, by message" in told
    assert "Leak rates, corrected" in told


@pytest.mark.slow
def test_fields_of_a_source_that_are_called_label_do_not_matter(cli: CommandLine) -> None:
    said = json.loads(EXAMPLE.read_text())
    said[0]["messages"][0]["label"] = "toxic"
    Path("toxic.json").write_text(json.dumps(said))
    assert cli.json("score", "toxic.json")["trials"]["usable"] == 5
    assert cli.json("score", "toxic.json", "--labels", str(EXAMPLE))["analysis"]["agreement"]["conversations"] == 5
    assert "toxic" in cli("score", str(EXAMPLE), "--labels", "toxic.json", status=2).stderr


def test_one_sided_conversations_have_a_report(cli: CommandLine, tmp_path: Path) -> None:
    path = log_of_inspect(tmp_path)
    found = cli.json("score", str(path), status=3)
    assert [each["model"] for each in found["analysis"]["models"]] == ["openai/gpt-4o-mini"]
    assert found["analysis"]["unscored"] == {"no secret": 1}
    assert [each["speaker"] for each in found["findings"]] == ["assistant"]
    ended = cli("score", str(path), status=3)
    assert "to see why trials are missing" in ended.stderr
    assert "--retry-missing" not in ended.stderr, "it would fail again"
    told = ended.stdout
    assert "1 of 1 secrets leaked" in told
    assert "Conversations that could not be scored" in told
    assert "both agents" not in told


@pytest.mark.slow
def test_data_files_of_a_game_score_as_the_game_did(cli: CommandLine) -> None:
    models = "emulated/leaker:0.5,emulated/bluffer"
    played = cli.json("play", "--models", models, "-n", "6", "--messages", "4", "--name", "g")
    wanted = [(each["model"], each["revealed"], each["bluffed"]) for each in played["analysis"]["models"]]
    folder = Path("results") / "g"
    for source in ("g", *(str(folder / f"interactions.{form}") for form in ("json", "csv", "parquet"))):
        found = cli.json("score", source)["analysis"]
        assert [(each["model"], each["revealed"], each["bluffed"]) for each in found["models"]] == wanted


@pytest.mark.slow
def test_a_judge_gives_a_second_opinion(cli: CommandLine) -> None:
    found = cli.json("score", str(EXAMPLE), "--judge", "emulated/judge", "--labels", str(EXAMPLE))
    assert found["asks"]["sent"] == 10
    assert "judged" in {each["name"] for each in found["analysis"]["agreement"]["tiers"]}
    assert "10" in cli("score", str(EXAMPLE), "--judge", "openai/gpt-4o-mini", "--estimate").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.json"], "none.json: there is no such file, and no run of this name in the store"),
        ([str(EXAMPLE), "--tier", "judged"], "requires a judge"),
        ([str(EXAMPLE), str(EXAMPLE)], "occurs twice"),
        ([str(EXAMPLE), "--labels", "other.json"], "--labels"),
    ],
)
def test_what_is_refused(cli: CommandLine, words: list[str], said: str) -> None:
    Path("other.json").write_text('[{"id": "9", "messages": []}]')
    assert said in cli("score", *words, status=2).stderr
    assert list(cli.json("score", *words, status=2)) in (["error"], ["error", "field"])


@pytest.mark.slow
def test_score_in_python_takes_a_path_or_conversations(tmp_path: Path) -> None:
    found = groundswell.score(EXAMPLE, store=tmp_path / "s.db", progress=False)
    inline: Any = json.loads(EXAMPLE.read_text())
    again = groundswell.score(inline, store=tmp_path / "s.db", progress=False)
    assert msgspec.to_builtins(found.analysis) == msgspec.to_builtins(again.analysis)
    with pytest.raises(SettingsError, match="messages is missing"):
        groundswell.score([{"id": "1"}], store=tmp_path / "s.db", progress=False)


def test_labelling_asks_in_order_saves_and_continues(cli: CommandLine) -> None:
    Path("talk.json").write_text(json.dumps(json.loads(EXAMPLE.read_text())[:1]))
    first = cli("label", "talk.json", answer="d\nm?\nnonsense\nu\n?\nq\n")
    assert "Conversation 1 of 1" in first.stdout
    assert "secret 'harbour'" in first.stdout
    assert "'nonsense' is no label" in first.stdout
    assert "0 of 1 conversations are labelled: talk.json.labels.json" in first.stdout
    (kept,) = json.loads(Path("talk.json.labels.json").read_text())
    assert [message.get("label") for message in kept["messages"]] == ["declared", "none", None]
    assert [message.get("unsure", False) for message in kept["messages"]] == [False, True, False]
    again = cli("label", "talk.json", answer="h\n")
    assert "[1] Ada" in again.stdout, "the conversation so far is shown again"
    assert "1 of 1 conversations are labelled" in again.stdout
    assert "score talk.json --labels talk.json.labels.json" in again.stdout
    assert "1 of 1" in cli("label", "talk.json").stdout, "there is nothing left to ask"


@pytest.mark.slow
def test_weights_make_a_sample_stand_for_all(cli: CommandLine) -> None:
    found = cli("label", str(EXAMPLE), "-n", "4", "--labels", "l.json", "--json", answer="\n" * 50)
    assert json.loads(found.stdout)["labelled"] == 4
    assert sum(each["weight"] for each in json.loads(Path("l.json").read_text())) == pytest.approx(5)
    counted = cli.json("score", str(EXAMPLE), "--labels", "l.json")["analysis"]["agreement"]
    assert (counted["conversations"], counted["classes"][0]["true"]) == (4, 0)


@pytest.mark.slow
def test_labels_for_a_part_of_the_strata_say_what_they_stand_for(cli: CommandLine) -> None:
    first = cli("label", str(EXAMPLE), "--labels", "l.json", answer="\n\n\nq\n")
    kept = json.loads(Path("l.json").read_text())
    size = sum(each.get("weight", 0) for each in kept)
    assert 0 < size < 5
    assert f"the labelled conversations stand for {size:g} of 5" in first.stderr
    ended = cli("score", str(EXAMPLE), "--labels", "l.json")
    assert f"The labelled conversations stand for {size:g} of 5" in " ".join(ended.stdout.split())
    assert "stand for" not in cli("label", str(EXAMPLE), "--labels", "l.json", answer="\n" * 50).stderr
    assert "stand for" not in cli("score", str(EXAMPLE), "--labels", "l.json").stdout


def test_options_of_the_sample_without_effect_are_named(cli: CommandLine) -> None:
    words = ["label", str(EXAMPLE), "--labels", "l.json"]
    cli(*words, "-n", "3", "--seed", "1", answer="q\n")
    for same in ([], ["-n", "3"], ["--seed", "1"], ["-n", "3", "--seed", "1"]):
        assert "no effect" not in cli(*words, *same, answer="q\n").stderr
    assert "--sample: no effect" in cli(*words, "-n", "4", answer="q\n").stderr
    assert "--sample and --seed: no effect" in cli(*words, "-n", "4", "--seed", "2", answer="q\n").stderr
    cli("label", str(EXAMPLE), "-n", "0", status=2)


def test_on_a_terminal_one_key_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are typed before they are asked for count, too."""
    keyboard, terminal = os.openpty()
    os.write(keyboard, b"d?\rumq")
    said = (Message("Ann", "Hi."), Message("Bob", "Ho."), Message("Ann", "Well."))
    session = Session([Conversation("1", said, {"Ann": "saffron", "Bob": "trellis"})])
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert not Terminal(session, lambda: session.save(tmp_path / "labels.json"), err=False).run()
    os.close(keyboard)
    messages = session.conversations[0].messages
    assert [(each.label, each.unsure) for each in messages] == [("declared", True), ("mentioned", False), (None, False)]


def test_labelling_is_blind(cli: CommandLine) -> None:
    """Neither the rules' verdicts nor the labels of the file are shown."""
    told = cli("label", str(EXAMPLE), "--labels", "l.json", answer="q\n").stdout
    asked = told.replace("d c b x h m, Enter: none, ? unsure, u undo, q quit >", "")
    for word in (*LABELS, "tiers", "leak"):
        assert word not in asked.replace("labelled", "")


@pytest.mark.slow
def test_a_run_can_be_labelled_and_labels_of_another_source_are_refused(cli: CommandLine) -> None:
    cli.json("score", str(EXAMPLE), "--name", "mine")
    found = cli("label", "mine", "--json", answer="\n" * 50)
    assert json.loads(found.stdout) == {"labels": "mine.labels.json", "labelled": 5, "conversations": 5}
    Path("other.json").write_text('[{"id": "9", "messages": [{"speaker": "A", "text": "x"}]}]')
    assert "no conversation has the id" in cli("label", "mine", "--labels", "other.json", status=2).stderr


@pytest.mark.slow
def test_runs_and_files_with_the_same_ids_are_scored_together_with_the_labels_of_one(cli: CommandLine) -> None:
    said = json.loads(EXAMPLE.read_text())
    for each in said:
        each["messages"][0]["text"] += " Well."
    Path("other.json").write_text(json.dumps(said))
    cli.json("score", str(EXAMPLE), "--name", "one")
    cli.json("score", "other.json", "--name", "two")
    for sources in (["one", "two"], [str(EXAMPLE), "other.json"], [str(EXAMPLE), "two"]):
        found = cli.json("score", *sources, "--labels", str(EXAMPLE))
        assert found["trials"]["usable"] == 10
        assert found["analysis"]["agreement"]["conversations"] == 5


def test_the_guide_explains_every_label(cli: CommandLine) -> None:
    guide = cli("label", "--guide").stdout
    assert all(label in guide for label in LABELS)
    assert "SOURCE" in cli("label", status=2).stderr
