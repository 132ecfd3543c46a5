"""Close to the limit, and not over it: the pace against simulated providers."""

from __future__ import annotations

from bisect import bisect_left
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from groundswell.engine.rate_limit import Demand, PaceLimits
from groundswell.program.request import Fault, FaultKind
from tests.engine.provider import Job, Simulation, Terms, requests
from tests.properties import examples

QUICK, USUAL, SLOW = (0.05, 0.15), (0.5, 1.5), (2.0, 6.0)
LATENCIES = st.sampled_from([QUICK, USUAL, SLOW])
BURSTS = st.sampled_from([1.0, 5.0, 60.0])
SEEDS = st.integers(0, 1000)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller example of a simulation says no more


def refused_share(simulation: Simulation) -> float:
    """Of all requests that were sent, how many were refused after the first second."""
    return sum(at > 1.0 for at in simulation.refused) / len(simulation.left)


def talk(number: int, seed: int) -> list[Job]:
    """Asks of many sizes, whose tokens are guessed to within a quarter."""
    chance, jobs = Random(seed), []
    for _ in range(number):
        prompt, most = chance.randrange(50, 1500), chance.choice((64, 256, 512))
        guess = int(prompt * chance.uniform(0.8, 1.25))
        jobs.append(Job(Demand(guess, most), Demand(prompt, chance.randrange(1, most))))
    return jobs


@settings(max_examples=examples(8), deadline=None, phases=PHASES, derandomize=True)
@given(st.sampled_from([1200.0, 3000.0, 12_000.0]), BURSTS, LATENCIES, SEEDS)
def test_requests_go_out_at_the_limit_and_are_not_refused(
    limit: float, burst: float, latency: tuple[float, float], seed: int
) -> None:
    terms = Terms(requests=limit, burst=burst, latency=latency)
    simulation = Simulation(terms, seed=seed).run(requests(2500 + int(limit * burst / 60)))
    assert refused_share(simulation) <= 0.01
    assert simulation.over_cap == 0
    end = simulation.left[-1]
    steady = sum(at > end * 0.6 for at in simulation.left) / (end * 0.4)
    assert steady >= 0.9 * limit / 60


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("burst", [1.0, 5.0, 60.0])
@pytest.mark.parametrize("latency", [(0.02, 0.02), USUAL], ids=["at once", "usual"])
def test_requests_that_overtake_others_do_not_hide_them(burst: float, latency: tuple[float, float]) -> None:
    """The provider says what is left before it has seen requests that left earlier, as while connections are opened."""
    terms = Terms(requests=12_000.0, burst=burst, latency=latency, wire=0.2)
    simulation = Simulation(terms, PaceLimits(max_concurrent=256)).run(requests(6000 + int(200 * burst)))
    assert not simulation.refused
    end = simulation.left[-1]
    assert sum(at > end * 0.6 for at in simulation.left) / (end * 0.4) >= 0.95 * 200


@pytest.mark.slow
@settings(max_examples=examples(6), deadline=None, phases=PHASES, derandomize=True)
@given(st.booleans(), BURSTS, LATENCIES, SEEDS)
def test_tokens_go_out_at_the_limit_and_are_not_refused(
    gives_back: bool, burst: float, latency: tuple[float, float], seed: int
) -> None:
    limit, jobs = 1_800_000.0, talk(3500, seed)
    output = limit / 4 if gives_back else None
    terms = Terms(1e6, limit, output, burst, latency, corrected=gives_back)
    simulation = Simulation(terms, seed=seed).run(jobs)
    assert refused_share(simulation) <= 0.01
    input_ = sum(job.used.input if gives_back else max(job.used.input, job.demand.output) for job in jobs)
    ideal = max(0.0, input_ / (limit / 60) - burst)
    assert simulation.left[-1] <= ideal * 1.2 + 4 * latency[1]


