"""While a run goes on, its progress lines foretell what it will have cost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groundswell.emulator.server import Threaded
from groundswell.reporting import progress
from tests.shows.desk import OPENAI, Desk, graded

LINE = re.compile(r"(\d+) of (\d+) trials done;.* cost \$([\d.]+), about \$([\d.]+)(?: to \$([\d.]+))? in total")
ROUNDED = 0.00005
"""Costs are shown to four decimals."""


@pytest.mark.sampled
@pytest.mark.parametrize(
    "words",
    [
        ["map", "t.csv", "-p", "Say {word}", "-m", "openai/gpt-4o", "--reply-tokens", "60"],
        [*graded(["openai/gpt-4o"]), "--judge", OPENAI],
    ],
    ids=["plain", "schema and judge"],
)
@pytest.mark.slow
def test_the_forecast_holds_what_it_came_to(
    words: list[str], tmp_path: Path, emulator: Threaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.02)
    desk = Desk(tmp_path / "desk", emulator, 500)
    told = desk(*words, "--max-concurrent", "8").stderr
    cost = desk.books["dollars"]
    lines = [match.groups() for line in told.splitlines() if (match := LINE.search(line)) is not None]
    spans = [(float(low) - ROUNDED, float(high or low) + ROUNDED) for *_, low, high in lines]
    assert len(spans) >= 10, told
    held = sum(low <= cost <= high for low, high in spans)
    assert held >= 0.8 * len(spans), (cost, spans)
    assert all(high - low <= 0.3 * cost for low, high in spans[len(spans) // 4 :]), (cost, spans)
    assert all(int(of) == 500 and float(spent) <= cost + ROUNDED for _, of, spent, *_ in lines)
