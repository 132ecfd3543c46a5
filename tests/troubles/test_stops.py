"""Troubles that end a session, or a batch before its time: what is done is kept, and only the rest is paid for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import msgspec
import pytest

from groundswell import Limits, RunOptions
from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded, running
from groundswell.engine.events import BatchChanged, BatchSent, Event, Listener
from tests.transports.scene import KEY
from tests.troubles.scene import CREATE, HURRIED, Hurried, Ran, Scene, talk, topics
from tests.troubles.table import BOTH, every_line, order, read

MANY = 12
DAY = 86_400.0
HALF = 65.0
"""Seconds after which about half of a batch is done."""
HOUR = 3600.0


@pytest.fixture(scope="module")
def _still() -> Iterator[Threaded]:
    with running(msgspec.structs.replace(HURRIED, speed=0.0)) as emulator:
        yield emulator


@pytest.fixture
def still(tmp_path: Path, _still: Threaded) -> Scene:
    """A scene whose emulator does nothing but what the time that it is given allows."""
    _still.reset()
    _still.set_faults()
    return Scene(tmp_path, _still)


def _check_resumed(scene: Scene, provider: str, turns: int = 1) -> Ran:
    """Once the trouble is over, the run comes to the end that it would have had, and nothing was paid for twice."""
    scene.disturb()
    specs = topics(provider, MANY, turns)
    ran = scene.run(talk, specs)
    books = scene.books
    assert (ran.status, ran.error) == ("completed", None)
    assert (books["paid_again"], books["batch_requests"] + books["requests"]) == (0, MANY * turns)
    assert ran.counters.usd == pytest.approx(books["dollars"])
    assert (ran.counters.usable, ran.counters.missing, ran.counters.resent) == (MANY, 0, 0)
    assert ran.texts == scene.undisturbed(talk, specs)
    return ran


STOPPING = {
    "low balance in all": (every_line("low-balance"), "credit balance|exceeded your current quota", 0),
    "low balance in some": ((Rule(script=("ok", "ok", "low-balance")),), "credit balance|exceeded your current", 11),
    "a wrong key": (order("401"), "rejected the key", 0),
    "a key that may not": (order("403"), "rejected the key, or the key lacks permission", 0),
    "no credit at all": (order("quota"), "credit balance|exceeded your current quota", 0),
    "results that always break off": (read("results-cut", None), "Fix this, then resume the run", 12),
    "a wrong key in the middle": (
        (Rule(fault="401", path="*/batches/*", method="GET"),),
        "rejected the key",
        12,
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("trouble", STOPPING)
def test_a_run_stops_and_can_be_resumed(scene: Scene, provider: str, trouble: str) -> None:
    rules, why, paid = STOPPING[trouble]
    scene.disturb(*rules)
    ran = scene.run(talk, topics(provider, MANY))
    assert ran.status == "failed"
    assert ran.error is not None
    assert any(words in ran.error for words in why.split("|"))
    assert "Fix this, then resume the run" in ran.error
    assert (ran.lived, ran.counters.missing, ran.faults) == ([], 0, {})
    while scene.books["batch_requests"] < paid:  # a run that looks no more does not wait for its batch
        scene.emulator.advance(HOUR)
    resumed = _check_resumed(scene, provider)
    assert resumed.counters.replayed <= MANY


@pytest.mark.parametrize("provider", BOTH)
def test_somebody_cancels_a_batch(still: Scene, provider: str) -> None:
    def cancel(event: Event) -> None:
        if isinstance(event, BatchSent):
            still.emulator.advance(HALF)
            _cancel(still, provider, event.batch)
            still.emulator.advance(HOUR)

    still.on.append(cancel)
    ran = still.run(talk, topics(provider, MANY))
    done = still.books["batch_requests"]
    assert 0 < done < MANY
    assert "cancelled" in ran.states
    assert (ran.status, ran.counters.missing) == ("failed", 0)
    assert ran.error is not None
    assert "cancelled" in ran.error
    assert "resume" in ran.error
    assert ran.counters.usd == pytest.approx(still.books["dollars"]), "what was done is kept"
    still.on[:] = [_passing(still, HOUR)]
    left = MANY - done
    assert _check_resumed(still, provider).sent == ([left] if left > 1 else []), "one alone goes live"


@pytest.mark.sampled
@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize(("fault", "left"), [("batch-stalls", MANY // 2), ("batch-stuck", MANY)])
def test_a_batch_expires(still: Scene, provider: str, fault: str, left: int) -> None:
    still.disturb(Rule(fault=fault, times=1))
    still.on.append(_passing(still, DAY + 1))
    ran = still.run(talk, topics(provider, MANY))
    assert ran.sent == [MANY, left], "only what was not done is sent again"
    assert ran.retried == {"expired": left}
    assert "expired" in ran.states
    assert ran.lived == []
    _check_resumed(still, provider)


@pytest.mark.parametrize("provider", BOTH)
def test_batches_that_expire_twice_go_live(still: Scene, provider: str) -> None:
    still.disturb(Rule(fault="batch-stuck"))
    still.on.append(_passing(still, DAY + 1))
    ran = still.run(talk, topics(provider, MANY))
    assert ran.sent == [MANY, MANY]
    assert ran.lived == [(MANY, "they already failed in 2 batches")]
    assert (still.books["requests"], still.books["batch_requests"]) == (MANY, 0)
    _check_resumed(still, provider)


@pytest.mark.parametrize("provider", BOTH)
def test_a_batch_that_would_miss_the_deadline(still: Scene, provider: str) -> None:
    still.clock = Hurried(1.0)  # the rest of the time is enough on any machine

    def pass_time(event: Event) -> None:
        if isinstance(event, BatchSent):
            still.emulator.advance(HALF)
            still.clock.move(0.8 * HOUR)
        elif isinstance(event, BatchChanged) and event.state == "cancelling":
            still.emulator.advance(HOUR)

    still.on.append(pass_time)
    limits = Limits(seconds=HOUR)
    ran = still.run(talk, topics(provider, MANY), RunOptions(via="batch", limits=limits))
    done = still.books["batch_requests"]
    assert 0 < done < MANY, "what was done is kept"
    assert still.books["requests"] == MANY - done
    assert ran.counters.seconds < HOUR
    assert [size for size, why in ran.lived if "would miss the deadline: it was cancelled" in why] == [MANY]
    assert ran.retried == {"cancelled": MANY - done}
    _check_resumed(still, provider)


BUDGETS = {"openai": 0.00035, "anthropic": 0.0028}
"""Dollars; most of three turns."""


@pytest.mark.sampled
@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("limited", ["calls", "usd"])
def test_a_budget_ends_in_the_middle_of_waves(scene: Scene, provider: str, limited: str) -> None:
    limits = Limits(calls=30) if limited == "calls" else Limits(usd=BUDGETS[provider])
    scene.disturb(Rule(script=("ok", "line-500") * 3))
    ran = scene.run(talk, topics(provider, MANY, 3), RunOptions(via="batch", limits=limits))
    books = scene.books
    assert ran.status == "partial"
    assert "budget of " in (ran.error or "")
    assert MANY < books["batch_requests"] + books["requests"] < 3 * MANY
    assert books["batch_requests"] + books["requests"] + ran.counters.retried <= (limits.calls or 4 * MANY)
    assert books["dollars"] <= (limits.usd or 1.0)
    assert ran.counters.missing == 0
    _check_resumed(scene, provider, 3)


def _passing(scene: Scene, seconds: float) -> Listener:
    """So much time passes whenever a batch was taken."""

    def passing(event: Event) -> None:
        if isinstance(event, BatchSent):
            scene.emulator.advance(seconds)

    return passing


def _cancel(scene: Scene, provider: str, batch: str) -> None:
    """As somebody with the provider's console does."""
    headers = {"authorization": f"Bearer {KEY}", "x-api-key": KEY, "anthropic-version": "2023-06-01"}
    url = f"{scene.emulator.url}{CREATE[provider]}/{batch}/cancel"
    with urlopen(Request(url, b"", headers)) as answer:
        assert answer.status == 200
