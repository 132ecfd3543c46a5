"""The example of docs/writing-your-own.md, and that the page shows what is really there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import groundswell
from groundswell import Fault, FaultKind

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

from auction import auctions  # noqa: E402
from second_thoughts import Settings, second_thoughts  # noqa: E402


def test_a_stubborn_model_never_changes_its_answer(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "runs.db", script=lambda request: "Yes.") as engine:
        summary = engine.drive(second_thoughts, Settings(replicates=3))
    assert summary.analysis == {"Are you sure?": 0, "I think that is wrong.": 0, "Thank you.": 0}
    assert summary.asks.sent == 36


def test_what_fails_is_missing_and_not_scored(tmp_path: Path) -> None:
    def fails_when_thanked(request: groundswell.Chat) -> str | Fault:
        if request.messages[-1].content == "Thank you.":
            return Fault(FaultKind.FILTERED, "no")
        return str(len(request.messages))

    with groundswell.open_sync(tmp_path / "runs.db", script=fails_when_thanked) as engine:
        summary = engine.drive(second_thoughts, Settings(replicates=1))
    assert summary.analysis == {"Are you sure?": 1, "I think that is wrong.": 1}
    assert (summary.status, summary.trials.missing, summary.trials.usable) == ("partial", 2, 4)


def test_the_auction_asks_again_where_the_form_was_forgotten(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "runs.db") as engine:
        summary = engine.drive(auctions, {"replicates": 50})
        assert engine.verify(summary.run_id).ok
    assert summary.analysis["unicorn"] == 0
    assert 5 <= summary.analysis["lamp"] <= 50
    assert summary.asks.sent > 100
    assert summary.trials.usable + summary.trials.missing == 100


def test_the_scripted_model_gives_the_same_run_again(tmp_path: Path) -> None:
    analyses = []
    for name in ("a.db", "b.db"):
        with groundswell.open_sync(tmp_path / name) as engine:
            analyses.append(engine.drive(second_thoughts, Settings(), seed=7).analysis)
    assert analyses[0] == analyses[1]
    assert 0 < analyses[0]["Are you sure?"] < analyses[0]["I think that is wrong."] < 1


PAGE = (ROOT / "docs" / "writing-your-own.md").read_text()
BLOCKS = [
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    if block.startswith(("class", "@", "def", "async def"))
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.partition("\n")[0][:40])
def test_the_page_shows_the_code_that_runs(block: str) -> None:
    code = "".join(path.read_text() for path in [*(ROOT / "examples").glob("*.py"), Path(__file__)])
    assert block.strip() in code
