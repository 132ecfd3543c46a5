"""Checks for every journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from groundswell.engine.ports import Journal
from groundswell.engine.records import AskId, Intent, Receipt, Recorded, RunRecord, TrialRow
from groundswell.errors import StoreError
from groundswell.program.request import Embedding, Fault, FaultKind, Reply, Returned, Settlement, ToolCall, Usage

PRINT = bytes(range(16))
SETTLEMENTS: tuple[Settlement, ...] = (
    Reply("plain"),
    Reply("full \u2603 \U0001f600 \x01", Usage(1, 2, 3, 4)),
    Reply("", tool_calls=(ToolCall("1", "look", '{"at": 1}'),), finish="tool", logprobs=[{"a": -0.5}]),
    Embedding.of([[0.5, -1.0], [2.0, 0.0]]),
    Returned({"deep": [1, 2.5, None, "text"]}),
    Fault(FaultKind.SERVER, "down", retry_after=1.5, attempts=8),
)


class JournalCase(Protocol):
    """The journal of a run that has been created, and ways to inspect it."""

    @property
    def journal(self) -> Journal:
        """The journal under test."""
        ...

    @property
    def record(self) -> RunRecord:
        """The run that it belongs to."""
        ...

    @property
    def failures(self) -> list[Exception]:
        """The calls of the journal's `failed` callback."""
        ...

    def other(self) -> Journal:
        """The same run's journal over another connection, as another process has it."""
        ...

    def stored(self) -> RunRecord:
        """The run as it is stored now."""
        ...

    def break_commits(self) -> None:
        """Make the next commit fail."""
        ...

    def cancel(self) -> None:
        """Ask the run to stop, as another process does."""
        ...


JournalFactory = Callable[[], AbstractAsyncContextManager[JournalCase]]
JournalCheck = Callable[[JournalFactory], Coroutine[Any, Any, None]]


def trial(case: JournalCase, number: int, key: str | None = None) -> TrialRow:
    """A trial of the run."""
    return TrialRow(case.record.span[0] + number, key or f"key {number}", "p@1", f"[{number}]", 0)


def wave(case: JournalCase, number: int, *asks: AskId) -> Intent:
    """A wave of the run."""
    return Intent(case.record.span[0] + number, case.record.id, "account", "way", asks, 12.5)


def nothing(*_: Any) -> None:
    """A callback that does nothing."""


async def settlements_come_back_as_they_were(make: JournalFactory) -> None:
    """Replies, embeddings, values and faults, with their fingerprints and the seconds that they took."""
    async with make() as case:
        row = trial(case, 1)
        case.journal.add_trial(row)
        written: dict[str, Recorded] = {}
        for at, settlement in enumerate(SETTLEMENTS):
            seconds = at / 3 if at else None
            written[f"{at}"] = Recorded(PRINT, settlement, seconds)
            case.journal.add_settlement(AskId(row.id, f"{at}"), PRINT, None, settlement, nothing, seconds=seconds)
        await case.journal.flush()
        assert await case.other().recorded([row.id]) == {row.id: written}


async def the_last_row_of_a_path_wins(make: JournalFactory) -> None:
    """If an ask is journalled twice, the last one counts."""
    async with make() as case:
        ask = AskId(trial(case, 1).id, "0.1/2")
        for text in ("old", "new"):
            case.journal.add_settlement(ask, PRINT, None, Reply(text), nothing)
            await case.journal.flush()
        assert await case.journal.recorded([ask.trial]) == {ask.trial: {ask.path: Recorded(PRINT, Reply("new"))}}


