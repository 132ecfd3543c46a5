"""The page: well-formed, needing nothing else, and whatever anybody wrote is text in it."""

from __future__ import annotations

import base64
import csv
import io
import re
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.reporting.blocks import (
    Block,
    Estimate,
    Figure,
    KeyFigure,
    KeyFigures,
    Mark,
    Message,
    Passage,
    Report,
    Table,
    Text,
    Transcript,
    Transcripts,
    cells_as_columns,
)
from groundswell.reporting.page import CHUNK, FOLDED_FROM, MOST_FINDINGS, MOST_ROWS, page_of
from groundswell.reporting.words import visible
from tests.properties import examples
from tests.reporting.walked import Walked

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

NASTY = st.text(st.sampled_from("<>&\"'`/=!-;ab \n\r\t\0\x1b\u202e\ud800é漢$#{}%")) | st.sampled_from(
    [
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "{{ 7*7 }}",
        "{% raw %}",
        "-->",
        "javascript:1",
    ]
)
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "role", "aria-label", "tabindex"),
    *(
        "scope",
        "title",
        "dir",
        "open",
        "download",
        "type",
        "autocomplete",
        "spellcheck",
        "value",
        "hidden",
        "aria-live",
    ),
}


def draw(canvas: Canvas) -> None:
    canvas.text(0.1, 0.5, "drawn")


def transcripts(*items: Transcript, filters: tuple[str, ...] = ()) -> Transcripts:
    return Transcripts(id="transcripts", items=lambda: items, filters=filters)


def every_kind(words: str = "words") -> list[Block]:
    """A block of every kind, with these words in all places."""
    message = Message(words, words, 1, words, words, (Mark(0, 3, "orange", words),), (Mark(1, 2, "yellow"),))
    return [
        Text(id="findings", title=words, lines=[words], passages=[Passage(words, words, [Mark(0, 2, "green", words)])]),
        KeyFigures(id="key", figures=[KeyFigure(words, words, words)]),
        Table(
            id="table", title=words, columns={"name": "text", words or "x": "share"}, rows=[(words, 0.5)], caption=words
        ),
        Figure(
            id="figure",
            title=words,
            caption=words,
            columns={"a": "text"},
            rows=[(words,)],
            size=(2, 1),
            draw=draw,
        ),
        Transcripts(
            id="transcripts",
            title=words,
            items=lambda: [Transcript("key", words, words, (words,), (message,), (words,), {"label": [words, "b"]})],
            filters=("label",),
            legend={"orange": words},
            about=words,
            command=words,
        ),
    ]


def walked(*blocks: Block, title: str = "A title") -> Walked:
    return Walked(page_of(Report(kind="A kind", title=title, blocks=blocks, footer="The end")))


def test_a_page_needs_nothing_else() -> None:
    text = page_of(Report(kind="k", title="t", blocks=every_kind()))
    page = Walked(text)
    assert page.well_formed
    ids = [of["id"] for _, of in page.elements if "id" in of]
    assert len(set(ids)) == len(ids)
    links = [of["href"] or "" for name, of in page.elements if name == "a"]
    assert all(link.removeprefix("#") in ids for link in links if link.startswith("#"))
    assert all(link.startswith(("#", "data:text/csv;", "data:image/svg+xml;")) for link in links)
    assert not re.search(r"https?://(?!www\.w3\.org/)|\bsrc=|@import|url\((?!#)", re.sub('data:[^"]*', "", text))


def test_the_policy_lets_the_page_run_its_own_script_alone() -> None:
    text = page_of(Report(kind="k", title="t", blocks=every_kind()))
    (policy,) = [of["content"] or "" for name, of in Walked(text).elements if of.get("http-equiv")]
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; ")
    assert "unsafe-eval" not in policy
    assert "connect-src" not in policy


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(NASTY, NASTY)
def test_nothing_that_anybody_wrote_is_more_than_text(words: str, title: str) -> None:
    page = walked(*every_kind(words), title=title)
    known = walked(*every_kind(), title="t")
    assert page.well_formed
    assert page.names <= known.names | {"mark"}
    drawn = {key for name, of in known.elements for key in of}
    assert {key for _, of in page.elements for key in of} <= ATTRIBUTES | drawn
    assert not any(key.startswith("on") for _, of in page.elements for key in of)
    assert visible(words) in page.text
    (found,) = page.transcripts
    assert found["title"] == visible(words)
    said = found["messages"][0]["text"]
    assert "".join(each if isinstance(each, str) else each[0] for each in said) == visible(words)


def test_parts_come_in_their_order_whatever_the_order_of_blocks() -> None:
    page = walked(*reversed(every_kind()))
    order = ("key", "findings", "figure", "table", "transcripts")
    assert [of["id"] for name, of in page.elements if name == "section" and of["id"] in order] == list(order)


