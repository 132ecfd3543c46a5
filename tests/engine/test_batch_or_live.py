"""Live or in a batch, and why."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.engine.batching import FEW, WORTH_IT, Case, few, last_call, why_batch, why_live
from tests.properties import examples

DAY = 86_400.0
CASES = [
    pytest.param(Case("batch", 100), None, id="many"),
    pytest.param(Case("batch", 1), "single request", id="one"),
    pytest.param(Case("batch", 100, shut="none here"), "none here", id="no batches"),
    pytest.param(Case("batch", 100, left=901.0, whole=DAY), None, id="batch, before the last call"),
    pytest.param(
        Case("batch", 100, left=900.0, whole=DAY), "deadline, which is in 900 s", id="batch, at the last call"
    ),
    pytest.param(Case("batch", 100, left=25.0, whole=100.0), "deadline", id="the last quarter of a short time"),
    pytest.param(Case("auto", 100), None, id="auto, no deadline"),
    pytest.param(Case("auto", 100, left=7200.0, whole=DAY), None, id="auto, twice as long as usual"),
    pytest.param(Case("auto", 100, left=7199.0, whole=DAY), "takes 3600 s", id="auto, not twice as long as usual"),
    pytest.param(Case("auto", 100, seconds=60.0, left=1000.0, whole=DAY), None, id="auto, quick of late"),
    pytest.param(Case("auto", 100, seconds=600.0, left=1000.0, whole=DAY), "took 600 s", id="auto, slow of late"),
    pytest.param(Case("batch", 100, seconds=600.0, left=1000.0, whole=DAY), None, id="batch takes the risk"),
    pytest.param(Case("auto", 100, saved=0.009), "save only $0.0090", id="auto, hardly cheaper"),
    pytest.param(Case("auto", 100, saved=WORTH_IT), None, id="auto, a cent"),
    pytest.param(Case("auto", 100, saved=-1.0), "$0.0000", id="auto, dearer"),
    pytest.param(Case("batch", 100, saved=0.0), None, id="batch whatever it saves"),
]


@pytest.mark.parametrize(("case", "why"), CASES)
def test_why_live(case: Case, why: str | None) -> None:
    told = why_live(case)
    assert told is None if why is None else why in str(told)


FAILED = [(2, 100, True), (3, 100, False), (1, 50, True), (1, 49, False), (100, 100, False)]


@pytest.mark.parametrize(("failed", "among", "live"), FAILED)
def test_the_few_that_failed(failed: int, among: int, live: bool) -> None:
    assert (few(failed, among) is not None) is live
    assert live is (failed <= FEW * among)


ANY = st.builds(
    Case,
    st.sampled_from(["batch", "auto"]),
    st.integers(1, 1000),
    seconds=st.none() | st.floats(1, DAY),
    left=st.none() | st.floats(0, DAY),
    whole=st.just(DAY),
    saved=st.none() | st.floats(-1, 10),
)


@settings(max_examples=examples(200), deadline=None)
@given(ANY, st.floats(0, DAY), st.floats(0, 10))
def test_more_time_and_more_savings_never_speak_against_a_batch(case: Case, more: float, saved: float) -> None:
    if why_live(case) is None:
        later = None if case.left is None else case.left + more
        better = case._replace(left=later, saved=None if case.saved is None else case.saved + saved)
        assert why_live(better) is None
        assert why_live(case._replace(via="batch")) is None, "auto is the more careful one"
        assert why_batch(case)


@given(st.floats(0, 10 * DAY))
def test_the_last_call_leaves_most_of_the_time(whole: float) -> None:
    assert 0 <= last_call(whole) <= min(900.0, whole / 4)
