"""The report in a browser: nothing is refused or fails, drawings have a size, and no screen is too narrow for it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundswell.experiments.reporting.frame import POLICY
from groundswell.experiments.secret_game.report.told import WaveFigures
from groundswell.experiments.secret_game.report.writing import write_report
from tests.experiments.secret_game.report.games import every_kind, game, told

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="there is no chromium here")]

LOOK = """
<script>
const failed = [];
addEventListener('error', event => failed.push(event.message), true);
addEventListener('securitypolicyviolation', event => failed.push(event.violatedDirective));
addEventListener('load', () => {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  const wide = document.documentElement.clientWidth;
  const out = [...document.querySelectorAll('main *')].filter(each => !each.closest('.wide > *'))
    .filter(each => each.getBoundingClientRect().right > wide + 1).map(each => each.outerHTML.slice(0, 80));
  const drawn = [...document.querySelectorAll('svg')].map(each => each.getBoundingClientRect());
  const clipped = [];
  for (const svg of document.querySelectorAll('svg')) {
    const whole = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')];
    const boxes = texts.map(each => [each.textContent, each.getBoundingClientRect()]);
    for (const [words, box] of boxes)
      if (box.left < whole.left - 1 || box.right > whole.right + 1 || box.top < whole.top - 1) clipped.push(words);
    const [one, other] = ['A. The', 'B. The'].map(start => boxes.find(([words]) => words.startsWith(start)));
    if (one && other && one[1].right > other[1].left && one[1].top === other[1].top) clipped.push('panels overlap');
  }
  const broken = [...document.querySelectorAll('.card b')]
    .filter(each => each.scrollWidth > each.clientWidth || each.clientHeight > 40).map(each => each.textContent);
  parent.postMessage(JSON.stringify({
    failed, out, wide, clipped, broken,
    scroll: document.documentElement.scrollWidth,
    drawings: drawn.map(box => [box.width, box.height]),
    marks: [...document.querySelectorAll('.talk .message mark')].map(each => each.textContent),
    names: [...document.querySelectorAll('th.name')].map(each => {
      const words = document.createRange();
      words.selectNodeContents(each);
      return [each.textContent, words.getBoundingClientRect().height];
    }),
    ground: getComputedStyle(document.body).backgroundColor,
  }), '*');
});
</script>
"""
AROUND = """
<!DOCTYPE html><body><pre id="seen"></pre>
<iframe src="copy.html" style="width:{width}px;height:900px;border:0"></iframe>
<script>addEventListener('message', event => document.getElementById('seen').textContent = event.data)</script></body>
"""


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    always = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr")
    command = [BROWSER, *always, f"--user-data-dir={profile}", "--virtual-time-budget=5000", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)


def console(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    long = "provider/a-model-with-a-very-long-name-" + "x" * 60
    models = [long, "b/model", "c/model", "d/model"]
    pairs = [(one, other) for one in models for other in models]
    games = [*every_kind(), *(game(models=pair, number=10 + at) for at, pair in enumerate(pairs))]
    games.append(game(("w" * 500, "My secret word is lantern."), number=90, names=("n" * 90, None)))
    waves = [WaveFigures(at, "openai_batch", "openai", 9, 12.5, 0.25) for at in range(1, 4)]
    return write_report(tmp_path_factory.mktemp("report"), told(games, waves=waves, title="t" * 200)).page


def looked_at(report: Path, tmp_path: Path, width: int, *options: str, policy: str = POLICY) -> dict[str, Any]:
    """What a copy of the page, which is let run a script, says of itself in a window of this width."""
    text = report.read_text()
    assert policy in text
    opened = text.replace(policy, "default-src 'self' 'unsafe-inline'").replace("</head>", f"{LOOK}</head>")
    (tmp_path / "copy.html").write_text(opened)
    (tmp_path / "around.html").write_text(AROUND.format(width=width))
    size = f"--window-size={max(width, 500) + 50},1000"
    done = browse(tmp_path / "around.html", tmp_path / "profile", size, "--dump-dom", *options)
    assert console(done) == []
    found = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found is not None
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    return seen


@pytest.mark.sampled
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_nothing_fails(width: int, report: Path, tmp_path: Path) -> None:
    seen = looked_at(report, tmp_path, width)
    assert seen["wide"] == width
    assert seen["out"] == []
    assert seen["scroll"] <= width, "no scrolling to the side"
    assert seen["failed"] == []
    assert seen["clipped"] == [], "text that a drawing cuts off"
    assert seen["broken"] == [], "figures of tiles stay on one line"
    assert len(seen["drawings"]) == 6
    assert all(across > 100 and down > 50 for across, down in seen["drawings"])
    assert {"lantern", "VELVET", "orchid"} <= set(seen["marks"])


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 12])
def test_drawings_have_room_for_their_words(count: int, tmp_path: Path) -> None:
    models = [f"emulated/leaker:0.{at}" for at in range(count)]
    about = told([game(models=(one, other), number=at) for at, (one, other) in enumerate(product(models, models))])
    turns = [msgspec.structs.replace(each, input_tokens=each.input_tokens * 9_000) for each in about.analysis.turns]
    large = msgspec.structs.replace(about, analysis=msgspec.structs.replace(about.analysis, turns=turns))
    seen = looked_at(write_report(tmp_path / "out", large).page, tmp_path, 1280)
    assert seen["clipped"] == []
    assert len(seen["drawings"]) >= 4


def test_the_page_itself_says_nothing_to_the_console_and_can_be_seen(report: Path, tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    done = browse(report, tmp_path / "profile", "--window-size=1280,1000", f"--screenshot={shot}")
    assert console(done) == []
    assert shot.stat().st_size > 20_000


@pytest.mark.slow
def test_it_is_dark_where_one_likes_it_dark(report: Path, tmp_path: Path) -> None:
    light, dark = (
        looked_at(report, tmp_path, 800, f"--blink-settings=preferredColorScheme={scheme}") for scheme in (1, 0)
    )
    assert light["ground"] == "rgb(255, 255, 255)"
    assert dark["ground"] == "rgb(20, 22, 26)"
