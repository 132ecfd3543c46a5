"""Programs whose texts are evolved: what is asked, counted, shown to the writer, and kept after a crash."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Limits, RunOptions, Summary
from groundswell.errors import RunError, SettingsError
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig
from groundswell.experiments.prompt_evolution.documented import AsyncEvaluationPipeline, AsyncEvolutionController
from groundswell.experiments.prompt_evolution.evolving import evolve, expected
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.problems import Problem, Problems
from groundswell.experiments.prompt_evolution.programs import find_task_program
from groundswell.experiments.prompt_evolution.searching import GATE, KEPT, LEAST
from groundswell.experiments.prompt_evolution.settings import BASELINES as BOTH
from groundswell.experiments.prompt_evolution.settings import OPERATORS, Evolution, Stops
from tests.experiments.prompt_evolution.own_programs import HERE, RULE, TEXTS, Solver
from tests.experiments.prompt_evolution.stage import evolved


def sums(first: int, count: int) -> tuple[Problem, ...]:
    return tuple(Problem(f"What is {n} + {n + 1} ?", str(2 * n + 1)) for n in range(first, first + count))


def settings_for(name: str, **how: Any) -> Evolution:
    return Evolution(
        **{
            "models": ("solver",),
            "writer": "writer",
            "problems": Problems(train=sums(1, 20), validation=sums(30, 10), test=sums(50, 12)),
            "seeds": (Genome.named(TEXTS),),
            "program": f"{HERE}:{name}",
            "stops": Stops(asks=600),
            "baselines": (),
            **how,
        }
    )


@pytest.mark.parametrize("name", ["two_steps", "whole"])
def test_the_text_that_matters_is_found(tmp_path: Path, name: str) -> None:
    model = Solver()
    found = asyncio.run(evolved(tmp_path / "runs.db", model, settings_for(name, polish=False)))
    texts = found.deployed.genome.texts
    assert RULE in texts["solve"]
    assert [each.accuracy for each in found.tested] == [0.0, 1.0]
    assert found.evolution.asks <= 600
    seed, *others = found.evolution.members
    assert seed.asks == 2 * seed.seen >= 2 * LEAST, "two requests for each problem"
    rewritten = {name for each in others for name in TEXTS if each.genome.texts[name] != TEXTS[name]}
    assert rewritten == {"plan", "solve"}, "both are tried"
    for each in others:
        if each.parents == (0,) and each.operator == "reflect":
            assert sum(each.genome.texts[name] != TEXTS[name] for name in TEXTS) == 1, "one text at a time"
    contributions = {each.text: each.value for each in found.parts}
    assert contributions[f"solve: {RULE}"] == 1
    assert contributions["solve: Give the number."] == 0


def test_a_writer_sees_all_texts_and_what_the_program_did(tmp_path: Path) -> None:
    model = Solver()
    asyncio.run(evolved(tmp_path / "runs.db", model, settings_for("two_steps", stops=Stops(asks=200))))
    written = [str(each.messages[-1].content) for each in model.asked if each.model == "writer"]
    first = written[0]
    assert "## plan\n\nSay what to compute.\n\n## solve\n\nGive the number." in first
    name = "plan" if 'the text "plan"' in first else "solve"
    assert f"<prompt>\n{TEXTS[name]}\n</prompt>" in first
    assert "It wrote: #### 0" in first
    assert "What the program did:\nto planner: What is" in first
    assert "\nsolver: #### 0" in first


def test_a_program_may_score_itself(tmp_path: Path) -> None:
    found = asyncio.run(evolved(tmp_path / "runs.db", Solver(), settings_for("scored")))
    assert [each.accuracy for each in found.tested] == [0.0, 1.0]


def test_a_program_may_take_the_model(tmp_path: Path) -> None:
    model = Solver()
    found = asyncio.run(evolved(tmp_path / "runs.db", model, settings_for("with_model", stops=Stops(asks=100))))
    assert {each.model for each in model.asked} == {"solver", "writer"}
    assert found.evolution.members[0].asks == found.evolution.members[0].seen


def test_texts_of_two_parents_are_combined_without_a_writer(tmp_path: Path) -> None:
    """The writer of these tests would repeat the rule."""
    seeds = tuple(Genome.named({**TEXTS, name: f"{TEXTS[name]} {RULE}"}) for name in TEXTS)
    settings = settings_for("halves", seeds=seeds, operators={"combine": 1.0}, polish=False)
    found = asyncio.run(evolved(tmp_path / "runs.db", Solver(), settings))
    assert all(RULE in text for text in found.deployed.genome.texts.values())
    both = Genome.named({name: f"{text} {RULE}" for name, text in TEXTS.items()})
    child = next(each for each in found.evolution.members if each.genome == both)
    assert (child.operator, set(child.parents)) == ("combine", {0, 1})


ALL_OPERATORS = dict.fromkeys(OPERATORS, 1.0)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "how"), [("two_steps", {}), ("scored", {}), ("two_steps", {"operators": ALL_OPERATORS, "baselines": BOTH})]
)
def test_what_was_stopped_goes_on_to_the_same_end(tmp_path: Path, name: str, how: dict[str, Any]) -> None:
    settings = settings_for(name, stops=Stops(asks=400), **how)

    async def session(store: str, limit: int | None) -> tuple[Summary, list[bytes]]:
        model = Solver()
        async with groundswell.open(tmp_path / store, script=model) as engine:
            options = RunOptions(limits=Limits(calls=limit))
            summary = await engine.drive(evolve, settings, name="it", seed=1, options=options)
        return summary, [groundswell.fingerprint(each) for each in model.asked]

    alone, whole = asyncio.run(session("alone.db", None))
    parts = [asyncio.run(session("stopped.db", limit)) for limit in (25, 100, None)]
    assert [summary.status for summary, _ in parts] == ["partial", "partial", "completed"]
    assert msgspec.json.encode(parts[-1][0].analysis) == msgspec.json.encode(alone.analysis)
    assert sorted(each for _, asked in parts for each in asked) == sorted(whole)


def test_a_program_that_raises_is_missing(tmp_path: Path) -> None:
    settings = settings_for("raises", stops=Stops(asks=300))
    found = asyncio.run(evolved(tmp_path / "runs.db", Solver(), settings))
    for each in found.tested:
        missing = [score is None for score in each.scores]
        assert missing == [int(problem.answer) % 7 == 0 for problem in settings.problems.test]
        assert any(missing)
        assert each.n == len(missing) - sum(missing)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("endless", r"ProgramError: the program made more than 100 requests and calls; does it end\?"),
        (
            "wrong_type",
            r"NoScore: the program \S+wrong_type returned a Reply; it must return the reply as text, a score",
        ),
    ],
)
def test_a_program_that_cannot_work_stops_the_run(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(RunError, match=why):
        asyncio.run(evolved(tmp_path / "runs.db", Solver(), settings_for(name)))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("two_steps", "program 'two_steps': must be module:name"),
        (f"{HERE}:nothing", "there is no such `async def` or @program"),
        (f"{HERE}:plain", "there is no such `async def` or @program"),
        (f"{HERE}:of_two", r"must take \(trial, texts, problem\) or .*, not \(trial, texts\)"),
        ("nowhere.at.all:f", "program: 'nowhere.at.all' cannot be imported"),
    ],
)
def test_what_is_no_program(name: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        find_task_program(name)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"program": msgspec.UNSET}, "texts with names need a program"),
        ({"seeds": (Genome("Solve it."),)}, "a program needs texts with names"),
        ({"seeds": (Genome.named(TEXTS), Genome.named({"plan": "?"}))}, "texts of the same names"),
    ],
)
def test_texts_and_programs_belong_together(how: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        settings_for("two_steps", **how)


def test_the_estimate_counts_the_requests_of_a_program(tmp_path: Path) -> None:
    """A reply that calls no tool ends the second step; one that does has a third request."""
    settings = settings_for("two_steps", stops=Stops(), max_generations=2, population_size=4, elite=1)
    found = expected(settings)
    loads = {each.model: each for each in found.loads}
    evaluations = GATE + KEPT + settings.shape.validation + len(settings.problems.test)  # at the very least
    assert loads["solver"].calls.low >= 2 * evaluations
    model = Solver()
    asyncio.run(evolved(tmp_path / "runs.db", model, settings))
    asked = sum(each.model == "solver" for each in model.asked)
    assert loads["solver"].calls.low <= asked <= loads["solver"].calls.high


@pytest.mark.slow
def test_controllers_and_pipelines_take_texts(tmp_path: Path) -> None:
    problems = settings_for("two_steps").problems
    config = AsyncEvolutionConfig(
        program=f"{HERE}:two_steps",
        seed_texts=(TEXTS,),
        model="solver",
        writer="writer",
        problems=problems,
        max_asks=600,
        baselines=(),
    )
    how: dict[str, Any] = {"store": tmp_path / "runs.db", "script": Solver()}
    results = asyncio.run(AsyncEvolutionController(config, **how).run_evolution_async())
    assert RULE in results["best_texts"]["solve"]
    assert results["best_prompt"] == Genome.named(results["best_texts"]).text

    async def evaluated() -> list[float | None]:
        async with AsyncEvaluationPipeline(config, **how) as pipeline:
            genomes = [Genome.named(TEXTS), Genome.named(results["best_texts"])]
            return [each.accuracy for each in await pipeline.evaluate_population(genomes)]

    assert asyncio.run(evaluated()) == [0.0, 1.0]


def told(summary: Summary) -> Analysis:
    return msgspec.convert(summary.analysis, Analysis)


def test_tokens_and_money_of_all_requests_count(tmp_path: Path) -> None:
    def price(model: str, usage: groundswell.Usage, transport: str) -> float:
        return 1e-6 * (usage.input_tokens + usage.output_tokens)

    async def main() -> Summary:
        async with groundswell.open(tmp_path / "runs.db", script=Solver(), prices=price) as engine:
            return await engine.drive(evolve, settings_for("two_steps", polish=False), name="it", seed=1)

    summary = asyncio.run(main())
    seed = told(summary).evolution.members[0]
    assert seed.tokens == 50
    assert seed.usd == pytest.approx(50e-6 * seed.seen)
    members = told(summary).evolution.members
    assert summary.cost.usd is not None
    assert sum(each.usd or 0.0 for each in members) < summary.cost.usd


def test_a_program_without_requests_costs_nothing(tmp_path: Path) -> None:
    def price(model: str, usage: groundswell.Usage, transport: str) -> float:
        return 1e-6 * (usage.input_tokens + usage.output_tokens)

    settings = settings_for("without_requests", stops=Stops(usd=1.0), max_generations=1, population_size=4, elite=1)

    async def main() -> Summary:
        async with groundswell.open(tmp_path / "runs.db", script=Solver(), prices=price) as engine:
            return await engine.drive(evolve, settings, name="it", seed=1)

    assert told(asyncio.run(main())).evolution.members[0].usd == 0


@pytest.mark.slow
def test_requests_of_a_program_that_fails_count(tmp_path: Path) -> None:
    model = Solver()
    settings = settings_for("raises", polish=False, ablation=False)
    found = asyncio.run(evolved(tmp_path / "runs.db", model, settings))
    seed, fails = found.evolution.members[0], 2  # of the first 12 problems; 1 of the others
    assert seed.asks - 2 * seed.seen in (2 * fails, 2 * (fails + 1))


def test_many_requests_for_a_problem_leave_a_budget_for_the_search(tmp_path: Path) -> None:
    """The finalists are compared on fewer problems, so that not all requests go into choosing one."""
    settings = settings_for("ten_steps", stops=Stops(asks=900), polish=False, ablation=False)
    found = asyncio.run(evolved(tmp_path / "runs.db", Solver(), settings))
    measured = msgspec.structs.replace(settings, requests_per_problem=10.0)
    assert found.shape == measured.shape
    assert 10 * measured.reserved < 900 / 2 < 10 * settings.reserved
    assert len(found.evolution.members) >= 3
    assert found.evolution.asks + 10 * measured.reserved <= 900