async def recorded_keeps_trials_apart(make: JournalFactory) -> None:
    """Any selection of trials; a trial without rows has an empty journal."""
    async with make() as case:
        ids = [trial(case, number).id for number in range(1, 8)]
        for id_ in ids[:-1]:
            case.journal.add_settlement(AskId(id_, "0"), PRINT, None, Reply(f"of {id_}"), nothing)
        await case.journal.flush()
        for some in (ids, ids[1:3], ids[::2], ids[-1:], []):
            found = await case.journal.recorded(some)
            expected = {id_: {"0": Recorded(PRINT, Reply(f"of {id_}"))} if id_ != ids[-1] else {} for id_ in some}
            assert found == expected


async def then_is_called_when_the_row_is_durable(make: JournalFactory) -> None:
    """At that moment another connection sees the row; callbacks run in the order of the rows."""
    async with make() as case:
        other, called = case.other(), list[int]()
        row = trial(case, 1)
        for at in range(100):
            case.journal.add_settlement(AskId(row.id, f"{at}"), PRINT, None, Reply(f"{at}"), called.append, at)
            if at % 10 == 0:
                assert len(called) <= at, "called before it was written"
                await case.journal.flush()
                assert called == list(range(at + 1))
                assert len((await other.recorded([row.id]))[row.id]) == at + 1
        await case.journal.flush()
        assert called == list(range(100))


async def thens_of_all_kinds_come_in_order(make: JournalFactory) -> None:
    """Settlements, outcomes and waves share one order."""
    async with make() as case:
        called, row = list[str](), trial(case, 1)
        ask = AskId(row.id, "0")
        case.journal.add_trial(row)
        case.journal.add_wave(wave(case, 1, ask), [PRINT], called.append, "wave")
        case.journal.add_settlement(ask, PRINT, None, Reply("x"), called.append, "settlement")
        case.journal.add_outcome(row.id, None, "1", called.append, "outcome")
        case.journal.add_wave(wave(case, 2, ask), [PRINT], called.append, "second wave")
        await case.journal.flush()
        assert called == ["wave", "settlement", "outcome", "second wave"]


async def unfinished_trials_are_those_without_an_outcome(make: JournalFactory) -> None:
    """In the order in which they were started."""
    async with make() as case:
        rows = [trial(case, number) for number in range(1, 6)]
        for row in rows:
            case.journal.add_trial(row)
        case.journal.add_outcome(rows[1].id, None, "1", nothing)
        case.journal.add_outcome(rows[3].id, "server", "{}", nothing)
        await case.journal.flush()
        assert list(await case.other().unfinished()) == [rows[0], rows[2], rows[4]]


async def abandoned_trials_are_left_to_the_driver(make: JournalFactory) -> None:
    """They are not unfinished work, but are found with their records when they are submitted again."""
    async with make() as case:
        rows = [trial(case, number) for number in (1, 2, 3)]
        for row in rows:
            case.journal.add_trial(row)
        case.journal.add_settlement(AskId(rows[1].id, "0"), PRINT, None, Reply("kept"), nothing)
        case.journal.abandon(rows[1].id)
        await case.journal.flush()
        assert list(await case.other().unfinished()) == [rows[0], rows[2]]
        assert (await case.other().find([rows[1].key]))[rows[1].key].id == rows[1].id
        assert await case.other().recorded([rows[1].id]) == {rows[1].id: {"0": Recorded(PRINT, Reply("kept"))}}


async def trials_are_read_on_in_the_order_of_their_start(make: JournalFactory) -> None:
    """A few at a time, each with its outcome."""
    async with make() as case:
        rows = [trial(case, number) for number in range(1, 6)]
        for row in rows:
            case.journal.add_trial(row)
        case.journal.add_outcome(rows[2].id, "server", "{}", nothing)
        await case.journal.flush()
        rows[2] = rows[2]._replace(outcome="{}", fault="server")
        other, after, read = case.other(), case.record.span[0], list[TrialRow]()
        while some := await other.trials(after, 2):
            assert len(some) <= 2
            read += some
            after = some[-1].id
        assert read == rows


