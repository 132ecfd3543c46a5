"""What was counted, against the books of the emulator. (What was estimated: tests/shows/test_estimates.py.)"""

from __future__ import annotations

import pytest

from groundswell import Limits, RunStopped
from groundswell.emulator.server import Threaded
from groundswell.engine.options import RunOptions
from tests.transports.scene import Bench, Talk, talk

OPENAI, ANTHROPIC = "openai/gpt-4o-mini", "anthropic/claude-3-5-haiku-latest"


def test_a_run_costs_what_the_books_say(bench: Bench, emulator: Threaded) -> None:
    """Long prompts, so that the prompt caches of both providers are at work."""
    specs = [
        Talk(model, f"{number} " + "and so on " * 900, turns=2) for number in range(6) for model in (OPENAI, ANTHROPIC)
    ]
    bench.run(talk, specs, "r")
    record = bench.open().store.runs.get("r")
    books = emulator.ledger()["totals"]
    assert books["dollars"] > 0
    assert record.counters.usd == pytest.approx(books["dollars"], rel=1e-9)
    assert record.counters.unknown_cost == 0


@pytest.mark.parametrize("usd", [0.0005, 0.002])
def test_a_budget_ends_in_time_by_the_books_and_not_far_too_early(usd: float, bench: Bench, emulator: Threaded) -> None:
    bench.options = RunOptions(retry=bench.options.retry, limits=Limits(usd=usd))
    specs = [Talk(OPENAI, f"thing {number}", turns=3) for number in range(400)]
    with pytest.raises(RunStopped, match="is used up"):
        bench.run(talk, specs, "r")
    dollars = emulator.ledger()["totals"]["dollars"]
    assert 0.9 * usd < dollars <= usd
    assert bench.open().store.runs.get("r").status == "partial"


def test_a_larger_budget_goes_on(bench: Bench, emulator: Threaded) -> None:
    specs = [Talk(OPENAI, f"thing {number}", turns=2) for number in range(60)]
    bench.options = RunOptions(limits=Limits(usd=0.0005))
    with pytest.raises(RunStopped, match="is used up"):
        bench.run(talk, specs, "r")
    bench.options = RunOptions(limits=Limits(usd=1.0))
    assert all(outcome.ok for outcome in bench.run(talk, specs, "r"))
    record, books = bench.open().store.runs.get("r"), emulator.ledger()["totals"]
    assert (record.counters.sent, books["requests"]) == (120, 120)
    assert record.counters.usd == pytest.approx(books["dollars"], rel=1e-9)
