"""Policies as files: the same bytes, the same choices, and a clear error for anything else."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation.episode import FEATURES
from groundswell.experiments.query_mutation.learning.policy import Policy
from groundswell.experiments.query_mutation.saving import read_policy, saved
from groundswell.experiments.query_mutation.task import Task

TASK = Task(mutators=("noop", "indirect"))


def policy(width: int = 5, hidden: int = 4, seed: int = 0) -> Policy:
    return Policy.new(width + FEATURES + len(TASK.mutators), len(TASK.mutators), hidden, seed)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**40))
def test_what_is_read_is_what_was_saved(
    tmp_path_factory: pytest.TempPathFactory, width: int, hidden: int, seed: int
) -> None:
    one = policy(width, hidden, seed)
    path = tmp_path_factory.mktemp("p") / "p.npz"
    path.write_bytes(saved(one, TASK))
    assert read_policy(path) == one
    with np.load(path) as found:
        assert int(found["width"]) == width


def test_the_same_policy_is_the_same_file() -> None:
    assert saved(policy(), TASK) == saved(policy(), TASK)


def as_array() -> bytes:
    out = BytesIO()
    np.save(out, np.zeros(3))
    return out.getvalue()


def with_changed(**arrays: Any) -> bytes:
    out = BytesIO()
    with np.load(BytesIO(saved(policy(), TASK))) as found:
        np.savez(out, **{**found, **arrays})
    return out.getvalue()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no archive",
        None,
        saved(policy(), TASK)[:-40],
        as_array(),
        with_changed(actor_1_weights=np.zeros(4)),
        with_changed(actor_1_biases=np.zeros(3)),
        with_changed(critic_2_weights=np.zeros((1, 7))),
        with_changed(critic_0_biases=np.full(4, np.nan)),
    ],
    ids=["empty", "text", "other arrays", "cut off", "one array", "flat", "short", "too wide", "not a number"],
)
def test_what_is_no_policy_is_told(tmp_path: Path, body: bytes | None) -> None:
    path = tmp_path / "p.npz"
    np.savez(path, other=np.zeros(3)) if body is None else path.write_bytes(body)
    with pytest.raises(SettingsError, match=r"p\.npz: not a policy file"):
        read_policy(path)
