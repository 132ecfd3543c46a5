"""Whatever is put into HTML comes out as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.reporting.markup import MOST_ROWS, Html, Number, table, tag, text
from groundswell.reporting.words import visible
from tests.experiments.secret_game.report.games import Walked

NASTY = st.text(st.sampled_from("<>&\"'`/=!-;ab \n\r\t\0\x1b\u202e\ud800é漢$#{}")) | st.text()


def read(words: str) -> str:
    """What a browser makes of a text: it has one way to end a line."""
    return visible(words)


@given(NASTY, NASTY)
def test_text_comes_back_from_elements_and_attributes(words: str, label: str) -> None:
    walked = Walked(tag("p", words, title=label))
    assert walked.well_formed
    assert walked.elements == [("p", {"title": read(label)})]
    assert walked.text == read(words)


def test_html_is_put_in_as_it_is_and_text_is_not() -> None:
    assert tag("p", tag("b", "x"), "<i>", class_="a", aria_label="b") == (
        '<p class="a" aria-label="b"><b>x</b>&lt;i&gt;</p>'
    )
    assert isinstance(text("x"), Html)
    assert tag("p", text("<") + "<b>") == "<p>&amp;lt;&lt;b&gt;</p>", "joined with text it is text again"


def test_a_table_has_headings_figures_to_the_right_and_small_lines() -> None:
    walked = Walked(table("What it is", ("name", ">rate"), [("<a>", Number("5.0%\n1.0% to 9.0%"))]))
    assert walked.well_formed
    cells = [(name, told) for name, told in walked.elements if name in ("th", "td")]
    assert cells == [
        ("th", {"scope": "col"}),
        ("th", {"scope": "col", "class": "n"}),
        ("th", {"scope": "row"}),
        ("td", {"class": "n"}),
    ]
    assert walked.text == "What it isnamerate<a>5.0%1.0% to 9.0%"


def test_a_long_table_is_folded() -> None:
    rows = [(str(row), "x") for row in range(MOST_ROWS + 1)]
    assert "details" in Walked(table("Long", ("a", "b"), rows)).names
    assert "details" not in Walked(table("Short", ("a", "b"), rows[:-1])).names