@pytest.mark.slow
@settings(max_examples=examples(6), deadline=None, phases=PHASES, derandomize=True)
@given(st.sampled_from([600.0, 3000.0]), LATENCIES, SEEDS)
def test_a_burst_that_is_allowed_is_used(limit: float, latency: tuple[float, float], seed: int) -> None:
    number = int(limit * 1.5)
    simulation = Simulation(Terms(requests=limit, latency=latency), seed=seed).run(requests(number))
    assert simulation.done[-1] <= 30.0 * 1.1 + 1.5 * latency[1] + 1.0


@pytest.mark.slow
@settings(max_examples=examples(6), deadline=None, phases=PHASES, derandomize=True)
@given(BURSTS, LATENCIES, SEEDS)
def test_another_client_takes_its_share(burst: float, latency: tuple[float, float], seed: int) -> None:
    terms = Terms(requests=3000.0, burst=burst, latency=latency, others=1 / 3)
    simulation = Simulation(terms, seed=seed).run(requests(2000 + int(50 * burst)))
    assert refused_share(simulation) <= 0.01
    end = simulation.left[-1]
    steady = sum(at > end * 0.6 for at in simulation.left) / (end * 0.4)
    assert steady >= 0.9 * 2000 / 60 or end < 10.0


@settings(max_examples=examples(6), deadline=None, phases=PHASES, derandomize=True)
@given(st.sampled_from([QUICK, USUAL]), SEEDS)
def test_a_provider_that_counts_by_shorter_times_than_it_says(latency: tuple[float, float], seed: int) -> None:
    terms = Terms(requests=3000.0, burst=1.0, claims=60.0, latency=latency)
    simulation = Simulation(terms, seed=seed).run(requests(2500))
    assert refused_share(simulation) <= 0.01
    assert simulation.rate(10.0, 40.0) >= 0.9 * 50


@pytest.mark.sampled
@pytest.mark.parametrize("latency", [QUICK, USUAL], ids=["quick", "usual"])
@pytest.mark.parametrize("tells", [True, False], ids=["headers", "no headers"])
def test_a_storm_of_refusals_is_over_when_it_is_over(latency: tuple[float, float], tells: bool) -> None:
    def storm(now: float, _: Random) -> Fault | None:
        return Fault(FaultKind.RATE_LIMITED, "storm", 1.0) if 10.0 < now < 30.0 else None

    terms = Terms(requests=3000.0, burst=1.0, latency=latency, tells=tells, mishap=storm)
    simulation = Simulation(terms).run(requests(10_000), until=60.0)
    assert sum(10.0 < at < 30.0 for at in simulation.left) <= 150, "it is not hammered meanwhile"
    assert simulation.rate(40.0, 60.0) >= 0.9 * 50


@pytest.mark.sampled
@pytest.mark.parametrize("seconds", [1.5, 6.0], ids=["a short one", "a long one"])
@pytest.mark.parametrize("output", [None, 120_000.0], ids=["tokens", "output tokens that are given back"])
def test_after_a_storm_tokens_go_out_at_the_limit(output: float | None, seconds: float) -> None:
    """What is expected of a request is a third more than the provider counts, or three times what it uses."""

    def storm(now: float, _: Random) -> Fault | None:
        return Fault(FaultKind.RATE_LIMITED, "storm", 1.0) if 20.0 < now < 20.0 + seconds else None

    limit = 400_000.0 if output is None else 1e7
    terms = Terms(1e5, limit, output, 5.0, USUAL, corrected=output is not None, mishap=storm)
    jobs = [Job(Demand(33, 100), Demand(33, 30)) for _ in range(4000)]
    simulation = Simulation(terms).run(jobs, until=50.0)
    assert simulation.rate(30.0, 50.0) >= 0.9 * (limit / 6000 if output is None else output / 1800)


