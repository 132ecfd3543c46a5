"""The emulator's clock, over a real clock that the test moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.clock import LATEST, EmulatedClock


class Real:
    """A real clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


def test_it_starts_at_the_real_time_and_runs_at_its_speed() -> None:
    real = Real()
    clock = EmulatedClock(3600, real)
    assert clock.now() == 1_000
    real.at += 2
    assert clock.now() == 1_000 + 7_200


def test_a_day_can_be_skipped() -> None:
    real = Real()
    clock = EmulatedClock(1, real)
    clock.advance(86_400)
    real.at += 1
    assert clock.now() == 1_000 + 86_401


def test_another_speed_counts_from_now_on() -> None:
    real = Real()
    clock = EmulatedClock(10, real)
    real.at += 1
    clock.run_at(0)
    real.at += 100
    assert clock.now() == 1_010
    assert clock.speed == 0


def test_it_stands_still_before_times_that_cannot_be_written() -> None:
    real = Real()
    clock = EmulatedClock(1e9, real)
    real.at += 1e6
    assert clock.now() == LATEST


@pytest.mark.parametrize(
    ("speed", "when", "wait"), [(3600, 4_600, 1.0), (1, 900, 0.0), (0, 1_001, None), (0, 1_000, 0.0)]
)
def test_how_long_to_wait_for_a_time(speed: float, when: float, wait: float | None) -> None:
    assert EmulatedClock(speed, Real()).real_seconds_until(when) == wait


steps = st.lists(
    st.tuples(st.sampled_from(["real", "advance", "speed"]), st.floats(0, 1e6, allow_nan=False)), max_size=20
)


@given(steps)
def test_it_never_goes_back(taken: list[tuple[str, float]]) -> None:
    real = Real()
    clock = EmulatedClock(1, real)
    before = clock.now()
    for step, amount in taken:
        if step == "real":
            real.at += amount - 5e5  # a real clock may be set back
        elif step == "advance":
            clock.advance(amount)
        else:
            clock.run_at(amount)
        assert clock.now() >= before
        before = clock.now()
