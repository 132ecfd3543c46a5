"""Screenshots of the four reports, for docs/images: on a desktop and on a phone, in light and dark mode.

python bench/screenshots.py [FOLDER]

Runs all four experiments with emulated models, opens their reports in Chromium and takes a screenshot of the top of
each, and one of the transcripts of the game with a search.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SCREENS = {"desktop": (1280, 1600), "phone": (390, 1200)}
PEOPLE = """\
id,name,age,town
ann,Ann Bakker,34,north
ben,Ben Okoye,61,south
cara,Cara Lindt,45,north
dev,Dev Patel,29,south
eva,Eva Moreau,52,north
finn,Finn Olsen,38,south
"""
QUESTIONS = """\
[{"id": "bridge", "text": "Should the town build it?", "type": "choice", "options": ["yes", "no", "unsure"]},
 {"id": "trust", "text": "How much do you trust the council?", "type": "scale", "low": 1, "high": 5}]
"""
COMPARE = "compare -n 80 -m emulated/leaker:0.15 -m emulated/leaker:0.4 -m emulated/leaker:0.8 -m emulated/keeper"
SIMULATE = (
    "simulate --entities people.csv --interaction-size 3 --num-simulations 20 --questions questions.json --by town"
)
RUNS = {
    "secret-game": COMPARE.split(),
    "simulations": [*SIMULATE.split(), "--context", "Shall the town build a bridge?", "-m", "emulated/gpt-4o-mini"],
    "query-mutation": ["mutate", "train", "--num-env-steps", "3000", "--eval-episodes", "20"],
    "prompt-evolution": ["evolve", "-m", "emulated/gpt-4o-mini", "--max-generations", "6"],
}


def reports(folder: Path) -> dict[str, Path]:
    """The report pages of all four experiments."""
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "questions.json").write_text(QUESTIONS)
    for name, words in RUNS.items():
        print(f"running {name}", flush=True)
        line = [sys.executable, "-m", "groundswell", *words, "--name", name, "--out", name]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, env=os.environ)
        if done.returncode not in (0, 3):
            raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
    return {name: folder / name / "report.html" for name in RUNS}


def take(browser: Browser, page: Path, image: Path, screen: str, scheme: str, search: str = "") -> None:
    """Take one screenshot."""
    width, height = SCREENS[screen]
    dark = "dark" if scheme == "dark" else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=dark)  # type: ignore[arg-type]
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.locator(".talk").first.wait_for()
    if search:
        tab.get_by_label("Search").fill(search)
        tab.get_by_text("shown, of").wait_for()
        tab.locator("#part-transcripts").scroll_into_view_if_needed()
        tab.evaluate("document.querySelector('#part-transcripts').scrollIntoView()")
    tab.screenshot(path=image)
    context.close()


def main() -> None:
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    images.mkdir(parents=True, exist_ok=True)
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        pages = reports(Path(place))
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for (name, page), screen, scheme in product(pages.items(), SCREENS, ("light", "dark")):
            take(browser, page, images / f"{name}-{screen}-{scheme}.png", screen, scheme)
        take(browser, pages["secret-game"], images / "secret-game-transcripts.png", "desktop", "light", "letters")
        browser.close()
    print(f"{len(list(images.glob('*.png')))} screenshots in {images}")


if __name__ == "__main__":
    main()
