"""What `simulate` makes of what it is given: names, and files or text."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.experiment import plain_name
from groundswell.experiments.options import Place
from groundswell.experiments.simulations.entities import check_name
from groundswell.experiments.simulations.experiment import HEADLINE, headline
from groundswell.experiments.simulations.options import file_named

PLACE = Place("--context")


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("A panel discussion about climate change solutions", "A panel discussion about climate…"),
        ("Discuss AI.", "Discuss AI"),
        ("  two\n\n lines\t", "two lines"),
        ("First, second, and then a third, a fourth one", "First, second, and then a third, a…"),
        ("x" * 50, "x" * 36 + "…"),
        ("\x1b\x00", "simulations"),
        ("气候变化" * 20, "气候变化" * 9 + "…"),
    ],
    ids=["long", "short", "lines", "comma", "word", "nothing", "chinese"],
)
def test_headlines(context: str, name: str) -> None:
    assert headline(context) == name


@given(st.text())
def test_a_headline_is_a_name_for_a_batch(context: str) -> None:
    made = headline(context)
    check_name(made, "name")
    assert len(made) <= HEADLINE + 1
    assert shlex.quote(plain_name(made)) == plain_name(made) or not made.isascii()


@pytest.mark.parametrize(
    "text", ["a word", "x" * 10_000, "nul\0nul", "see notes.txt there", ".", "~nobody"], ids=range(6)
)
def test_what_is_no_file_is_text(text: str) -> None:
    assert file_named(text, PLACE) is None


def test_what_can_only_be_a_file_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "scene.txt"
    with pytest.raises(SettingsError, match="file not found"):
        file_named(str(path), PLACE)
    path.write_text("x")
    assert file_named(str(path), PLACE) == path
