"""Screenshots of the four reports, for docs/images; with a folder, also on a phone and in dark mode.

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
SCREENS = {"desktop": (1280, 1600), "phone": (390, 1200), "readme": (1000, 530)}
QUESTIONS = Path(__file__).parents[1] / "examples" / "bridge_questions.json"
COMPARE = "compare -n 80 -m emulated/leaker:0.15 -m emulated/leaker:0.4 -m emulated/leaker:0.8 -m emulated/keeper"
SIMULATE = f"simulate --entities human --interaction-size 2 --num-simulations 60 --questions {QUESTIONS}"
BRIDGE = "The town council wants to build a bridge over the river. It costs 12 million."
PERSON = ["--by", "has_children,urban", "-m", "emulated/person:has_children:0.4"]
RUNS = {
    "secret-game": COMPARE.split(),
    "simulations": [*SIMULATE.split(), "--context", BRIDGE, *PERSON],
    "leak-rates": ["compare", "-n", "100", "-m", "emulated/leaker:0.2,emulated/leaker:0.5,emulated/keeper"],
    "query-mutation": ["mutate", "train", "--num-env-steps", "3000", "--eval-episodes", "20"],
    "prompt-evolution": ["evolve", "-m", "emulated/gpt-4o-mini", "--max-generations", "6"],
}


def reports(folder: Path) -> dict[str, Path]:
    """The report pages of all four experiments."""
    sample = [sys.executable, "-m", "groundswell", "entities", "sample", "--type", "human", "--count", "40"]
    subprocess.run(sample, cwd=folder, check=True, capture_output=True)
    for name, words in RUNS.items():
        print(f"running {name}", flush=True)
        line = [sys.executable, "-m", "groundswell", *words, "--name", name, "--out", name]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, env=os.environ)
        if done.returncode not in (0, 3):
            raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
    return {name: folder / name / "report.html" for name in RUNS}


def take(
    browser: Browser, page: Path, image: Path, screen: str, scheme: str, search: str = "", *, part: str = ""
) -> None:
    """Take one screenshot."""
    width, height = SCREENS[screen]
    dark = "dark" if scheme == "dark" else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=dark)  # type: ignore[arg-type]
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.locator(".talk").first.wait_for()
    if search:
        tab.get_by_label("Search").fill(search)
        tab.get_by_text("in total").wait_for()
        tab.locator("#part-transcripts").scroll_into_view_if_needed()
        tab.evaluate("document.querySelector('#part-transcripts').scrollIntoView()")
    if part:
        tab.evaluate(f"document.querySelector('#part-{part}').scrollIntoView()")
    tab.screenshot(path=image)
    context.close()


def main() -> None:
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    images.mkdir(parents=True, exist_ok=True)
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        pages = reports(Path(place))
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        take(browser, pages.pop("leak-rates"), images / "readme.png", "readme", "light", part="figures")
        looks = list(product(("desktop", "phone"), ("light", "dark"))) if len(sys.argv) > 1 else [("desktop", "light")]
        for (name, page), (screen, scheme) in product(pages.items(), looks):
            take(browser, page, images / f"{name}-{screen}-{scheme}.png", screen, scheme)
        take(browser, pages["secret-game"], images / "secret-game-transcripts.png", "desktop", "light", "letters")
        browser.close()
    print(f"{len(list(images.glob('*.png')))} screenshots in {images}")


if __name__ == "__main__":
    main()
