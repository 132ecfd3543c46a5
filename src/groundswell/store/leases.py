"""Who works on a run, in a database that several machines share.

A process that uses such a store is a holder. Its row has an epoch and an expiry, which every commit and a heartbeat
move on. A run is locked by a lease that names its holder. If a holder has expired, or is known to have ended, another
process may remove its row and take its runs over. Every commit updates the row of its holder first, so that a process
that was paused meanwhile cannot write any more. A holder that lost its connection increases its epoch: a commit that is
still under way on the old connection then fails, instead of being made after it was repeated.

All times are those of the database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex
from typing import Any

import msgspec
import psycopg
import sqlalchemy as sa

from groundswell.engine.records import RunRecord
from groundswell.errors import LeaseLost, RunBusy, StoreError
from groundswell.store.database import Database
from groundswell.store.process import Process, this_process
from groundswell.store.schema import holders, leases

SECONDS = 30.0
"""How long a process may be silent before others may take its runs over."""
BEATS = 3
"""Heartbeats in that time."""
AGAIN = 0.5
"""Seconds until a heartbeat is tried again that failed."""
SERVER_TIME = "extract(epoch FROM clock_timestamp())"
RENEW = f"UPDATE holders SET beat_at = {SERVER_TIME}, expires_at = {SERVER_TIME} + %s"
BEAT = f"{RENEW} WHERE id = %s"
COMMIT = f"WITH held AS ({RENEW}, commits = %s WHERE id = %s AND epoch = %s RETURNING id) SELECT 1 / count(*) FROM held"
"""Fails with a division by zero if the row has gone: the rest of the transaction is sent without waiting for this."""
JOIN = (
    f"INSERT INTO holders VALUES (%s, 0, 0, {SERVER_TIME}, {SERVER_TIME} + %s, %s) "
    f"ON CONFLICT (id) DO UPDATE SET beat_at = {SERVER_TIME}"
)
"""May be repeated if its answer is lost."""
NAME = "SELECT set_config('application_name', 'groundswell ' || %s, false)"
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'groundswell ' || %s "
    "AND pid <> pg_backend_pid() AND datname = current_database() AND usename = current_user"
)
"""Ends connections on which a holder may have sent half of a commit: it would keep its row locked."""
ENDS = "greatest(expires_at, extract(epoch FROM pg_postmaster_start_time()) + expires_at - beat_at)"
"""When a lease ends. After a restart of the server, every holder has the whole time to come back."""
TERMINATE_EXPIRED = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN holders ON application_name = 'groundswell ' || id "
    f"WHERE state <> 'idle' AND datname = current_database() AND usename = current_user AND {ENDS} < {SERVER_TIME}"
)
"""The same for all holders that are silent. What they have not committed, they find out when they go on."""
RECONNECT = "UPDATE holders SET epoch = epoch + 1 WHERE id = %s RETURNING epoch, commits"
CLEAN_UP = (
    f"DELETE FROM commits WHERE abs(at) < {SERVER_TIME} - 86400",
    f"DELETE FROM holders WHERE expires_at < {SERVER_TIME} - 86400 AND id NOT IN (SELECT holder FROM leases)",
)

server_time = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Float)
"""`SERVER_TIME` for SQLAlchemy."""
_ends = sa.literal_column(ENDS, sa.Float)


class Holder:
    """This process as a holder, with its heartbeat. It joins when it first locks a run or commits."""

    def __init__(
        self, database: Database, connect: Callable[[], psycopg.Connection[Any]], seconds: float = SECONDS
    ) -> None:
        self._database = database
        self._connect = connect
        self.seconds = seconds
        self.id = token_hex(8)
        self.epoch = 0
        self.runs: set[int] = set()
        """The runs that this process has locked."""
        self._had: set[int] = set()
        self._joining = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def join(self) -> None:
        """Write the row of this process, and begin to renew it."""
        with self._joining:
            if self._thread is not None:
                return
            process = msgspec.json.encode(this_process()).decode()
            with self._database.translating(), self._connect() as connection:
                for statement in CLEAN_UP:
                    connection.execute(statement)
                connection.execute(JOIN, (self.id, self.seconds, process))
            self._thread = threading.Thread(target=self._beat, name="groundswell-lease", daemon=True)
            self._thread.start()

    def must_hold(self, run: int | None) -> bool:
        """Whether a change of a run needs this holder to be there: that of a run which it has, or had, locked."""
        return run in self._had

    def lock(self, run: RunRecord) -> Lease:
        """Take a run, from a holder that has ended if need be; raises `RunBusy` if another one has it."""
        self.join()
        with self._database.writing() as connection:
            self.check(connection)
            found = connection.execute(_holder_of(run)).first()
            if found is not None and not (found.holder == self.id and run.number not in self.runs):
                self._take_over(connection, run, found)
            connection.execute(sa.delete(leases).where(leases.c.run == run.number))
            connection.execute(sa.insert(leases).values(run=run.number, holder=self.id, taken_at=server_time))
        self.runs.add(run.number)
        self._had.add(run.number)
        return Lease(self, run.number)

    def _take_over(self, connection: sa.Connection, run: RunRecord, found: sa.Row[Any]) -> None:
        """Remove the holder of a run with all its leases, unless it is alive."""
        if found.process is not None and not self._remove(connection, found):
            process = msgspec.json.decode(found.process, type=Process)
            raise RunBusy(
                f"run {run.title!r} is open in {process}: wait for it, or stop it with "
                f"`groundswell runs cancel {run.id}`. If it has ended, its lease runs out in "
                f"{max(0.0, found.left):.0f} seconds"
            )
        connection.execute(sa.delete(leases).where(leases.c.holder == found.holder))

    def _remove(self, connection: sa.Connection, found: sa.Row[*tuple[Any, ...]]) -> bool:
        """Remove a holder that has ended or expired; returns whether it had."""
        ended = msgspec.json.decode(found.process, type=Process).has_ended()
        if found.holder == self.id or not (ended or found.left < 0):
            return False
        connection.exec_driver_sql(TERMINATE, (found.holder,))
        gone = sa.delete(holders).where(holders.c.id == found.holder)
        # This waits for a commit that is under way, which moves the expiry on.
        removed = connection.execute(gone if ended else gone.where(_ends < server_time))
        return removed.rowcount > 0

    def remove_ended(self, connection: sa.Connection, holder: str) -> bool:
        """Remove another holder if it has ended or expired; returns whether it is not there any more."""
        columns = holders.c.id.label("holder"), holders.c.process, (_ends - server_time).label("left")
        found = connection.execute(sa.select(*columns).where(holders.c.id == holder)).first()
        return found is None or self._remove(connection, found)

    def is_held(self, connection: sa.Connection, run: RunRecord) -> bool:
        """Whether a process that is alive works on a run."""
        found = connection.execute(_holder_of(run)).first()
        if found is None or found.process is None or found.left < 0:
            return False
        return not msgspec.json.decode(found.process, type=Process).has_ended()

    def check(self, connection: sa.Connection) -> None:
        """Raise `LeaseLost` if another process has removed this holder. It cannot until the transaction ends."""
        mine = sa.select(holders.c.id).where(holders.c.id == self.id).with_for_update(read=True, key_share=True)
        if connection.execute(mine).first() is None:
            raise self.lost()

    def lost(self) -> LeaseLost:
        """The error of a process that has lost its runs."""
        return LeaseLost(
            f"this process was paused or cut off for more than {self.seconds:.0f} seconds, and another one has taken "
            "over a run of it. Nothing was lost; what this process has not stored is requested again by the other one. "
            "End this process, and start it again if you need it"
        )

    def release(self, run: int) -> None:
        """Let others have a run. If that cannot be stored, this process can take it again, and others when it ends."""
        mine = sa.delete(leases).where(leases.c.run == run, leases.c.holder == self.id)
        try:
            with self._database.writing(run) as connection:
                connection.execute(mine)
        except StoreError:
            pass
        finally:
            self.runs.discard(run)

    def close(self) -> None:
        """End the heartbeat, and remove this holder."""
        if self._thread is None:
            return
        self._ending.set()
        self._thread.join()
        with suppress(psycopg.Error), self._connect() as connection:  # else it runs out
            connection.execute("DELETE FROM leases WHERE holder = %s", (self.id,))
            connection.execute("DELETE FROM holders WHERE id = %s", (self.id,))

    def _beat(self) -> None:
        """The thread. A connection that breaks is opened again at the next beat."""
        connection: psycopg.Connection[Any] | None = None
        usual = wait = self.seconds / BEATS
        while not self._ending.wait(wait):
            try:
                connection = connection or self._connect()
                connection.execute(BEAT, (self.seconds, self.id))
                connection.execute(TERMINATE_EXPIRED)
                wait = usual
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                connection, wait = None, min(usual, AGAIN)
        if connection is not None:
            connection.close()


class Lease:
    """A run that this process has locked."""

    def __init__(self, holder: Holder, run: int) -> None:
        self._holder = holder
        self._run = run

    def release(self) -> None:
        """Let others have the run."""
        self._holder.release(self._run)


def _holder_of(run: RunRecord) -> sa.Select[Any]:
    """The lease of a run: its holder, which process that is, and the seconds until it expires."""
    columns = leases.c.holder, holders.c.process, (_ends - server_time).label("left")
    joined = leases.outerjoin(holders, holders.c.id == leases.c.holder)
    return sa.select(*columns).select_from(joined).where(leases.c.run == run.number)