async def find_gives_trials_by_key_with_their_outcomes(make: JournalFactory) -> None:
    """Finished, faulted and unfinished ones; unknown keys are left out; many keys at once work."""
    async with make() as case:
        rows = [trial(case, number) for number in range(1, 1202)]
        for row in rows:
            case.journal.add_trial(row)
        case.journal.add_outcome(rows[0].id, None, '{"score":1}', nothing)
        case.journal.add_outcome(rows[1].id, "server", '{"type":"fault"}', nothing)
        await case.journal.flush()
        found = await case.other().find([*(row.key for row in rows), "unknown"])
        assert len(found) == len(rows)
        assert found[rows[0].key] == rows[0]._replace(outcome='{"score":1}')
        assert found[rows[1].key] == rows[1]._replace(outcome='{"type":"fault"}', fault="server")
        assert found[rows[2].key] == rows[2]
        assert await case.other().find(["unknown"]) == {}


async def find_sees_what_was_started_and_ended_since(make: JournalFactory) -> None:
    """A trial that was missing in an earlier lookup is found as it is now."""
    async with make() as case:
        rows = [trial(case, number) for number in range(1, 5)]
        for row in rows[:3]:
            case.journal.add_trial(row)
        await case.journal.flush()
        journal = case.other()
        assert set(await journal.find([rows[0].key, "unknown", "another"])) == {rows[0].key}
        case.journal.add_trial(rows[3])
        await case.journal.flush()
        assert await journal.find(["unknown"]) == {}
        for row in rows[1::2]:
            case.journal.add_outcome(row.id, None, "1", nothing)
        await case.journal.flush()
        ended = {row.key: row._replace(outcome="1") for row in rows[1::2]}
        assert await journal.find([row.key for row in rows]) == {row.key: row for row in rows} | ended


async def open_waves_have_what_is_not_settled(make: JournalFactory) -> None:
    """With intent, receipt and fingerprints as they were; ended waves are excluded."""
    async with make() as case:
        journal = case.journal
        asks = [AskId(trial(case, 1).id, "0"), AskId(trial(case, 1).id, "1.0/0"), AskId(trial(case, 2).id, "0")]
        prints = [bytes([at]) * 16 for at in range(3)]
        for number in (1, 2, 3):
            journal.add_wave(wave(case, number, *asks), prints, nothing)
        journal.add_receipt(wave(case, 1).id, Receipt({"batch": "b", "n": [1]}))
        journal.end_wave(wave(case, 2).id)
        journal.add_settlement(asks[1], prints[1], wave(case, 1).id, Reply("x"), nothing)
        await journal.flush()
        left = {asks[0]: prints[0], asks[2]: prints[2]}
        assert list(await case.other().open_waves()) == [
            (wave(case, 1, *asks), Receipt({"batch": "b", "n": [1]}), left),
            (wave(case, 3, *asks), None, left),
        ]


async def counters_are_written_with_what_they_count(make: JournalFactory) -> None:
    """Every kind of row stores the current counters."""
    async with make() as case:
        journal, row = case.journal, trial(case, 1)
        ask = AskId(row.id, "0")
        steps: list[Callable[[], None]] = [
            lambda: journal.add_trial(row),
            lambda: journal.add_wave(wave(case, 1, ask), [PRINT], nothing),
            lambda: journal.add_receipt(wave(case, 1).id, Receipt({"batch": "b"})),
            lambda: journal.add_settlement(ask, PRINT, None, Reply("x"), nothing),
            lambda: journal.end_wave(wave(case, 1).id),
            lambda: journal.add_outcome(row.id, None, "1", nothing),
        ]
        for step in steps:
            case.record.counters.sent += 1
            step()
            await journal.flush()
            assert case.stored().counters == case.record.counters


async def counters_are_written_by_themselves(make: JournalFactory) -> None:
    """Without any row; the callback runs when they are durable."""
    async with make() as case:
        case.record.counters.sent = 7
        seen: list[int] = []
        case.journal.save_counters(lambda: seen.append(case.stored().counters.sent))
        await case.journal.flush()
        assert seen == [7]


