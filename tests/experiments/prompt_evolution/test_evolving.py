"""An evolution: the same genomes whatever the network does, the same budget for all, and a test that stays sealed."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as settings_of
from hypothesis import strategies as st

import groundswell
from groundswell import Chat, Fault, FaultKind, Limits, Reply, Request, RunOptions, Summary
from groundswell.emulator.skills.landscape import OPTIMUM
from groundswell.errors import RunError, RunStopped, SettingsError
from groundswell.experiments import outage
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.costs import Costs
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.evolving import evolved as planned
from groundswell.experiments.prompt_evolution.examining import Examiner
from groundswell.experiments.prompt_evolution.fitness import COMPOSITE, Weights
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.metrics import metric
from groundswell.experiments.prompt_evolution.population import LIVING, Member
from groundswell.experiments.prompt_evolution.problems import Problem, Sizes, generated
from groundswell.experiments.prompt_evolution.searching import (
    DEEPEST,
    GATE,
    KEPT,
    LEAST,
    UNLIMITED,
    Plan,
    Purse,
    Search,
)
from groundswell.experiments.prompt_evolution.settings import Evolution, Rules, Stops
from groundswell.testing.clock import FakeClock
from groundswell.transports.scripted import Scripted
from tests.experiments.prompt_evolution.stage import PATIENCE, SMALL, Deaf, Emulated, evolved
from tests.properties import examples


def ran(store: Path, script: Emulated, settings: Evolution = SMALL, seed: int = 1) -> bytes:
    return msgspec.json.encode(asyncio.run(evolved(store, script, settings, seed)))


MANY = tuple(Genome(f"Solve the problem. Be number {number}.") for number in range(3))
BUDGET = msgspec.structs.replace(
    SMALL,
    problems=generated(sizes=Sizes(50, 10, 10), seed=7),
    seeds=MANY,
    population_size=None,
    max_generations=None,
    stops=Stops(asks=500),
)
"""A search that ends with its budget, and begins with several prompts."""


@pytest.mark.slow
@pytest.mark.parametrize("settings", [SMALL, BUDGET], ids=["generations", "budget"])
def test_the_order_of_replies_changes_nothing(tmp_path: Path, settings: Evolution) -> None:
    calm = ran(tmp_path / "calm.db", Emulated(), settings)
    assert ran(tmp_path / "busy.db", Emulated(1), settings) == calm
    alone = msgspec.structs.replace(settings, baselines=())
    assert ran(tmp_path / "other.db", Emulated(2), alone) != ran(tmp_path / "seed.db", Emulated(2), alone, seed=2)


@settings_of(max_examples=examples(6), deadline=None)
@given(st.integers(1, 999), st.integers(1, 9), st.integers(60, 400), st.booleans())
def test_the_order_of_replies_changes_nothing_whatever_the_sizes(
    dawdles: int, window: int, asks: int, racing: bool
) -> None:
    settings = msgspec.structs.replace(
        BUDGET,
        genome_batch_size=window,
        seeds=MANY[:1],
        rules=Rules(racing=racing),
        stops=Stops(asks=max(asks, 160 * (not racing))),
        baselines=(),
    )
    with TemporaryDirectory() as folder:
        calm, busy = (ran(Path(folder) / f"{how}.db", Emulated(how), settings) for how in (0, dawdles))
    assert calm == busy


@pytest.mark.sampled
@pytest.mark.parametrize("purse", [UNLIMITED, Purse(asks=230)], ids=["unlimited", "small"])
def test_a_birth_knows_those_that_are_old_enough(tmp_path: Path, purse: Purse) -> None:
    wide = msgspec.structs.replace(SMALL, population_size=50)
    window, seen = wide.shape.window, dict[int, list[int]]()

    def noted(search: Search, draw: Random, number: int) -> Plan:
        seen[number] = sorted(each.born for each in search.known_to(number).members)
        return planned(search, draw, number)

    async def work() -> list[Member]:
        async with groundswell.open(tmp_path / "runs.db", script=Emulated(3)) as engine, engine.run("it") as run:
            search = Search(run, wide, Examiner(run, wide, Costs(run)), "it")
            await search.run(noted, lambda it: "enough" if it.started == 20 else "", purse)
        return search.members

    born = asyncio.run(work())
    lived = [each.born for each in born if each.fate in LIVING]
    assert len(lived) > 8
    assert seen == {
        number: [each for each in lived if each <= max(0, number - window)] for number in range(1, len(born))
    }, "also if more of them are there already, since the budget is all but used; and the seed always is"


def test_nothing_is_asked_twice_and_the_test_stays_sealed(tmp_path: Path) -> None:
    model = Emulated(4)
    analysis = asyncio.run(evolved(tmp_path / "runs.db", model))
    asked = [groundswell.fingerprint(each) for each in model.asked]
    assert len(asked) == len(set(asked))
    sealed = {each.question for each in SMALL.problems.test}
    validated = {each.question for each in SMALL.problems.validation}
    asked_about = [str(each.messages[-1].content) for each in model.asked]
    first = next(at for at, question in enumerate(asked_about) if question in sealed)
    assert set(asked_about[first:]) <= sealed | validated, "after the test only the ablation is left"
    opened = sum(question in sealed for question in asked_about)
    assert 0 < opened <= (2 + len(SMALL.baselines)) * len(sealed)
    assert [each.name for each in analysis.tested] == ["seed", "evolution", "random", "best_of_n"]


@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 8])
def test_others_get_the_same_budget(tmp_path: Path, window: int) -> None:
    settings = msgspec.structs.replace(SMALL, genome_batch_size=window)
    main, *others = asyncio.run(evolved(tmp_path / "runs.db", Emulated(), settings)).searches
    birth = DEEPEST + 1 + 2 * len(SMALL.problems.train)
    for each in others:
        assert main.asks - birth < each.asks <= main.asks, "however many are on their way"
        assert each.why == f"its budget of {main.asks:,} requests covers no further candidate"


@pytest.mark.slow
def test_racing_and_what_is_known_save_asks(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, operators={"reflect": 2.0, "combine": 1.0, "uniform": 1.0}, baselines=())
    raced = asyncio.run(evolved(tmp_path / "raced.db", Emulated(), settings)).evolution
    full = msgspec.structs.replace(settings, rules=Rules(racing=False))
    whole = asyncio.run(evolved(tmp_path / "whole.db", Emulated(), full)).evolution
    assert raced.savings.racing > 0 == whole.savings.racing
    written = sum(each.operator in ("reflect", "combine") for each in raced.members)
    problems = len(SMALL.problems.train)
    assert raced.asks + raced.savings.racing + raced.savings.known == len(raced.members) * problems + written
    two = {"combine", "uniform"}
    assert {each.operator for each in raced.members if len(each.parents) == 2} <= two
    assert any(each.operator in two and len(each.parents) == 2 for each in raced.members)


def test_twins_are_asked_about_once_and_counted_once(tmp_path: Path) -> None:
    """Two that are born alike at the same time are evaluated on their own problems; shared ones are paid for once."""
    settings = msgspec.structs.replace(SMALL, operators={"uniform": 1.0})
    problems = len(SMALL.problems.train)
    parent = Member(0, Genome("Guess."), "seed", scores=(1.0, 0.0) * (problems // 2), fitness=1.0)

    async def work() -> Search:
        async with groundswell.open(tmp_path / "runs.db", script=Emulated(3)) as engine, engine.run("it") as run:
            search = Search(run, settings, Examiner(run, settings, Costs(run)), "it")

            def alike(it: Search, *_: object) -> Plan:
                return Plan(("uniform",), (parent, parent), it.members[0])

            await search.run(alike, lambda it: "enough" if it.started == 3 else "")
        return search

    search = asyncio.run(work())
    seed, one, other = search.members
    assert one.genome == other.genome == parent.genome
    assert (one.fate, other.fate) == ("lives", "known")
    assert other.seen > GATE + KEPT == one.asks > other.asks > 0
    assert other.seen == one.asks + other.asks
    assert seed.asks == seed.seen > LEAST
    assert search.asks == sum(each.asks for each in search.members)
    assert search.saved_by_racing == 2 * problems - seed.asks - one.asks
    assert search.saved_as_known == problems


def test_of_twins_one_lives(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, operators={"uniform": 1.0}, baselines=(), max_generations=1)

    async def work() -> Search:
        async with groundswell.open(tmp_path / "runs.db", script=Emulated(3)) as engine, engine.run("it") as run:
            search = Search(run, settings, Examiner(run, settings, Costs(run)), "it")
            good = Member(0, Genome(OPTIMUM), "seed")

            def alike(it: Search, *_: object) -> Plan:
                return Plan(("uniform",), (good, good), it.members[0])

            await search.run(alike, lambda it: "enough" if it.started == 6 else "")
        return search

    search = asyncio.run(work())
    assert [each.fate for each in search.members] == ["lives", "lives", "known", "known", "known", "known"]
    assert [each.born for each in search.population.members] == [1, 0]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"stops": Stops(target=0.0)}, "the target fitness of 0 is reached"),
        ({"stops": Stops(asks=100)}, "its budget of 100 requests covers no further candidate"),
        ({"stops": Stops(plateau=1), "max_generations": 50}, "no better candidate was found for 1 generation"),
        ({"stops": Stops(least_spread=1.0)}, "the diversity of the population fell to 1 or less"),
        ({"max_generations": 2}, "all 2 generations are complete"),
        ({"max_generations": 1}, "1 generation is complete"),
        ({"max_generations": None}, "a candidate solves all training problems"),
    ],
)
def test_why_it_ends(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    settings = msgspec.structs.replace(SMALL, **changes, baselines=())
    found = asyncio.run(evolved(tmp_path / "runs.db", Emulated(), settings)).evolution
    assert found.why == why


@pytest.mark.sampled
@pytest.mark.parametrize("weights", [COMPOSITE, Weights(accuracy=0, length=1)], ids=["composite", "no accuracy"])
def test_other_things_may_be_wanted_of_a_prompt(tmp_path: Path, weights: Weights) -> None:
    settings = msgspec.structs.replace(SMALL, fitness=weights, baselines=())
    found = asyncio.run(evolved(tmp_path / "runs.db", Emulated(), settings)).evolution
    finals = {each.born for each in found.finalists}
    least = min(each.fitness for each in found.members if each.born in finals)
    assert all(each.fitness <= least for each in found.members if each.fate == "lives" and each.born not in finals)


def test_failures_are_counted_and_nothing_is_made_up(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, baselines=())
    found = asyncio.run(evolved(tmp_path / "runs.db", Deaf("step by step"), settings)).evolution
    failed = [each for each in found.members if each.fate == "failed"]
    assert failed
    assert all("does not hear" in each.why for each in failed)
    assert "step by step" not in found.winner.genome.text


@metric("in vain")
def in_vain(reply: str, problem: Problem) -> float:
    raise ValueError("it has no idea")


def test_a_metric_that_raises_stops_the_run_at_once(tmp_path: Path) -> None:
    async def session() -> Summary:
        async with groundswell.open(tmp_path / "runs.db", script=model) as engine:
            return await engine.drive(evolve, msgspec.structs.replace(SMALL, metric="in vain"), seed=1)

    model = Emulated()
    summary = asyncio.run(session())
    assert summary.status == "failed"
    assert re.search(
        r"every problem has failed for 0 s \(.*it has no idea.*\); fix the cause, then resume the run",
        str(summary.error),
    )
    assert len(model.asked) < 3 * SMALL.shape.window * SMALL.shape.block


class HardOf(Emulated):
    """One that does not answer some questions, where it is told something."""

    def __init__(self, questions: set[str], told: str) -> None:
        super().__init__()
        self._questions, self._told = questions, told

    def answer(self, request: Chat) -> Reply | Fault:
        told, asked = str(request.messages[0].content), str(request.messages[-1].content)
        if asked in self._questions and self._told in told:
            return Fault(FaultKind.BAD_REQUEST, "it does not hear this")
        return super().answer(request)


def test_of_few_problems_a_fifth_may_be_missing_too(tmp_path: Path) -> None:
    """However large the first block would be."""
    settings = msgspec.structs.replace(SMALL, rules=Rules(block=50), baselines=())
    lost = {each.question for each in SMALL.problems.train[:6]}
    found = asyncio.run(evolved(tmp_path / "runs.db", HardOf(lost, "step by step"), settings)).evolution
    told = [each for each in found.members if "step by step" in each.genome.text and each.scores]
    assert told
    assert {each.fate for each in told} == {"failed"}


@pytest.mark.slow
def test_nobody_is_chosen_by_a_few_problems(tmp_path: Path) -> None:
    """Of one that solves the only problem that is there, nobody knows how good it is."""
    settings = msgspec.structs.replace(SMALL, baselines=())
    whole = asyncio.run(evolved(tmp_path / "whole.db", Emulated(), settings)).evolution
    word = next(
        word
        for word in whole.winner.genome.text.split()
        if not all(word in each.genome.text for each in whole.finalists)
    )
    lost = {each.question for each in SMALL.problems.validation[1:]}
    found = asyncio.run(evolved(tmp_path / "runs.db", HardOf(lost, word), settings)).evolution
    assert found.finalists
    assert not any(word in each.genome.text for each in found.finalists)
    with pytest.raises(RunError, match=r"too many missing validation problems to choose a winner: .*does not hear"):
        asyncio.run(evolved(tmp_path / "none.db", HardOf(lost, ""), settings))


class Mute(Emulated):
    """A writer that writes nothing."""

    def answer(self, request: Chat) -> Reply | Fault:
        return Reply("") if request.messages[0].role == "user" else super().answer(request)


@pytest.mark.slow
def test_a_writer_that_fails_does_not_use_up_the_budget_of_others(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, max_generations=20, stops=Stops(plateau=None))
    others = asyncio.run(evolved(tmp_path / "runs.db", Mute(), settings)).searches[1:]
    rewritten = others[-1]
    assert rewritten.why == "no new prompt was found in 200 candidates"
    assert {each.fate for each in rewritten.members[1:]} == {"failed"}
    assert len(rewritten.members) <= 201 + settings.shape.window


def test_a_writer_that_takes_nothing_stops_the_run_at_once(tmp_path: Path) -> None:
    with pytest.raises(RunStopped, match=r"every request for a new prompt has failed .*does not hear"):
        asyncio.run(evolved(tmp_path / "runs.db", Deaf("<prompt>")))


@pytest.mark.slow
def test_a_writer_that_is_down_stops_the_run_after_a_while(tmp_path: Path) -> None:
    """Also if problems are solved meanwhile; and what was found by then is not asked for again."""
    clock, down = FakeClock(), True

    def model(request: Request) -> Reply | Fault:
        assert isinstance(request, Chat)
        if down and request.messages[0].role == "user":
            return Fault(FaultKind.SERVER, "out of order")
        return emulated.answer(request)

    async def session() -> Summary:
        engine = groundswell.open(tmp_path / "runs.db", transport=Scripted(model), clock=clock, options=PATIENCE)
        clock.watch(engine.store)  # type: ignore[arg-type]  # the store has a thread of its own
        async with engine:
            return await engine.drive(evolve, settings, name="it", seed=1)

    emulated, settings = Emulated(), msgspec.structs.replace(SMALL, models=("scripted/any",), max_generations=10)
    stopped = clock.run(session())
    assert stopped.status == "failed"
    assert "every request for a new prompt has failed for " in str(stopped.error)
    assert clock.now() < 2 * outage.PATIENCE
    down = False
    again = clock.run(session())
    assert (again.status, again.error) == ("partial", None), "what was missing is"
    assert again.trials.missing == stopped.trials.missing > 0
    assert {each.fate for each in msgspec.convert(again.analysis, Analysis).evolution.members} >= {"lives", "failed"}


def test_what_was_asked_before_a_birth_failed_counts(tmp_path: Path) -> None:
    mix = {"reflect": 1.0, "paraphrase": 1.0}
    settings = msgspec.structs.replace(SMALL, max_generations=6, operators=mix, baselines=("random",))
    found = asyncio.run(evolved(tmp_path / "runs.db", Deaf("Rephrase the prompt"), settings)).searches[1]
    asks = {each.operator: each.asks for each in found.members if each.fate == "failed"}
    assert asks["paraphrase"] == 1
    assert asks["reflect+paraphrase"] == 2


@pytest.mark.slow
def test_a_model_that_fails_always(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, population_size=3, max_generations=1)  # no outage yet
    alone, beside = Deaf(""), Deaf("")
    for script, baselines in ((alone, ()), (beside, SMALL.baselines)):
        changed = msgspec.structs.replace(settings, baselines=baselines)
        with pytest.raises(RunError, match=r"no candidate could be evaluated: .*does not hear"):
            asyncio.run(evolved(tmp_path / f"{len(baselines)}.db", script, changed))
    assert len(beside.asked) == len(alone.asked)  # nothing is compared with what failed


def test_few_problems_that_fail_are_no_fitness_either(tmp_path: Path) -> None:
    problems = generated(sizes=Sizes(3, 2, 2), seed=7)
    settings = msgspec.structs.replace(SMALL, baselines=(), problems=problems, rules=Rules())
    missing = problems.train[0].question
    with pytest.raises(RunError, match=r"no candidate could be evaluated: .*does not hear"):
        asyncio.run(evolved(tmp_path / "runs.db", Deaf(missing), settings))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [SMALL, BUDGET], ids=["generations", "budget"])
def test_what_was_stopped_goes_on_to_the_same_end_and_asks_nothing_twice(tmp_path: Path, settings: Evolution) -> None:
    async def session(store: str, limit: int | None) -> tuple[Summary, list[bytes]]:
        model = Emulated(5)
        options = RunOptions(limits=Limits(calls=limit))
        async with groundswell.open(tmp_path / store, script=model) as engine:
            summary = await engine.drive(evolve, settings, name="it", seed=1, options=options)
        return summary, [groundswell.fingerprint(each) for each in model.asked]

    alone, whole = asyncio.run(session("alone.db", None))
    parts = [asyncio.run(session("stopped.db", limit)) for limit in (40, 250, 700, None)]
    assert [summary.status for summary, _ in parts] == ["partial", "partial", "partial", "completed"]
    assert parts[-1][0].analysis == alone.analysis
    assert sorted(each for _, asked in parts for each in asked) == sorted(whole)


def test_a_metric_that_nobody_knows(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, metric="beauty")
    with pytest.raises(SettingsError, match="metric: there is no 'beauty'; there are number, text, contains"):
        asyncio.run(evolved(tmp_path / "runs.db", Emulated(), settings))
