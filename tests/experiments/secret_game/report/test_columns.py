"""What the columns mean: every one is said, and none that is not there."""

from __future__ import annotations

from groundswell.experiments.secret_game.report.columns import MEANING, OF_SIDES, files
from groundswell.experiments.secret_game.report.rows import COLUMNS, COMMON, OF_A_SIDE
from tests.experiments.secret_game.report.games import Walked


def test_every_column_has_its_meaning_and_nothing_else_has() -> None:
    assert set(MEANING) == {*COMMON, "transcript", "messages"}
    assert list(OF_SIDES) == list(OF_A_SIDE)
    assert len(COLUMNS) == len(MEANING) + 2 * len(OF_SIDES)


def test_the_section_says_them_all() -> None:
    walked = Walked(files().body)
    assert walked.well_formed
    for name in (*MEANING, *(f"{side}_{name}" for side in ("first", "second") for name in OF_SIDES)):
        assert name in walked.text
    for words in (*MEANING.values(), *OF_SIDES.values()):
        assert words in walked.text
