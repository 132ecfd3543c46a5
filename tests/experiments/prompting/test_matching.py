"""Searches that end, and leave the process's own alarms alone."""

from __future__ import annotations

import re
import signal
import threading

import pytest

from groundswell.experiments.prompting import matching
from groundswell.experiments.prompting.matching import TooSlow, is_found


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("(a+)+$", "a" * 40 + "b"), ("(a|aa)+$", "a" * 60 + "b"), (r"(\w+\s?)+\.", "word " * 40)],
    ids=["nested", "either", "words"],
)
def test_a_search_is_given_up(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "PATIENCE", 0.01)
    with pytest.raises(TooSlow, match=re.escape(repr(pattern))):
        is_found(re.compile(pattern), text)


def test_others_are_found_or_not_in_any_thread() -> None:
    found: list[bool] = []

    def search() -> None:
        found.extend(is_found(re.compile("a+"), text) for text in ("baa", "b"))

    search()
    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert found == [True, False, True, False]


def test_alarms_of_others_stay_set() -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1000)
        is_found(re.compile("a"), "a")
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
