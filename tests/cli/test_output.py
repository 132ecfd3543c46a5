"""Figures as people read them."""

from __future__ import annotations

import pytest

from groundswell.cli.output import age, command, cost, duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (61, "1 min 01 s"),
        (3599.6, "1 h 00 min"),
        (7260, "2 h 01 min"),
        (200000, "2 d 7 h"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (59, "59 s"), (90, "2 min"), (7200, "2 h"), (200000, "2 d")]
)
def test_age(seconds: float, text: str) -> None:
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("usd", "unknown", "text"),
    [
        (None, 5, "unknown"),
        (0.0, 0, "$0.00"),
        (0.00012, 0, "$0.0001"),
        (12.345, 0, "$12.35"),
        (1.5, 2, "$1.50 and 2 asks of unknown price"),
    ],
)
def test_cost(usd: float | None, unknown: int, text: str) -> None:
    assert cost(usd, unknown) == text


def test_a_command_names_the_store_only_where_it_must() -> None:
    assert command("runs list", "groundswell.db") == "groundswell runs list"
    assert command("runs list", "my runs.db") == "groundswell runs list --store 'my runs.db'"
