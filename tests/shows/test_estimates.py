"""`--estimate` against the bill: the same command with and without it, and the emulator's books."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from groundswell.emulator.server import Threaded
from tests.shows.desk import ANTHROPIC, EMBEDDER, OPENAI, Desk, graded

EXAMPLES = Path(__file__).parents[2] / "examples"
MODELS = f'["{OPENAI}","{ANTHROPIC}"]'
LONG = "Tell me all that there is to know about it, and more. " * 40
WIDEST = 60
"""How many times the low cost the high one may be where `max_tokens` is set."""
SHAPED = 250
"""Where a schema is: what providers put before a prompt for it is up to 400 tokens, and it may be asked twice."""
OPEN = 4200
"""Where no limit is set for replies, or for a judge's: from one token to the 4,096 that Anthropic is asked for."""
UNSURE = float("inf")
"""Where it may be that nobody is asked."""


class Case(NamedTuple):
    """A command over so many rows; `example` is a file that it runs; `widest`: how wide the range of dollars may be."""

    words: list[str]
    rows: int = 0
    example: str | None = None
    widest: float = WIDEST


def mapped(*words: str, models: str = f"{OPENAI},{ANTHROPIC}") -> list[str]:
    return ["map", "t.csv", "-p", "Say {word}", "-m", models, *words]


def run(example: str, driver: str, *changes: str) -> list[str]:
    return ["run", f"{example}:{driver}", "--name", "r", *(word for one in changes for word in ("--set", one))]


BRIEF = ["--reply-tokens", "40"]
JUDGED = ["--check", 'sure: judge "Is it sure?"']
ALIKE = ["--check", "near: similar {word} >= 0.5", "--embedder", EMBEDDER]
CASES = {
    "ask": Case(["ask", "Why?", "-m", f"{OPENAI},{ANTHROPIC}"], widest=OPEN),
    "ask, 40 samples": Case(["ask", "Why?", "-m", f"{OPENAI},{ANTHROPIC}", "--samples", "40", *BRIEF]),
    "ask, a long prompt": Case(["ask", LONG, "-m", f"{OPENAI},{ANTHROPIC}", "--samples", "3", *BRIEF]),
    "ask, a schema": Case(
        ["ask", "Why?", "-m", f"{OPENAI},{ANTHROPIC}", "--schema", "schema.json", *BRIEF], widest=SHAPED
    ),
    "map": Case(mapped(*BRIEF), 3),
    "map, many rows": Case(mapped(*BRIEF), 300),
    "map, no limit": Case(mapped(), 30, widest=OPEN),
    "map, more than are rehearsed": Case(mapped(*BRIEF, models=OPENAI), 2500),
    "map, a schema": Case(mapped("--schema", "schema.json", *BRIEF), 30, widest=SHAPED),
    "map, a judge": Case(mapped(*JUDGED, *BRIEF), 30, widest=OPEN),
    "map, likeness": Case(mapped(*ALIKE, *BRIEF), 30),
    "map, everything": Case([*graded(), *ALIKE, *BRIEF], 30, widest=OPEN),
    "duel": Case(run("duel.py", "tournament", "duels=4", "turns=1", f"models={MODELS}"), example="duel.py"),
    "duel, large": Case(run("duel.py", "tournament", "duels=60", "turns=5", f"models={MODELS}"), example="duel.py"),
    "doubts": Case(
        run("second_thoughts.py", "second_thoughts", "replicates=2", f"model={OPENAI}"), example="second_thoughts.py"
    ),
    "doubts, large": Case(
        run("second_thoughts.py", "second_thoughts", "replicates=40", f"model={ANTHROPIC}"),
        example="second_thoughts.py",
    ),
    "auction": Case(run("auction.py", "auctions", "replicates=2"), 0, "auction.py", UNSURE),
    "auction, large": Case(run("auction.py", "auctions", "replicates=80"), 0, "auction.py", UNSURE),
}


def copied(example: str, folder: Path, *, declared: bool) -> None:
    """An example with models that cost something; without its own estimate, if that is wanted."""
    source = (EXAMPLES / example).read_text().replace('"scripted/bidder"', f'"{OPENAI}"')
    source = re.sub(r'"(examples|demo|shop)/', f'"{folder.name}{declared}/', source)  # registered for this test alone
    source = re.sub(r'scripted_model\("(\w+)"', rf'scripted_model("\1{folder.name}{declared}"', source)
    (folder / example).write_text(source if declared else re.sub(r"(?m)^@estimates\(\w+\)\n", "", source))


def table(found: Any, paid: dict[str, Any]) -> str:
    """What was expected and what it came to, model by model, and how wide the ranges are."""
    lines = [f"{'model':36}{'figure':15}{'low':>14}{'high':>14}{'books':>14}{'high/low':>10}"]
    for model in found["models"]:
        entry = paid.get(model["model"], Counter())
        for figure, book in FIGURES.items():
            low, high = model[figure]
            ratio = f"{high / low:.1f}" if low else "-"
            lines.append(f"{model['model']:36}{figure:15}{low:14.6g}{high:14.6g}{entry[book]:14.6g}{ratio:>10}")
    return "\n".join(lines)


FIGURES = {
    "calls": "requests",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "live_usd": "dollars",
}
ALL = [
    pytest.param(case, declared, id=f"{name}, {'declared' if declared else 'rehearsed by itself'}")
    for name, case in CASES.items()
    for declared in ([True, False] if case.example else [True])
]


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize(("case", "declared"), ALL)
def test_the_range_holds_the_bill_and_says_something(
    case: Case, declared: bool, tmp_path: Path, emulator: Threaded
) -> None:
    desk = Desk(tmp_path / tmp_path.name, emulator, case.rows)
    if case.example is not None:
        copied(case.example, desk.folder, declared=declared)
    found = desk.json(*case.words, "--estimate")
    assert desk.books["received"] == 0
    summary = desk.json(*case.words)
    asked = {name: entry for account in emulator.ledger()["accounts"].values() for name, entry in account.items()}
    paid = {name: asked[name.partition("/")[2]] for name in (model["model"] for model in found["models"])}
    shown = table(found, paid)
    assert len(paid) == len(asked), shown
    for model in found["models"]:
        for figure, book in FIGURES.items():
            low, high = model[figure]
            if model["model"] == EMBEDDER and figure == "calls":
                low = 1  # texts that are embedded at the same time travel in one request
            assert low <= paid[model["model"]][book] <= high, shown
    low, high = found["ways"]["live"]["usd"]
    assert low <= desk.books["dollars"] <= high, shown
    assert found["trials"] == [summary["trials"]["planned"]] * 2
    assert summary["cost"]["usd"] == pytest.approx(desk.books["dollars"], rel=1e-9)
    assert high <= case.widest * low or case.widest == UNSURE, shown
