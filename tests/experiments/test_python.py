"""Experiments as Python functions: the same options, errors and runs as on the command line."""

from __future__ import annotations

import asyncio
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Command, Experiment, SettingsError, scripted_model
from groundswell.experiments.python import Finished
from groundswell.experiments.secret_game.analysis import Analysis
from tests.web.own_experiment import Counted, Options, count_to

GAME: dict[str, Any] = {"models": ["emulated/keeper", "emulated/leaker:0.6"], "interactions": 6, "messages": 4}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_game_is_played_and_read() -> None:
    found = groundswell.play(progress=False, **GAME)
    assert isinstance(found.analysis, Analysis)
    assert found.analysis.interactions.usable == found.summary.trials.usable == 6
    assert found.status == "completed"
    assert found.frame().height == 6
    assert len(found.rows) == 12
    assert found.rows.rate("revealed", by="model")[0].n == 6
    assert found.folder == Path("results") / str(found.record.name)
    assert Path("results", str(found.record.name), "report.html") in found.files
    assert "secrets leaked" in found.findings
    assert str(found) == found.findings
    page = found._repr_html_()
    assert "secrets leaked" in page
    assert "completed" in page
    assert found.report("elsewhere") == Path("elsewhere/report.html")


def test_the_same_call_goes_on_with_its_run_and_asks_nothing_twice() -> None:
    first = groundswell.play(progress=False, max_calls=5, **GAME)
    assert first.status == "partial"
    again = groundswell.play(progress=False, **GAME)
    assert (again.status, again.record.id) == ("completed", first.record.id)
    sent = again.summary.asks.sent
    assert groundswell.play(progress=False, **GAME).summary.asks.sent == sent


def test_in_async_code_it_is_awaited() -> None:
    async def main() -> Finished:
        return await groundswell.play.run(progress=False, **GAME)

    assert asyncio.run(main()).analysis.interactions.usable == 6


def test_an_estimate_needs_no_key_and_sends_nothing() -> None:
    bill = groundswell.compare.estimate(models=["openai/gpt-4o-mini", "openai/gpt-4o"], interactions=10)
    assert bill.ways.live.usd is not None
    assert bill.ways.live.usd.high > 0
    assert not Path("groundswell.db").exists()


@pytest.mark.slow
def test_a_pilot_is_paid_for_once() -> None:
    game = {**GAME, "interactions": 200}
    before = groundswell.play.estimate(**game)
    bill = groundswell.play.estimate(pilot=True, **game)
    assert before.pilot is not None
    assert bill.measured is not None
    assert bill.measured.requests <= before.pilot.requests
    assert groundswell.play.estimate(**game) == bill, "what the run has measured is known from now on"
    assert groundswell.play(progress=False, **game).summary.asks.sent == 800


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"messages": 1}, "messages 1: must be at least 2"),
        ({"mesages": 3}, "mesages: play has no such option; did you mean messages"),
        ({"tier": "best"}, "tier best: unknown value; choose from declared, exact, normalised, encoded, judged"),
        ({"interactions": "many"}, "interactions many: must be a whole number"),
        ({"guesses": 3}, "guesses 3: has no effect without probe"),
        ({"num_interactions": 3}, "sets the same option as interactions"),
    ],
)
def test_what_is_wrong_is_named_as_the_argument_is(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        groundswell.play(progress=False, **{**GAME, **options})
    assert said in str(refused.value)


@pytest.mark.slow
def test_files_may_be_named_and_what_is_in_them_may_be_given() -> None:
    Path("words.txt").write_text("saffron trellis mandolin\nharbour lantern\n")
    words = [["saffron", "trellis", "mandolin"], ["harbour", "lantern"]]
    by_name = groundswell.play(progress=False, secrets="words.txt", **GAME)
    by_path = groundswell.play(progress=False, secrets=Path("words.txt"), **GAME)
    by_words = groundswell.play(progress=False, secrets=words, **GAME)
    assert by_name.record.id == by_path.record.id == by_words.record.id


def test_arguments_without_a_name_are_those_of_the_command_line() -> None:
    @scripted_model("python-hello")
    def hello(request: object) -> str:
        return "Hello."

    found = groundswell.ask("Say hello.", model="scripted/python-hello", progress=False)
    assert [each.text for each in found.analysis] == ["Hello."]
    assert found.folder is None
    with pytest.raises(TypeError, match="takes 1 positional arguments, but 2 were given"):
        groundswell.ask("Say hello.", "again")
    with pytest.raises(TypeError, match="multiple values for argument 'prompt'"):
        groundswell.ask("Say hello.", prompt="again")


def test_a_table_is_mapped() -> None:
    Path("remarks.csv").write_text("remark\nhello\ngo away\n")
    found = groundswell.map("remarks.csv", prompt="Polite? {remark}", model="emulated/gpt-4o-mini", progress=False)
    assert found.analysis.file.rows == 2
    assert Path("remarks.replies.csv").exists()
    groundswell.map("remarks.csv", prompt="Rude? {remark}", model="emulated/keeper", out="mine.csv", progress=False)
    assert Path("mine.csv").exists()


def test_people_can_ask_what_there_is() -> None:
    assert "Two agents each hold a co" in str(groundswell.play.__doc__)
    assert "interactions: Number of interactions" in str(groundswell.play.__doc__)
    assert {"models", "interactions", "seed", "budget"} <= set(inspect.signature(groundswell.play).parameters)
    assert repr(groundswell.play).startswith("<play: Measure how often")


def test_progress_is_shown_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    groundswell.play(**GAME)
    assert "6 of 6 trials done" in capsys.readouterr().err


class FakeNotebook:
    """As much of IPython as progress uses."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.kernel = object()
        self.HTML = str

    def get_ipython(self) -> FakeNotebook:
        return self

    def display(self, first: str, display_id: bool) -> FakeNotebook:
        return self

    def update(self, text: str) -> None:
        self.shown.append(text)


def test_progress_is_shown_below_a_cell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = FakeNotebook()
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    groundswell.play(**GAME)
    assert "6 of 6 trials done" in notebook.shown[-1]
    assert capsys.readouterr().err == ""


def test_an_experiment_of_ones_own_is_a_function() -> None:
    experiment = Experiment("own-counting", [Command("count", Options, [count_to])])
    found = groundswell.as_function(experiment)(to=3, progress=False)
    assert found.analysis == Counted(3)
    assert str(found.record.name).startswith("own-counting-")
