"""GEPA on the engine: what it finds, that nothing is asked twice, and what happens to failures."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gepa")

import groundswell
from groundswell.bridges.gepa import EngineAdapter, Task
from groundswell.errors import RunStopped, SettingsError, TrialMissing
from groundswell.experiments.prompt_evolution import Problem, metric
from groundswell.program.request import Chat, Fault, FaultKind, Reply
from groundswell.program.trial import Trial, program
from groundswell.transports.scripted import Scripted
from tests.bridges.gepa_script import HINT, PROBLEMS, answer, counted, requests, search
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
KILLS = (1, 20, 61)
"""Numbers of the requests at which the process dies: the first evaluation, inside one, and in a later round."""


@pytest.mark.slow
def test_a_search_finds_a_better_prompt_and_asks_nothing_again(tmp_path: Path) -> None:
    found = search(tmp_path, counted(tmp_path))
    assert found.best_candidate["prompt"].count(HINT) >= 3
    assert max(found.val_aggregate_scores) > found.val_aggregate_scores[0]
    asked = requests(tmp_path)
    assert max(Counter(asked).values()) == 1
    again = search(tmp_path, counted(tmp_path))
    assert again.candidates == found.candidates
    assert requests(tmp_path) == asked


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    expected = search(whole, counted(whole))
    for last in KILLS:
        done = subprocess.run(
            [sys.executable, "-m", "tests.bridges.gepa_script", str(killed), str(last)],
            cwd=ROOT,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    found = search(killed, counted(killed))
    assert found.candidates == expected.candidates
    assert set(requests(killed)) == set(requests(whole))
    lost = len(requests(killed)) - len(requests(whole))
    assert len(KILLS) <= lost <= 2 * len(KILLS)  # the one in flight, and one whose reply was not committed yet


@pytest.mark.slow
def test_a_search_that_ran_out_of_budget_goes_on_with_more(tmp_path: Path) -> None:
    with pytest.raises(RunStopped):
        search(tmp_path, counted(tmp_path), calls=40)
    assert len(requests(tmp_path)) == 40
    found = search(tmp_path, counted(tmp_path))
    assert found.best_candidate["prompt"].count(HINT) >= 3
    assert max(Counter(requests(tmp_path)).values()) == 1


@pytest.mark.slow
def test_a_checkpoint_of_gepa_is_continued_without_new_evaluations(tmp_path: Path) -> None:
    first = search(tmp_path, counted(tmp_path), run_dir=str(tmp_path / "gepa"))
    asked = len(requests(tmp_path))
    again = search(tmp_path, counted(tmp_path), run_dir=str(tmp_path / "gepa"))
    assert again.candidates == first.candidates
    assert len(requests(tmp_path)) == asked


def test_evaluations_have_scores_replies_and_feedback(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "runs.db", script=answer) as engine:
        adapter = EngineAdapter(engine.run(), "solver")
        found = adapter.evaluate(PROBLEMS[:4], {"a": HINT, "b": "Be brief."}, capture_traces=True)
        assert found.scores == [0.0, 0.0, 0.0, 1.0]
        assert found.outputs[3] == "#### 8"
        shown = adapter.make_reflective_dataset({}, found, ["b"])["b"]
        assert shown[0]["Inputs"] == "What is 1 + 1?"
        assert shown[0]["Feedback"].endswith("The correct answer is: 2")
        assert shown[3] == {"Inputs": "What is 4 + 4?", "Generated Outputs": "#### 8", "Feedback": "This is correct."}
        assert adapter.evaluate(PROBLEMS[:4], {"a": HINT, "b": "Be brief."}).trajectories is None


def test_an_evaluation_is_one_batch(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "runs.db", transport=Scripted(answer, barrier=True)) as engine:
        run = engine.run()
        adapter = EngineAdapter(run, "solver")
        one, other = adapter.batch_evaluate([({"a": ""}, PROBLEMS), ({"a": HINT}, PROBLEMS[:5])])
        assert (len(one.scores), len(other.scores)) == (24, 5)
        assert run.run.counters.waves == 1


def test_texts_are_joined_in_their_order(tmp_path: Path) -> None:
    prompts = []

    def script(request: Chat) -> str:
        prompts.append(request.messages[0].content)
        return "#### 1"

    with groundswell.open_sync(tmp_path / "runs.db", script=script) as engine:
        EngineAdapter(engine.run(), "solver").evaluate(PROBLEMS[:1], {"z": "First.", "a": "Second."})
    assert prompts == ["First.\n\nSecond."]


@program("test/two-steps")
async def two_steps(trial: Trial, spec: Task) -> str:
    plan = await trial.ask("solver", f"{spec.texts['plan']} {spec.problem.question}")
    return f"{spec.texts['answer']} {plan.text}"


def test_a_program_replies_with_the_texts_of_a_candidate(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "runs.db", script=lambda request: request.messages[0].content) as engine:
        adapter = EngineAdapter(engine.run(), two_steps, metric="contains")
        found = adapter.evaluate([Problem("six", "plan: six")], {"plan": "plan:", "answer": "answer:"})
    assert (found.outputs, found.scores) == (["answer: plan: six"], [1.0])


def test_a_reply_that_failed_gets_the_failure_score(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def script(request: Chat) -> Any:
        return Fault(FaultKind.FILTERED, "not this") if "1 + 1" in str(request.messages) else answer(request)

    with groundswell.open_sync(tmp_path / "runs.db", script=script) as engine:
        adapter = EngineAdapter(engine.run(), "solver", failure_score=-1.0)
        found = adapter.evaluate(PROBLEMS[:4], {"a": HINT}, capture_traces=True)
        assert found.scores == [-1.0, 0.0, 0.0, 1.0]
        assert adapter.missing == 1
        assert "not this" in adapter.make_reflective_dataset({}, found, ["a"])["a"][0]["Feedback"]
    assert "not this" in caplog.text


@metric("test/broken")
def broken(reply: str, problem: Problem) -> float:
    raise ZeroDivisionError("in the metric")


def test_an_error_in_a_metric_is_raised(tmp_path: Path) -> None:
    with (
        groundswell.open_sync(tmp_path / "runs.db", script=answer) as engine,
        pytest.raises(TrialMissing, match="in the metric"),
    ):
        EngineAdapter(engine.run(), "solver", metric="test/broken").evaluate(PROBLEMS[:2], {"a": ""})


def test_an_account_that_refuses_stops_the_search(tmp_path: Path) -> None:
    def script(request: Chat) -> Fault:
        return Fault(FaultKind.AUTH, "no such key")

    with (
        pytest.raises(RunStopped, match="no such key"),
        groundswell.open_sync(tmp_path / "runs.db", script=script) as engine,
    ):
        EngineAdapter(engine.run(), "solver").evaluate(PROBLEMS[:2], {"a": ""})


@metric("test/near")
def near(reply: str, problem: Problem) -> tuple[float, str]:
    return 0.5, f"close to {problem.answer}"


def test_feedback_of_a_metric_is_shown(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "runs.db", script=answer) as engine:
        adapter = EngineAdapter(engine.run(), "solver", metric="test/near")
        found = adapter.evaluate(PROBLEMS[:1], {"a": ""}, capture_traces=True)
        assert found.scores == [0.5]
        assert adapter.make_reflective_dataset({}, found, ["a"])["a"][0]["Feedback"] == "close to 2"


def test_a_prompt_that_comes_again_is_asked_again(tmp_path: Path) -> None:
    def ask_thrice() -> list[str]:
        with groundswell.open_sync(tmp_path / "runs.db", script=script) as engine:
            ask = EngineAdapter(engine.run("asked"), "solver").reflection_lm("writer", temperature=1.0)
            return [ask("Write."), ask("Write."), *ask.batch_complete([[{"role": "user", "content": "Write."}]])]

    def script(request: Chat, sample: int) -> Reply:
        asked.append(sample)
        return Reply(str(sample))

    asked = list[int]()
    first = ask_thrice()
    assert len(set(first)) == len(asked) == 3
    assert ask_thrice() == first
    assert len(asked) == 3


def test_images_are_refused(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "runs.db", script=answer) as engine:
        ask = EngineAdapter(engine.run(), "solver").reflection_lm("writer")
        with pytest.raises(SettingsError, match="images"):
            ask([{"role": "user", "content": [{"type": "image_url"}]}])
