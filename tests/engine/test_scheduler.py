"""Which asks leave together, and how many trials are open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.engine import scheduler as plan

SENDABLE = [
    pytest.param(0, 0, True, 0, id="nothing is nothing"),
    pytest.param(5, 0, False, 0, id="a barrier waits"),
    pytest.param(5, 0, True, 5, id="a barrier opens"),
    pytest.param(5, 3, False, 3, id="the rest of an open wave"),
    pytest.param(5, 3, True, 3, id="newcomers wait for the next"),
]


@pytest.mark.parametrize(("queued", "released", "quiet", "expected"), SENDABLE)
def test_sendable(queued: int, released: int, quiet: bool, expected: int) -> None:
    assert plan.sendable(queued, released, quiet=quiet) == expected


@pytest.mark.parametrize(
    ("count", "most", "sizes"),
    [(0, 5, []), (1, 5, [1]), (5, 5, [5]), (6, 5, [3, 3]), (11, 5, [3, 4, 4]), (3, 1, [1, 1, 1])],
)
def test_cut(count: int, most: int, sizes: list[int]) -> None:
    assert plan.cut(count, most) == sizes


@given(st.integers(0, 10_000), st.integers(1, 500))
def test_waves_are_few_and_even(count: int, most: int) -> None:
    sizes = plan.cut(count, most)
    assert sum(sizes) == count
    assert len(sizes) == -(-count // most)
    assert not sizes or max(sizes) <= most
    assert not sizes or max(sizes) - min(sizes) <= 1


def test_windows() -> None:
    assert plan.trial_window(64, barrier=False) == 128
    assert plan.trial_window(64, barrier=True) == 50_000
    assert plan.trial_window(64, barrier=False, unopened=129) == 128
    assert plan.trial_window(64, barrier=False, unopened=128) == 256
