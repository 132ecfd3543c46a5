"""The trials that the head of a run gives to workers, in a PostgreSQL database.

The head is the process that has locked a run. It adds a row to `work` in the commit that starts a trial. A worker
takes trials for its shard of the run, and marks them as done in the commit that stores their outcomes. A shard is held
by one process and has counters of its own, which are added to those of the run when they are read. If its holder has
ended, any worker may take the shard over, with its open trials and with what its counters say may have been sent.

Every statement here may be repeated if its answer is lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from math import ceil
from typing import Any

import msgspec
import psycopg
import sqlalchemy as sa

from groundswell.engine.ports import Grant, Look, Shard, Task
from groundswell.engine.records import Amounts, Counters, RunRecord, TrialRow
from groundswell.errors import RunBusy, RunError, StoreError
from groundswell.store.checksum import trial_row
from groundswell.store.database import Database, repeated
from groundswell.store.leases import ENDS, SERVER_TIME, Holder
from groundswell.store.process import Process

Connect = Callable[[], psycopg.Connection[Any]]

SHARDS = (
    f"SELECT number, holder, counters, room, problem, process, {ENDS} < {SERVER_TIME} AS expired "
    "FROM shards LEFT JOIN holders ON holders.id = holder WHERE run = %s ORDER BY number"
)
ADD_LEFT_OVER = """
    INSERT INTO work (trial, shard, again, done)
    SELECT id, %s, TRUE, FALSE FROM trials WHERE id BETWEEN %s AND %s AND NOT abandoned
    AND NOT EXISTS (SELECT 1 FROM outcomes WHERE trial = id) AND NOT EXISTS (SELECT 1 FROM work WHERE trial = id)
    RETURNING trial
"""
COUNT = """
    SELECT count(*) FILTER (WHERE NOT abandoned OR trial IS NOT NULL),
        count(*) FILTER (WHERE trial IS NOT NULL AND fault IS NULL), count(*) FILTER (WHERE fault IS NOT NULL)
    FROM trials LEFT JOIN outcomes ON outcomes.trial = trials.id WHERE trials.id BETWEEN %s AND %s
"""
ENDED = """
    SELECT trials.id, trials.key, program, spec, attempt, body, fault, abandoned, ended_at,
        trials.checksum, outcomes.checksum
    FROM work JOIN trials ON trials.id = work.trial JOIN outcomes ON outcomes.trial = work.trial
    WHERE done AND work.trial BETWEEN %s AND %s
"""
TAKE = """
    WITH mine AS (SELECT 1 FROM shards WHERE run = %(run)s AND number = %(shard)s AND holder = %(holder)s FOR SHARE),
    workers AS (SELECT greatest(%(workers)s, count(*)) AS many FROM shards WHERE run = %(run)s AND holder IS NOT NULL),
    free AS (SELECT count(*) AS many FROM (SELECT 1 FROM work WHERE trial BETWEEN %(first)s AND %(last)s
        AND shard IS NULL AND NOT done LIMIT (SELECT many FROM workers) * %(most)s) AS enough),
    fair AS (SELECT CASE WHEN free.many >= workers.many * %(most)s THEN %(most)s ELSE
        (SELECT ceil(count(*)::float / workers.many) - count(*) FILTER (WHERE shard = %(shard)s)
            FROM work WHERE trial BETWEEN %(first)s AND %(last)s AND NOT done) END AS many FROM free, workers)
    UPDATE work SET shard = %(shard)s WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM work WHERE trial BETWEEN %(first)s AND %(last)s AND shard IS NULL AND NOT done
        AND EXISTS (SELECT 1 FROM mine) ORDER BY trial
        LIMIT (SELECT greatest(0, least(%(most)s, many)) FROM fair) FOR UPDATE SKIP LOCKED
    )) RETURNING trial
"""
"""When trials become few, a worker takes no more than its fair share of the open ones, so that all workers have some.

Open trials are counted only if each worker could not take as many as this one. `ctid` spares a search for each trial.
"""
OPEN = "SELECT trial FROM work WHERE shard = %s AND NOT done AND trial BETWEEN %s AND %s"
TRIALS = """
    SELECT id, key, program, spec, attempt, again FROM work JOIN trials ON trials.id = work.trial
    WHERE trial = ANY(%s) ORDER BY id
