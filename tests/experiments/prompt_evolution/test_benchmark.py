"""The benchmark: all ways of evaluating genomes ask the same and come to the same, and figures say what they are."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

import groundswell
from groundswell import Chat, Fault, FaultKind, Reply, Request
from groundswell.errors import RunError, SettingsError
from groundswell.experiments.prompt_evolution.benchmark import PerformanceBenchmark
from groundswell.experiments.prompt_evolution.benchmark.config import KEYS
from groundswell.experiments.prompt_evolution.benchmark.rows import compared, judged, sampled
from groundswell.experiments.prompt_evolution.benchmark.ways import Scores, Workload

TINY = {
    "population_size": 8,
    "num_problems": 30,
    "async_batch_size": 6,
    "max_concurrent_requests": 5,
    "genome_batch_size": 4,
    "max_concurrent_genomes": 2,
    "rate_limit_per_minute": 3500,
    "latency": 0.001,
    "sample": 12,
    "seed": 3,
}
ASKS = 8 * 30
EVERYTHING = ("batches", "ours", "ours, at 100", "client alone, at 100")


async def measured(config: dict[str, Any]) -> tuple[PerformanceBenchmark, dict[str, Any], list[str]]:
    told = list[str]()
    benchmark = PerformanceBenchmark(config, tell=told.append)
    return benchmark, await benchmark.run_comprehensive_benchmark(), told


@pytest.mark.slow
def test_all_ways_on_an_emulator_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark, results, told = asyncio.run(measured(TINY))
    ways = results["ways"]
    assert list(ways) == ["sequential", *EVERYTHING, "ours, with races"]
    assert {ways[name]["calls"] for name in EVERYTHING} == {ASKS} == {results["asks"]}
    assert all(ways[name]["api_efficiency"] == 1 for name in EVERYTHING)
    assert ways["ours, with races"]["api_efficiency"] == ways["ours, with races"]["calls"] / ASKS < 1
    assert [ways[name]["in_flight"] for name in ("sequential", *EVERYTHING)] == [1, 10, 10, 100, 100]
    assert results["same_answers"]
    assert results["differing"] == 0 == sum(way["failed"] for way in ways.values())
    assert results["compared"] > 6 * ASKS
    assert "the emulator has no rate limit" in results["rate_limit"]

    first = ways["sequential"]
    assert first["extrapolated"]
    assert not any(ways[name]["extrapolated"] for name in EVERYTHING)
    assert (first["asked"], first["calls"], first["speedup"]) == (12, ASKS, pytest.approx(1))
    assert first["seconds"] > ASKS * 0.001
    assert ways["ours, at 100"]["speedup"] == pytest.approx(first["seconds"] / ways["ours, at 100"]["seconds"])

    benchmark.print_results_summary()
    shown = capsys.readouterr().out
    assert "8 genomes x 30 problems = 240 requests to the emulator on this machine" in shown
    assert re.search(r"^sequential +1 +[\d.]+\* ", shown, re.MULTILINE)
    assert re.search(r"^ours, with races +10 +[\d.]+ ", shown, re.MULTILINE)
    assert "* extrapolated from 12 requests" in shown
    assert "same answers: yes" in shown
    assert "ours: 240 problems" in told


def test_a_model_that_is_named_is_asked_without_a_warm_up_and_told_of_before() -> None:
    config = TINY | {"model": "emulated/gpt-4o-mini", "num_problems": 10}
    _, results, told = asyncio.run(measured(config))
    assert list(results["ways"]) == ["sequential", "batches", "ours", "ours, with races"]
    assert told[0].startswith(f"emulated/gpt-4o-mini: at most {12 + 3 * 80} requests, ")
    assert results["ways"]["ours"]["calls"] == 80
    assert results["same_answers"]
    assert results["rate_limit"] == "none (the model runs in this process)"
    assert results["ways"]["ours"]["server_cpu_ms"] is None


ASKED = list[str]()
RIGHT = {each.question: each.answer for each in Workload("m", 1, 40, 0).problems}


@groundswell.scripted_model("benchmark-moody")
def moody(request: Request) -> Reply:
    """Right for a while, and then no more."""
    assert isinstance(request, Chat)
    question = str(request.messages[-1].content)
    ASKED.append(question)
    return Reply(RIGHT[question] if len(ASKED) <= 125 else "I have had enough.")


@groundswell.scripted_model("benchmark-deaf")
def deaf(request: Request) -> Fault:
    ASKED.append("")
    return Fault(FaultKind.BAD_REQUEST, "it does not hear this")


def test_different_answers_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    ASKED.clear()
    tiny = {"population_size": 3, "num_problems": 40, "sample": 5, "model": "scripted/benchmark-moody"}
    benchmark, results, _ = asyncio.run(measured(tiny))
    assert not results["same_answers"]
    assert results["differing"] == 2 * (5 + 120)  # the engine, with races and without, beside the two that went first
    assert results["ways"]["ours, with races"]["calls"] == 120, "if all are wrong, none is worse than the first"
    benchmark.print_results_summary()
    assert f"same answers: no: {results['differing']:,} of" in capsys.readouterr().out


def test_if_the_first_ask_fails_nothing_more_is_asked() -> None:
    ASKED.clear()
    with pytest.raises(RunError, match="The first request failed, so the benchmark stopped: it does not hear this"):
        asyncio.run(measured({"model": "scripted/benchmark-deaf"}))
    assert len(ASKED) == 1


def test_the_summary_before_anything_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    PerformanceBenchmark({}).print_results_summary()
    assert "No results yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("config", "field", "said"),
    [
        ({"population": 3}, "population", f"population: unknown key; a benchmark takes {', '.join(KEYS)}"),
        ({"num_problems": 0}, "num_problems", "num_problems 0: must be more than 0"),
        ({"max_concurrent_genomes": "five"}, "max_concurrent_genomes", "max_concurrent_genomes 'five': expected `int`"),
        ({"rate_limit_per_minute": -1}, "rate_limit_per_minute", "rate_limit_per_minute -1: must be more than 0"),
        ({"latency": -0.5}, "latency", "latency -0.5: must be 0 or more"),
        ({"model": 4}, "model", "model 4: expected `str`, got `int`"),
    ],
)
def test_bad_keys_and_values(config: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        PerformanceBenchmark(config)
    assert str(caught.value).startswith(said)
    assert caught.value.field == field


def test_the_same_seed_gives_the_same_genomes_and_no_two_are_alike() -> None:
    one, again, other = (Workload("m", 40, 5, seed) for seed in (1, 1, 2))
    texts = [genome.text for genome in one.genomes]
    assert len(set(texts)) == 40
    assert texts == [genome.text for genome in again.genomes]
    assert texts != [genome.text for genome in other.genomes]
    assert one.problems == again.problems != other.problems


def test_a_sample_is_spread_over_all() -> None:
    places = [(genome, problem) for genome in range(4) for problem in range(5)]
    assert sampled(places, 4) == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert sampled(places, 99) == places


def test_figures_follow_from_what_was_measured() -> None:
    rows = {
        "sequential": {"in_flight": 1, "seconds": 6.0, "asked": 60, "calls": 60},
        "ours": {"in_flight": 10, "seconds": 20.0, "asked": 1000, "calls": 1003},
    }
    found = judged(rows, 1000, 0.05)
    assert found["sequential"]["seconds"] == pytest.approx(100)
    assert found["sequential"]["of_ideal"] == pytest.approx(0.5)
    assert found["ours"]["speedup"] == pytest.approx(5)
    assert found["ours"]["problems_per_second"] == pytest.approx(50)
    assert found["ours"]["of_ideal"] == pytest.approx(0.25)
    assert found["ours"]["api_efficiency"] == pytest.approx(1.003)
    assert judged(rows, 1000, None)["sequential"]["of_ideal"] == pytest.approx(1)
    assert judged(rows, 1000, 0.0)["ours"]["of_ideal"] is None


def test_scores_are_compared_where_two_ways_met_the_same() -> None:
    scores: dict[str, Scores] = {
        "one": {(0, 0): 1.0, (0, 1): 0.0},
        "other": {(0, 0): 1.0},
        "third": {(0, 0): 0.0, (0, 1): 0.0},
    }
    assert compared(scores) == {"same_answers": False, "compared": 4, "differing": 2}
