"""Money: a limit in dollars ends an evolution, by the rates that were kept when it began."""

from __future__ import annotations

import asyncio
import re
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell import Chat, Fault, Limits, Reply, RunOptions, Summary, Usage
from groundswell.emulator.latency import Latency
from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from groundswell.engine.ports import Prices
from groundswell.errors import RunError, RunNotFound, SettingsError
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.metrics import metric
from groundswell.experiments.prompt_evolution.problems import Problem, Sizes, generated
from groundswell.experiments.prompt_evolution.settings import Evolution, Stops
from groundswell.providers.accounts.config import load
from tests.experiments.prompt_evolution.stage import SMALL, Deaf, Emulated
from tests.transports.scene import environment

BASE = msgspec.structs.replace(
    SMALL, problems=generated(sizes=Sizes(10, 5, 8), seed=7), max_generations=10, baselines=("best_of_n",)
)
LIMIT = 0.01
USED = re.compile(r"^its budget of \d+ requests( or \$\d\.\d\d)? covers no further candidate$")
LIMITED = msgspec.structs.replace(BASE, stops=Stops(usd=LIMIT))


def at(dollars: float) -> Prices:
    """Prices for a million tokens, of which those that are written cost four times as much."""

    def price(model: str, usage: Usage, transport: str) -> float:
        return dollars * (usage.input_tokens + 4 * usage.output_tokens) / 1e6

    return price


def evolution(
    store: Path,
    prices: Prices | None,
    settings: Evolution = LIMITED,
    calls: int | None = None,
    model: Emulated | None = None,
) -> Summary:
    async def main() -> Summary:
        options = RunOptions(limits=Limits(calls=calls))
        async with groundswell.open(store, script=model or Emulated(), prices=prices) as engine:
            return await engine.drive(evolve, settings, name="it", seed=1, options=options)

    return asyncio.run(main())


def told(summary: Summary) -> Analysis:
    return msgspec.convert(summary.analysis, Analysis)


def spent_after(analysis: Analysis) -> list[float]:
    """What an evolution had spent after each birth."""
    return list(accumulate(each.usd or 0.0 for each in analysis.evolution.members))


@pytest.mark.parametrize("limit", [2 * LIMIT, 3 * LIMIT])
def test_a_whole_run_costs_no_more_than_its_limit(tmp_path: Path, limit: float) -> None:
    endless = msgspec.structs.replace(LIMITED, max_generations=None, stops=Stops(usd=limit))
    summary = evolution(tmp_path / "runs.db", at(1.0), endless)
    found = told(summary)
    assert all(USED.search(each.why) for each in found.searches)
    spent = spent_after(found)
    assert found.evolution.usd == pytest.approx(spent[-1])
    assert len(spent) > 2
    assert limit / 2 < (summary.cost.usd or 0) <= limit, "searches, validation and test"
    others = found.searches[1]
    assert others.asks <= found.evolution.asks


def test_a_limit_that_does_not_cover_the_test_is_told_before_the_search(tmp_path: Path) -> None:
    model = Emulated()
    with pytest.raises(RunError, match=r"usd 0\.001: the held-out test needs about \$0\.\d+, so nothing is left"):
        evolution(tmp_path / "runs.db", at(1.0), msgspec.structs.replace(LIMITED, stops=Stops(usd=0.001)), model=model)
    assert len(model.asked) == len(LIMITED.problems.train)


@pytest.mark.sampled
@pytest.mark.parametrize("limit", [0.06, 0.12])
def test_an_ablation_is_within_the_limit(tmp_path: Path, limit: float) -> None:
    settings = msgspec.structs.replace(
        BASE,
        problems=generated(sizes=Sizes(60, 100, 20), seed=7),
        max_generations=None,
        baselines=(),
        max_tokens=12,  # too short for some answers, so the search uses all its budget
        stops=Stops(usd=limit),
    )
    summary = evolution(tmp_path / "runs.db", at(1.0), settings)
    assert limit / 2 < (summary.cost.usd or 0) <= limit
    found = told(summary)
    assert found.parts or found.why_no_parts == f"the limit of ${limit:g} does not cover it"


def test_a_limit_in_requests_holds_with_one_in_dollars(tmp_path: Path) -> None:
    model = Emulated()
    settings = msgspec.structs.replace(LIMITED, max_generations=None, baselines=(), stops=Stops(asks=20, usd=1))
    found = told(evolution(tmp_path / "runs.db", at(1.0), settings, model=model))
    tested = len({each.genome for each in found.tested}) * len(settings.problems.test)
    assert 10 < len(model.asked) - tested <= 20
    with pytest.raises(SettingsError, match="must be at least"):
        evolution(tmp_path / "other.db", at(1.0), msgspec.structs.replace(settings, stops=Stops(asks=3, usd=1)))