@pytest.mark.sampled
@pytest.mark.parametrize("latency", [QUICK, USUAL, SLOW], ids=["quick", "usual", "slow"])
@pytest.mark.parametrize("tells", [True, False], ids=["headers", "no headers"])
def test_one_request_in_twenty_that_fails_slows_nothing(latency: tuple[float, float], tells: bool) -> None:
    kinds = (FaultKind.SERVER, FaultKind.OVERLOADED, FaultKind.RATE_LIMITED, FaultKind.TIMEOUT)

    def mishap(_: float, chance: Random) -> Fault | None:
        return Fault(chance.choice(kinds), "") if chance.random() < 0.05 else None

    terms = Terms(requests=3000.0, burst=1.0, latency=latency, tells=tells, mishap=mishap)
    simulation = Simulation(terms).run(requests(10_000), until=100.0)
    assert simulation.rate(40.0, 100.0) >= 0.85 * 50


@pytest.mark.parametrize("burst", [1.0, 60.0])
@pytest.mark.parametrize("tells", [True, False], ids=["headers", "no headers"])
@pytest.mark.parametrize("known", [True, False], ids=["configured", "found out"])
def test_three_requests_a_minute_are_three_requests_a_minute(burst: float, tells: bool, known: bool) -> None:
    limits = PaceLimits(requests_per_minute=3.0 if known else None)
    terms = Terms(requests=3.0, burst=burst, latency=(1.0, 2.0), tells=tells)
    simulation = Simulation(terms, limits).run(requests(60))
    assert simulation.done[-1] <= 60 * 20.0 * 1.02
    assert not (tells and refused_share(simulation))
    assert not (known and simulation.refused)


@settings(max_examples=examples(6), deadline=None, phases=PHASES, derandomize=True)
@given(st.sampled_from([3.0, 60.0, 500.0, 3000.0]), LATENCIES, SEEDS)
def test_what_is_configured_is_kept_in_every_minute(limit: float, latency: tuple[float, float], seed: int) -> None:
    limits = PaceLimits(max_concurrent=4096, requests_per_minute=limit)
    terms = Terms(requests=1e9, latency=latency, tells=False)
    left = Simulation(terms, limits, seed).run(requests(int(limit * 1.5) + 5)).left
    most = max(bisect_left(left, at + 60.0) - index for index, at in enumerate(left))
    assert most <= limit * 1.01 + 1
    assert left[-1] - left[0] <= (len(left) - 1) / limit * 60 * 1.02 + 3 * latency[1]


def test_an_ask_that_can_never_be_let_in_does_not_stop_the_others() -> None:
    terms = Terms(requests=1e6, tokens=600_000.0, burst=1.0)
    jobs = talk(1500, 3)
    jobs[100:100] = [Job(Demand(20_000, 100), Demand(20_000, 50)) for _ in range(3)]
    simulation = Simulation(terms).run(jobs, until=200.0)
    assert len(simulation.done) == 1500
    assert simulation.done[-1] <= 125.0


def test_a_limit_that_is_raised_or_lowered_is_followed() -> None:
    simulation = Simulation(Terms(requests=3000.0, burst=1.0)).run(requests(10_000), until=30.0)
    rates = [simulation.rate(10.0, 30.0)]
    for limit, until in ((600.0, 60.0), (6000.0, 90.0)):
        simulation.change(Terms(requests=limit, burst=1.0))
        simulation.run([], until)
        rates.append(simulation.rate(until - 15.0, until))
    assert rates == [pytest.approx(rate, rel=0.1) for rate in (50.0, 10.0, 100.0)]


class TwoQueues(Simulation):
    """Small asks and large ones come from different runs, which share a pace."""

    def __init__(self, terms: Terms, large: list[Job]) -> None:
        super().__init__(terms)
        self.large = large

    def _pump(self) -> None:
        super()._pump()
        small, self.queue = self.queue, self.queue.__class__(self.large)
        super()._pump()
        self.large, self.queue = list(self.queue), small


@pytest.mark.sampled
@pytest.mark.parametrize("burst", [1.0, 60.0])
def test_small_asks_do_not_starve_large_ones(burst: float) -> None:
    large = [Job(Demand(6000, 100), Demand(6000, 50)) for _ in range(40)]
    simulation = TwoQueues(Terms(requests=1e6, tokens=600_000.0, burst=burst), large)
    simulation.run([Job(Demand(200, 100), Demand(200, 50)) for _ in range(20_000)], until=60.0)
    assert simulation.large == []
