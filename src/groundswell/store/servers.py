"""Model servers that workers have started, by the account that they serve.

A server is listed as long as its worker confirms it. One whose worker has ended, or is silent, is not.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from groundswell.store.database import Database, repeated
from groundswell.store.process import Process, this_process
from groundswell.store.schema import servers
from groundswell.store.shares import SILENT


class Server(NamedTuple):
    """The address of a server as its worker gave it, and whether that is on this machine."""

    url: str
    here: bool


class ModelServers:
    """The servers in a store. All methods block."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @repeated
    def add(self, account: str, url: str) -> None:
        """List a server, or confirm that it is still there."""
        process = msgspec.json.encode(this_process()).decode()
        with self._database.writing() as connection:
            now = self._database.time(connection)
            old = sa.or_(servers.c.at < now - SILENT, sa.and_(servers.c.account == account, servers.c.url == url))
            connection.execute(sa.delete(servers).where(old))
            connection.execute(sa.insert(servers).values(account=account, url=url, process=process, at=now))

    @repeated
    def remove(self, account: str, url: str) -> None:
        """List a server no longer."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(servers).where(servers.c.account == account, servers.c.url == url))

    @repeated
    def of(self, account: str) -> list[Server]:
        """The servers of an account."""
        with self._database.reading() as connection:
            now = self._database.time(connection)
            rows = connection.execute(sa.select(servers).where(servers.c.account == account)).all()
        found = []
        for row in rows:
            process = msgspec.json.decode(row.process, type=Process)
            if abs(now - row.at) <= SILENT and not process.has_ended():
                found.append(Server(row.url, process.machine == this_process().machine))
        return found
