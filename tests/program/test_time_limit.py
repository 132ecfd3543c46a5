"""Programs that compute and never ask: they are interrupted, and the trial is missing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from groundswell.errors import TimeLimitExceeded
from groundswell.program import time_limit
from groundswell.program.conductor import Conductor
from groundswell.program.request import Reply, user
from groundswell.program.trial import Program, Trial, program


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, seconds in (("SECONDS", 0.05), ("TICK", 0.01), ("AGAIN", 0.01)):
        monkeypatch.setattr(time_limit, name, seconds)
    monkeypatch.setattr(time_limit, "_armed", False)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def timer() -> tuple[float, float]:
    return signal.getitimer(signal.ITIMER_VIRTUAL)


def compute_until(done: Callable[[], bool]) -> None:
    """Use processor time, for a few seconds at the most."""
    end = time.thread_time() + 5
    while not done() and time.thread_time() < end:
        pass


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
    assert "more than 0.05 s without a request" in str(conductor.error)


def test_other_steps_are_left_alone_and_no_timer_stays() -> None:
    conductor = conducted(lambda: None)
    assert (conductor.error, conductor.result) == (None, "hello")
    assert timer() != (0.0, 0.0)
    compute_until(lambda: timer() == (0.0, 0.0))
    assert timer() == (0.0, 0.0)
    conducted(lambda: None)
    assert timer() != (0.0, 0.0)


def test_many_short_steps_are_no_long_one() -> None:
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        assert conducted(lambda: None).error is None


def test_after_a_step_that_raises_nothing_is_interrupted() -> None:
    def fail() -> None:
        raise LookupError("no")

    assert isinstance(conducted(fail).error, LookupError)
    compute_until(lambda: timer() == (0.0, 0.0))
    assert timer() == (0.0, 0.0)


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
    assert timer() == (0.0, 0.0)


ENDS_SLOWLY = """
from groundswell.program import time_limit

class Slow:
    def __del__(self):
        for _ in range(5_000_000):
            pass

time_limit.TICK = 0.001
time_limit.begin()
time_limit.end()
kept = Slow()
"""


def test_the_timer_does_not_kill_a_process_that_ends() -> None:
    """Python gives up its signal handlers before it takes its modules down."""
    ended = subprocess.run([sys.executable, "-c", ENDS_SLOWLY], check=False)
    assert ended.returncode == 0
