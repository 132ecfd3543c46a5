"""Size of a report of many interactions, the time to write it, and the time until Chromium shows it.

python bench/report.py [INTERACTIONS]

Two pages with as many interactions of five messages each: games of the emulated model, whose messages are short, and
random text of 60 words per message, which is longer than real conversations and compresses less. Opening is measured
from the navigation to the first transcript on the screen, and compared with an empty page. Then a search for a word
that is in one transcript only is measured.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from groundswell.experiments.detectors.common_words import COMMON
from groundswell.reporting.blocks import Message, Report, Text, Transcript, Transcripts
from groundswell.reporting.page import page_of

ROUNDS = 5
MESSAGES, WORDS = 5, 60
RARE = "zeppelin"


def played(folder: Path, many: int) -> Path:
    """The report of a real run with the emulated model."""
    models = ["-m", "emulated/leaker:0.2", "-m", "emulated/leaker:0.6"]
    line = ["play", "-n", str(many), *models, "--name", "many", "--out", "out"]
    run = subprocess.run([sys.executable, "-m", "groundswell", *line], cwd=folder, capture_output=True, check=True)
    assert run.returncode == 0
    start = time.perf_counter()
    again = [sys.executable, "-m", "groundswell", "runs", "report", "many", "--out", "out"]
    subprocess.run(again, cwd=folder, capture_output=True, check=True)
    print(f"writing the report of {many:,} games with all its files: {time.perf_counter() - start:.1f} s")
    return folder / "out" / "report.html"


def made_up(folder: Path, many: int) -> Path:
    """A page with long messages."""
    known = COMMON.split()

    def items() -> Iterator[Transcript]:
        rng = Random(7)
        for at in range(many):
            said = [" ".join(rng.choices(known, k=WORDS)) for _ in range(MESSAGES)]
            said[0] += f" {RARE}" if at == many * 7 // 10 else ""
            talk = tuple(Message(f"Agent {turn % 2 + 1}", text, turn % 2) for turn, text in enumerate(said))
            yield Transcript(f"key{at}", f"Conversation {at}", messages=talk, tags={"outcome": [str(at % 3)]})

    blocks = [Text(id="findings", lines=["Long talk."]), Transcripts(id="t", items=items, filters=("outcome",))]
    path = folder / "long.html"
    start = time.perf_counter()
    path.write_text(page_of(Report(kind="bench", title="Long messages", blocks=blocks)))
    print(f"writing the page of {many:,} long conversations: {time.perf_counter() - start:.1f} s")
    return path


def opened(browser: Any, page: Path, *, talks: bool = True) -> tuple[float, float]:
    """Seconds until the first transcript is shown, and until a word is found."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    start = time.perf_counter()
    tab.goto(page.as_uri())
    if talks:
        tab.locator(".talk").first.wait_for()
    seen = time.perf_counter() - start
    searched = 0.0
    if talks:
        start = time.perf_counter()
        tab.get_by_label("Search").fill(RARE)
        tab.get_by_text("shown, of").wait_for()
        searched = time.perf_counter() - start
    context.close()
    return seen, searched


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        empty = folder / "empty.html"
        empty.write_text("<!DOCTYPE html><title>empty</title>")
        pages = {"games": played(folder, many), "long messages": made_up(folder, many)}
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        nothing = median(opened(browser, empty, talks=False)[0] for _ in range(ROUNDS))
        print(f"{'empty page':14} opens in {nothing:.2f} s")
        for name, page in pages.items():
            times = [opened(browser, page) for _ in range(ROUNDS)]
            size = page.stat().st_size / 1e6
            seen, searched = (median(each) for each in zip(*times, strict=True))
            print(f"{name:14} {size:.1f} MB, opens in {seen:.2f} s, search through all of it in {searched:.2f} s")
        browser.close()


if __name__ == "__main__":
    main()
