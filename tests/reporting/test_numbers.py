"""Figures as they are written."""

from __future__ import annotations

import pytest

from groundswell.experiments.secret_game.analysis import RateFigure
from groundswell.reporting import numbers

HALF = RateFigure(1_500, 3_000, 0.5, 0.4821, 0.5179)
NOTHING = RateFigure(0, 0, None, 0.0, 1.0)


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (numbers.percent(0.1234), "12.3%"),
        (numbers.percent(None), "–"),
        (numbers.percent(-0.05, signed=True), "−5.0%"),
        (numbers.percent(0.05, signed=True), "+5.0%"),
        (numbers.percent(-0.0001, signed=True), "0.0%"),
        (numbers.rate(HALF), "50.0% (48.2% to 51.8%)"),
        (numbers.rate(NOTHING), "–"),
        (numbers.count(HALF), "1,500 of 3,000"),
        (numbers.number(-1.234), "−1.23"),
        (numbers.between(None, 2.0), "below to 2.00"),
        (numbers.between(None, None), "–"),
        (numbers.p_value(0.0004), "< 0.001"),
        (numbers.p_value(0.0456), "0.046"),
        (numbers.points(1234.0), "1,234"),
        (numbers.points(2 / 3), "0.67"),
        (numbers.plural(1, "message"), "1 message"),
        (numbers.plural(2_000, "message"), "2,000 messages"),
        (numbers.percent(0.125), "12.5%"),
    ],
)
def test_figures(shown: str, wanted: str) -> None:
    assert shown == wanted
