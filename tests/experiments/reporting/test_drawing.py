"""Drawings: the same bytes every time, the page's colours, ids of their own, and names that stay text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groundswell.experiments.reporting.drawing import STAND_IN, Drawing, drawn, name_of, on_page, on_paper
from groundswell.experiments.secret_game.report.told import WaveFigures
from groundswell.experiments.secret_game.report.writing import drawings
from tests.experiments.secret_game.report.games import SAID, game, told
from tests.properties import examples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = st.text(max_size=60)


def with_name(name: str) -> Drawing:
    def paint(figure: Figure) -> None:
        figure.text(0.1, 0.5, name_of(name), color=STAND_IN["blue"])
        axes = figure.add_axes((0.2, 0.2, 0.5, 0.5))
        axes.plot([0, 1], [0, 1], "o")

    return drawn("named", name_of(name), (2, 1), paint)


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter() if each.tag.rpartition("}")[2] == "text"]


@settings(max_examples=examples(15))
@given(NAME)
@example("$x^2$ <script>&\"'</script>")
@example('#c0de04 url(#p1) id="figure_1"')
@example("漢字 \ufffe\ud800\x1b[0m\nعربي")
def test_a_name_is_shown_as_it_is_written(name: str) -> None:
    drawing = with_name(name)
    shown = name_of(name)
    for svg in (on_page(drawing), on_paper(drawing).decode()):
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


def all_drawings() -> list[Drawing]:
    pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("b", "a"), ("a", "c"), ("c", "b")]
    games = [game(SAID[: 2 + at], pair, number=at) for at, pair in enumerate(pairs)]
    return drawings(told(games, waves=[WaveFigures(1, "openai_batch", "openai", 9, 12.5, 0.25)]))


@pytest.mark.slow
def test_all_drawings_are_there_and_the_same_every_time() -> None:
    first, again = all_drawings(), all_drawings()
    names = ["leak-rates", "pairs", "survival", "comparisons", "strengths", "tokens", "waves"]
    assert [each.name for each in first] == names
    assert [(on_page(each), on_paper(each)) for each in first] == [(on_page(each), on_paper(each)) for each in again]


@pytest.mark.slow
def test_colours_ids_and_what_they_say() -> None:
    seen: set[str] = set()
    for each in all_drawings():
        page, paper = on_page(each), on_paper(each).decode()
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
        assert (root.get("role"), root.get("aria-label")) == ("img", each.label)
        assert "<metadata" not in page


def test_nothing_to_show_is_no_drawing() -> None:
    assert drawings(told([])) == []


def test_a_drawing_says_its_figures() -> None:
    (rates, *_) = drawings(told([game(number=number) for number in range(4)]))
    assert "one/model 100.0% (39.8% to 100.0%)" in rates.label
