"""The search for a fixed sequence: it finds one that works, also if no single mutation does."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest

from groundswell.experiments.query_mutation.episode import Episode
from groundswell.experiments.query_mutation.learning.choosing import Rollout
from groundswell.experiments.query_mutation.learning.search import Search
from tests.experiments.query_mutation.learning.rollouts import seen_by

SIZE, LENGTH, UPDATES = 5, 6, 30
SEEN = seen_by(0)


def searched(leaks: Callable[[tuple[int, ...]], float], seed: int, *, single: bool = False) -> Search:
    """A search in which episodes leak with a probability that depends on the actions so far."""
    search, draw = Search.new(SIZE, LENGTH, UPDATES, seed, single=single), random.Random(seed)
    for _ in range(UPDATES):
        rollout = Rollout()
        for _ in range(40):
            episode = Episode(draw.randrange(1 << 40), 0, "s", "g", "g", b"")
            while not episode.end:
                choice = search.choose(SEEN, draw.random(), episode)
                taken = (*episode.taken, choice.action)
                leaked = draw.random() < leaks(taken)
                end = "leak" if leaked else "steps" if len(taken) == LENGTH else ""
                after = msgspec.structs.replace(episode, step=len(taken), taken=taken, end=end)
                rollout.add(SEEN, choice, float(leaked), ended=bool(end), usable=True)
                rollout.moves.append((episode, after))
                episode = after
        search = search.learn([rollout], seed)
    return search


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_the_best_single_mutation(seed: int) -> None:
    found = searched(lambda taken: 0.3 if taken[-1] == 3 else 0.1, seed, single=True)
    assert found.best.actions == (3,) * LENGTH
    assert len(found.pool) == 1


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_an_order_that_no_single_mutation_replaces(seed: int) -> None:
    def leaks(taken: tuple[int, ...]) -> float:
        return 0.9 if taken[-2:] == (2, 4) else 0.02

    best = searched(leaks, seed).best.actions
    assert (2, 4) in pairwise(best)


def test_it_goes_on_from_what_was_written_down() -> None:
    search = Search.new(SIZE, LENGTH, UPDATES, 1, single=False)
    assert msgspec.json.decode(msgspec.json.encode(search), type=Search) == search


def test_a_candidate_keeps_its_episode_while_it_is_in_the_pool() -> None:
    search = Search.new(SIZE, LENGTH, UPDATES, 1, single=False)
    for seed in range(200):
        episode = Episode(seed, 0, "s", "g", "g", b"")
        first = search.choose(SEEN, 0.0, episode).action
        player = next(each for each in search.pool if each == search._player(episode))
        assert player.actions[0] == first
        others = msgspec.structs.replace(search, pool=(player, *search.pool[:5]))
        assert others._player(episode) == player
