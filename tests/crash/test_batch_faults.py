"""Kills on top of a provider that fails: answers that are lost, lists that cannot be had, results that break off."""

from __future__ import annotations

from random import Random

import pytest

from groundswell.emulator.faults import Rule
from tests.crash.batch_experiment import Pair, Settings
from tests.crash.batch_scene import SPEED, Provider, Staged
from tests.crash.test_batch_kills import dies

CREATES = ("/v1/batches", "/v1/messages/batches")
RESULTS = ("/v1/files/*/content", "/v1/messages/batches/*/results")
POLLS = ("/v1/batches/*", "/v1/messages/batches/msgbatch_*")


def rules(fault: str, paths: tuple[str, ...], method: str, times: int | None = None, rate: float = 1.0) -> list[Rule]:
    """The same fault at both providers."""
    return [Rule(fault=fault, path=path, method=method, times=times, rate=rate) for path in paths]


FAULTS = {
    "orders-unanswered": rules("drop-after", CREATES, "POST", 1),
    "orders-unreadable": rules("malformed", CREATES, "POST", 2),
    "orders-never-answered": rules("hang", CREATES, "POST", 1),
    "orders-500": rules("500", CREATES, "POST", 1),
    "orders-unanswered-and-no-lists": rules("drop-after", CREATES, "POST", 1) + rules("503", CREATES, "GET", 3),
    "no-lists": rules("500", CREATES, "GET", 4),
    "lists-unreadable": rules("html", CREATES, "GET", 2),
    "results-cut": rules("results-cut", RESULTS, "GET", 2),
    "results-short": rules("results-short", RESULTS, "GET", 1),
    "no-uploads": rules("500", ("/v1/files",), "POST", 2),
    "polls-limited": [rule for status in ("429-bare", "502") for rule in rules(status, POLLS, "GET", 2)],
    "everything": [
        *rules("drop-after", CREATES, "POST", 1),
        *rules("500", CREATES, "GET", 2),
        *rules("503", POLLS, "GET", 1),
        *rules("results-cut", RESULTS, "GET", 1),
    ],
}
RATES = [
    *rules("drop-after", CREATES, "POST", rate=0.2),
    *rules("hang", CREATES, "POST", rate=0.05),
    *rules("500", CREATES, "POST", rate=0.1),
    *rules("503", CREATES, "GET", rate=0.3),
    *rules("502", POLLS, "GET", rate=0.2),
    *rules("drop", ("/v1/files",), "POST", rate=0.1),
    *rules("results-cut", RESULTS, "GET", rate=0.2),
    *rules("results-short", RESULTS, "GET", rate=0.02),
]
PLACES = [("after-create", 1), ("line", 3), ("downloaded", 1)]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("fault", FAULTS)
def test_kills_on_top_of_faults(staged: Staged, provider: Provider, fault: str) -> None:
    scene = staged(Settings(turns=2))
    provider.emulator.set_faults(*FAULTS[fault])
    for place, nth in PLACES:
        assert scene.killed_at(place, nth)
    scene.check(scene.finish())
    assert provider.faults == {rule.fault for rule in FAULTS[fault]}


@pytest.mark.sampled
@pytest.mark.parametrize("paths", [POLLS, RESULTS], ids=["batch", "results"])
@pytest.mark.parametrize("pair", ["openai", "anthropic"])
def test_three_404s_right_after_the_order_are_paid_once(
    staged: Staged, provider: Provider, pair: Pair, paths: tuple[str, ...]
) -> None:
    """40 asks: 40 replies are paid for, not 80."""
    scene = staged(Settings(pair, trials=40, turns=1))
    provider.emulator.set_faults(*rules("404", paths, "GET", 3))
    scene.check(scene.finish())
    assert provider.faults == {"404"}


@pytest.mark.sampled
@pytest.mark.parametrize("look", [1, 2, 3])
@pytest.mark.parametrize("when", ["before", "after"])
def test_kills_while_a_lost_order_is_looked_for(staged: Staged, provider: Provider, when: str, look: int) -> None:
    scene = staged(Settings(turns=2))
    provider.clock.run_at(0)
    provider.emulator.set_faults(*rules("drop-after", CREATES, "POST", 1))
    assert scene.killed_at(f"{when}-list", look)
    assert scene.killed_at(f"{when}-list", look)
    provider.clock.run_at(SPEED)
    scene.check(scene.finish())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 30))])
def test_any_kills_on_top_of_any_faults(staged: Staged, provider: Provider, seed: int) -> None:
    scene, random = staged(Settings(trials=60, turns=4), batch_size=10), Random(seed)
    provider.emulator.set_faults(*RATES)
    while scene.kills < 10 and dies(scene, random):
        pass
    assert scene.kills
    scene.check(scene.finish(), lived=True)
