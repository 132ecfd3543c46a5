"""Reading what a run found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell import Fault, FaultKind, Limits, Request, RunOptions, Trial, program
from groundswell.errors import RunError
from groundswell.program.request import (
    Embedding,
    Reply,
    Returned,
    Settlement,
    ToolCall,
    Usage,
    encode_settlement,
)
from groundswell.store import results as module
from groundswell.store.journal import Store
from groundswell.store.results import Latencies, ReplyCounts, Spread
from tests.store.planted import Planted
from tests.stores import add_rows, rows


class Spec(msgspec.Struct, frozen=True):
    number: int


class Half(msgspec.Struct, frozen=True):
    value: float


@program("results/halve", version=1)
async def halve(trial: Trial, spec: Spec) -> Half:
    await trial.ask("any/model", f"number {spec.number}")
    if spec.number == 5:
        raise ZeroDivisionError("five")
    return Half(spec.number / 2)


def some_refused(request: Request) -> Reply | Fault:
    number = int(request.messages[0].content.split()[1])  # type: ignore[union-attr]
    return Fault(FaultKind.FILTERED, f"no {number}") if number in (1, 3) else Reply("fine")


@pytest.fixture
def store(place: str | Path) -> Iterator[Store]:
    """A run of seven trials, of which three are missing, between two other runs."""

    async def fill() -> None:
        async with groundswell.open(place, script=some_refused) as engine:
            for name, count in (("before", 2), ("r", 7), ("after", 2)):
                run = engine.run(name)
                async for _ in run.map(halve, [Spec(number) for number in range(count)]):
                    pass

    asyncio.run(fill())
    opened = Store(place)
    yield opened
    opened.close_reading()


@pytest.mark.sampled
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_trials_come_in_their_order_whatever_the_chunk(
    store: Store, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    found = list(store.results(store.runs.get("r")))
    assert [result.spec(Spec).number for result in found] == list(range(7))
    assert [result.status for result in found] == [
        "usable", "missing", "usable", "missing", "usable", "missing", "usable"
    ]  # fmt: skip
    assert found[4].result(Half) == Half(2.0)
    assert found[4].result() == {"value": 2.0}
    assert found[1].result() is None
    assert found[1].fault == Fault(FaultKind.FILTERED, "no 1")
    assert {result.program for result in found} == {"results/halve@1"}


def test_reasons_are_counted_with_their_first_example(store: Store) -> None:
    results = store.results(store.runs.get("r"))
    listed = list(results)
    filtered, failed = results.fault_counts()
    assert filtered == ("content_filter", 2, listed[1].key, "no 1")
    assert failed[:3] == ("program_error", 1, listed[5].key)
    assert failed.message.startswith("ZeroDivisionError: five (in ")
    assert store.results(store.runs.get("before")).fault_counts() == [("content_filter", 1, listed[1].key, "no 1")]


def test_one_trial_is_found_by_its_key_or_the_beginning_of_it(store: Store) -> None:
    results = store.results(store.runs.get("r"))
    third = list(results)[2]
    assert results.trial(third.key) == third
    assert results.trial(third.key[:10]) == third
    assert list(results.recorded(third.row)) == ["0"]
    assert results.recorded(third.row)["0"][1] == Reply("fine")
    with pytest.raises(RunError, match="has no trial 'nobody'"):
        results.trial("nobody")
    with pytest.raises(RunError, match="several keys start with ''"):
        results.trial("")


def test_unfinished_trials_are_there_too(place: str | Path) -> None:
    async def stop_early() -> None:
        async with groundswell.open(place, script=lambda request: "fine") as engine:
            run = engine.run("r", options=RunOptions(limits=Limits(calls=2)))
            with pytest.raises(groundswell.RunStopped):
                async for _ in run.map(halve, [Spec(number) for number in range(4)]):
                    pass

    asyncio.run(stop_early())
    store = Store(place)
    found = list(store.results(store.runs.get("r")))
    store.close_reading()
    assert [result.status for result in found] == ["usable", "usable", "unfinished", "unfinished"]
    assert found[3].result() is None
    assert found[3].fault is None


def test_latencies_are_percentiles_of_replies_by_transport(place: str | Path) -> None:
    planted = Planted(place)
    other, run = planted.run("other"), planted.run("r")
    planted.settle(other, 1, 1, Reply("of another run"), seconds=900.0)
    planted.send(run, 1, 2, "batch-1")
    planted.settle(run, 1, 1, Reply("batched"), seconds=60.0)
    planted.settle(run, 1, 2, Fault(FaultKind.EXPIRED, "too late"), seconds=800.0)
    for trial, seconds in ((3, 0.2), (4, 0.1), (5, 7.0), (6, None)):
        planted.settle(run, 2, trial, Reply("live"), seconds=seconds)
    store = Store(place)
    results = store.results(store.runs.get("r"))
    batched = Latencies("openai_batch", 1, 60.0, 60.0, 60.0, 60.0)
    found, spread = results.latencies()
    assert found == [Latencies("live", 3, p50=0.2, p90=7.0, p99=7.0, max=7.0), batched]
    assert list(spread.values()) == [Spread(0.2, 7.0)], "a wave with one reply has none"
    assert results.latencies(most=2)[0] == [Latencies("live", 1, 7.0, 7.0, 7.0, 7.0)], "of the newest two trials"
    store.close_reading()


@pytest.mark.parametrize(
    ("replies", "p50", "p90", "p99"),
    [(1, 1, 1, 1), (2, 1, 2, 2), (10, 5, 9, 10), (100, 50, 90, 99), (101, 51, 91, 100)],
)
def test_percentiles_are_the_nearest_ranks(replies: int, p50: float, p90: float, p99: float) -> None:
    values = [float(value) for value in range(1, replies + 1)]
    assert module._latencies("live", values) == Latencies("live", replies, p50, p90, p99, replies)


def test_faults_of_requests_are_counted_by_kind(store: Store, place: str | Path) -> None:
    assert store.results(store.runs.get("r")).ask_fault_counts() == {"content_filter": 2}
    assert store.results(store.runs.get("before")).ask_fault_counts() == {"content_filter": 1}
    planted = Planted(place)
    run = store.runs.get("r")
    for path in ("1", "2", "3"):
        planted.settle(run, 1, 1, Fault(FaultKind.TIMEOUT, "late"), path)
    assert list(store.results(run).ask_fault_counts().items()) == [("timeout", 3), ("content_filter", 2)]


Row = tuple[str, bytes, Settlement]
REFUSED = Fault(FaultKind.FILTERED, "no")
YES, NO = Reply("yes"), Reply("no")


def counts(path: str | Path, *journals: list[Row], fault: int | None = None) -> ReplyCounts:
    """The replies of a run whose trials have these journals. All are usable except the one whose number is given."""
    store = Store(path)
    record = store.runs.create(None, 0)
    for number, journal in enumerate(journals):
        trial = record.span[0] + 1 + number
        add_rows(path, "outcomes", "trial, fault, body", (trial, "content_filter" if number == fault else None, "{}"))
        for ask, print_, said in journal:
            kind = said.kind.value if isinstance(said, Fault) else None
            row = (trial, ask, print_, kind, encode_settlement(said).decode())
            add_rows(path, "asks", "trial, path, fingerprint, fault, settlement", row)
    found = store.results(record).reply_counts()
    store.close_reading()
    return found


def called(id: str, arguments: str) -> Reply:
    return Reply("", tool_calls=(ToolCall(id, "look", arguments),))


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize(
    ("journals", "expected"),
    [
        ([], (0, 0, 0, 0)),
        ([[]], (0, 0, 0, 0)),
        ([[("0", b"a", YES)], [("0", b"a", YES)], [("0", b"a", NO)]], (3, 2, 3, 2)),
        ([[("0", b"a", YES)], [("0", b"b", YES)]], (2, 2, 2, 2)),
        ([[("0", b"a", YES)], [("0", b"a", Reply("yes", Usage(3, 1), "length", "m"))]], (2, 1, 2, 1)),
        ([[("0", b"a", called("1", "x"))], [("0", b"a", called("2", "x"))]], (2, 1, 2, 1)),
        ([[("0", b"a", called("1", "x"))], [("0", b"a", called("1", "y"))]], (2, 2, 2, 2)),
        ([[("0", b"a", YES), ("1", b"a", NO)], [("0", b"a", NO), ("1", b"a", YES)]], (4, 2, 2, 2)),
        ([[("0", b"a", YES), ("1", b"b", NO)], [("1", b"b", NO), ("0", b"a", YES)]], (4, 2, 2, 1)),
        ([[("0", b"a", YES)], [("0", b"a", YES), ("1", b"b", YES)]], (3, 2, 2, 2)),
        ([[("0", b"a", YES), ("1", b"b", REFUSED)], [("0", b"a", YES)]], (2, 1, 2, 1)),
        ([[("0", b"a", Embedding.of([[1.0]]))], [("0", b"a", Returned("yes"))]], (0, 0, 0, 0)),
        ([[("0", b"a", NO), ("0", b"b", YES)], [("0", b"b", YES)]], (2, 1, 2, 1)),
        ([[("0", b"a", YES), ("0", b"a", REFUSED)], [("0", b"a", YES)]], (1, 1, 1, 1)),
    ],
    ids=[
        "no trials",
        "no asks",
        "the same reply to the same request",
        "the same reply to other requests",
        "usage does not matter",
        "ids of tool calls do not matter",
        "arguments of tool calls do",
        "positions matter",
        "the order of arrival does not",
        "one has more",
        "faults are no replies",
        "embeddings and calls are no replies",
        "asked anew at the same position",
        "failed anew at the same position",
    ],
)
def test_replies_and_how_many_are_different(
    place: str | Path, journals: list[list[Row]], expected: tuple[int, int, int, int]
) -> None:
    assert counts(place, *journals) == expected


def test_only_usable_trials_are_told_apart(place: str | Path) -> None:
    journals: list[list[Row]] = [[("0", b"a", YES)], [("0", b"a", YES)], [("0", b"a", NO)]]
    assert counts(place, *journals, fault=2) == (3, 2, 2, 1)


def test_a_row_that_cannot_be_read_is_no_reply(place: str | Path) -> None:
    counts(place, [("0", b"a", YES)], [("0", b"b", YES)])
    rows(place, "UPDATE asks SET settlement = '{' WHERE fingerprint = ?", b"a")
    store = Store(place)
    assert store.results(store.runs.list()[0]).reply_counts() == (1, 1, 1, 1)
    store.close_reading()


def test_replies_of_other_runs_do_not_count(store: Store) -> None:
    assert store.results(store.runs.get("r")).reply_counts() == (5, 5, 4, 4)
    results = store.results(store.runs.get("before"))
    assert results.reply_counts() == results.reply_counts() == (1, 1, 1, 1)


@program("results/tossing", version=1)
async def tossing(trial: Trial, spec: int) -> str:
    first = await trial.ask("any/model", "toss a coin", temperature=0)
    return first.text + (await trial.ask("any/model", f"and again after {first.text}", temperature=0)).text


def test_trials_that_a_model_answers_alike_are_one(place: str | Path) -> None:
    async def toss() -> None:
        async with groundswell.open(place, script=lambda request: "heads") as engine:
            async for _ in engine.run("r").map(tossing, range(50)):
                pass

    asyncio.run(toss())
    store = Store(place)
    assert store.results(store.runs.get("r")).reply_counts() == ReplyCounts(100, 2, 50, 1)
    store.close_reading()
