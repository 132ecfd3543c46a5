"""The budget of a search: the sizes that follow from it, and that it is never exceeded."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groundswell
from groundswell import Chat, Request, Summary, Trial
from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.metrics import metric
from groundswell.experiments.prompt_evolution.problems import Problem, Problems, Sizes, generated
from groundswell.experiments.prompt_evolution.settings import AUTO, Auto, Evolution, Rules, Stops
from groundswell.testing.clock import FakeClock
from groundswell.transports.scripted import Scripted
from tests.experiments.prompt_evolution.stage import PATIENCE, SMALL, Emulated, evolved
from tests.properties import examples

PROBLEMS = generated(sizes=Sizes(60, 30, 5), seed=7)
SEEDS = tuple(Genome(f"Solve this problem. It is number {number}.") for number in range(5))
BASE = Evolution(models=("any",), problems=PROBLEMS, baselines=(), ablation=False)


def changed(**fields: object) -> Evolution:
    return msgspec.structs.replace(BASE, **fields)


def asked_before_the_test(model: Emulated, problems: Problems = PROBLEMS) -> int:
    tested = {each.question for each in problems.test}
    return sum(each.messages[-1].content not in tested for each in model.asked)


@settings(max_examples=examples(15), deadline=None)
@given(
    asks=st.integers(60, 700),
    window=st.one_of(st.none(), st.integers(1, 9)),
    seeds=st.integers(1, 5),
    racing=st.booleans(),
    models=st.integers(1, 2),
    generations=st.sampled_from([None, 3]),
)
def test_a_search_and_its_validation_stay_within_the_budget(
    asks: int, window: int | None, seeds: int, racing: bool, models: int, generations: int | None
) -> None:
    given = changed(
        models=("any", "other")[:models],
        seeds=SEEDS[:seeds],
        stops=Stops(asks=asks),
        genome_batch_size=window,
        rules=Rules(racing=racing),
        max_generations=generations,
    )
    model = Emulated(3)
    with TemporaryDirectory() as folder:
        try:
            analysis = asyncio.run(evolved(Path(folder) / "runs.db", model, given))
        except SettingsError:
            assert not model.asked, "a budget that is too small is refused before anything is asked"
            return
    assert analysis.evolution.asks <= asked_before_the_test(model) <= asks
    assert analysis.evolution.finalists


@metric("asks three times")
async def asks_three_times(trial: Trial, reply: str, problem: Problem) -> float:
    replies = [await trial.ask("any", f"{at}: {reply}", max_tokens=5) for at in range(3)]
    return float(problem.answer in reply) if all(each.text for each in replies) else 0.0


@pytest.mark.sampled
@pytest.mark.parametrize("asks", [300, 150, 900])
def test_requests_of_judges_count(tmp_path: Path, asks: int) -> None:
    given = changed(metric="asks three times", stops=Stops(asks=asks), max_tokens=1)
    model = Emulated()
    found = asyncio.run(evolved(tmp_path / "runs.db", model, given))
    tested = 4 * len(PROBLEMS.test) * len({each.genome for each in found.tested})
    assert asks / 2 < len(model.asked) - tested <= asks
    assert found.shape is not None
    assert found.shape.finalists * found.shape.validation < given.shape.finalists * given.shape.validation


@pytest.mark.slow
@pytest.mark.parametrize("racing", [True, False], ids=["races", "no races"])
def test_a_search_uses_most_of_a_large_budget(tmp_path: Path, racing: bool) -> None:
    given = changed(stops=Stops(asks=2_000), rules=Rules(racing=racing), max_tokens=1)  # too short for an answer
    model = Emulated(3)
    found = asyncio.run(evolved(tmp_path / "runs.db", model, given)).evolution
    assert found.why == "its budget of 2,000 requests covers no further candidate"
    assert 1_500 < asked_before_the_test(model) <= 2_000


@pytest.mark.slow
def test_every_search_has_the_budget(tmp_path: Path) -> None:
    given = changed(stops=Stops(asks=300), baselines=("random", "best_of_n"))
    model = Emulated(3)
    analysis = asyncio.run(evolved(tmp_path / "runs.db", model, given))
    validated = given.shape.finalists * given.shape.validation
    assert all(each.asks + validated <= 300 for each in analysis.searches)
    assert asked_before_the_test(model) <= 3 * 300


@pytest.mark.parametrize(
    ("fields", "least"),
    [
        ({"stops": Stops(asks=5)}, 7),
        ({"stops": Stops(asks=5), "models": ("any", "other")}, 14),
        ({"stops": Stops(asks=5), "finalists": 10, "polish": False}, 13),
        ({"stops": Stops(asks=5), "metric": "asks three times"}, 7),
        ({"stops": Stops(asks=60), "rules": Rules(racing=False), "seeds": SEEDS}, 329),
    ],
    ids=["one seed", "two models", "ten finalists", "judges", "no races"],
)
def test_a_budget_that_is_too_small_is_refused(tmp_path: Path, fields: dict[str, object], least: int) -> None:
    model = Emulated()
    with pytest.raises(SettingsError, match=rf"asks \d+: must be at least {least}, to evaluate the seed"):
        asyncio.run(evolved(tmp_path / "runs.db", model, changed(**fields)))
    assert not model.asked


@given(
    asks=st.integers(500, 30_000),
    models=st.integers(1, 3),
    sizes=st.builds(Sizes, st.integers(10, 500), st.integers(5, 400), st.just(10)),
)
def test_sizes_suit_the_budget(asks: int, models: int, sizes: Sizes) -> None:
    sets = {name: (Problem(f"{name}?", "1"),) * getattr(sizes, name) for name in ("train", "validation", "test")}
    problems = Problems(**sets, source="by hand")
    given = changed(models=("any", "other", "third")[:models], problems=problems, stops=Stops(asks=asks))
    shape = given.shape
    assert (shape.asks, shape.births) == (asks, None)
    assert 1 <= shape.window <= 8 < shape.population_size
    assert 2 <= shape.block <= 10
    assert 2 <= shape.finalists <= 10
    assert min(sizes.validation, 20) <= shape.validation <= sizes.validation
    assert given.reserved * models <= asks / 2 + models
    if asks >= 1_500 * models:
        assert given.reserved * models <= 0.45 * asks
        assert shape.validation >= min(sizes.validation, 25)


def test_larger_budgets_have_larger_sizes() -> None:
    problems = generated(sizes=Sizes(200, 150, 10), seed=7)
    shapes = [changed(problems=problems, stops=Stops(asks=asks)).shape for asks in (500, 1_500, 5_000, 20_000, 30_000)]
    for one, other in pairwise(shapes):
        assert one.block <= other.block
        assert one.window <= other.window
        assert one.finalists <= other.finalists
        assert one.finalists * one.validation <= other.finalists * other.validation
    assert shapes[0].block < shapes[-1].block
    assert shapes[0].window < shapes[-1].window
    assert shapes[0].finalists < shapes[-1].finalists


@pytest.mark.parametrize("auto", AUTO)
def test_a_budget_has_a_name(auto: Auto) -> None:
    assert changed(auto=auto).shape.asks == AUTO[auto]
    assert changed(auto=auto, stops=Stops(asks=77)).shape.asks == 77
    for own in ({"max_generations": 4}, {"stops": Stops(usd=1.0)}, {"stops": Stops(seconds=9)}):
        assert changed(auto=auto, **own).shape.asks is None


def test_sizes_that_are_given_are_kept() -> None:
    shape = changed(population_size=31, genome_batch_size=7, finalists=4, rules=Rules(block=9), max_generations=6).shape
    assert (shape.population_size, shape.births, shape.window) == (31, 6 * 31, 7)
    assert (shape.block, shape.finalists, shape.validation) == (9, 4, 30)


def test_a_search_ends_when_its_time_is_up_and_resumed_at_the_same_birth(tmp_path: Path) -> None:
    clock = FakeClock()
    given = msgspec.structs.replace(
        SMALL,
        models=("scripted/any",),
        max_generations=None,
        genome_batch_size=1,  # so the time is up at the same birth in every run
        baselines=(),
        stops=Stops(seconds=1_000),
    )
    emulated = Emulated()
    slow_at: int | None = 60

    def model(request: Request) -> groundswell.Reply | groundswell.Fault:
        assert isinstance(request, Chat)
        emulated.asked.append(request)
        if len(emulated.asked) == slow_at:
            clock.advance(2_000)
        return emulated.answer(request)

    async def session(store: str, limit: int | None = None) -> Summary:
        emulated.asked.clear()
        options = msgspec.structs.replace(PATIENCE, limits=groundswell.Limits(calls=limit))
        engine = groundswell.open(tmp_path / store, transport=Scripted(model), clock=clock)
        clock.watch(engine.store)  # type: ignore[arg-type]  # the store has a thread of its own
        async with engine:
            return await engine.drive(evolve, given, name="it", seed=1, options=options)

    whole = clock.run(session("whole.db"))
    found = msgspec.convert(whole.analysis, Analysis).evolution
    assert found.why == "its 1000 seconds are used"
    assert 1 < len(found.members) < 30
    first = clock.run(session("parts.db", found.asks + 5))
    assert first.status == "partial"
    slow_at = None
    assert clock.run(session("parts.db")).analysis == whole.analysis, "however fast it is now"
