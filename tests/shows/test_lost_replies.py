"""`groundswell map`, killed at random again and again: what the run reports is never less than the provider's books."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from groundswell.emulator.server import Threaded
from tests.shows.desk import ANTHROPIC, OPENAI, Desk

WORDS = ["map", "t.csv", "-p", "Say {word}", "-m", f"{OPENAI},{ANTHROPIC}", "--reply-tokens", "30"]
ROWS = 400
KILLS = 6


def kill_often(desk: Desk, chance: Random, *flags: str) -> None:
    """Kill processes soon after their first requests: often before anything of them is durable."""
    for _ in range(KILLS):
        paid = desk.books["requests"] + chance.choice([1, 3, 20, 60])
        desk.kill_when_paid(paid, *WORDS, "--max-concurrent", str(chance.choice([4, 16, 32])), *flags)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(3))
def test_what_is_certain_and_what_is_possible_are_no_less_than_the_books(
    seed: int, tmp_path: Path, emulator: Threaded
) -> None:
    desk = Desk(tmp_path / "desk", emulator, ROWS)
    kill_often(desk, Random(seed))
    found, books = desk.finish(*WORDS, "--max-concurrent", "16"), desk.books
    assert books["paid_again"] > 0
    assert books["paid_again"] <= found["asks"]["resent"] == found["cost"]["possible_asks"]
    assert books["dollars"] <= found["cost"]["usd"] + found["cost"]["possible_usd"]
    assert found["cost"]["usd"] < books["dollars"]
    shown = desk("runs", "show", found["run_id"]).stdout
    assert f"for {found['cost']['possible_asks']:,} requests whose replies were lost" in shown


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(3))
def test_a_budget_is_kept_by_the_books_whatever_was_killed(seed: int, tmp_path: Path, emulator: Threaded) -> None:
    free = Desk(tmp_path / "free", emulator, ROWS)
    free(*WORDS)
    budget = f"{0.7 * free.books['dollars']:.7f}"
    emulator.reset()

    desk = Desk(tmp_path / "desk", emulator, ROWS)
    kill_often(desk, Random(seed), "--budget", budget)
    stopped = desk.json(*WORDS, "--budget", budget, status=3)
    assert stopped["status"] == "partial"
    assert stopped["cost"]["possible_usd"] > 0
    assert desk.books["dollars"] <= float(budget)
