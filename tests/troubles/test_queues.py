"""Providers limit what may wait in their queues, and conversations grow: what fits at the first turn may not later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.limits import RateLimits
from groundswell.emulator.server import running
from groundswell.engine.batch_quota import BatchQuota, Capacity, Load, ProviderQueue
from tests.troubles.scene import HURRIED, Ran, Scene, talk, topics

TURNS = 6
TALKS = 20


@contextmanager
def limited(folder: Path, **limits: int) -> Iterator[Scene]:
    """A scene at a provider whose queue has so much room."""
    with running(msgspec.structs.replace(HURRIED, limits=RateLimits(**limits))) as emulator:
        yield Scene(folder, emulator)


def broken(scene: Scene) -> int:
    """How often a limit was broken, by the books."""
    accounts = scene.emulator.ledger()["accounts"].values()
    return sum(sum(entry["limits_broken"].values()) for models in accounts for entry in models.values())


def _check(scene: Scene, ran: Ran, whole: list[object], turns: int = TURNS) -> None:
    """All is as in a live run; what is refused for want of room was not sent, and does not count as a failure."""
    books = scene.books
    assert ran.texts == whole
    assert books["paid_again"] == 0
    assert books["requests"] + books["batch_requests"] == ran.counters.sent == TALKS * turns
    assert books["requests"] == sum(size for size, _ in ran.lived)
    assert {why.startswith("a single request") for _, why in ran.lived} <= {True}, "the last of a turn may be alone"
    assert ran.counters.retried == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "limits", "why"),
    [
        ("openai", {"enqueued_tokens": 1500}, "Enqueued token limit"),
        ("anthropic", {"queued_requests": 13}, "limit of 13 batch requests"),
    ],
)
def test_a_queue_that_is_found_to_be_small(tmp_path: Path, provider: str, limits: dict[str, int], why: str) -> None:
    with limited(tmp_path, **limits) as scene:
        whole = scene.undisturbed(talk, topics(provider, TALKS, TURNS))
        ran = scene.run(talk, topics(provider, TALKS, TURNS))
        _check(scene, ran, whole)
        assert 1 <= broken(scene) <= 3
        assert len(ran.held) == broken(scene)
        assert {why in said for said in ran.held} == {True}
        assert ran.sent[0] == (TALKS if provider == "openai" else 13), "the first turn fits where tokens are counted"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("provider", "limits", "turns"),
    [
        ("openai", {"enqueued_tokens": 1500}, TURNS),
        ("openai", {"enqueued_tokens": 120}, 1),
        ("anthropic", {"queued_requests": 13}, TURNS),
    ],
)
def test_a_queue_that_is_known_to_be_small(tmp_path: Path, provider: str, limits: dict[str, int], turns: int) -> None:
    with limited(tmp_path, **limits) as scene:
        whole = scene.undisturbed(talk, topics(provider, TALKS, turns))
        scene.flags += [f"{provider}.batch_queue={room}" for room in limits.values()]
        ran = scene.run(talk, topics(provider, TALKS, turns))
        _check(scene, ran, whole, turns)
        assert broken(scene) == 0
        assert ran.held == []


amounts = st.lists(st.integers(1, 5000), max_size=30)


@given(amounts, amounts, st.randoms(use_true_random=False))
def test_a_queue_that_is_empty_has_room_for_one_that_is_too_large(
    seen: list[int], tokens: list[int], chance: Random
) -> None:
    hold = BatchQuota(Capacity(10, 1000), ProviderQueue(60))
    for counted in seen:
        hold.counted(Load(1, 100), counted)
    taken = [hold.take(Load(1, each)) for each in tokens]
    chance.shuffle(taken)
    for amount in taken:
        hold.free(amount)
    assert hold.fit([Load(1, 10**9)], 0.0) == 1


def test_a_queue_that_is_too_small_for_one_request(tmp_path: Path) -> None:
    with limited(tmp_path, enqueued_tokens=60) as scene:
        specs = topics("openai", 8, 3)
        whole = scene.undisturbed(talk, specs)
        ran = scene.run(talk, specs)
        books = scene.books
        alone = sum(size for size, why in ran.lived if "is too small for this request" in why)
        assert ran.texts == whole
        assert (books["requests"] + books["batch_requests"], books["paid_again"]) == (24, 0)
        assert alone >= 4, "the last turns of most are too long"
        assert ran.counters.sent == 24
