"""How the processes that use a store share the limits of an account.

Each of them has a row with the number of requests that it wants to have in flight, and the number that it may. Whoever
asks gets its fair share by what all want, but no more than the others leave, and leaves one slot to each that has none.
Who has too much gives it up when it asks again, as the requests that are in flight end. So the sum never exceeds the
limit of the account. The row of a process that has ended, or is silent for some time, does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from groundswell.errors import StoreError
from groundswell.store.database import Database, repeated
from groundswell.store.process import Process, this_process
from groundswell.store.schema import shares

SILENT = 30.0
"""Seconds after which the share of a process that does not ask is free; also one whose clock is wrong by that much."""
RENEWED = 10.0
"""Seconds after which a row that has not changed is written again."""
CLOSE = 1.25
"""Factor by which what a process wants must change before it is written again."""


class Share(NamedTuple):
    """What a process wants, and what it has."""

    wants: int
    slots: int


def fair_share(wants: int, most: int, others: Sequence[Share]) -> int:
    """How many slots a process may use."""
    if not others:
        return most
    if not wants:
        return 0
    free = most - sum(other.slots for other in others)
    fair = ceil(most * wants / (wants + sum(other.wants for other in others)))
    waiting = sum(other.wants > 0 and other.slots == 0 for other in others)
    return max(0, min(fair, max(1, most - waiting), free))


class Shares:
    """The shares of this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._me = token_hex(8)
        self._process = msgspec.json.encode(this_process()).decode()
        self._joined = False

    @repeated
    def take(self, limiter: str, wants: int, using: int, most: int) -> int:
        """Take a share of the slots of an account, `most` in all; returns how many may be used."""
        with self._database.reading() as connection:
            mine, others, _, now = self._look(connection, limiter)
        slots = fair_share(wants, most, others)
        if mine is not None and mine.slots == max(slots, using) and now - mine.at < RENEWED:
            same = not others or mine.wants / CLOSE <= wants <= mine.wants * CLOSE
            if same:
                return slots
        with self._database.writing() as connection:
            mine, others, gone, now = self._look(connection, limiter)
            slots = fair_share(wants, most, others)
            connection.execute(
                sa.delete(shares).where(shares.c.limiter == limiter, shares.c.holder.in_([*gone, self._me]))
            )
            connection.execute(
                sa.insert(shares).values(
                    limiter=limiter,
                    holder=self._me,
                    process=self._process,
                    wants=wants,
                    slots=max(slots, using),
                    at=now,
                )
            )
        self._joined = True
        return slots

    def leave(self) -> None:
        """Give all shares back. If that fails, others take them after a while."""
        if self._joined:
            self._joined = False
            try:
                with self._database.writing() as connection:
                    connection.execute(sa.delete(shares).where(shares.c.holder == self._me))
            except StoreError:
                return

    def _look(
        self, connection: sa.Connection, limiter: str
    ) -> tuple[sa.Row[Any] | None, Sequence[Share], Sequence[str], float]:
        """The row of this process, the shares of others, the holders that have ended, and the time."""
        mine, others, gone = None, [], []
        now = self._database.time(connection)
        for row in connection.execute(sa.select(shares).where(shares.c.limiter == limiter)):
            if row.holder == self._me:
                mine = row
            elif abs(now - row.at) > SILENT or msgspec.json.decode(row.process, type=Process).has_ended():
                gone.append(row.holder)
            else:
                others.append(Share(row.wants, row.slots))
        return mine, others, gone, now
