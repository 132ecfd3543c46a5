"""The shared options: what they make of a run's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groundswell import Limits, RunOptions
from groundswell.cli.options import RunFlags, Schedule

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
        ({"schedule": Schedule.STREAM}, RunOptions(window=7, limits=Limits(calls=5, usd=1.0))),
        ({"no_cache": True}, RunOptions(schedule="waves", window=7, limits=Limits(calls=5, usd=1.0), cache=False)),
    ],
    ids=["nothing", "one limit", "other limits", "schedule", "no cache"],
)
def test_what_is_given_changes_what_was_stored(given: dict[str, Any], expected: RunOptions) -> None:
    assert RunFlags(**given).run_options(STORED) == expected


def test_accounts_are_those_of_the_folder_changed_by_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "groundswell.toml").write_text("[accounts.ollama]\ntimeout = 3\nconnect_timeout = 4\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    account = RunFlags(account=["ollama.timeout=5"]).accounts().find("ollama/x").account
    assert (account.timeout, account.connect_timeout) == (5.0, 4.0)
