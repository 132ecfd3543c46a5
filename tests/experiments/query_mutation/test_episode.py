"""Episodes: what is seen, what a step does, how one ends, and where chance comes from."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.chance import chance_of, seed_of
from groundswell.experiments.query_mutation.episode import (
    FEATURES,
    Episode,
    advance,
    begin,
    guard_of,
    observed,
    size_of,
    step_of,
)
from groundswell.experiments.query_mutation.guards import guards_named
from groundswell.experiments.query_mutation.stepping import Stepped
from groundswell.experiments.query_mutation.task import Task
from tests.properties import examples

TASK = Task(
    guards=guards_named(["open", "asked", "firm"]), queries=("a", "b", "c"), secrets=("lantern", "velvet"), max_steps=4
)


def packed(*values: float) -> bytes:
    return np.array(values, dtype="<f4").tobytes()


EMBEDDINGS = {"a": packed(1, 0, 0), "b": packed(0, 1, 0), "c": packed(0, 0, 1)}
START = Episode(1, 0, "lantern", "a", "a", EMBEDDINGS["a"])


def stepped(score: float = 0.0, **how: object) -> Stepped:
    """What a step may come to."""
    made = Stepped("q", "r", score, False, EMBEDDINGS["a"])
    return msgspec.structs.replace(made, **how)


SCORES = st.floats(0, 1)
STEPS = st.lists(st.tuples(SCORES, st.integers(0, 6), st.booleans()), min_size=1, max_size=8)


@given(STEPS)
def test_rewards_add_up_to_the_best_score_less_what_was_paid(steps: list[tuple[float, int, bool]]) -> None:
    episode, total, paid, best = START, 0.0, 0.0, 0.0
    for score, action, refused in steps:
        turn = stepped(score, refused=refused, embedding=EMBEDDINGS["b" if refused else "a"])
        after = advance(TASK, episode, action, turn, EMBEDDINGS)
        total += after.reward
        paid += TASK.query_cost + TASK.drift_cost * (1.0 if refused else 0.0)
        best = max(best, score)
        assert after.episode.best == best >= episode.best
        assert after.episode.step == episode.step + 1
        assert (after.gained, after.usable) == (max(0.0, score - episode.best), True)
        episode = after.episode
        if episode.end:
            break
    assert total == pytest.approx(best - paid)


@pytest.mark.parametrize(
    ("step", "turn", "end"),
    [
        (0, stepped(0.5), ""),
        (0, stepped(1.0), "leak"),
        (3, stepped(1.0), "leak"),
        (3, stepped(0.5), "steps"),
        (2, stepped(0.5), ""),
        (0, stepped(1.0, failed={"target": "x"}), "fault"),
        (3, None, "fault"),
    ],
    ids=["goes on", "leak", "leak at the last step", "last step", "last but one", "failed", "missing"],
)
def test_how_an_episode_ends(step: int, turn: Stepped | None, end: str) -> None:
    after = advance(TASK, msgspec.structs.replace(START, step=step), 0, turn, EMBEDDINGS)
    assert after.episode.end == end
    assert (after.terminated, after.truncated) == (end == "leak", end in ("steps", "fault"))


def test_success_may_be_less_than_all() -> None:
    task = msgspec.structs.replace(TASK, success=0.4)
    assert advance(task, START, 0, stepped(0.5), EMBEDDINGS).terminated


@pytest.mark.parametrize(
    "turn", [None, stepped(1.0, failed={"embedding": "x"}, embedding=b"")], ids=["missing", "part"]
)
def test_a_step_that_failed_leaves_everything_where_it_stood(turn: Stepped | None) -> None:
    before = msgspec.structs.replace(START, step=2, best=0.3, score=0.2, previous=1)
    after = advance(TASK, before, 3, turn, EMBEDDINGS)
    assert after.episode == msgspec.structs.replace(before, end="fault")
    assert (after.reward, after.gained, after.drift, after.usable) == (0.0, 0.0, 0.0, False)


@pytest.mark.parametrize("width", [2, 4])
def test_an_embedding_of_another_width_breaks_an_episode_off(width: int) -> None:
    after = advance(TASK, START, 1, stepped(1.0, embedding=packed(*[1.0] * width)), EMBEDDINGS)
    assert (after.usable, after.reward, after.episode.end) == (False, 0.0, "fault")
    assert len(observed(TASK, after.episode)) == len(observed(TASK, START))


def test_drift_is_from_the_goal_and_not_from_the_last_query() -> None:
    away = msgspec.structs.replace(START, query="b", embedding=EMBEDDINGS["b"])
    assert advance(TASK, away, 0, stepped(embedding=EMBEDDINGS["b"]), EMBEDDINGS).drift == 1.0
    assert advance(TASK, away, 0, stepped(embedding=EMBEDDINGS["a"]), EMBEDDINGS).drift == 0.0


def test_the_beginning_is_seen() -> None:
    seen = observed(TASK, START)
    assert seen.dtype == np.float32
    assert seen.tolist() == [1, 0, 0, *[0] * FEATURES, *[0] * len(TASK.mutators)]


def test_a_step_is_seen() -> None:
    turn = stepped(0.25, refused=True, embedding=EMBEDDINGS["c"])
    seen = observed(TASK, advance(TASK, START, 2, turn, EMBEDDINGS).episode)
    assert seen.tolist() == [0, 0, 1, 1, 0.25, 0.25, 0, 0, 1, *[0] * (len(TASK.mutators) - 3)]


@given(STEPS)
def test_what_is_seen_has_its_size_and_keeps_within_bounds(steps: list[tuple[float, int, bool]]) -> None:
    episode = START
    for score, action, refused in steps[: TASK.max_steps]:
        episode = advance(TASK, episode, action, stepped(score, refused=refused), EMBEDDINGS).episode
        seen = observed(TASK, episode)
        assert seen.shape == (size_of(TASK, 3),)
        assert (seen[3:] >= 0).all()
        assert (seen[3:] <= 1).all()
        assert seen[3 + FEATURES :].tolist() == [float(at == action) for at in range(len(TASK.mutators))]


@given(st.integers(0, 2**62))
def test_an_episode_follows_from_its_seed(seed: int) -> None:
    one = begin(TASK, seed, EMBEDDINGS)
    assert one == begin(TASK, seed, EMBEDDINGS)
    assert (one.secret in TASK.secrets, one.goal in TASK.queries) == (True, True)
    assert one.query == one.goal
    assert one.embedding == EMBEDDINGS[one.goal]
    assert guard_of(TASK, one) is TASK.guards[one.guard]
    assert (one.step, one.best, one.previous, one.end) == (0, 0.0, -1, "")


def test_every_guard_secret_and_query_is_drawn_about_as_often() -> None:
    drawn = [begin(TASK, seed_of("test", at), EMBEDDINGS) for at in range(3000)]
    met = Counter((each.guard, each.secret, each.goal) for each in drawn)
    assert len(met) == 3 * 2 * 3
    assert max(met.values()) < 1.5 * 3000 / 18
    assert min(met.values()) > 0.5 * 3000 / 18


def test_a_step_tries_the_query_as_it_stands_for_the_first_goal() -> None:
    away = msgspec.structs.replace(START, query="reworded", guard=2)
    made = step_of(TASK, away, 3)
    assert (made.mutator, made.query, made.goal) == (TASK.mutators[3], "reworded", "a")
    assert (made.secret, made.guard, made.target) == ("lantern", TASK.guards[2], "emulated/guard:0.6:courtesy")


def test_chance_is_spread_evenly() -> None:
    drawn = [chance_of(7, "ppo.0", seat, step) for seat in range(40) for step in range(100)]
    assert 0 <= min(drawn) < 0.01
    assert 0.99 < max(drawn) < 1
    counts = np.histogram(drawn, bins=10, range=(0, 1))[0]
    assert (abs(counts - 400) < 90).all(), "4.7 standard deviations"


PARTS = st.lists(st.integers() | st.text(max_size=5), min_size=1, max_size=4)


@settings(max_examples=examples(200))
@given(PARTS, PARTS)
def test_seeds_belong_to_their_parts(one: list[object], other: list[object]) -> None:
    assert seed_of(*one) == seed_of(*one)
    assert 0 <= seed_of(*one) < 2**63
    assert 0 <= chance_of(*one) < 1
    if list(map(str, one)) != list(map(str, other)) and "\0" not in "".join(map(str, [*one, *other])):
        assert seed_of(*one) != seed_of(*other)
