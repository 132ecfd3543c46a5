"""`groundswell play`, killed again and again: the same command finds in the end what a run left alone finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from tests.shows.games import MESSAGES, Game

CAP = 16
MOST_AT_ONCE = 2 * (1.5 * CAP + 2)
"""Asks that may be in flight to the two accounts, and so be lost by one kill."""
LIVE = ["--max-concurrent", str(CAP)]
SETTLES = 5
"""Seconds after which an order that was on its way when the process was killed has come, or will not come any more."""
QUICK = [
    f"{name}.{said}" for name in ("openai", "anthropic") for said in ("batch_poll=0.1", f"batch_patience={SETTLES}")
]
BATCH = ["--via", "batch", *(word for said in QUICK for word in ("--account", said))]


@pytest.fixture(scope="module")
def _quick() -> Iterator[Threaded]:
    with running(Settings(speed=2000)) as emulator:
        yield emulator


@pytest.fixture
def emulator(_quick: Threaded) -> Threaded:
    """An emulator on whose clock a batch of ten minutes takes a third of a second."""
    _quick.reset()
    return _quick


def moments(asks: int, kills: int) -> list[int]:
    """After how many replies to kill: all over the game, and once when the last has been paid for."""
    chance, apart = Random(asks), asks // kills
    return [max(10, part * apart) + chance.randrange(apart * 2 // 3) for part in range(kills - 1)] + [asks]


def kill_again_and_again(game: Game, asks: int, kills: int) -> int:
    """Play to the end with so many kills; how many asks were sent again, by the run's own account."""
    for paid in moments(asks, kills):
        game.kill_when_paid_for(paid)
        assert not (game.folder / "report" / "report.html").exists()
    found = game.play()
    assert found["status"] == "completed"
    assert found["trials"] == {"planned": game.interactions, "usable": game.interactions, "missing": 0}
    assert [run["status"] for run in game.runs] == ["completed"]
    assert game.paid == asks
    resent: int = found["asks"]["resent"]
    return resent


@pytest.mark.campaign
@pytest.mark.timeout(300)
def test_a_game_that_is_killed_ends_as_one_that_was_not(tmp_path: Path, emulator: Threaded) -> None:
    whole = Game(tmp_path / "whole", emulator, 400, *LIVE)
    alone, asks = whole.json(*whole.words), whole.paid
    assert 0.95 * 400 * MESSAGES < asks <= 400 * MESSAGES
    assert 0 < alone["analysis"]["overall"]["total_secrets_revealed"] < 2 * 400
    emulator.reset()

    killed = Game(tmp_path / "killed", emulator, 400, *LIVE)
    resent = kill_again_and_again(killed, asks, 4)
    assert killed.report() == whole.report()
    assert killed.books["paid_again"] <= resent <= 4 * MOST_AT_ONCE

    before = killed.books
    again = killed.json(*killed.words)
    assert again["analysis"] == alone["analysis"]
    assert killed.books == before


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_game_in_batches_that_is_killed_pays_for_nothing_twice(tmp_path: Path, emulator: Threaded) -> None:
    live = Game(tmp_path / "live", emulator, 100, *LIVE)
    live.json(*live.words)
    asks, dollars = live.paid, live.books["dollars"]
    emulator.reset()

    killed = Game(tmp_path / "batch", emulator, 100, *BATCH)
    assert kill_again_and_again(killed, asks, 2) == 0
    assert killed.report() == live.report()
    books = killed.books
    assert (books["batch_requests"], books["requests"], books["paid_again"]) == (asks, 0, 0)
    assert books["dollars"] == pytest.approx(dollars / 2, rel=0.001)


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_ten_thousand_interactions_in_bounded_memory(tmp_path: Path, emulator: Threaded) -> None:
    small = Game(tmp_path / "small", emulator, 1_000, *LIVE, patience=300)
    small.play()
    emulator.reset()
    whole = Game(tmp_path / "whole", emulator, 10_000, *LIVE, patience=900)
    whole.play()
    asks = whole.paid
    emulator.reset()

    killed = Game(tmp_path / "killed", emulator, 10_000, *LIVE, patience=900)
    resent = kill_again_and_again(killed, asks, 6)
    print(f"{asks:,} asks, {resent} resent, {killed.books['paid_again']} paid again; megabytes of 1,000 interactions")
    print(f"{small.peak:.0f}, of 10,000 {whole.peak:.0f}, of 10,000 in seven sessions {killed.peak:.0f}")
    assert killed.report() == whole.report()
    assert killed.books["paid_again"] <= resent <= 6 * MOST_AT_ONCE
    assert max(whole.peak, killed.peak) < 2 * small.peak
