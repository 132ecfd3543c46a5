"""Programs that compute and never ask: they are interrupted, and the trial is missing."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable

import pytest

from groundswell.errors import TimeLimitExceeded
from groundswell.program import time_limit
from groundswell.program.conductor import Conductor
from groundswell.program.request import Reply, user
from groundswell.program.trial import Program, Trial, program


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "SECONDS", 0.05)
    monkeypatch.setattr(time_limit, "AGAIN", 0.01)


def count_for_ever() -> None:
    count = 0
    while True:
        count += 1


def search_for_ever() -> None:
    re.search(r"(a|aa)+$", "a" * 100 + "b")


def ignore_the_limit() -> None:
    for _ in range(3):
        try:
            count_for_ever()
        except TimeLimitExceeded:
            pass
    count_for_ever()


def computing(work: Callable[[], None]) -> Program[str, str]:
    @program("tests/time_limit/computing")
    async def compute(trial: Trial, spec: str) -> str:
        reply = await trial.ask("m", [user("hi")])
        work()
        return reply.text

    return compute


def conducted(work: Callable[[], None]) -> Conductor:
    conductor = Conductor(computing(work), "", "key", 1)
    (wait,) = conductor.start()
    conductor.settle(wait, Reply("hello"))
    conductor.advance()
    return conductor


@pytest.mark.parametrize("work", [count_for_ever, search_for_ever, ignore_the_limit])
def test_a_step_that_never_ends_is_interrupted(work: Callable[[], None]) -> None:
    conductor = conducted(work)
    assert conductor.ended
    assert isinstance(conductor.error, TimeLimitExceeded)
    assert "more than 0.05 s without an ask" in str(conductor.error)


def test_other_steps_are_left_alone_and_no_timer_stays() -> None:
    conductor = conducted(lambda: None)
    assert (conductor.error, conductor.result) == (None, "hello")
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_step_that_raises_leaves_no_timer() -> None:
    def fail() -> None:
        raise LookupError("no")

    assert isinstance(conducted(fail).error, LookupError)
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_nothing_is_interrupted_between_steps() -> None:
    conducted(lambda: None)
    signal.raise_signal(signal.SIGVTALRM)


def test_a_signal_that_somebody_else_uses_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "_available", None)
    before = signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
    try:
        assert conducted(lambda: None).result == "hello"
        assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGVTALRM, before)


def test_other_threads_have_no_limit_and_no_timer() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(conducted(lambda: None).result))
    thread.start()
    thread.join()
    assert found == ["hello"]
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
