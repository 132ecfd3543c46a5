"""A pilot narrows the estimate of an evolution, and its requests are the first ones of the run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell import Chat, Fault, Reply, RunOptions, Usage
from groundswell.compose import look_into
from groundswell.engine.options import Limits
from groundswell.engine.spending import Range
from groundswell.engine.summary import Summary
from groundswell.estimate.bill import Bill, bill
from groundswell.estimate.declared import estimate_of
from groundswell.estimate.measured import Known, Measured, Sent
from groundswell.estimate.terms import Terms
from groundswell.experiments.pilot import measured_in
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.problems import Sizes, generated
from groundswell.experiments.prompt_evolution.settings import AUTO, Evolution, Rules, Stops
from groundswell.experiments.prompt_evolution.solving import Attempt, solve
from tests.experiments.prompt_evolution.stage import Emulated


def price(model: str, usage: Usage, transport: str = "live") -> float:
    return (0.15 * usage.input_tokens + 0.6 * usage.output_tokens) / 1e6


def terms(model: str) -> Terms:
    return Terms(model, "hosted", lambda usage: price(model, usage))


class Wordy(Emulated):
    """The emulated model with replies as long as those of a real one."""

    def answer(self, request: Chat) -> Reply | Fault:
        reply = super().answer(request)
        assert isinstance(reply, Reply)
        longer = Usage(reply.usage.input_tokens, reply.usage.output_tokens + 100)
        return msgspec.structs.replace(reply, usage=longer)


PROBLEMS = generated(sizes=Sizes(100, 60, 100), seed=3)
PLAIN = Evolution(models=("any",), problems=PROBLEMS, baselines=(), stops=Stops(asks=800))


def changed(**fields: object) -> Evolution:
    return msgspec.structs.replace(PLAIN, **fields)


SETTINGS = {
    "plain": PLAIN,
    "baseline": changed(baselines=("random",)),
    "two models": changed(models=("one", "two"), writer="third", stops=Stops(asks=1_200)),
    "dollars": changed(stops=Stops(usd=0.2)),
    "generations": changed(stops=Stops(), population_size=8, max_generations=5),
    "no races": changed(stops=Stops(), population_size=5, max_generations=3, rules=Rules(racing=False)),
}


async def driven(store: Path, settings: Evolution, model: Emulated, seed: int, calls: int | None = None) -> Summary:
    async with groundswell.open(store, script=model, prices=price) as engine:
        options = RunOptions(limits=Limits(calls=calls))
        return await engine.drive(evolve, settings, name="evolution", seed=seed, options=options)


def estimated(settings: Evolution, store: Path | None = None) -> Bill:
    measured = None
    if store is not None:
        with look_into(store) as held:
            assert held is not None
            measured = measured_in(held, held.runs.get("evolution"))
            assert measured is not None
    known = Known(terms, measured)
    estimate = estimate_of(evolve, settings, known=known)
    return bill(estimate, {load.model: terms(load.model) for load in estimate.loads}, measured)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.slow
def test_after_a_pilot_the_range_is_narrow_and_contains_the_run(tmp_path: Path, name: str, seed: int) -> None:
    settings, model, store = SETTINGS[name], Wordy(), tmp_path / "runs.db"
    before = estimated(settings)
    assert before.pilot is not None
    asyncio.run(driven(store, settings, model, seed, before.pilot.requests))
    assert len(model.asked) == before.pilot.requests
    after = estimated(settings, store)
    whole = asyncio.run(driven(store, settings, model, seed))
    alone = Wordy()
    asyncio.run(driven(tmp_path / "alone.db", settings, alone, seed))
    assert len(model.asked) == len(alone.asked) == whole.asks.sent, "the run continues and pays for nothing twice"
    assert len(model.asked) in requests(after)
    usd = after.ways.live.usd
    assert usd is not None
    assert (whole.cost.usd or 0.0) in usd
    assert usd.high <= (3.5 if settings.stops.asks or settings.stops.usd else 7) * usd.low
    tokens, was = after.models[0].output_tokens, before.models[0].output_tokens
    assert tokens.high / tokens.low < was.high / was.low / 3
    assert after.measured is not None
    assert (after.measured.requests, after.pilot) == (before.pilot.requests, None)


def requests(found: Bill) -> Range:
    return sum((each.calls for each in found.models), Range(0, 0))


def test_a_limit_in_dollars_is_the_highest_cost() -> None:
    live = estimated(changed(stops=Stops(usd=3.0))).ways.live
    assert live.usd is not None
    assert live.usd == Range(1.5, 3.0), "a search uses most of its budget"
    small, large = (requests(estimated(changed(stops=Stops(usd=usd)))) for usd in (1.0, 3.0))
    assert small.low < large.low
    assert 2.5 * small.high < large.high


def test_a_limit_in_dollars_does_not_end_the_search_of_a_free_model() -> None:
    free = Known(lambda model: Terms(model, "inside", lambda usage: 0.0))
    limited, plain = (
        estimate_of(evolve, changed(stops=stops), known=free) for stops in (Stops(usd=3.0), Stops(asks=AUTO["medium"]))
    )
    assert limited.trials == plain.trials


def measured(seconds: float, count: int = 100) -> Measured:
    """Requests of the seed prompt, each after the other in this time."""
    spec = msgspec.json.encode(Attempt("any", PLAIN.seeds[0].text, PROBLEMS.train[0])).decode()
    sent = [Sent(f"{number}", solve.id, spec, "any", 60, 100) for number in range(count)]
    return Measured("evolution", sent, count, 0.01, seconds * count)


def test_the_requests_under_a_limit_in_seconds_follow_from_the_speed() -> None:
    none, slow, fast = (requests(estimated(changed(stops=Stops(seconds=seconds)))) for seconds in (1, 600, 6_000))
    assert 5 * (slow.low - none.low) < fast.low - none.low, "beside those that choose and test the winner"
    assert 5 * slow.high < fast.high
    settings = changed(stops=Stops(seconds=600))
    found = estimate_of(evolve, settings, known=Known(terms, measured(0.1)))
    assert 6_000 in found.trials
    assert found.trials.high < 6 * found.trials.low
    assert found.seconds is not None
    assert 600 in found.seconds
    assert found.seconds.high < 3_600


def test_the_time_follows_from_the_measured_speed() -> None:
    fast, slow = (estimate_of(evolve, PLAIN, known=Known(terms, measured(pace))).seconds for pace in (0.1, 0.2))
    assert fast is not None
    assert slow == fast * 2
    assert 800 * 0.1 in fast
