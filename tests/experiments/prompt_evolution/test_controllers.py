"""Controllers: the samples of their description, one run for one configuration, and what is written on the way."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundswell import Limits, RunOptions
from groundswell.engine.events import DriverReported, Event
from groundswell.errors import RunError, SettingsError
from groundswell.experiments import prompt_evolution
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig, EvolutionConfig
from groundswell.experiments.prompt_evolution.documented import (
    AsyncEvaluationPipeline,
    AsyncEvolutionController,
    Evaluated,
    EvolutionController,
)
from groundswell.experiments.prompt_evolution.problems import Sizes, generated
from tests.experiments.prompt_evolution.stage import PATIENCE, Deaf, Emulated

FEW = generated(sizes=Sizes(12, 4, 8), seed=7)
BIRTHS = 18
SMALL = AsyncEvolutionConfig(
    model="any", problems=FEW, population_size=6, max_generations=3, async_batch_size=4, baselines=()
)
LOGGED = msgspec.structs.replace(SMALL, detailed_performance_logging=True)
BASIC = """
async def run_async_evolution():
    config = AsyncEvolutionConfig(
        population_size=50,
        max_generations=100,
        enable_async_evaluation=True,
        async_batch_size=20,
        max_concurrent_requests=10
    )

    controller = AsyncEvolutionController(config=config)
    results = await controller.run_evolution_async()

    print(f"Best fitness: {results['best_fitness']:.3f}")
    print(f"Total time: {results['total_time']:.2f}s")
    return results

# Run the evolution
results = asyncio.run(run_async_evolution())
"""
OLD = """
config = EvolutionConfig(population_size=50)

controller = EvolutionController(config)
results = controller.run_evolution()
"""
NEW = """
config = AsyncEvolutionConfig(
    population_size=50,
    enable_async_evaluation=True,
    async_batch_size=20
)

