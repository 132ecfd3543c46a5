"""Sessions that die while their asks are in batches, over real HTTP: what the provider's books say afterwards.

There are a hundred crashes here, most of them by SIGKILL of a process of its own; `make test` runs a seventh. Each
test says that it had its own.
"""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest

from groundswell.testing.crash import CrashPoint, When
from tests.crash.batch_experiment import Pair, Settings
from tests.crash.batch_scene import Scene, Staged

PLACES = {
    "intent-noted": 1,
    "intent-durable": 1,
    "before-upload": 1,
    "after-upload": 1,
    "before-create": 1,
    "after-create": 1,
    "receipt-noted": 1,
    "receipt-durable": 1,
    "before-poll": 1,
    "after-poll": 1,
    "before-download": 1,
    "line": 6,
    "downloaded": 1,
    "some-settled": 6,
    "all-settled": 1,
    "wave-ended": 1,
}
"""Places, and how often a turn of one provider gets there at least."""


def _turns(pair: Pair, place: str, often: int) -> tuple[Pair, str, int]:
    """A place with the so-manieth time that it is reached; chance says which."""
    return pair, place, Random(f"{pair} {place}").randint(1, 2 * often)


POINTS = [
    _turns(pair, place, often)
    for pair in get_args(Pair)
    for place, often in PLACES.items()
    if pair != "anthropic" or "upload" not in place
]
REQUESTS = range(1, 22)
"""A run makes so many at least: three turns of two providers, one of whom wants a file first."""
COMMITS: list[tuple[int, When]] = [(commit, when) for commit in range(1, 11) for when in ("before", "after")]
SEEDS, KILLS_EACH = range(2), 12


@pytest.mark.sampled(every=15)
@pytest.mark.parametrize(("pair", "place", "nth"), POINTS)
def test_a_kill_anywhere_on_the_way_of_a_batch(staged: Staged, pair: Pair, place: str, nth: int) -> None:
    scene = staged(Settings(pair, turns=2))
    assert scene.killed_at(place, nth)
    scene.check(scene.finish())


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("pair", ["openai", "anthropic"])
@pytest.mark.parametrize("settled", [5, 1, 7])
def test_a_wave_that_was_half_durable_goes_on_as_one(staged: Staged, pair: Pair, settled: int) -> None:
    scene = staged(Settings(pair))
    assert scene.killed_at("some-settled", settled)
    scene.check(scene.finish())
    assert scene.waves == [6, 6, 6]


@pytest.mark.sampled
@pytest.mark.parametrize("request_", REQUESTS)
def test_a_kill_at_any_request(staged: Staged, request_: int) -> None:
    scene = staged()
    assert scene.killed_after(request_)
    scene.check(scene.finish())


@pytest.mark.sampled(every=7)
@pytest.mark.parametrize(("commit", "when"), COMMITS)
def test_a_crash_at_any_commit(staged: Staged, commit: int, when: When) -> None:
    scene = staged()
    assert scene.crashed_at(CrashPoint(commit, when))
    scene.check(scene.finish())


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_kill_after_kill_at_any_moment(staged: Staged, seed: int) -> None:
    scene, random = staged(Settings("mixed", 500, 4), batch_size=25), Random(seed)
    for _ in range(KILLS_EACH):
        assert dies(scene, random), "the run ended before it was killed often enough"
    scene.check(scene.finish())


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 5))
def test_a_hundred_kills_of_one_run(staged: Staged, seed: int) -> None:
    scene, random = staged(Settings("mixed", 1000, 6), batch_size=25), Random(seed)
    while scene.kills < 100 and dies(scene, random):
        pass
    assert scene.kills > 50, "the run ended before it was killed often enough"
    scene.check(scene.finish())


def dies(scene: Scene, random: Random) -> bool:
    """A session that is killed by chance: as a request comes in, as a line is read, or around a commit."""
    how = random.choice(["request", "request", "line", "line", "before-commit", "after-commit"])
    if how == "request":
        return scene.killed_after(random.randint(1, 20))
    return scene.killed_at(how, random.randint(1, 80 if how == "line" else 4))


def test_there_are_a_hundred_crashes() -> None:
    kills = len(POINTS) + len(REQUESTS) + len(SEEDS) * KILLS_EACH
    assert kills >= 20
    assert kills + len(COMMITS) >= 100
