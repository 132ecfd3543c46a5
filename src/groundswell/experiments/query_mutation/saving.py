"""Policies as .npz files, for use outside Groundswell.

A file contains `actor_0_weights`, `actor_0_biases`, ... and the same for `critic`: linear layers joined by tanh.
`mutators` lists the actions in order. `embedder` and `width` say which embedding the observation begins with.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation.episode import FEATURES, Floats
from groundswell.experiments.query_mutation.learning.policy import Policy, arrays, layers
from groundswell.experiments.query_mutation.task import Task

NETWORKS = ("actor", "critic")


def saved(policy: Policy, task: Task) -> bytes:
    """A policy as the bytes of an .npz file. The bytes are reproducible."""
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
    """Read a policy from an .npz file."""
    try:
        found = np.load(BytesIO(Path(path).read_bytes()), allow_pickle=False)
        if not isinstance(found, NpzFile):
            raise ValueError("it contains a single array")
        actor, critic = (layers(_pairs(dict(found), name)) for name in NETWORKS)
        return Policy(actor, critic)
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
        raise SettingsError(f"{path}: not a policy file: {error}") from error


def _pairs(found: dict[str, Any], name: str) -> list[tuple[Floats, Floats]]:
    count = sum(key.startswith(f"{name}_") and key.endswith("_weights") for key in found)
    if not count:
        raise ValueError(f"it has no {name}_0_weights")
    pairs = [(found[f"{name}_{number}_weights"], found[f"{name}_{number}_biases"]) for number in range(count)]
    into = None
    for number, (weights, biases) in enumerate(pairs):
        if weights.ndim != 2 or biases.shape != weights.shape[:1] or into not in (None, weights.shape[1]):
            raise ValueError(f"{name}_{number} has the wrong shape")
        if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
            raise ValueError(f"{name}_{number} contains numbers that are not finite")
        into = len(biases)
    return pairs
