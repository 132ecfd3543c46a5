"""The range contains the bill: what was estimated and counted, against the books of the emulator."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from groundswell import Estimate, Limits, RunStopped, Summary
from groundswell.emulator.server import Threaded
from groundswell.engine.run import RunOptions
from groundswell.estimate.bill import Bill, bill
from groundswell.estimate.declared import DECLARED, estimate_of
from groundswell.estimate.terms import terms_of
from groundswell.prices import ModelPrices
from tests.transports.scene import Bench, Talk, talk

EXAMPLES = Path(__file__).parents[2] / "examples"
OPENAI, ANTHROPIC = "openai/gpt-4o-mini", "anthropic/claude-3-5-haiku-latest"


class Case(NamedTuple):
    """An example, its driver, and settings that ask models with a price."""

    file: str
    driver: str
    settings: Callable[[ModuleType], Any]


CASES = {
    "duel": Case("duel.py", "tournament", lambda there: there.Settings(16, 2, (OPENAI, ANTHROPIC))),
    "second thoughts": Case(
        "second_thoughts.py", "second_thoughts", lambda there: there.Settings(ANTHROPIC, replicates=3)
    ),
    "auction": Case("auction.py", "auctions", lambda there: {"replicates": 15}),
}


def load(case: Case, folder: Path) -> ModuleType:
    """A copy of an example, with a model that costs something in the place of the scripted one."""
    path = folder / case.file
    source = (EXAMPLES / case.file).read_text().replace('"scripted/bidder"', f'"{OPENAI}"')
    path.write_text(re.sub(r'"(examples|demo|shop)/', f'"{folder.name}/', source))  # registered for this test alone
    spec = importlib.util.spec_from_file_location(f"money_{folder.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drive(bench: Bench, driver: Any, settings: Any, **how: Any) -> Summary:
    async def main() -> Summary:
        async with bench.open() as engine:
            return await engine.drive(driver, settings, **how)

    return asyncio.run(main())


def billed(bench: Bench, estimate: Estimate) -> Bill:
    accounts = bench.accounts()
    prices = ModelPrices(lambda: accounts)
    return bill(estimate, {load.model: terms_of(load.model, lambda: accounts, prices) for load in estimate.loads})


@pytest.mark.parametrize("written", [True, False], ids=["declared", "rehearsed by itself"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_range_contains_the_bill(case: Case, written: bool, bench: Bench, emulator: Threaded) -> None:
    module = load(case, bench.folder)
    driver, settings = getattr(module, case.driver), case.settings(module)
    driver.__module__ = "__main__"
    if not written:
        delattr(driver, DECLARED)
    expected = billed(bench, estimate_of(driver, settings))
    summary = drive(bench, driver, settings)
    books = emulator.ledger()
    paid = {name: entry for account in books["accounts"].values() for name, entry in account.items()}
    assert {model.model.partition("/")[2] for model in expected.models} == set(paid)
    for model in expected.models:
        entry = paid[model.model.partition("/")[2]]
        assert entry["requests"] in model.calls
        assert entry["input_tokens"] in model.input_tokens
        assert entry["output_tokens"] in model.output_tokens
        assert model.live_usd is not None
        assert entry["dollars"] in model.live_usd
    assert expected.ways.live.usd is not None
    assert books["totals"]["dollars"] in expected.ways.live.usd
    assert summary.cost.usd == pytest.approx(books["totals"]["dollars"], rel=1e-9)
    assert summary.trials.planned in expected.trials


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
