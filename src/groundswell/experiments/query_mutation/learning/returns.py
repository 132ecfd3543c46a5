"""Generalised advantage estimation over steps of which some must not be learnt from. Pure."""

from __future__ import annotations

import numpy as np

from groundswell.experiments.query_mutation.episode import Floats
from groundswell.experiments.query_mutation.learning.choosing import Rollout


def advantages(rollout: Rollout, gamma: float, gae_lambda: float) -> Floats:
    """How much better each step went than was expected of where it stood.

    After the last step of an episode nothing is expected: an episode has so many steps, and how many are left is seen.
    A step that failed is worth nothing and tells nothing: for the one before it, what is expected of where it failed
    stands in for what would have come.
    """
    count = len(rollout.rewards)
    found = np.zeros(count, dtype=np.float32)
    later = 0.0
    for at in range(count - 1, -1, -1):
        if not rollout.usable[at]:
            later = 0.0
            continue
        expected, carried = 0.0, 0.0
        if not rollout.ended[at]:
            expected = rollout.last_value if at + 1 == count else rollout.values[at + 1]
            carried = later
        later = rollout.rewards[at] + gamma * expected - rollout.values[at] + gamma * gae_lambda * carried
        found[at] = later
    return found
