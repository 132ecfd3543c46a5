"""Metrics of one's own: what they may ask, what is no score, and what happens to a run when one of them is edited."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Chat, Embed, Embedding, Fault, Reply, Request, Run, SourceChanged, Summary, Usage
from groundswell.engine.ports import Prices
from groundswell.errors import SettingsError
from groundswell.experiments.named import trust_named
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.problems import Sizes, generated
from groundswell.experiments.prompt_evolution.settings import Evolution, Rules, Stops
from groundswell.experiments.prompt_evolution.tokens import CROSSOVERS, MUTATIONS
from tests.experiments.prompt_evolution.stage import SMALL, Emulated, evolved

HEAD = """
from groundswell.experiments.prompt_evolution.answers import extracted, same_number
from groundswell.experiments.prompt_evolution.metrics import metric


@metric("NAME")
"""
RIGHT = """def own(reply, problem):
    found = extracted(reply)
    return 1.0 if found and same_number(found, problem.answer) else WORTH
"""
ODD = """def own(reply, problem):
    return WORTH if problem.question in ODD else 1.0
"""
JUDGED = """async def own(trial, reply, problem):
    said = await trial.ask("judge", f"Is {problem.answer} right? {reply}", temperature=0.0, max_tokens=5)
    return float(said.text)
"""
EMBEDDED = """async def own(trial, reply, problem):
    found = await trial.embed("vectors", [reply, problem.answer])
    return found.vectors[0][0]
