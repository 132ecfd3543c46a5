"""How long replies take."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.latency import Latency, parse_latency
from groundswell.errors import SettingsError


@pytest.mark.parametrize(
    ("text", "latency"),
    [
        ("0", Latency()),
        ("0.05", Latency(median=0.05)),
        ("lognormal:0.8,0.5", Latency(median=0.8, sigma=0.5)),
        ("lognormal:0.8,0.5,0.01x20", Latency(median=0.8, sigma=0.5, stragglers=0.01, factor=20)),
        ("0.1+0.002/char", Latency(median=0.1, per_char=0.002)),
        ("lognormal:1,0+0.01/char", Latency(median=1, per_char=0.01)),
        ("+0.002/char", Latency(per_char=0.002)),
    ],
)
def test_descriptions(text: str, latency: Latency) -> None:
    assert parse_latency(text) == latency


@pytest.mark.parametrize(
    "text",
    [
        "fast",
        "-1",
        "nan",
        "inf",
        "normal:1,1",
        "lognormal:1",
        "lognormal:1,1,5",
        "1+2",
        "1+2/word",
        "lognormal:1,1,2x3",
        "lognormal:1,1000",
    ],
)
def test_what_is_no_description_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="latency"):
        parse_latency(text)


def test_a_fixed_latency_is_fixed() -> None:
    latency = Latency(median=0.5, per_char=0.01)
    assert latency.first("a") == latency.first("b") == 0.5


def test_lognormal_latencies_have_their_median_and_their_stragglers() -> None:
    latency = Latency(median=0.8, sigma=0.5, stragglers=0.05, factor=1000)
    drawn = [latency.first(7, number) for number in range(2_000)]
    slow = [seconds for seconds in drawn if seconds > 100]
    assert 60 < len(slow) < 140
    assert median(seconds for seconds in drawn if seconds < 100) == pytest.approx(0.8, rel=0.08)
    assert drawn == [latency.first(7, number) for number in range(2_000)]


@given(st.floats(0, 100), st.floats(0, 3), st.floats(0, 1), st.integers())
def test_a_latency_is_never_negative(middle: float, sigma: float, share: float, about: int) -> None:
    assert Latency(median=middle, sigma=sigma, stragglers=share).first(about) >= 0