def test_a_table_has_headings_and_figures_to_the_right_with_their_intervals_below() -> None:
    table = Table(
        id="t",
        columns={"name": "text", "rate": "share"},
        rows=[("<a>", Estimate(0.05, 0.01, 0.09, 5, 100))],
        caption="What it is",
    )
    page = walked(table)
    cells = [(name, of) for name, of in page.elements if name in ("th", "td")]
    assert cells == [
        ("th", {"scope": "col"}),
        ("th", {"scope": "col", "class": "n"}),
        ("th", {"scope": "row"}),
        ("td", {"class": "n"}),
    ]
    assert "5/100 · 5.0%1.0% to 9.0%" in page.text


def test_a_long_table_is_folded_and_a_very_long_one_is_cut() -> None:
    def of(many: int) -> Walked:
        return walked(Table(id="t", columns={"a": "text"}, rows=[(str(at),) for at in range(many)]))

    assert "details" not in of(FOLDED_FROM).names
    assert "details" in of(FOLDED_FROM + 1).names
    long = of(MOST_ROWS + 5)
    assert sum(name == "tr" for name, _ in long.elements) == MOST_ROWS + 1
    assert f"Showing the first {MOST_ROWS:,} of {MOST_ROWS + 5:,} rows. The CSV file has all of them." in long.text


@pytest.mark.parametrize(("count", "folded"), [(MOST_FINDINGS + 1, 0), (MOST_FINDINGS + 2, 2)])
def test_many_findings_are_folded_and_all_are_there(count: int, folded: int) -> None:
    lines = [f"finding {number}" for number in range(count)]
    page = walked(Text(id="findings", lines=lines))
    assert all(line in page.text for line in lines)
    assert (f"{folded} more findings" in page.text) == bool(folded)
    assert not walked(Text(id="notes", part="run", lines=lines)).text.count("more findings")


def test_tables_and_figures_can_be_downloaded() -> None:
    table = Table(
        id="rates",
        columns={"name": "text", "rate": "share", "p": "p"},
        rows=[("=a", Estimate(0.5, 0.4, 0.6, 5, 10), 0.04), ("b", None, None)],
    )
    page = walked(table, replace(table, id="drawn").drawn((2, 1), draw))
    files = {of["download"]: (of["href"] or "").partition("base64,")[2] for _, of in page.elements if "download" in of}
    assert list(files) == ["drawn.svg", "drawn.csv", "rates.csv"]
    rows = list(csv.reader(io.StringIO(base64.b64decode(files["rates.csv"]).decode(), newline="")))
    assert rows == [
        ["name", "rate", "rate low", "rate high", "rate count", "rate n", "p"],
        ["'=a", "0.5", "0.4", "0.6", "5", "10", "0.04"],
        ["b", "", "", "", "", "", ""],
    ]
    assert base64.b64decode(files["drawn.svg"]).startswith(b"<?xml")


def test_transcripts_are_packed_in_chunks_and_all_are_there() -> None:
    long = "x y z " * (CHUNK // 18)
    items = [Transcript(f"k{at}", "t", messages=(Message("a", f"{at} {long}"),)) for at in range(7)]
    page = walked(transcripts(*items))
    assert [each["key"] for each in page.transcripts] == [item.key for item in items]
    assert len(page.packed["chunk"]) > 1
    assert sum(page.index["sizes"]) == 7
    assert "This page contains 7 transcripts" in page.text


def test_filters_have_their_values_with_counts_and_numbers_in_order() -> None:
    items = [
        Transcript(f"k{at}", "t", tags={"turn": [str(at % 11)], "end": ["kept" if at % 3 else "leaked"]})
        for at in range(22)
    ]
    page = walked(transcripts(*items, filters=("turn", "end", "absent")))
    selects = [of["name"] for name, of in page.elements if name == "select"]
    assert selects == ["turn", "end"], "a filter with nothing to choose from is left out"
    options = [text for within, text in page.texts if within == "option"]
    assert options == ["all", *(f"{turn} (2)" for turn in range(11)), "all", "kept (14)", "leaked (8)"]
    assert page.index["tags"]["end"][0] == [1]
    assert page.index["tags"]["turn"][10] == [10]


def test_every_block_has_an_id_of_its_own_that_can_be_the_name_of_a_file() -> None:
    ids = ["a", "a", "../../etc/passwd", "by gpt-4.1", "by gpt-4-1", "", "files"]
    report = Report(kind="k", title="t", blocks=[Text(id=id_) for id_ in ids])
    found = [block.id for block in report.blocks]
    assert len(set(found)) == len(ids)
    assert found[:2] == ["a", "a-2"]
    assert found[-1] == "files"
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", id_) for id_ in found)


def test_columns_whose_names_would_be_the_same_are_kept_apart() -> None:
    table = Table(
        id="t", columns={"a": "share", "a low": "text", "a ": "count"}, rows=[(Estimate(0.5, 0.4, 0.6), "x", 3)]
    )
    names, rows = cells_as_columns(table)
    assert names == ["a", "a low", "a high", "a low 2", "a 2"]
    assert rows == [[0.5, 0.4, 0.6, "x", 3]]
    assert walked(table).well_formed


def test_the_same_report_is_the_same_page() -> None:
    assert page_of(Report(kind="k", title="t", blocks=every_kind())) == page_of(
        Report(kind="k", title="t", blocks=every_kind())
    )
