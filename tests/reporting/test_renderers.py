"""The same blocks on a terminal, as Markdown, in a notebook and as JSON."""

from __future__ import annotations

import io
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from groundswell.reporting import notebook
from groundswell.reporting.blocks import (
    Block,
    Estimate,
    Mark,
    Message,
    Report,
    Table,
    Text,
    Transcript,
    Transcripts,
    narrowed,
    pieces,
    plain,
    without_drawings,
)
from groundswell.reporting.markdown import markdown_of
from groundswell.reporting.numbers import worded
from groundswell.reporting.terminal import MOST_ROWS, brief
from groundswell.reporting.words import visible
from tests.reporting.test_page import NASTY, every_kind

RATES = Table(
    id="rates",
    title="Rates",
    columns={"model": "text", "n": "count", "rate": "share"},
    rows=[("a", 1_000, Estimate(0.5, 0.4, 0.6))],
    brief=True,
    brief_columns=("model", "rate"),
)


def report(*blocks: Block) -> Report:
    return Report(kind="A kind", title="A title", blocks=blocks)


def printed(found: Report) -> str:
    out = io.StringIO()
    console = Console(file=out, width=1_000)
    for each in brief(found):
        console.print(each, markup=False, highlight=False)
    return out.getvalue()


def test_a_terminal_shows_what_is_brief_and_one_transcript() -> None:
    said = Message("Ann", "x" * 300 + " lantern " + "y" * 300, marks=(Mark(301, 308, "orange"),))
    talk = Transcript("k1", "Ann and Ben", "leaked", ("Ann keeps lantern",), (said,), ("Judge: kept",))
    text = printed(
        report(
            Text(id="findings", lines=["It leaks."], brief=True),
            Text(id="more", lines=["Not this."]),
            RATES,
            Transcripts(id="t", items=lambda: [talk], example=lambda: talk),
        )
    )
    assert "It leaks." in text
    assert "Not this." not in text
    assert re.search(r"^model +rate *$", text, re.MULTILINE), "narrowed to the columns that matter"
    assert re.search(r"^a +50.0% \(40.0% to 60.0%\)", text, re.MULTILINE)
    assert "Ann and Ben: leaked" in text
    assert re.search(r"Ann: …x+ lantern y+…", text), "the part with the mark, shortened on both sides"
    assert "Judge: kept" in text


def test_a_long_table_on_a_terminal_says_what_it_leaves_out() -> None:
    rows = [(str(at),) for at in range(MOST_ROWS + 3)]
    text = printed(report(Table(id="t", columns={"a": "text"}, rows=rows, brief=True)))
    assert "… 3 more rows in the report" in text


def test_markdown_has_the_parts_in_order_with_figures_beside_it() -> None:
    text = markdown_of(report(*every_kind("some words")))
    assert text.startswith("# A title\n\n*A kind*\n")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == ["Figures", "Tables", "Transcripts"]
    assert "![some words](figures/figure.svg)" in text
    assert "![" not in markdown_of(report(*every_kind("some words")), ""), "where no drawing is beside it"
    assert "| some words | 50.0% |" in text


@given(NASTY)
def test_markdown_shows_words_as_they_are(words: str) -> None:
    text = markdown_of(report(Text(id="a", lines=[words]), *every_kind(words)[2:]))
    unescaped = re.sub(r"\\([\\`*_{}\[\]<>#|~&])", r"\1", text)
    assert " ".join(visible(words).split()) in unescaped
    for line in re.sub(r"(`{3,})text\n.*?\n\1", "", text, flags=re.DOTALL).split("\n"):
        assert not re.search(r"(?<!\\)<", line), line


def test_markdown_fences_are_longer_than_what_is_in_them() -> None:
    talk = Transcript("k", "t", messages=(Message("a", "```` not the end\n```"),))
    text = markdown_of(report(Transcripts(id="t", items=lambda: [talk])))
    assert "`````text\n```` not the end\n```\n`````" in text


def test_a_notebook_shows_brief_blocks_and_figures() -> None:
    figure = every_kind("<b>words</b>")[3]
    html = notebook.report(report(Text(id="findings", lines=["A <b> finding."], brief=True), RATES, figure))
    assert "A &lt;b&gt; finding." in html
    assert "40.0% to 60.0%" in html
    assert "data:image/svg+xml;base64," in html
    assert "<script" not in html
    assert "&lt;b&gt;words&lt;/b&gt;" in html


