"""The performance test of the description: its command, and its sample, with nothing changed but where things are."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell.experiments.prompt_evolution.benchmark import PerformanceBenchmark

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import test_async_performance  # noqa: E402


async def benchmark_performance() -> dict[str, Any]:
    config = {
        'population_size': 30,
        'num_problems': 50,
        'async_batch_size': 20,
        'max_concurrent_requests': 10,
        'genome_batch_size': 10,
        'max_concurrent_genomes': 5,
        'rate_limit_per_minute': 3500
    }  # fmt: skip

    benchmark = PerformanceBenchmark(config)
    results = await benchmark.run_comprehensive_benchmark()
    benchmark.print_results_summary()

    return results


@pytest.mark.campaign
def test_the_documented_sample(capsys: pytest.CaptureFixture[str]) -> None:
    results = asyncio.run(benchmark_performance())
    assert results["same_answers"]
    assert results["ways"]["ours"]["speedup"] > 5
    assert "30 genomes x 50 problems = 1,500 requests" in capsys.readouterr().out


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    """What the command prints."""
    kept = {name: value for name, value in os.environ.items() if name not in ("OPENAI_API_KEY", "GROUNDSWELL_STORE")}
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / "test_async_performance.py"), *words],
        env={**kept, "PYTHONPATH": str(Path(groundswell.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.campaign
def test_the_command_runs_at_once_on_the_emulator() -> None:
    done = typed("--genomes", "2", "--problems", "4")
    assert done.returncode == 0, done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith("OPENAI_API_KEY is not set: measuring the emulator on this machine")
    assert "--model local/smollm2" in first
    assert "2 genomes x 4 problems = 8 requests to the emulator on this machine" in done.stdout
    assert "same answers: yes" in done.stdout


def test_a_model_without_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["test_async_performance.py", "--model", "openai/gpt-4o-mini"])
    with pytest.raises(SystemExit, match=r"error: .*OPENAI_API_KEY"):
        test_async_performance.main()