controller = AsyncEvolutionController(config)
results = await controller.run_evolution_async()
"""
NOT_ASYNC = NEW.replace(
    "results = await controller.run_evolution_async()", "results = asyncio.run(controller.run_evolution_async())"
)
SAMPLES = {"basic usage": BASIC, "old": OLD, "new": NEW, "sync context": NOT_ASYNC}
SMALLER = "population_size=4, max_generations=2, problems=FEW, baselines=()"


def typed(sample: str) -> Any:
    """The results of a sample, in the working folder."""
    scope: dict[str, Any] = {"asyncio": asyncio, "FEW": FEW}
    scope |= {name: getattr(prompt_evolution, name) for name in prompt_evolution.__all__ if "Evolution" in name}
    found = eval(compile(sample, "sample", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), scope)
    if inspect.iscoroutine(found):
        asyncio.run(found)
    return scope["results"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_but_smaller(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = SAMPLES[name].replace("population_size=50", SMALLER).replace("max_generations=100,", "")
    results = typed(sample)
    assert 0 < results["best_fitness"] <= 1
    assert results["total_time"] > 0
    assert (tmp_path / "groundswell.db").exists()
    printed = capsys.readouterr().out
    assert not printed or printed.startswith(f"Best fitness: {results['best_fitness']:.3f}\nTotal time: ")


@pytest.mark.campaign
def test_the_samples_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = {name: typed(sample) for name, sample in SAMPLES.items()}
    assert all(each["gain"].low > 0.3 for each in found.values())
    assert found["new"] == found["sync context"], "one configuration is one run"


def ran(store: Path, config: EvolutionConfig = SMALL, script: Emulated | None = None, **how: Any) -> Any:
    controller = AsyncEvolutionController(config, store=store, script=script or Emulated(), **how)
    return asyncio.run(controller.run_evolution_async())


def test_what_the_results_say(tmp_path: Path) -> None:
    model = Emulated()
    controller = AsyncEvolutionController(SMALL, store=tmp_path / "runs.db", script=model)
    assert controller.performance is None
    results = asyncio.run(controller.run_evolution_async())
    evolution = results["analysis"].evolution
    assert results["best_fitness"] == max(each.fitness for each in evolution.members if each.fate == "lives")
    deployed = results["analysis"].deployed
    assert (results["best_prompt"], results["found_by"]) == (deployed.genome.text, deployed.name)
    assert results["validation_accuracy"] == deployed.validation
    assert (results["births"], results["generations"]) == (BIRTHS, 3.0)
    assert results["stopped"] == "all 3 generations are complete"
    low, high = results["test_interval"]
    assert low is not None
    assert high is not None
    assert results["test_accuracy"] is not None
    assert low < results["test_accuracy"] < high
    assert (results["gain"].over, results["gain"].n) == ("seed", 8)
    assert results["cost"] is None, "nobody knows what a script costs"
    assert results["evaluations"] is None
    told = controller.performance
    assert told is not None
    solving = [each for each in model.asked if each.messages[0].role == "system"]
    assert told.problems == len(solving)
    assert told.sent == len(model.asked)
    whole = results["api_calls"] + told.saved_by_racing + told.saved_as_known
    assert told.saved_by_racing > 0
    assert results["api_efficiency"] == told.api_efficiency == results["api_calls"] / whole < 1
    assert told.speedup(msgspec.structs.replace(told, problems_per_second=told.problems_per_second / 4)) == 4
    assert f"{told.api_calls:,} requests, {told.api_efficiency:.0%} of an evaluation" in str(told)


def test_a_pipeline_finds_the_same_of_the_best_prompt(tmp_path: Path) -> None:
    results = ran(tmp_path / "runs.db")

    async def evaluated() -> Evaluated:
        async with AsyncEvaluationPipeline(SMALL, store=tmp_path / "runs.db", script=Emulated()) as pipeline:
            return await pipeline.evaluate_genome(results["best_prompt"])

    (best,) = [each for each in results["analysis"].evolution.members if each.genome.text == results["best_prompt"]][:1]
    whole = asyncio.run(evaluated()).scores
    assert best.seen > 0
    assert all(score in (None, whole[at]) for at, score in enumerate(best.scores))


def test_the_same_configuration_again_asks_nothing(tmp_path: Path) -> None:
    model = Emulated()
    first = ran(tmp_path / "runs.db", script=model)
    asked = len(model.asked)
    assert ran(tmp_path / "runs.db", script=model) == first
    assert len(model.asked) == asked
    faster = msgspec.structs.replace(SMALL, max_concurrent_requests=3, rate_limit_per_minute=10)
    assert ran(tmp_path / "runs.db", faster, model) == first, "how fast it is asked makes no other run"
    other = ran(tmp_path / "runs.db", msgspec.structs.replace(SMALL, seed=1), model)
    assert other["run"] != first["run"]
    assert len(model.asked) > asked


@pytest.mark.slow
def test_with_and_without_async_it_is_the_same(tmp_path: Path) -> None:
    first = ran(tmp_path / "async.db", script=Emulated(1))
    sync = EvolutionController(SMALL, store=tmp_path / "sync.db", script=Emulated(2)).run_evolution()
    fallback = AsyncEvolutionController(SMALL, store=tmp_path / "fallback.db", script=Emulated(3)).run_evolution()
    assert first["analysis"] == sync["analysis"] == fallback["analysis"]
    one = msgspec.structs.replace(SMALL, enable_async_evaluation=False)
    assert ran(tmp_path / "one.db", one)["analysis"] == first["analysis"]


def test_a_loop_that_runs_is_not_held_up(tmp_path: Path) -> None:
    async def main() -> None:
        controller = AsyncEvolutionController(SMALL, store=tmp_path / "runs.db", script=Emulated())
        with pytest.raises(RunError, match=r"Use `await controller.run_evolution_async\(\)`"):
            controller.run_evolution()
        assert not (tmp_path / "runs.db").exists()
        blocking = EvolutionController(SMALL, store=tmp_path / "runs.db", script=Emulated())
        assert blocking.run_evolution()["births"] == BIRTHS, "as in a notebook"

    asyncio.run(main())


def test_one_that_was_stopped_goes_on(tmp_path: Path) -> None:
    model = Emulated()
    few = RunOptions(limits=Limits(calls=40))
    with pytest.raises(
        RunError, match=r"run 'evolution-\w+' is not complete: .*Run the same configuration again to continue"
    ):
        ran(tmp_path / "runs.db", script=model, options=few)
    before = len(model.asked)
    found = ran(tmp_path / "runs.db", script=model)
    assert found["analysis"] == ran(tmp_path / "alone.db")["analysis"]
    assert before == 40
    assert len(model.asked) == len({str(each) for each in model.asked})


def test_a_name_that_another_evolution_has(tmp_path: Path) -> None:
    ran(tmp_path / "runs.db", name="mine")
    with pytest.raises(RunError, match="'mine' already exists with another driver, settings or seed"):
        ran(tmp_path / "runs.db", msgspec.structs.replace(SMALL, max_generations=5), name="mine")


def test_a_model_that_fails_always(tmp_path: Path) -> None:
    few = msgspec.structs.replace(SMALL, max_generations=1)  # no outage yet
    with pytest.raises(RunError, match="does not hear"):
        ran(tmp_path / "runs.db", few, script=Deaf(""), options=PATIENCE)


def test_metrics_by_their_module(tmp_path: Path) -> None:
    own = "tests.experiments.prompt_evolution.own_metrics:brief"
    found = ran(tmp_path / "runs.db", msgspec.structs.replace(SMALL, metric=own))
    usual = ran(tmp_path / "runs.db")
    assert found["analysis"].tested[0].scores != usual["analysis"].tested[0].scores
    with pytest.raises(SettingsError, match="metric: 'no_such_module' cannot be imported"):
        ran(tmp_path / "runs.db", msgspec.structs.replace(SMALL, metric="no_such_module:brief"))


def test_listeners_hear_of_it(tmp_path: Path) -> None:
    heard: list[Event] = []
    ran(tmp_path / "runs.db", listeners=[heard.append])
    reports = [each for each in heard if isinstance(each, DriverReported) and each.who]
    assert [each.done for each in reports if "birth" in each.figures] == list(range(1, BIRTHS + 1))
    assert reports[-1].words.startswith("evolution: done, best ")


def lines(results: Any) -> list[dict[str, Any]]:
    text = results["evaluations"].read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_one_record_for_each_evaluation(tmp_path: Path) -> None:
    results = ran(tmp_path / "runs.db", LOGGED)
    found = lines(results)
    members = results["analysis"].evolution.members
    assert results["evaluations"].parent == tmp_path / "evaluations"
    assert [each["birth"] for each in found] == list(range(BIRTHS))
    for each, one in zip(found, members, strict=True):
        assert each["problems"] <= one.seen, "some are evaluated further later"
        assert each["asks"] <= one.asks
    assert sum(one.asks for one in members) == found[-1]["asks_in_all"]
    assert {each["search"] for each in found} == {"evolution"}
    assert found[-1]["asks_in_all"] == results["api_calls"]


def test_the_best_prompt_is_written_beside_the_evaluations(tmp_path: Path) -> None:
    results = ran(tmp_path / "runs.db", LOGGED)
    path = results["evaluations"].with_name(f"{results['run']}.best_prompt.txt")
    assert path.read_text() == results["best_prompt"]
    ran(tmp_path / "runs.db", SMALL)
    assert len(list((tmp_path / "evaluations").iterdir())) == 2, "without evaluations, it is only in the store"


def test_records_are_kept_when_a_run_goes_on(tmp_path: Path) -> None:
    with pytest.raises(RunError):
        ran(tmp_path / "runs.db", LOGGED, options=RunOptions(limits=Limits(calls=150)))
    (path,) = (tmp_path / "evaluations").glob("*.jsonl")
    before = path.read_bytes()
    assert before.count(b"\n") > 2
    path.write_bytes(before + b'{"search": "evolution", "birth": 2')
    results = ran(tmp_path / "runs.db", LOGGED)
    assert results["evaluations"] == path
    assert path.read_bytes().startswith(before)
    assert [each["birth"] for each in lines(results)] == list(range(BIRTHS))
    path.unlink()
    assert len(lines(ran(tmp_path / "runs.db", LOGGED))) == BIRTHS, "asked for anew, it is written anew"


def test_a_disk_that_fails_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "evaluations").write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING, "groundswell.prompt_evolution"):
        results = ran(tmp_path / "runs.db", LOGGED)
    assert (results["births"], results["evaluations"]) == (BIRTHS, None)
    evaluations, prompt = sorted((each.message for each in caplog.records), key=lambda told: "best_prompt" in told)
    assert "cannot write evaluations" in evaluations
    assert "best_prompt.txt cannot be written" in prompt


def test_the_default_is_the_emulated_model(tmp_path: Path) -> None:
    assert isinstance(AsyncEvolutionController(store=tmp_path / "runs.db").config, AsyncEvolutionConfig)
    assert EvolutionController(store=tmp_path / "runs.db").config.models == ("emulated/gpt-4o-mini",)