"""
CALM = msgspec.structs.replace(
    SMALL,
    operators=dict.fromkeys((*MUTATIONS, *CROSSOVERS), 1.0),
    adapt=False,
    polish=False,
    problems=generated(sizes=Sizes(10, 5, 8), seed=7),
    max_generations=2,
    rules=Rules(racing=False),
    baselines=("random",),
)
"""An evolution without a writer, in which genomes depend on who is better alone, not on by how much."""
Own = Callable[[str], str]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Own:
    """Writes a module with a metric, in the place of the one that was there; says what settings call it."""
    module = f"metric_{re.sub(r'[^a-z]+', '_', request.node.name)}"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(body: str) -> str:
        (tmp_path / f"{module}.py").write_text((HEAD + body).replace("NAME", module))
        importlib.invalidate_caches()
        sys.modules.pop(module, None)
        trust_named([name := f"{module}:{module}"])
        return name

    return write


def with_metric(name: str, settings: Evolution = CALM) -> Evolution:
    return msgspec.structs.replace(settings, metric=name)


class Judge(Emulated):
    """The emulated model; and a judge, to whom everything is worth a half."""

    def answer(self, request: Chat) -> Reply | Fault:
        return Reply("0.5", Usage(20, 2)) if request.model == "judge" else super().answer(request)


class Vectors(Emulated):
    """The emulated model; and one that embeds."""

    async def __call__(self, request: Request) -> Reply | Fault | Embedding:  # type: ignore[override]
        if isinstance(request, Embed):
            return Embedding.of([[0.5]] * len(request.texts), Usage(5, 0))
        return await super().__call__(request)


def told(summary: Summary) -> Analysis:
    return msgspec.convert(summary.analysis, Analysis)


def test_a_metric_that_was_edited_is_refused_or_everything_is_scored_anew_without_asking(
    tmp_path: Path, own: Own
) -> None:
    name, model = own(RIGHT.replace("WORTH", "0.0")), Emulated()

    async def main() -> tuple[Summary, Summary]:
        async with groundswell.open(tmp_path / "runs.db", script=model) as engine:
            first = await engine.drive(evolve, with_metric(name), name="it", seed=1)
            asked = len(model.asked)
            own(RIGHT.replace("WORTH", "0.25"))
            importlib.import_module(name.partition(":")[0])
            with pytest.raises(SourceChanged, match=f"prompt_evolution/metrics/{name.partition(':')[2]}"):
                await engine.resume("it")
            assert engine.stored("it").record.status == "completed", "refused, nothing has happened to it"
            again = await engine.resume("it", accept_changes=True)
            assert len(model.asked) == asked
            assert (await engine.resume("it")).analysis == again.analysis
            return first, again

    first, again = asyncio.run(main())
    before, after = told(first), told(again)
    assert again.trials == first.trials
    assert again.asks.replayed >= first.trials.planned, "all trials were gone through again"
    assert [each.genome for each in after.evolution.members] == [each.genome for each in before.evolution.members]
    for one, other in zip(before.tested, after.tested, strict=True):
        assert other.scores == tuple(score or 0.25 for score in one.scores)
        assert 0.25 in other.scores


def test_an_edit_that_makes_others_win_asks_for_what_is_new_alone(tmp_path: Path, own: Own) -> None:
    name, model = own(RIGHT.replace("WORTH", "0.0")), Emulated()

    async def main() -> tuple[Summary, Summary]:
        async with groundswell.open(tmp_path / "runs.db", script=model) as engine:
            first = await engine.drive(evolve, with_metric(name), name="it", seed=1)
            own("def own(reply, problem):\n    return float(len(reply) % 7 < 3)\n")
            return first, await engine.drive(evolve, with_metric(name), name="it", seed=1, accept_changes=True)

    first, again = asyncio.run(main())
    assert told(again).evolution.winner != told(first).evolution.winner
    asked = [groundswell.fingerprint(each) for each in model.asked]
    assert len(asked) == len(set(asked)) > first.asks.sent


def test_one_that_goes_on_is_refused_too(tmp_path: Path, own: Own) -> None:
    name = own(RIGHT.replace("WORTH", "0.0"))
    few = groundswell.RunOptions(limits=groundswell.Limits(calls=60))

    async def session(**how: Any) -> Summary:
        async with groundswell.open(tmp_path / "runs.db", script=Emulated()) as engine:
            return await engine.drive(evolve, with_metric(name), name="it", seed=1, **how)

    assert asyncio.run(session(options=few)).status == "partial"
    own(RIGHT.replace("WORTH", "0.25"))
    with pytest.raises(SourceChanged, match="prompt_evolution/metrics/metric_"):
        asyncio.run(session())
    changed = told(asyncio.run(session(accept_changes=True)))
    assert {score for each in changed.evolution.members for score in each.scores} == {0.25, 1.0}, "of one kind"


def test_a_metric_that_asks_a_model(tmp_path: Path, own: Own) -> None:
    model, settings = Judge(), msgspec.structs.replace(CALM, max_generations=2, baselines=())
    found = asyncio.run(evolved(tmp_path / "runs.db", model, with_metric(own(JUDGED), settings)))
    assert {score for each in found.evolution.members for score in each.scores} == {0.5}
    assert {score for each in found.tested for score in each.scores} == {0.5}
    judged = sum(each.model == "judge" for each in model.asked)
    assert 0 < judged <= len(model.asked) - judged, "equal replies to a problem are judged once"


def test_what_a_metric_asks_is_counted_with_what_a_search_spends(tmp_path: Path, own: Own) -> None:
    settings = msgspec.structs.replace(CALM, baselines=())
    plain, judged = (
        asyncio.run(evolved(tmp_path / f"{name}.db", Judge(), with_metric(metric, settings))).evolution
        for name, metric in (("plain", "contains"), ("judged", own(JUDGED)))
    )
    assert all(each.asks == len(each.scores) for each in plain.members if each.asks)
    assert all(each.asks == 2 * len(each.scores) for each in judged.members if each.asks)
    assert judged.asks == sum(each.asks for each in judged.members)
    problems = len(CALM.problems.train)
    assert judged.asks + judged.savings.racing + judged.savings.known == 2 * problems * len(judged.members)


def test_a_limit_on_asks_holds_for_those_of_a_metric(tmp_path: Path, own: Own) -> None:
    stops, model = Stops(asks=200), Judge()
    settings = msgspec.structs.replace(CALM, stops=stops, rules=Rules(), baselines=(), ablation=False)
    settings = msgspec.structs.replace(settings, max_generations=None, population_size=None)
    found = asyncio.run(evolved(tmp_path / "runs.db", model, with_metric(own(JUDGED), settings))).evolution
    assert found.why == "its budget of 200 requests covers no further candidate"
    tested = {each.question for each in CALM.problems.test}
    asked = [each for each in model.asked if each.messages[-1].content not in tested]
    judged = 2 * len(tested)  # of the seed prompt and of the winner
    assert 2 * len(CALM.problems.train) < found.asks < len(asked) <= 200 + judged, "judges of the test beside"


def test_a_metric_may_ask_a_model_that_embeds_and_does_not_talk(tmp_path: Path, own: Own, monkeypatch: Any) -> None:
    """It is asked for its price as what it is."""
    priced = list[str]()

    def price(self: Run, request: Request, usage: Usage) -> float:
        priced.append(f"{type(request).__name__} {request.model}")
        if request.model == "vectors" and isinstance(request, Chat):
            raise SettingsError("model 'vectors': it embeds texts, and does not talk")
        return 1e-6 * usage.input_tokens

    monkeypatch.setattr(Run, "price", price)
    settings = msgspec.structs.replace(with_metric(own(EMBEDDED)), baselines=())
    found = asyncio.run(evolved(tmp_path / "runs.db", Vectors(), settings)).evolution
    assert "Embed vectors" in priced
    assert found.usd is not None
    assert found.usd > 0


def test_a_limit_in_dollars_holds_for_what_a_metric_asks(tmp_path: Path, own: Own) -> None:
    def price(model: str, usage: Usage, transport: str) -> float | None:
        return {"judge": 1e-4, "any": 0.0}[model] * (usage.input_tokens + usage.output_tokens)

    settings = msgspec.structs.replace(with_metric(own(JUDGED)), stops=Stops(usd=0.3), baselines=())

    def found(store: str, prices: Prices) -> Summary:
        async def main() -> Summary:
            async with groundswell.open(tmp_path / store, script=Judge(), prices=prices) as engine:
                return await engine.drive(evolve, settings, name="it", seed=1)

        return asyncio.run(main())

    summary = found("known.db", price)
    search = told(summary).evolution
    assert re.search(r"^its budget of \d+ requests or \$0.30 covers no further candidate$", search.why)
    assert summary.cost.usd is not None
    assert summary.cost.usd <= 0.3
    assert search.usd == pytest.approx(1e-4 * 22 * search.asks / 2)
    assert {each.usd for each in search.finalists} == {0.0}, "a judge is no cost of the prompt"
    with pytest.raises(SettingsError, match=r"usd 0\.3: the price of judge is unknown"):
        found("unknown.db", lambda model, usage, transport: None if model == "judge" else 0.0)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("worth", "why"),
    [
        ("1.5", "returned 1.5; it must return a number from 0 to 1"),
        ("-0.1", "returned -0.1; it must return a number from 0 to 1"),
        ("float('nan')", "returned nan; it must return a number from 0 to 1"),
        ("None", "NoneType"),
    ],
)
def test_what_is_no_score_is_missing(worth: str, why: str, tmp_path: Path, own: Own) -> None:
    odd = (CALM.problems.train[1].question, CALM.problems.test[3].question)
    name = own(ODD.replace("WORTH", worth).replace("ODD", repr(odd)))
    settings = msgspec.structs.replace(with_metric(name), max_generations=1, baselines=())

    async def main() -> tuple[Summary, list[str]]:
        async with groundswell.open(tmp_path / "runs.db", script=Emulated()) as engine:
            summary = await engine.drive(evolve, settings, name="it", seed=1)
            return summary, engine.stored("it").frame()["fault_message"].drop_nulls().to_list()

    summary, faults = asyncio.run(main())
    found = told(summary)
    assert {each.scores[1] for each in found.evolution.members if each.scores} == {None}
    assert {each.scores[3] for each in found.tested} == {None}
    assert {each.n for each in found.tested} == {len(CALM.problems.test) - 1}
    assert len(faults) == summary.trials.missing > 0
    assert all(why in each for each in faults)