def test_json_has_data_and_not_words() -> None:
    items = [Transcript(f"k{at}", "t", messages=(Message("a", "b"),)) for at in range(5)]
    found = plain(report(RATES, Transcripts(id="t", items=lambda: items)), most=2)
    again = msgspec.json.decode(msgspec.json.encode(found))
    table, talks = again["blocks"]
    assert table["columns"] == {"model": "text", "n": "count", "rate": "share"}
    assert table["rows"] == [["a", 1000, {"value": 0.5, "low": 0.4, "high": 0.6, "count": None, "n": None}]]
    assert (talks["count"], [each["key"] for each in talks["transcripts"]]) == (5, ["k0", "k1"])
    assert [each["type"] for each in plain(report(*every_kind()))["blocks"]] == [
        *("text", "keyfigures", "figure", "table", "transcripts"),
    ]


def test_a_row_that_does_not_fit_its_columns_is_refused() -> None:
    with pytest.raises(Exception, match="block t: a row has 1 cells, but the table has 2 columns"):
        Table(id="t", columns={"a": "text", "b": "text"}, rows=[("x",)])


def test_narrowing_keeps_the_order_of_columns() -> None:
    table = Table(id="t", columns=dict.fromkeys("abc", "text"), rows=[("1", "2", "3")], brief_columns=("c", "a"))
    assert (list(narrowed(table).columns), narrowed(table).rows) == (["a", "c"], [["1", "3"]])
    assert narrowed(RATES).rows == [["a", Estimate(0.5, 0.4, 0.6)]]


@given(st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=4))
def test_marks_are_exactly_at_their_spans(words: str, places: list[tuple[int, int]]) -> None:
    marks = [Mark(start, start + length, "orange") for start, length in places]
    found = pieces(words, marks)
    inside = {at for mark in marks for at in range(mark.start, mark.end)}
    marked = "".join(visible(letter) for at, letter in enumerate(words) if at in inside)
    if "\r\n" not in words:  # which becomes one sign where it is not cut
        assert "".join(each[0] for each in found if not isinstance(each, str)) == marked
        assert "".join(each if isinstance(each, str) else each[0] for each in found) == visible(words)


def test_where_marks_overlap_the_first_gives_the_look_and_all_are_named() -> None:
    marks = [Mark(3, 9, "orange", "one"), Mark(0, 6, "green", "two"), Mark(8, 10, "yellow")]
    assert pieces("0123456789ab", marks) == [
        ("012", "green", "two"),
        ("345", "orange", "one; two"),
        ("67", "orange", "one"),
        ("8", "orange", "one"),
        ("9", "yellow", ""),
        "ab",
    ]


@pytest.mark.parametrize(
    ("cell", "kind", "wanted"),
    [
        ("x", "text", ("x", "")),
        (None, "share", ("–", "")),
        (1234, "count", ("1,234", "")),
        (0.125, "share", ("12.5%", "")),
        (-0.05, "share_change", ("−5.0%", "")),
        (1.2345, "number.3", ("1.234", "")),
        (0.5, "change", ("+0.50", "")),
        (0.0001, "p", ("< 0.001", "")),
        (1.5, "usd", ("$1.50", "")),
        (75.0, "seconds", ("1 min 15 s", "")),
        (True, "text", ("yes", "")),
        (Estimate(0.5, 0.4, 0.6, 5, 10), "share", ("5/10 · 50.0%", "40.0% to 60.0%")),
        (Estimate(0.5, None, 0.6), "number", ("0.50", "below to 0.60")),
        (Estimate(None, 0, 1, 0, 0), "share", ("0/0 · –", "")),
        (Estimate(0.5), "share", ("50.0%", "")),
        (-0.5, "usd", ("−$0.5000", "")),
        (float("nan"), "seconds", ("nan", "")),
        (12, "value", ("12", "")),
    ],
)
def test_cells_are_worded_by_the_kind_of_their_column(cell: object, kind: str, wanted: tuple[str, str]) -> None:
    assert worded(cell, kind) == wanted  # type: ignore[arg-type]


def test_a_key_cannot_bring_markup_into_markdown() -> None:
    talk = Transcript("q1`<img src=x onerror=alert(1)>`\n# Heading", "t")
    text = markdown_of(report(Transcripts(id="t", items=lambda: [talk])))
    assert "\n# Heading" not in text
    assert not re.search(r"(?<!\\)<img", text)


def test_json_has_no_halves_of_pairs_and_no_numbers_that_are_none() -> None:
    table = Table(id="t", title="\ud800", columns={"a": "number", "b": "text"}, rows=[(float("inf"), "\udfff")])
    found = msgspec.json.decode(msgspec.json.encode(plain(report(table))))
    assert found["blocks"][0]["rows"] == [[None, "\\udfff"]]


def test_where_nothing_can_be_drawn_figures_are_tables() -> None:
    found = without_drawings(report(*every_kind()))
    assert found.figures == []
    assert [block.id for block in found.blocks if block.part == "figures"] == ["figure"]
