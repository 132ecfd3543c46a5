"""Limits end a run in time by the emulator's books, and a larger one brings it to the end that it would have had."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded
from tests.shows.desk import OPENAI, Desk, graded

DEARER = "openai/gpt-4o"
"""Costs 16 times as much. (Like the other it can be asked with a seed, so that replies do not depend on the order.)"""
ROOT = Path(__file__).parents[2]
WEATHER = tuple(Rule(fault=fault, rate=0.05 / 3, retry_after=0.1) for fault in ("500", "429", "drop"))
"""Something goes wrong with every twentieth request, and nothing is paid for it."""


class Case(NamedTuple):
    """A command over so many rows."""

    words: list[str]
    rows: int


CASES = {
    "plain": Case(["map", "t.csv", "-p", "Say {word}", "-m", OPENAI, "--reply-tokens", "60"], 300),
    "with everything": Case([*graded(), "--reply-tokens", "20"], 250),
}


def spent(flag: str, books: dict[str, Any]) -> float:
    """What the emulator's books say of a limit."""
    if flag == "--budget":
        return float(books["dollars"])
    return float(books["received"] if flag == "--max-calls" else books["input_tokens"] + books["output_tokens"])


def possible(flag: str, desk: Desk) -> float:
    """What the run says may have been paid as well: a dropped connection may have been billed."""
    shown = desk.json("runs", "show", desk.runs[0]["run_id"])
    if flag == "--budget":
        return float(shown["cost"]["possible_usd"])
    return 0.0 if flag == "--max-calls" else float(shown["tokens"]["possible"])


def of(flag: str, amount: float) -> str:
    return f"{amount:.7f}" if flag == "--budget" else f"{int(amount)}"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("case", "flag", "weather"),
    [
        pytest.param(CASES["plain"], "--budget", (), id="dollars"),
        pytest.param(CASES["plain"], "--max-calls", (), id="calls"),
        pytest.param(CASES["plain"], "--max-tokens", (), id="tokens"),
        pytest.param(CASES["plain"], "--budget", WEATHER, id="dollars, faults"),
        pytest.param(CASES["plain"], "--max-calls", WEATHER, id="calls, faults", marks=pytest.mark.slow),
        pytest.param(CASES["plain"], "--max-tokens", WEATHER, id="tokens, faults", marks=pytest.mark.slow),
        pytest.param(CASES["with everything"], "--budget", (), id="dollars, everything", marks=pytest.mark.slow),
        pytest.param(CASES["with everything"], "--budget", WEATHER, id="dollars, everything, faults"),
    ],
)
def test_a_limit_is_kept_by_the_books_and_a_larger_one_finishes_the_rest(
    case: Case, flag: str, weather: tuple[Rule, ...], tmp_path: Path, emulator: Threaded
) -> None:
    free = Desk(tmp_path / "free", emulator, case.rows)
    whole = free.json(*case.words)
    bill = free.books
    emulator.reset()
    emulator.set_faults(*weather)

    desk = Desk(tmp_path / "limited", emulator, case.rows)
    words = [*case.words, "--max-concurrent", "16"]
    limit = of(flag, 0.3 * spent(flag, bill))
    stopped = desk.json(*words, flag, limit, status=3)
    paid, lost = spent(flag, desk.books), possible(flag, desk)
    assert 0.9 * float(limit) <= paid + lost <= float(limit)
    assert weather or not lost
    assert stopped["status"] == "partial"
    assert stopped["trials"]["missing"] == 0
    statuses = [row["status"] for row in desk.rows]
    assert set(statuses) == {"usable", "pending"}
    assert statuses.count("usable") == stopped["trials"]["usable"] > 0.15 * len(statuses)
    assert len(statuses) == whole["trials"]["planned"]

    finished = desk.json(*words, flag, of(flag, 3 * spent(flag, bill)))
    assert finished["run_id"] == stopped["run_id"]
    assert desk.written == free.written
    books = desk.books
    assert (books["dollars"], books["requests"], books["paid_again"]) == (bill["dollars"], bill["requests"], 0)
    assert finished["cost"]["usd"] == pytest.approx(bill["dollars"], rel=1e-9)


def test_the_same_limit_again_sends_nothing_and_says_what_to_do(tmp_path: Path, emulator: Threaded) -> None:
    desk = Desk(tmp_path / "desk", emulator, 60)
    words = [*CASES["plain"].words, "--max-calls", "20"]
    first = desk(*words, status=3)
    assert "to resume with a larger limit: groundswell runs resume" in first.stderr
    paid, written = desk.books, desk.written
    desk(*words, status=3)
    assert (desk.books, desk.written) == (paid, written)


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["--budget", "--max-calls", pytest.param("--max-tokens", marks=pytest.mark.slow)])
def test_half_of_a_bill_brings_conversations_to_an_end(flag: str, tmp_path: Path, emulator: Threaded) -> None:
    """Asks must not be spread over all conversations, so that none of them ends."""
    models = f'models=["{OPENAI}","{DEARER}"]'
    words = ["run", f"{ROOT / 'examples' / 'duel.py'}:tournament", "--set", "duels=100", "--set", "turns=3"]
    words += ["--set", models]
    free = Desk(tmp_path / "free", emulator)
    whole = free.json(*words, "--name", "duels")
    bill = free.books
    emulator.reset()

    desk = Desk(tmp_path / "limited", emulator)
    words += ["--name", "duels", "--max-concurrent", "32"]
    limit = of(flag, 0.5 * spent(flag, bill))
    stopped = desk.json(*words, flag, limit, status=3)
    assert 0.85 * float(limit) <= spent(flag, desk.books) <= float(limit)
    assert stopped["trials"]["usable"] >= 35
    finished = desk.json(*words, flag, of(flag, 3 * spent(flag, bill)))
    assert finished["analysis"] == whole["analysis"]
    assert desk.books["dollars"] == bill["dollars"]
    assert desk.books["paid_again"] == 0
