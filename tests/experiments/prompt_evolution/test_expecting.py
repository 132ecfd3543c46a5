"""The estimate of an evolution: it holds what a run came to use, and knows what ends one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from groundswell.engine.spending import Range
from groundswell.estimate.declared import estimate_of
from groundswell.estimate.figures import Estimate
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.expecting import expected_search, fewest_births
from groundswell.experiments.prompt_evolution.metrics import metric
from groundswell.experiments.prompt_evolution.problems import Problem, Sizes, generated
from groundswell.experiments.prompt_evolution.searching import GATE, KEPT
from groundswell.experiments.prompt_evolution.settings import Evolution, Rules, Stops
from groundswell.program.trial import Trial
from tests.experiments.prompt_evolution.stage import SMALL, Emulated, evolved


def changed(**fields: object) -> Evolution:
    return msgspec.structs.replace(SMALL, **fields)


def calls(estimate: Estimate, model: str) -> Range:
    return next((load.calls for load in estimate.loads if load.model == model), Range(0, 0))


TINY = changed(problems=generated(sizes=Sizes(8, 4, 6), seed=7), population_size=4, max_generations=4)
WHOLE = {"rules": Rules(racing=False), "baselines": ()}


@pytest.mark.sampled
@pytest.mark.parametrize(
    "settings",
    [
        msgspec.structs.replace(TINY, **some)
        for some in ({}, WHOLE, {"baselines": (), "stops": Stops(asks=30, plateau=None)})
    ],
    ids=["races", "no races", "so many asks"],
)
def test_what_a_run_uses_was_expected(tmp_path: Path, settings: Evolution) -> None:
    model = Emulated()
    asyncio.run(evolved(tmp_path / "runs.db", model, settings))
    expected = estimate_of(evolve, settings)
    assert len(model.asked) in calls(expected, "any")
    assert len(model.asked) in expected.trials


def test_no_races_and_no_stops_leave_only_the_writer_open() -> None:
    settings = changed(rules=Rules(racing=False), stops=Stops(plateau=None), operators={"insert": 1.0}, baselines=())
    found = expected_search(settings)
    assert found.solved == Range(30 * 20, 30 * 20)
    assert found.written == Range(0, 0)
    assert found.turns == Range(30 / 4, 8)


@pytest.mark.parametrize(
    ("stops", "births"),
    [
        (Stops(plateau=None), 30),
        (Stops(plateau=2), 12 + 3),
        (Stops(plateau=None, least_spread=0.1), 6 + 3),
        (Stops(target=0.9), 1),
        (Stops(plateau=20), 30),
        (Stops(usd=1.0), 1),
    ],
    ids=["none", "plateau", "spread", "target", "beyond the last birth", "dollars"],
)
def test_how_soon_it_may_end(stops: Stops, births: int) -> None:
    assert fewest_births(changed(stops=stops)) == births


def test_the_writer_and_each_model_have_their_share() -> None:
    settings = changed(models=("one", "two"), writer="third", operators={"reflect": 1.0}, baselines=())
    found = estimate_of(evolve, settings)
    assert calls(found, "one") == calls(found, "two")
    assert calls(found, "third") == Range(29, 30)
    assert found.trials.high == pytest.approx(sum(calls(found, model).high for model in ("one", "two", "third")))


@pytest.mark.parametrize("asks", [300, 1_000, 20_000])
@pytest.mark.parametrize("each", [1, 2], ids=["plain", "with a judge"])
def test_a_limit_on_asks_is_kept(asks: int, each: int) -> None:
    settings = changed(stops=Stops(asks=asks), max_generations=None, operators={"reflect": 1.0}, baselines=())
    found = expected_search(settings, Range(each, each))
    left = asks - each * settings.reserved
    assert found.solved.high * each + found.written.low == pytest.approx(left), "the writer's requests count, too"
    assert left - each * 70 < each * found.solved.low + found.written.high < asks
    assert found.written.high < left / 6, "each candidate is also evaluated on some problems"


def test_a_search_with_a_limit_on_asks_may_also_end_after_its_generations() -> None:
    settings = changed(stops=Stops(asks=20_000), baselines=())
    assert expected_search(settings).whole.low <= 30 * (GATE + KEPT)


def test_a_metric_that_asks_is_counted() -> None:
    @metric("asked-for-an-estimate")
    async def judged(trial: Trial, reply: str, problem: Problem) -> float:
        await trial.ask("judge", f"Is {reply} right? It is {problem.answer}.", max_tokens=5)
        return 1.0

    settings = changed(metric="asked-for-an-estimate", operators={"insert": 1.0}, baselines=(), polish=False)
    found = estimate_of(evolve, settings)
    assert calls(found, "judge") == calls(found, "any")
    limited = msgspec.structs.replace(settings, stops=Stops(asks=200), ablation=False)
    some = estimate_of(evolve, limited)
    most = calls(some, "judge").high + calls(some, "any").high
    tested = 2 * 2 * len(limited.problems.test)
    assert most == pytest.approx(200 + tested), "a limit holds for both"
