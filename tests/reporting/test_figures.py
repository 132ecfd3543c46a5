"""Figures: the same bytes every time, the page's colours, ids of their own, and names that stay text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groundswell.experiments.secret_game.reading import WaveFigures
from groundswell.reporting.blocks import Figure
from groundswell.reporting.figures import STAND_IN, name_of, on_page, on_paper, svg_of
from tests.experiments.secret_game.games import SAID, game, game_of, report_of
from tests.properties import examples

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

NAME = st.text(max_size=60)


def with_name(name: str) -> Figure:
    def draw(canvas: Canvas) -> None:
        canvas.text(0.1, 0.5, name_of(name), color=STAND_IN["blue"])
        axes = canvas.add_axes((0.2, 0.2, 0.5, 0.5))
        axes.plot([0, 1], [0, 1], "o")

    return Figure(id="named", title=name_of(name), columns={"a": "text"}, rows=[], size=(2, 1), draw=draw)


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter() if each.tag.rpartition("}")[2] == "text"]


@settings(max_examples=examples(15))
@given(NAME)
@example("$x^2$ <script>&\"'</script>")
@example('#c0de04 url(#p1) id="figure_1"')
@example("漢字 \ufffe\ud800\x1b[0m\nعربي")
def test_a_name_is_shown_as_it_is_written(name: str) -> None:
    block = with_name(name)
    shown = name_of(name)
    for svg in both(block):
        assert (shown.strip() == "") or shown in texts(svg)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("openai/gpt-4o", "openai/gpt-4o"),
        ("anthropic/claude-3-5-sonnet-20241022", "anthropic/cl…net-20241022"),
        ("a\nb\x00\u202e", "a\\nb\\x00\\u202e"),
    ],
)
def test_labels_are_one_line_of_letters(name: str, wanted: str) -> None:
    assert name_of(name) == wanted


def all_figures() -> list[Figure]:
    pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("b", "a"), ("a", "c"), ("c", "b")]
    games = [game(SAID[: 2 + at], pair, number=at) for at, pair in enumerate(pairs)]
    waves = [WaveFigures(1, "openai_batch", "openai", 9, 12.5, 0.25)]
    return report_of(game_of(games, waves=waves)).figures


def both(block: Figure) -> tuple[str, str]:
    svg = svg_of(block)
    return on_page(block, svg), on_paper(block, svg).decode()


@pytest.mark.slow
def test_all_figures_are_there_and_the_same_every_time() -> None:
    first, again = all_figures(), all_figures()
    ids = ["leak-rates", "pairs", "survival", "messages", "comparisons", "strengths", "tokens", "waves"]
    assert [each.id for each in first] == ids
    assert list(map(both, first)) == list(map(both, again))


@pytest.mark.slow
def test_colours_ids_and_what_they_say() -> None:
    seen: set[str] = set()
    for each in all_figures():
        page, paper = both(each)
        assert "#c0de" not in page + paper
        assert "var(--" in page
        assert "var(--" not in paper
        ids = re.findall(r'\bid="([^"]+)"', page)
        assert len(set(ids)) == len(ids)
        assert not seen & set(ids)
        seen |= set(ids)
        assert {*re.findall(r"url\(#([^)]+)\)", page), *re.findall(r'href="#([^"]+)"', page)} == set(ids)
        assert "<style" not in page, "it would change the rest of the page"
        root = ElementTree.fromstring(page)
        assert (root.get("role"), root.get("aria-label")) == ("img", f"{each.title}. {each.caption}")
        assert "<metadata" not in page


def test_nothing_to_show_is_no_figure() -> None:
    assert report_of(game_of([])).figures == []
