"""What the tests of learners share: made-up rollouts."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from groundswell.experiments.query_mutation.episode import Floats
from groundswell.experiments.query_mutation.learning.choosing import Choice, Rollout
from groundswell.experiments.query_mutation.learning.policy import Policy

SEEN, ACTIONS, HIDDEN = 6, 3, 8
NUMBERS = st.floats(-10, 10, width=32)


@st.composite
def rollouts(draw: st.DrawFn, least: int = 1, most: int = 12) -> Rollout:
    """Any rollout: episodes end anywhere, steps fail anywhere, and a step that fails ends its episode."""
    made = Rollout(last_value=draw(NUMBERS))
    for _ in range(draw(st.integers(least, most))):
        usable, ended = draw(st.booleans()), draw(st.booleans())
        choice = Choice(draw(st.integers(0, ACTIONS - 1)), -draw(st.floats(0.1, 3)), draw(NUMBERS))
        made.add(seen_by(draw(st.integers(0, 99))), choice, draw(NUMBERS), ended=ended or not usable, usable=usable)
    return made


def seen_by(number: int) -> Floats:
    """Something that is seen, the same for the same number."""
    return np.random.default_rng(number).standard_normal(SEEN).astype(np.float32)


def played(policy: Policy, steps: int, seed: int = 0, *, failing: float = 0.0) -> Rollout:
    """So many steps as this policy makes them; what comes of them is made up."""
    draw, made = np.random.default_rng(seed), Rollout()
    for _ in range(steps):
        seen = draw.standard_normal(SEEN).astype(np.float32)
        choice, usable = policy.choose(seen, draw.random()), draw.random() >= failing
        reward = float(draw.normal())
        made.add(seen, choice, reward, ended=draw.random() < 0.2 or not usable, usable=usable)
    made.last_value = float(draw.normal())
    return made


def garbled(rollout: Rollout, garbage: float = float("nan")) -> Rollout:
    """The same, with garbage in the place of what failed.

    Only what was expected of where it failed is kept, and only where an episode came that far: it stands in for what
    would have come.
    """
    made = Rollout(last_value=rollout.last_value)
    for at, usable in enumerate(rollout.usable):
        choice = Choice(rollout.actions[at], rollout.log_probabilities[at], rollout.values[at])
        if usable:
            made.add(rollout.seen[at], choice, rollout.rewards[at], ended=rollout.ended[at], usable=True)
        else:
            reached = at > 0 and not rollout.ended[at - 1]
            choice = Choice(0, garbage, choice.value if reached else garbage)
            made.add(np.full_like(rollout.seen[at], garbage), choice, garbage, ended=True, usable=False)
    return made


def new_policy(seed: int = 0) -> Policy:
    """A small policy that knows nothing."""
    return Policy.new(SEEN, ACTIONS, HIDDEN, seed)
