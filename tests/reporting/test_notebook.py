"""Pages made of what models, specs and names hold: all of it is shown, and none of it does anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell import Chat, Fault, FaultKind, Outcome, Reply, Summary, user
from groundswell.engine.summary import Asks, RunCost, Trials
from groundswell.reporting import notebook, words
from groundswell.reporting.talk import Exchange
from groundswell.reporting.transcript import Transcript
from tests.properties import examples
from tests.reporting.page import Page, Shown


def summary(text: str) -> Summary:
    counts = Trials(3, 2, 1), Asks(5, 0, 0, 0, 1), RunCost(None, 5)
    return Summary("abc", "partial", *counts, 61.0, {"found": text}, text, text)


def transcript(text: str) -> Transcript:
    exchange = Exchange("0", text, Chat(text, (user(text),)), Reply(text, reasoning=text))
    return Transcript(text, text, "missing", text, None, Fault(FaultKind.SERVER, text), [exchange])


PAGES: dict[str, Callable[[str], Shown]] = {
    "usable": lambda text: Outcome(text, {text: text}, [text]),
    "missing": lambda text: Outcome(text, text, None, Fault(FaultKind.SERVER, text)),
    "summary": summary,
    "transcript": transcript,
}
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "]]> <!-- --> <![CDATA[ &lt; &amp;amp;",
    "</div></td></table></details>",
    "style=\"background:url('x')\"",
]


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("text", HOSTILE, ids=["script", "quotes", "markup", "ends", "style"])
def test_hostile_text_is_text(make: Callable[[str], Shown], text: str) -> None:
    assert text in Page(make(text)).text


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_no_character_turns_the_page_or_ends_it(make: Callable[[str], Shown]) -> None:
    page = Page(make("a\u202eb\u2066c\x00d\x1be\u200f"))
    assert "a\\u202eb\\u2066c\\x00d\\x1be\u200f" in page.text
    assert not set("\u202e\u2066\x00\x1b") & set(page.text)


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_long_text_is_cut_and_says_so(make: Callable[[str], Shown]) -> None:
    page = Page(make("&" * 1_000_000))
    assert "characters more)" in page.text
    assert len(page.source) < 200_000


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
@settings(max_examples=examples(40))
@given(text=st.text(alphabet=st.characters(exclude_categories=[]), max_size=60))
def test_any_text_makes_a_page(make: Callable[[str], Shown], text: str) -> None:
    assert words.visible(text) in Page(make(text)).text


class Deep(msgspec.Struct):
    """A spec with fields of several kinds."""

    name: str
    many: list[int]
    inner: dict[str, Any]


def test_an_outcome_has_a_row_for_every_field() -> None:
    page = Page(Outcome("k1", Deep("ann", [1, 2], {"a": {"b": None}}), {"score": 0.5, "ok": True}))
    assert page.inside("td") == [
        "spec.name", "ann", "spec.many", "[1,2]", "spec.inner", '{"a":{"b":null}}',
        "result.score", "0.5", "result.ok", "true",
    ]  # fmt: skip
    assert page.inside("b") == ["trial k1"]


def test_a_missing_outcome_says_why() -> None:
    page = Page(Outcome("k2", 7, None, Fault(FaultKind.TIMEOUT, "late")))
    assert (page.inside("td"), "missing" in page.text) == (["spec", "7"], True)
    assert page.text.endswith("✗ timeout: late")


def test_a_spec_that_is_no_plain_data_is_shown_too() -> None:
    assert "object object" in Page(Outcome("k", object(), None)).text


def test_many_fields_are_cut() -> None:
    page = Page(Outcome("k", {f"f{at}": at for at in range(80)}, 1))
    assert page.inside("td")[-2:] == ["…", "31 more"]


def test_a_summary_has_the_figures_in_the_words_of_the_command_line() -> None:
    page = Page(summary("why"))
    cells = page.inside("td")
    assert dict(zip(cells[::2], cells[1::2], strict=True)) == {
        "id": "abc",
        "error": "why",
        "trials": "2 usable of 3 planned, 1 missing",
        "asks": "5 sent, 1 failed",
        "cost": "unknown",
        "time": "1 min 01 s",
    }
    assert '"found": "why"' in page.text


def test_colours_are_set_only_where_both_themes_can_read_them() -> None:
    source = Page(summary("x")).source + Page(transcript("x")).source
    assert "background" not in source
    assert notebook.STATUS["partial"] in source
