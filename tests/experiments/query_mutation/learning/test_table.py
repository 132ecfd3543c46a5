"""Tabular Q-learning: it learns an order of mutations, and does not hear of steps that failed."""

from __future__ import annotations

import random

import msgspec
import pytest

from groundswell.experiments.query_mutation.episode import Episode
from groundswell.experiments.query_mutation.learning.choosing import Rollout
from groundswell.experiments.query_mutation.learning.table import LEAST, Table
from tests.experiments.query_mutation.learning.rollouts import seen_by

SEEN = seen_by(0)
START = Episode(1, 0, "s", "g", "g", b"")


def lesson(table: Table, draw: random.Random, *, usable: bool = True) -> Rollout:
    """Episodes of two steps that leak if mutation 1 and then mutation 0 is chosen."""
    rollout = Rollout()
    for _ in range(20):
        episode = START
        while not episode.end:
            choice = table.choose(SEEN, draw.random(), episode)
            taken = (*episode.taken, choice.action)
            end = "" if len(taken) < 2 else "leak" if taken == (1, 0) else "steps"
            after = msgspec.structs.replace(episode, step=len(taken), taken=taken, previous=choice.action, end=end)
            rollout.add(SEEN, choice, float(end == "leak"), ended=bool(end), usable=usable)
            rollout.moves.append((episode, after))
            episode = after
    return rollout


@pytest.mark.parametrize("seed", range(5))
def test_it_learns_an_order(seed: int) -> None:
    table, draw = Table(3, 30), random.Random(seed)
    for _ in range(30):
        table = table.learn([lesson(table, draw)])
    assert table.explore == LEAST
    first = table.best.choose(SEEN, 0.0, START)
    then = msgspec.structs.replace(START, step=1, previous=1, taken=(1,))
    assert (first.action, table.best.choose(SEEN, 0.0, then).action) == (1, 0)
    assert msgspec.json.decode(msgspec.json.encode(table), type=Table) == table


def test_steps_that_failed_are_not_heard_of() -> None:
    table = Table(3, 30)
    assert table.learn([lesson(table, random.Random(1), usable=False)]).rows == {}