"""
GOES_ON = "status = 'running' AND NOT cancel AND NOT EXISTS (SELECT 1 FROM shards WHERE run = runs.id AND stopped)"
"""Whether workers may work on a run. That of a head that was killed goes on."""
RUNS = f"""
    SELECT uid FROM runs WHERE {GOES_ON} AND EXISTS (
        SELECT 1 FROM work WHERE NOT done AND trial BETWEEN runs.id::bigint << 32 AND (runs.id::bigint + 1 << 32) - 1
    )
"""
LEFT = """
    SELECT EXISTS (SELECT 1 FROM work WHERE shard = number AND NOT done AND trial BETWEEN %s AND %s) FROM shards
    WHERE run = %s AND number = %s
"""


VACUUM = "VACUUM (ANALYZE, SKIP_LOCKED, TRUNCATE FALSE) work"
"""To make the table shorter would need a lock, for which it would wait."""
VACUUM_EVERY = 10_000
"""Deleted rows after which their space is freed. PostgreSQL does it once a minute; till then every look passes them."""


class Work:
    """The work of all runs in a database."""

    def __init__(self, database: Database, holder: Holder, connect: Connect) -> None:
        self._database = database
        self._holder = holder
        self._connect = connect
        self._deleted = 0

    @property
    def holder(self) -> str:
        """The id of this process among the holders."""
        return self._holder.id

    def bell(self, hear: str, heard: Callable[[], None]) -> Bell:
        """Listen on a channel; `heard` is called on a thread of its own."""
        return Bell(self._connect, hear, heard)

    # For the head of a run.

    @repeated
    def begin(self, record: RunRecord) -> Collection[int]:
        """Give all trials that an earlier session left to workers. Returns the open trials."""
        first, last = record.span
        with self._database.writing(record.number) as connection:
            run = connection.exec_driver_sql
            waves = run("SELECT count(*) FROM waves WHERE ended_at IS NULL AND id BETWEEN %s AND %s", (first, last))
            if waves.scalar_one():
                raise RunError(
                    f"run {record.title!r} has batches in flight, which only a process without workers collects: "
                    "resume it without --workers and --cluster"
                )
            run("UPDATE shards SET stopped = FALSE, problem = NULL WHERE run = %s", (record.number,))
            run("DELETE FROM work WHERE done AND trial BETWEEN %s AND %s", (first, last))
            counters = self._recounted(connection, record)
            number = run(
                "SELECT coalesce(max(number), 0) + 1 FROM shards WHERE run = %s", (record.number,)
            ).scalar_one()
            if run(ADD_LEFT_OVER, (number, first, last)).all():
                at_risk = Counters(flying=counters.flying, at_risk=counters.at_risk, counted=counters.counted)
                self._add_shard(connection, record, number, None, at_risk)
            counters.flying, counters.at_risk, counters.counted = 0, {}, {}
            self._set_counters(connection, record, counters)
            open_ = "SELECT trial FROM work WHERE NOT done AND trial BETWEEN %s AND %s"
            return set(run(open_, (first, last)).scalars())

    @repeated
    def shards(self, record: RunRecord) -> Sequence[Shard]:
        """The shards of a run."""
        with self._database.reading() as connection:
            return self._shards(connection, record)

    @repeated
    def ended(self, record: RunRecord, known: Sequence[int]) -> Sequence[TrialRow]:
        """The trials that have ended, except those that are known from earlier calls, which need not be kept longer."""
        with self._database.reading() as connection:
            if known:
                connection.exec_driver_sql("DELETE FROM work WHERE trial = ANY(%s) AND done", (list(known),))
                self._deleted += len(known)
            found = [trial_row(row) for row in connection.exec_driver_sql(ENDED, record.span)]
        if self._deleted >= VACUUM_EVERY:
            self._deleted = 0
            with suppress(StoreError), self._database.reading() as connection:  # the run goes on without
                connection.exec_driver_sql(VACUUM)
        return found

    @repeated
    def stop(self, record: RunRecord) -> None:
        """Tell the workers of a run to send nothing more."""
        with self._database.writing(record.number) as connection:
            connection.exec_driver_sql("UPDATE shards SET stopped = TRUE WHERE run = %s", (record.number,))

    @repeated
    def fold(self, record: RunRecord, *, ended: bool = False) -> Counters:
        """Add the counters of shards to the run, and remove these, except those whose holders still work on them.

        `ended`: the driver has returned, so trials that are open do not belong to the run.
        """
        first, last = record.span
        with self._database.writing(record.number) as connection:
            run = connection.exec_driver_sql
            run("SELECT 1 FROM shards WHERE run = %s ORDER BY number FOR UPDATE", (record.number,))
            shards = [shard for shard in self._shards(connection, record) if not shard.alive]
            numbers = [shard.number for shard in shards]
            if ended:
                left = "SELECT trial FROM work WHERE NOT done AND trial BETWEEN %s AND %s"
                run(f"UPDATE trials SET abandoned = TRUE WHERE id IN ({left})", (first, last))
            counters = self._recounted(connection, record)
            for shard in shards:
                counters = counters.with_shard(shard.counters)
            mine = "trial BETWEEN %s AND %s AND (shard IS NULL OR shard = ANY(%s))"
            run(f"DELETE FROM work WHERE {mine}", (first, last, numbers))
            run("DELETE FROM shards WHERE run = %s AND number = ANY(%s)", (record.number, numbers))
            run("UPDATE shards SET stopped = TRUE WHERE run = %s", (record.number,))
            self._set_counters(connection, record, counters)
        return counters

    def left_over(self, record: RunRecord) -> Sequence[Shard]:
        """What workers have left of a run whose head has ended. Raises `RunBusy` if some still work on it."""
        shards = self.shards(record)
        if any(shard.alive for shard in shards):
            raise RunBusy(
                f"run {record.title!r} has workers, which still work on it: stop them, or continue it with --workers"
            )
        return shards

    def _recounted(self, connection: sa.Connection, record: RunRecord) -> Counters:
        """The own counters of a run, with its trials counted again: those that ended while nobody counted them."""
        text = connection.exec_driver_sql("SELECT counters FROM runs WHERE id = %s", (record.number,)).scalar_one()
        counters = msgspec.json.decode(text, type=Counters)
        counted = connection.exec_driver_sql(COUNT, record.span).one()
        counters.planned, counters.usable, counters.missing = counted
        return counters

    def _set_counters(self, connection: sa.Connection, record: RunRecord, counters: Counters) -> None:
        text = msgspec.json.encode(counters).decode()
        connection.exec_driver_sql("UPDATE runs SET counters = %s WHERE id = %s", (text, record.number))

    def _shards(self, connection: sa.Connection, record: RunRecord) -> Sequence[Shard]:
        return [_shard(row) for row in connection.exec_driver_sql(SHARDS, (record.number,))]

    # For workers.

    @repeated
    def runs(self) -> Sequence[str]:
        """The ids of the runs that have work."""
        with self._database.reading() as connection:
            return connection.exec_driver_sql(RUNS).scalars().all()

    @repeated
    def take_shard(self, record: RunRecord, *, left: bool) -> tuple[int, Counters] | None:
        """Take a shard of a run: with `left`, one that its holder has left with open trials, or else a new one.

        Returns its number and its counters.
        """
        holder = self._holder
        holder.join()
        if left:
            with self._database.reading() as connection:
                if not self._left(connection, record):
                    return None
        with self._database.writing() as connection:
            holder.check(connection)
            goes_on = f"SELECT 1 FROM runs WHERE id = %s AND {GOES_ON}"
            if connection.exec_driver_sql(goes_on, (record.number,)).first() is None:
                return None
            if not left:
                highest = "SELECT coalesce(max(number), 0) FROM shards WHERE run = %s"
                number = connection.exec_driver_sql(highest, (record.number,)).scalar_one() + 1
                self._add_shard(connection, record, number, holder.id, Counters())
                return number, Counters()
            for shard in self._left(connection, record):
                if shard.holder is not None and not holder.remove_ended(connection, shard.holder):
                    continue
                take = "UPDATE shards SET holder = %s, problem = NULL WHERE run = %s AND number = %s RETURNING counters"
                # Its last commit may have been made a moment ago.
                taken = connection.exec_driver_sql(take, (holder.id, record.number, shard.number)).scalar_one()
                return shard.number, msgspec.json.decode(taken, type=Counters)
        return None

    def _left(self, connection: sa.Connection, record: RunRecord) -> Sequence[Shard]:
        """The shards that nobody works on, and that have open trials."""
        some = [shard for shard in self._shards(connection, record) if not shard.alive]
        run, span = connection.exec_driver_sql, record.span
        return [shard for shard in some if run(LEFT, (*span, record.number, shard.number)).scalar()]

    @repeated
    def take(self, record: RunRecord, shard: int, most: int, workers: int) -> Sequence[Task]:
        """Take more trials, at most so many. `workers`: how many there will be, if that is known."""
        first, last = record.span
        named = {"run": record.number, "shard": shard, "holder": self.holder, "most": most}
        with self._database.reading() as connection:
            found = connection.exec_driver_sql(TAKE, {**named, "first": first, "last": last, "workers": workers})
            return self._tasks(connection, list(found.scalars()))

    @repeated
    def tasks(self, trials: Iterable[int]) -> Sequence[Task]:
        """Trials of a shard."""
        with self._database.reading() as connection:
            return self._tasks(connection, list(trials))

    @repeated
    def look(self, record: RunRecord, shard: int, room: int) -> Look:
        """What a worker is to know of its shard. Raises `LeaseLost` if it does not hold it any more.

        `room`: how many trials it wants to have open.
        """
        with self._database.reading() as connection:
            said = connection.exec_driver_sql(
                "UPDATE shards SET room = %s FROM runs WHERE runs.id = run AND run = %s AND number = %s "
                "AND holder = %s RETURNING stopped OR runs.cancel AS stopped, options",
                (room, record.number, shard, self.holder),
            ).first()
            if said is None:
                raise self._holder.lost()
            open_ = set(connection.exec_driver_sql(OPEN, (shard, *record.span)).scalars())
            return Look(said.stopped, msgspec.json.decode(said.options), open_)

    @repeated
    def grant(self, record: RunRecord, shard: int, limits: Amounts, used: Amounts, needed: Amounts) -> Grant:
        """Take a part of the budget of a run: what was used, what is needed next, and a fair part of what is left."""
        with self._database.writing() as connection:
            run = connection.exec_driver_sql
            (text,) = run("SELECT counters FROM runs WHERE id = %s", (record.number,)).one()
            own = msgspec.json.decode(text, type=Counters)
            others, spent, workers = own.used, own.used + used, 1
            for row in run("SELECT * FROM shards WHERE run = %s", (record.number,)):
                counters = msgspec.json.decode(row.counters, type=Counters)
                if row.number != shard:
                    held = row.holder is not None
                    workers += held
                    granted = None if row.granted is None else msgspec.json.decode(row.granted, type=Amounts)
                    others += granted if held and granted is not None else counters.used
                    spent += counters.used
            granted, refused = part_of_budget(limits, others, used, needed, workers)
            update = "UPDATE shards SET granted = %s WHERE run = %s AND number = %s AND holder = %s"
            text = msgspec.json.encode(granted).decode()
            if not run(update, (text, record.number, shard, self.holder)).rowcount:
                raise self._holder.lost()
        pairs = list(zip(msgspec.structs.astuple(limits), msgspec.structs.astuple(granted), strict=True))
        elsewhere = Amounts(*[limit - part if limit >= 0 else 0 for limit, part in pairs])
        shares = zip(msgspec.structs.astuple(limits), msgspec.structs.astuple(spent), strict=True)
        left = min([1 - part / limit if limit else 0.0 for limit, part in shares if limit >= 0], default=1.0)
        used_up = part_of_budget(limits, spent, Amounts(), needed, 1)[1]
        return Grant(elsewhere, max(0.0, left) / workers, refused, used_up)

    @repeated
    def release(
        self,
        record: RunRecord,
        shard: int,
        *,
        counters: Counters | None = None,
        problem: str | None = None,
        ends_run: bool = False,
    ) -> None:
        """Let others have a shard. `problem`: why its holder does not go on, for the head."""
        text = None if counters is None else msgspec.json.encode(counters).decode()
        release = "UPDATE shards SET holder = NULL, room = 0, problem = %s, counters = coalesce(%s, counters)"
        mine = "WHERE run = %s AND number = %s AND holder = %s"
        with self._database.reading() as connection:
            if ends_run:
                connection.exec_driver_sql("UPDATE shards SET stopped = TRUE WHERE run = %s", (record.number,))
            connection.exec_driver_sql(f"{release} {mine}", (problem, text, record.number, shard, self.holder))

    def _add_shard(
        self, connection: sa.Connection, record: RunRecord, number: int, holder: str | None, counters: Counters
    ) -> None:
        connection.exec_driver_sql(
            "INSERT INTO shards VALUES (%s, %s, %s, %s, 0, FALSE, NULL, NULL)",
            (record.number, number, holder, msgspec.json.encode(counters).decode()),
        )

    def _tasks(self, connection: sa.Connection, trials: list[int]) -> Sequence[Task]:
        if not trials:
            return ()
        found = connection.exec_driver_sql(TRIALS, (trials,))
        return [Task(TrialRow(*row[:5]), row.again) for row in found]


def part_of_budget(
    limits: Amounts, others: Amounts, used: Amounts, needed: Amounts, workers: int
) -> tuple[Amounts, bool]:
    """How much a worker may use in all, and whether that is too little.

    One that needs nothing gets no more than it used. Where there is no limit, the amount means nothing.
    """
    if needed == Amounts():
        return used, False
    amounts = [msgspec.structs.astuple(each) for each in (limits, others, used, needed)]
    free = [limit - other - mine for limit, other, mine, _ in zip(*amounts, strict=True)]
    if any(limit >= 0 and more > left for limit, more, left in zip(amounts[0], amounts[3], free, strict=True)):
        return used, True
    parts = [max(more, left / (2 * workers)) for more, left in zip(amounts[3], free, strict=True)]
    return used + Amounts(ceil(min(parts[0], free[0])), ceil(min(parts[1], free[1])), min(parts[2], free[2])), False


def _shard(row: sa.Row[Any]) -> Shard:
    ended = row.process is None or row.expired or msgspec.json.decode(row.process, type=Process).has_ended()
    counters = msgspec.json.decode(row.counters, type=Counters)
    return Shard(row.number, row.holder, counters, row.room, row.problem, row.holder is not None and not ended)


RING_AFTER = 0.01
"""Seconds between two notifications of one process: while one is committed, others wait."""
LISTEN_AGAIN = 1.0


class Bell:
    """Tells other processes that there is news of a run, and is told by them.

    A lost message does no harm: who waits for one looks now and then anyway.
    """

    def __init__(self, connect: Connect, hear: str, heard: Callable[[], None]) -> None:
        self._connect = connect
        self._hear = hear
        self._heard = heard
        self._wanted: set[str] = set()
        self._ringing = threading.Condition()
        self._ending = False
        self._threads = [
            threading.Thread(target=self._ring_on, name="groundswell-bell", daemon=True),
            threading.Thread(target=self._listen, name="groundswell-listen", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def ring(self, channel: str) -> None:
        """Tell the processes that listen on a channel, soon."""
        with self._ringing:
            self._wanted.add(channel)
            self._ringing.notify()

    def close(self) -> None:
        """Send what is left, and listen no more."""
        with self._ringing:
            self._ending = True
            self._ringing.notify()
        for thread in self._threads:
            thread.join()

    def _ring_on(self) -> None:
        connection: psycopg.Connection[Any] | None = None
        while True:
            with self._ringing:
                while not (self._wanted or self._ending):
                    self._ringing.wait()
                channels, self._wanted = self._wanted, set()
                if self._ending and not channels:
                    break
            try:
                connection = connection or self._connect()
                for channel in channels:
                    connection.execute("SELECT pg_notify(%s, '')", (channel,))
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                connection = None
            time.sleep(RING_AFTER)
        if connection is not None:
            connection.close()

    def _listen(self) -> None:
        while not self._ending:
            with suppress(psycopg.Error), self._connect() as connection:
                connection.execute(f"LISTEN {self._hear}")
                while not self._ending:
                    for _ in connection.notifies(timeout=LISTEN_AGAIN / 4, stop_after=1):
                        self._heard()
            if not self._ending:
                time.sleep(LISTEN_AGAIN)
