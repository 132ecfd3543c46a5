"""Reports in a browser: what can be searched, filtered and downloaded; nothing runs or leaves; every screen will do."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import polars
import pytest

from groundswell.experiments.secret_game.reading import Interaction, WaveFigures
from tests.browser.conftest import Open, Opened
from tests.experiments.secret_game.games import every_kind, game, game_of, write_report

pytestmark = pytest.mark.slow

LOOK = """() => {
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
  return {
    out, wide, clipped, broken,
    scroll: document.documentElement.scrollWidth,
    drawings: drawn.map(box => [box.width, box.height]),
    ground: getComputedStyle(document.body).backgroundColor,
  };
}"""


def page_of(folder: Path, games: list[Interaction], **more: Any) -> Path:
    written = write_report(folder, game_of(games, **more)).page
    assert written is not None
    return written


def looked_at(opened: Opened) -> dict[str, Any]:
    opened.page.locator(".talk").first.wait_for()
    found: dict[str, Any] = opened.page.evaluate(LOOK)
    return found


def shown(opened: Opened) -> list[str]:
    """The heads of the transcripts that are listed."""
    heads: list[str] = opened.page.locator(".talk > summary").all_inner_texts()
    return heads


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    long = "provider/a-model-with-a-very-long-name-" + "x" * 60
    models = [long, "b/model", "c/model", "d/model"]
    pairs = [(one, other) for one in models for other in models]
    games = [*every_kind(), *(game(models=pair, number=10 + at) for at, pair in enumerate(pairs))]
    games.append(game(("w" * 500, "My secret word is lantern."), number=90, names=("n" * 90, None)))
    waves = [WaveFigures(at, "openai_batch", "openai", 9, 12.5, 0.25) for at in range(1, 4)]
    return page_of(tmp_path_factory.mktemp("report"), games, waves=waves, title="t" * 200)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of 1,000 conversations, of which every third leaks, and one speaks of a zeppelin."""
    kept = ("Good day.", "And to you.", "Nothing to say.", "Nor I.")
    leak = ("Good day.", "My secret word is lantern.", "I see.", "Well.")
    games = [game(leak if at % 3 == 0 else kept, number=at) for at in range(1_000)]
    games[700] = game(("Good day.", "Look, a Zeppelin over there!", "Where?", "Gone."), number=700)
    return page_of(tmp_path_factory.mktemp("thousand"), games)


@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_nothing_fails(width: int, report: Path, browse: Open) -> None:
    opened = browse(report, width=width)
    seen = looked_at(opened)
    assert seen["wide"] == width
    assert seen["out"] == []
    assert seen["scroll"] <= width, "no scrolling to the side"
    assert seen["clipped"] == [], "text that a drawing cuts off"
    assert seen["broken"] == [], "figures of tiles stay on one line"
    assert len(seen["drawings"]) == 7
    assert all(across > 100 and down > 50 for across, down in seen["drawings"])
    assert opened.complaints == []


@pytest.mark.parametrize("count", [1, 2, 12])
def test_drawings_have_room_for_their_words(count: int, tmp_path: Path, browse: Open) -> None:
    models = [f"emulated/leaker:0.{at}" for at in range(count)]
    games = [game(models=(one, other), number=at) for at, (one, other) in enumerate(product(models, models))]
    seen = looked_at(browse(page_of(tmp_path, games)))
    assert seen["clipped"] == []
    assert len(seen["drawings"]) >= 4


def test_a_transcript_is_found_among_a_thousand(thousand: Path, browse: Open) -> None:
    opened = browse(thousand)
    opened.page.get_by_text("Showing 25 of 1,000").wait_for()
    assert len(shown(opened)) == 25
    opened.page.get_by_label("Search").fill("zeppelin")
    opened.page.get_by_text("Showing 1 of 1 (1,000 in total)").wait_for()
    assert "key700" in shown(opened)[0]
    assert opened.page.locator(".talk mark.found").all_inner_texts() == ["Zeppelin"], (
        "it is open, and shown where it is"
    )
    opened.page.get_by_label("Search").fill("no such words")
    opened.page.get_by_text("Showing 0 of 0 (1,000 in total)").wait_for()
    opened.page.get_by_label("Search").fill("")
    opened.page.get_by_text("Showing 25 of 1,000").wait_for()
    opened.page.get_by_role("button", name="Show more").click()
    opened.page.get_by_text("Showing 50 of 1,000").wait_for()
    assert len(shown(opened)) == 50
    opened.page.evaluate("() => { const more = document.querySelector('.more'); more.click(); more.click(); }")
    opened.page.get_by_text("Showing 100 of 1,000").wait_for()
    assert len(set(shown(opened))) == 100, "clicks that come too fast show nothing twice"
    assert opened.complaints == []


