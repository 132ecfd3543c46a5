"""Whatever becomes of batches, and however often a run dies, it finds what a live run finds and pays once for it."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundswell import Fault, FaultKind, Reply, Request, RunStopped, StoreError, Usage
from groundswell.engine.batch_quota import Capacity
from groundswell.engine.rate_limit import most_uncommitted
from groundswell.testing.batch import Answer
from groundswell.testing.crash import CrashPoint
from groundswell.testing.provider import Mishap
from tests.engine.batch_stage import Ended, Stage, Talk, fresh_stage, said, via
from tests.engine.scenario import digest
from tests.properties import examples

CAP = 4
PASSING = (FaultKind.SERVER, FaultKind.EXPIRED, FaultKind.GARBLED)


class Moody:
    """Answers the same request with the same words, but not always at once, and some never."""

    def __init__(self, salt: int, flaky: int) -> None:
        self._salt = salt
        self._flaky = flaky

    def finally_(self, words: str) -> Reply | Fault:
        number = digest(words.encode())
        return Fault(FaultKind.FILTERED, "no") if number % 11 == 0 else Reply(f"{number % 9973}", Usage(number % 50, 3))

    def __call__(self, request: Request, nth: int) -> Answer:
        mood = digest(f"{self._salt} {said(request)}".encode())
        if nth < mood % 4 and mood // 4 % 100 < self._flaky:
            return Fault(PASSING[mood % 3], "come again")
        return self.finally_(said(request))

    def tell(self, talk: Talk) -> list[str]:
        """What a conversation finds."""
        heard = [f"talk {talk.number}"]
        for _ in talk.models:
            end = self.finally_(heard[-1])
            heard.append(end.text if isinstance(end, Reply) else f"({end.kind})")
        return heard


TALKS = st.lists(st.lists(st.sampled_from("mmn"), min_size=1, max_size=3), min_size=1, max_size=8).map(
    lambda all_models: [Talk(number, tuple(models)) for number, models in enumerate(all_models)]
)
KNOBS = st.fixed_dictionaries(
    {
        "mishaps": st.lists(st.sampled_from([None, *get_args(Mishap)]), max_size=4),
        "undecided": st.integers(0, 2),
        "queue": st.sampled_from([None, 4, 15, 45]),
        "tells": st.booleans(),
        "capacity": st.builds(Capacity, st.sampled_from([2, 1000]), st.just(1 << 20), st.sampled_from([None, 25]))
        | st.builds(Capacity, st.just(4), st.just(600), st.none(), st.just("requests")),
        "reading": st.sampled_from([0.0, 0.5]),
        "lengths": st.sampled_from([{}, {"n": 15.0}]),
    }
)
POINTS = st.builds(CrashPoint, st.integers(3, 14), st.sampled_from(["before", "after"])) | st.builds(
    CrashPoint, st.just(0), st.just("before")
)
SESSIONS = st.lists(
    st.tuples(st.sampled_from(["batch", "batch", "auto", "live"]), KNOBS, POINTS), min_size=1, max_size=4
)
EXAMPLES = settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@EXAMPLES
@given(TALKS, SESSIONS, st.sampled_from([None, 1, 3]), st.integers(0, 99), st.sampled_from([0, 30, 100]))
def test_batches_find_what_a_live_run_finds_and_pay_once(
    talks: list[Talk], sessions: list[Any], batch_size: int | None, salt: int, flaky: int
) -> None:
    moody = Moody(salt, flaky)
    with fresh_stage(moody) as stage:
        crashed = 0
        for way, knobs, point in sessions:
            ended = session(stage, talks, way, batch_size, knobs, point)
            crashed += point.crashed
        ended = session(stage, talks, "batch", batch_size, {}, CrashPoint(0, "before"))
        if ended.error is not None:  # a batch that an earlier session left behind was cancelled
            ended = session(stage, talks, "batch", batch_size, {}, CrashPoint(0, "before"))
        assert ended.results == [moody.tell(talk) for talk in talks]
        check_books(stage, crashed)


def session(
    stage: Stage, talks: list[Talk], way: str, batch_size: int | None, knobs: dict[str, Any], point: CrashPoint
) -> Ended:
    """One session, which may end well, with a stop, or in a crash."""
    more = {} if batch_size is None else {"batch_size": batch_size}
    ended = stage.session(talks, via(way, **more), point=point, cap=CAP, **knobs)
    if point.crashed:
        assert isinstance(ended.error, StoreError)
    elif ended.error is not None:
        assert isinstance(ended.error, RunStopped), ended.error
    return ended


def check_books(stage: Stage, crashed: int) -> None:
    """What was ordered and paid, and that the figures of the run say so."""
    entries, counters = stage.books.entries(), stage.counters
    in_batches = Counter(order.ask for entry in stage.batches for order in entry.orders if order.paid)
    assert set(in_batches.values()) <= {1}, "a batch ask was paid for twice"
    ids = Counter(order.custom_id for entry in stage.batches for order in entry.orders)
    assert set(ids.values()) <= {1}, "a batch was sent twice"
    live = sum(len(entry.orders) for entry in entries if entry.batch is None)
    assert sum(stage.paid_twice().values()) <= 2 * crashed * (CAP + most_uncommitted(CAP)), "live, when it was killed"
    assert counters.sent == stage.placed if not crashed else stage.placed - live <= counters.sent <= stage.placed
    assert (stage.open_waves, counters.settled, counters.planned) == (0, counters.planned, counters.usable)