def test_a_limit_needs_a_seed_whose_cost_can_be_measured(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the cost of the seed prompts could not be measured: it does not hear"):
        evolution(tmp_path / "runs.db", at(1.0), model=Deaf("Solve"))


def test_replies_that_a_metric_fails_on_are_paid_for(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(LIMITED, metric="fails at times", max_generations=None, baselines=())
    summary = evolution(tmp_path / "runs.db", at(1.0), settings, model=Flat())
    seed = told(summary).evolution.members[0]
    assert (seed.seen, seed.asks) == (9, 10)
    assert seed.usd == pytest.approx(10 * 90e-6)
    assert LIMIT / 2 < (summary.cost.usd or 0) <= LIMIT


class Flat(Emulated):
    """Every reply costs the same."""

    def answer(self, request: Chat) -> Reply | Fault:
        reply = super().answer(request)
        return msgspec.structs.replace(reply, usage=Usage(50, 10)) if isinstance(reply, Reply) else reply


@metric("fails at times")
def fails_at_times(reply: str, problem: Problem) -> float:
    if problem.question == BASE.problems.train[4].question:
        raise ValueError("a question that it does not like")
    return float(problem.answer in reply)


def test_an_evolution_counts_what_its_births_and_races_cost(tmp_path: Path) -> None:
    model, price = Emulated(), at(1.0)
    settings = msgspec.structs.replace(LIMITED, baselines=(), polish=False)
    summary = evolution(tmp_path / "runs.db", price, settings, model=model)
    chosen = {each.question for each in (*LIMITED.problems.validation, *LIMITED.problems.test)}
    paid = {True: 0.0, False: 0.0}
    for each in model.asked:
        reply = model.answer(each)
        assert isinstance(reply, Reply)
        paid[each.messages[-1].content in chosen] += price("any", reply.usage, "") or 0.0
    assert told(summary).evolution.usd == pytest.approx(paid[False])
    assert summary.cost.usd == pytest.approx(paid[False] + paid[True])


@pytest.mark.slow
def test_a_price_that_changes_later_changes_no_decision(tmp_path: Path) -> None:
    whole = evolution(tmp_path / "whole.db", at(1.0))
    stopped = evolution(tmp_path / "changed.db", at(1.0), calls=30)
    assert stopped.status == "partial"
    changed = evolution(tmp_path / "changed.db", at(10.0))
    assert changed.status == "completed"
    assert changed.analysis == whole.analysis
    assert (changed.cost.usd or 0) > 2 * (whole.cost.usd or 0), "the new price was paid all the same"
    assert told(evolution(tmp_path / "dear.db", at(2.0))) != told(whole)


def test_a_price_that_is_not_known_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    model = Emulated()
    with pytest.raises(SettingsError, match=r"usd 0.01: the price of any is unknown.*\[prices\]") as error:
        evolution(tmp_path / "runs.db", None, model=model)
    assert error.value.field == "usd"
    assert not model.asked

    async def look() -> None:
        async with groundswell.open(tmp_path / "runs.db", script=model) as engine:
            with pytest.raises(RunNotFound):
                engine.stored("it")

    asyncio.run(look())
    assert evolution(tmp_path / "runs.db", at(1.0)).status == "completed", "its name is free again"


def test_the_writer_must_have_a_price_too(tmp_path: Path) -> None:
    def some(model: str, usage: Usage, transport: str) -> float | None:
        return None if model == "writer" else at(1.0)(model, usage, transport)

    settings = msgspec.structs.replace(LIMITED, writer="writer")
    with pytest.raises(SettingsError, match="the price of writer is unknown"):
        evolution(tmp_path / "runs.db", some, settings)
    free = msgspec.structs.replace(settings, stops=Stops(asks=60))
    assert told(evolution(tmp_path / "runs.db", some, free)).evolution.usd is None


def test_without_a_limit_nobody_needs_a_price(tmp_path: Path) -> None:
    found = told(evolution(tmp_path / "runs.db", None, msgspec.structs.replace(BASE, max_generations=2)))
    assert found.evolution.usd is None
    assert {each.usd for each in found.front} == {None}


@pytest.mark.slow
def test_prices_of_groundswell_toml(tmp_path: Path) -> None:
    """Over real HTTP: nothing is asked before the file has the price, and what the run paid is what the books say."""
    name, toml = "openai/fine-tuned", tmp_path / "groundswell.toml"
    settings = msgspec.structs.replace(LIMITED, models=(name,))
    with running(Settings(latency=Latency(0.0), models=("*",))) as emulator:

        def live() -> Summary:
            async def main() -> Summary:
                accounts = load(environment(emulator.url), tmp_path, tmp_path / "home", ())
                async with groundswell.open(tmp_path / "runs.db", accounts=accounts) as engine:
                    return await engine.drive(evolve, settings, name="it", seed=1)

            return asyncio.run(main())

        with pytest.raises(SettingsError, match=f"the price of {name} is unknown"):
            live()
        assert emulator.ledger()["totals"]["received"] == 0
        toml.write_text(f'[prices]\n"{name}" = {{ input = 1.0, output = 4.0 }}\n')
        summary = live()
        books = emulator.ledger()["totals"]
    found = told(summary)
    assert USED.search(found.evolution.why)
    assert summary.cost.usd == pytest.approx((books["input_tokens"] + 4 * books["output_tokens"]) / 1e6)
    assert 0 < (found.evolution.usd or 0) < (summary.cost.usd or 0) <= LIMIT
