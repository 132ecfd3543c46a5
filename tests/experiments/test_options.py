"""The shared options: what they make of a run's own."""

from __future__ import annotations

from typing import Any

import pytest

from groundswell import Limits, RunOptions
from groundswell.errors import SettingsError
from groundswell.experiments.options import HowToRun

STORED = RunOptions(schedule="waves", window=7, limits=Limits(calls=5, usd=1.0))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, STORED),
        ({"max_calls": 9}, RunOptions(schedule="waves", window=7, limits=Limits(calls=9, usd=1.0))),
        (
            {"budget": 0.0, "max_tokens": 3, "deadline": 2.5},
            RunOptions(schedule="waves", window=7, limits=Limits(calls=5, usd=0.0, tokens=3, seconds=2.5)),
        ),
        ({"schedule": "stream"}, RunOptions(window=7, limits=Limits(calls=5, usd=1.0))),
        (
            {"max_reorder_usd": 20.0},
            RunOptions(schedule="waves", window=7, limits=Limits(calls=5, usd=1.0), max_reorder_usd=20.0),
        ),
        (
            {"max_reorder_usd": float("inf")},
            RunOptions(schedule="waves", window=7, limits=Limits(calls=5, usd=1.0), max_reorder_usd=None),
        ),
        ({"no_cache": True}, RunOptions(schedule="waves", window=7, limits=Limits(calls=5, usd=1.0), cache=False)),
    ],
    ids=["nothing", "one limit", "other limits", "schedule", "reorders", "any reorders", "no cache"],
)
def test_what_is_given_changes_what_was_stored(given: dict[str, Any], expected: RunOptions) -> None:
    assert HowToRun(**given).run_options(STORED) == expected


def test_a_size_of_batches_needs_batches() -> None:
    with pytest.raises(SettingsError, match=r"batch_size 5: .* set via to batch or auto"):
        HowToRun(batch_size=5).run_options(STORED)
    assert HowToRun(batch_size=5, via="auto").run_options(STORED).batch_size == 5
    assert HowToRun(batch_size=5).run_options(RunOptions(via="batch")).batch_size == 5
