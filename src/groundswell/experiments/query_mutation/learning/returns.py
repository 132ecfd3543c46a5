"""Generalised advantage estimation that excludes masked steps. Pure."""

from __future__ import annotations

import numpy as np

from groundswell.experiments.query_mutation.episode import Floats
from groundswell.experiments.query_mutation.learning.choosing import Rollout


def advantages(rollout: Rollout, gamma: float, gae_lambda: float) -> Floats:
    """The advantage of each step.

    The value after the last step of an episode is 0, also at the step limit: the observation contains the number of
    remaining steps. A failed step has no advantage. The step before it bootstraps from the value estimate of the state
    in which the step failed.
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