async def a_failed_commit_is_reported_and_the_last(make: JournalFactory) -> None:
    """Everything before it is safe; nothing in it or after it is reported as durable."""
    async with make() as case:
        journal, row, called = case.journal, trial(case, 1), list[str]()
        journal.add_settlement(AskId(row.id, "0"), PRINT, None, Reply("safe"), called.append, "safe")
        await journal.flush()
        case.break_commits()
        journal.add_settlement(AskId(row.id, "1"), PRINT, None, Reply("lost"), called.append, "lost")
        await _refused(journal.flush)
        assert [type(error) for error in case.failures] == [StoreError]
        await _refused(lambda: _add_later(journal, AskId(row.id, "2"), called))
        await _refused(journal.flush)
        assert called == ["safe"]
        assert await case.other().recorded([row.id]) == {row.id: {"0": Recorded(PRINT, Reply("safe"))}}


async def _add_later(journal: Journal, ask: AskId, called: list[str]) -> None:
    journal.add_settlement(ask, PRINT, None, Reply("late"), called.append, "late")
    await journal.flush()


async def _refused(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except StoreError:
        return
    raise AssertionError("a broken journal must report it")


async def look_up(journal: Journal, keys: Sequence[bytes]) -> Mapping[bytes, Settlement]:
    """What the cache has."""
    found: asyncio.Future[Mapping[bytes, Settlement]] = asyncio.get_running_loop().create_future()
    journal.cached(keys, found.set_result)
    return await asyncio.wait_for(found, 10)


async def the_cache_keeps_the_first_reply(make: JournalFactory) -> None:
    """By key, for every run; unknown keys are left out."""
    async with make() as case:
        ask, add = AskId(trial(case, 1).id, "0"), case.journal.add_settlement
        add(ask, PRINT, 1, Reply("first"), nothing, cache_key=b"a" * 16)
        add(ask, PRINT, 1, Embedding.of([[1.0]]), nothing, cache_key=b"b" * 16)
        await case.journal.flush()
        add(ask, PRINT, 1, Reply("second"), nothing, cache_key=b"a" * 16)
        await case.journal.flush()
        found = await look_up(case.other(), [b"a" * 16, b"b" * 16, b"c" * 16])
        assert found == {b"a" * 16: Reply("first"), b"b" * 16: Embedding.of([[1.0]])}


async def cancelled_says_what_another_process_asked_for(make: JournalFactory) -> None:
    """False until the run is cancelled."""
    async with make() as case:
        assert await case.journal.cancelled() is False
        case.cancel()
        assert await case.journal.cancelled() is True


async def an_empty_journal_has_nothing(make: JournalFactory) -> None:
    """It returns nothing, without an error."""
    async with make() as case:
        journal = case.journal
        await journal.flush()
        assert (list(await journal.unfinished()), list(await journal.open_waves())) == ([], [])
        assert (await journal.find(["x"]), await journal.recorded([]), await look_up(journal, [])) == ({}, {}, {})


journal_checks: tuple[JournalCheck, ...] = (
    settlements_come_back_as_they_were,
    the_last_row_of_a_path_wins,
    recorded_keeps_trials_apart,
    then_is_called_when_the_row_is_durable,
    thens_of_all_kinds_come_in_order,
    unfinished_trials_are_those_without_an_outcome,
    abandoned_trials_are_left_to_the_driver,
    trials_are_read_on_in_the_order_of_their_start,
    find_gives_trials_by_key_with_their_outcomes,
    find_sees_what_was_started_and_ended_since,
    open_waves_have_what_is_not_settled,
    counters_are_written_with_what_they_count,
    counters_are_written_by_themselves,
    a_failed_commit_is_reported_and_the_last,
    the_cache_keeps_the_first_reply,
    cancelled_says_what_another_process_asked_for,
    an_empty_journal_has_nothing,
)
