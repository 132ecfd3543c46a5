"""The best fixed sequence of mutations, and the best single mutation, searched on the guards of the training.

The search plays whole episodes with each candidate and keeps those that leak most often. Candidates that look good are
played more, so the winner is known best. It reads nothing of an episode, so it is the simplest method that could win.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from random import Random

import msgspec

from groundswell.experiments.chance import seed_of
from groundswell.experiments.query_mutation.episode import Episode, Floats
from groundswell.experiments.query_mutation.learning.choosing import Choice, Rollout, Script

POOL = 16
"""Number of candidates at a time."""
GROWING = 0.6
"""Share of the search in which new candidates are made of the best. In the rest, the pool shrinks to the winner."""
PRIOR = 4.0
"""How many episodes of the average candidate each candidate begins with."""


class Tally(msgspec.Struct, frozen=True):
    """A candidate: the mutation of each step, and how its episodes ended."""

    actions: tuple[int, ...]
    episodes: int = 0
    worth: float = 0.0
    """Sum over its episodes: from 1 for a leak at the first step to just over 1/2 at the last; 0 without a leak."""


class Search(msgspec.Struct, frozen=True, tag=True):
    """A search over sequences, or over single mutations if `single`."""

    pool: tuple[Tally, ...]
    single: bool
    size: int
    """Number of mutations that may occur."""
    length: int
    """Maximum number of steps of an episode."""
    updates: int
    done: int = 0

    @classmethod
    def new(cls, size: int, length: int, updates: int, seed: int, *, single: bool) -> Search:
        """A search that begins with every single mutation, and for sequences with random ones that repeat."""
        pool = [Tally((action,) * length) for action in range(size)]
        draw = Random(seed_of("sequences", seed))
        for number in range(0 if single else POOL):
            order = draw.sample(range(size), min(size, 2 + number % 4) if number % 5 else size)
            pool.append(Tally(_repeated(order, length)))
        return cls(_distinct(pool), single, size, length, updates)

    def choose(self, seen: Floats, chance: float, episode: Episode | None = None) -> Choice:
        """The next mutation of the candidate that plays this episode."""
        assert episode is not None
        return Choice(self._player(episode).actions[episode.step])

    def value(self, seen: Floats) -> float:
        """Always 0: a search has no value estimate."""
        return 0.0

    def learn(self, rollouts: Sequence[Rollout], seed: int) -> Search:
        """The search after these steps."""
        played = {each.actions: each for each in self.pool}
        for episode in _ended(rollouts):
            player = played[self._player(episode).actions]
            if episode.taken == player.actions[: episode.step]:  # otherwise another candidate began the episode
                worth = 1 - (episode.step - 1) / (2 * self.length) if episode.end == "leak" else 0.0
                played[player.actions] = Tally(player.actions, player.episodes + 1, player.worth + worth)
        ranked = _ranked(played.values())
        done = self.done + 1
        left = 1 - done / self.updates
        if self.single:
            pool = ranked[: max(1, ceil(self.size * left))]
        elif left > 1 - GROWING:
            draw = Random(seed_of("children", seed, done))
            best = ranked[: POOL // 2]
            pool = [*best, *(Tally(_child(best, self.size, draw)) for _ in range(POOL - len(best)))]
        else:
            pool = ranked[: max(1, ceil(POOL * left / (1 - GROWING)))]
        return msgspec.structs.replace(self, pool=_distinct(pool), done=done)

    @property
    def best(self) -> Script:
        """The best candidate."""
        return Script(_ranked(self.pool)[0].actions)

    def _player(self, episode: Episode) -> Tally:
        """The candidate of an episode. It stays the same while the candidate stays in the pool."""
        return max(self.pool, key=lambda each: seed_of(episode.seed, *each.actions))


def _ended(rollouts: Sequence[Rollout]) -> Iterator[Episode]:
    for rollout in rollouts:
        yield from (after for _, after in rollout.moves if after.end in ("leak", "steps"))


def _ranked(pool: Iterable[Tally]) -> list[Tally]:
    """Candidates by their mean worth, drawn towards the mean of all; the best first."""
    every = list(pool)
    episodes, worth = sum(each.episodes for each in every), sum(each.worth for each in every)
    mean = worth / episodes if episodes else 0.0
    return sorted(every, key=lambda each: (-(each.worth + PRIOR * mean) / (each.episodes + PRIOR), each.actions))


def _child(parents: Sequence[Tally], size: int, draw: Random) -> tuple[int, ...]:
    """A candidate made of good ones: a step replaced or moved to the front, two of them joined, or a part repeated."""
    one, other = list(draw.choice(parents).actions), list(draw.choice(parents).actions)
    at = draw.randrange(len(one))
    match draw.randrange(4):
        case 0:
            one[at] = draw.randrange(size)
        case 1:
            one.insert(0, one.pop(at))
        case 2:
            one[at:] = other[: len(one) - at]
        case _:
            return _repeated(one[: 1 + at % 4], len(one))
    return tuple(one)


def _repeated(order: Sequence[int], length: int) -> tuple[int, ...]:
    return tuple(order[at % len(order)] for at in range(length))


def _distinct(pool: Sequence[Tally]) -> tuple[Tally, ...]:
    found = dict[tuple[int, ...], Tally]()
    for each in pool:
        found.setdefault(each.actions, each)
    return tuple(found.values())
