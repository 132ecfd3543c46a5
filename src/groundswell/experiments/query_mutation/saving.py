"""Policies as files that numpy reads, for those who use them elsewhere.

A file holds `actor_0_weights`, `actor_0_biases`, ... and the same of `critic`: every layer takes what the one before
gives, tanh between them. `mutators` names the actions in their order; `embedder` and `width` say what is seen first.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation.episode import FEATURES, Floats
from groundswell.experiments.query_mutation.learning.policy import Policy, arrays, layers
from groundswell.experiments.query_mutation.task import Task

NETWORKS = ("actor", "critic")


def saved(policy: Policy, task: Task) -> bytes:
    """A policy as the bytes of an .npz file: the same whenever it is written."""
    found: dict[str, Any] = {
        f"{name}_{number}_{part}": array
        for name in NETWORKS
        for number, pair in enumerate(arrays(getattr(policy, name)))
        for part, array in zip(("weights", "biases"), pair, strict=True)
    }
    found["mutators"] = np.array(task.mutators)
    found["embedder"] = np.array(task.embedder)
    found["width"] = np.array(policy.actor[0].into - FEATURES - len(task.mutators))
    out = BytesIO()
    np.savez(out, **found)
    return out.getvalue()


def read_policy(path: str | Path) -> Policy:
    """The policy in a file."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return Policy(*(layers(_pairs(dict(found), name)) for name in NETWORKS))
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise SettingsError(f"{path}: no policy can be read from it: {error}") from error


def _pairs(found: dict[str, Any], name: str) -> list[tuple[Floats, Floats]]:
    count = sum(key.startswith(f"{name}_") and key.endswith("_weights") for key in found)
    if not count:
        raise ValueError(f"it has no {name}_0_weights")
    return [(found[f"{name}_{number}_weights"], found[f"{name}_{number}_biases"]) for number in range(count)]