def test_transcripts_are_filtered_by_outcome_side_label_and_turn(thousand: Path, report: Path, browse: Open) -> None:
    opened = browse(thousand)
    opened.page.get_by_label("outcome").select_option(label="one leaked (334)")
    opened.page.get_by_text("Showing 25 of 334 (1,000 in total)").wait_for()
    assert all("Agent 2 leaked" in head for head in shown(opened))
    opened.page.get_by_label("Search").fill("zeppelin")
    opened.page.get_by_text("Showing 0 of 0 (1,000 in total)").wait_for()
    other = browse(report).page
    other.get_by_label("who leaked").select_option(label="second speaker (18)")
    other.get_by_label("label").select_option(label="judged declared (1)")
    other.get_by_text("Showing 1 of 1 (21 in total)").wait_for()
    other.get_by_label("label").select_option(label="all")
    other.get_by_label("message of the leak").select_option(label="2 (18)")
    other.get_by_text("Showing 18 of 18 (21 in total)").wait_for()


def test_figures_and_tables_are_downloaded(report: Path, browse: Open) -> None:
    page = browse(report).page
    with page.expect_download() as waiting:
        page.locator("#leak-rates").get_by_role("link", name="SVG").click()
    assert waiting.value.suggested_filename == "leak-rates.svg"
    drawn = Path(waiting.value.path()).read_text()
    assert drawn.startswith("<?xml")
    assert "var(--" not in drawn, "it has colours of its own"
    with page.expect_download() as waiting:
        page.locator("#models").get_by_role("link", name="CSV").click()
    assert waiting.value.suggested_filename == "models.csv"
    table = polars.read_csv(waiting.value.path())
    assert table.columns[:5] == ["model", "sides", "revealed", "revealed low", "revealed high"]
    assert table.height == 6


def test_what_models_wrote_is_text_and_nothing_leaves_the_page(tmp_path: Path, browse: Open) -> None:
    nasty = (
        "<script>alert(1)</script><img src='https://example.com/x.png' onerror='alert(2)'>",
        "My secret word is lantern. </script><script>fetch('https://example.com')</script>",
    )
    page = page_of(
        tmp_path, [game(nasty, names=("<b>Ann</b>", None), thoughts=("<iframe src='https://example.com'>",))]
    )
    opened = browse(page)
    opened.page.locator(".talk .said").first.wait_for()
    said = opened.page.locator(".talk .said").all_inner_texts()
    assert said == list(nasty)
    assert "<b>Ann</b>" in opened.text()
    assert opened.page.locator(".talk").locator("script, img, iframe, b b").count() == 0
    assert opened.requests == [page.as_uri()]
    assert opened.complaints == []


def test_the_policy_stops_a_script_that_got_in_all_the_same(tmp_path: Path, browse: Open) -> None:
    page = page_of(tmp_path, [game()])
    bad = "<script>document.title = 'run'</script><img src='https://example.com/x.png'>"
    page.write_text(page.read_text().replace("<main>", f"<main>{bad}", 1))
    opened = browse(page)
    opened.page.locator(".talk").first.wait_for()
    assert opened.page.title() == "A title"
    assert [each for each in opened.complaints if "Content Security Policy" in each] != []
    assert opened.blocked == ["https://example.com/x.png"]
    assert opened.requests == [page.as_uri()]


def test_it_is_dark_where_one_likes_it_dark(report: Path, browse: Open) -> None:
    assert looked_at(browse(report))["ground"] == "rgb(255, 255, 255)"
    assert looked_at(browse(report, dark=True))["ground"] == "rgb(20, 22, 26)"
