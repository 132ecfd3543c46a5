"""What is told in a terminal of the mutators: what chance says of them, and no more than that."""

from __future__ import annotations

import pytest

from groundswell.experiments.query_mutation.analysis import Analysis, Uses
from groundswell.experiments.query_mutation.summary import summary


def told(*uses: Uses) -> list[str]:
    """The lines on operators."""
    lines = [each for each in summary(Analysis((), (), (), uses, "", 0, "")) if isinstance(each, str)]
    return [line.strip() for line in lines if " uses" in line or "none" in line]


@pytest.mark.parametrize(
    ("uses", "line"),
    [
        pytest.param(
            (Uses("random", "firm", "indirect", 10, 2.0, 1), Uses("bandit", "firm", "indirect", 90, 0.0, 0)),
            "firm: indirect 0.20 (10 uses)",
            id="a bandit that wears an operator out says nothing of it",
        ),
        pytest.param((Uses("random", "firm", "noop", 10, 0.0, 0),), "firm: none gained anything", id="none"),
        pytest.param((Uses("random", "firm", "indirect", 4, 4.0, 4),), "firm: too few uses to tell", id="few"),
    ],
)
def test_operators_are_told_as_chance_used_them(uses: tuple[Uses, ...], line: str) -> None:
    assert told(*uses) == [line]
