"""Model servers that workers have started, by the account that they serve.

A server is listed as long as its worker confirms it. One whose worker has ended, or is silent, is not.
"""

from __future__ import annotations

from secrets import token_hex
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
        self._me = token_hex(8)

    @repeated
    def add(self, account: str, url: str) -> None:
        """List a server, or confirm that it is still there."""
        process = msgspec.json.encode(this_process()).decode()
        with self._database.writing() as connection:
            now = self._database.time(connection)
            connection.execute(sa.delete(servers).where(sa.or_(servers.c.at < now - SILENT, self._mine(account, url))))
            row = {"account": account, "url": url, "holder": self._me, "process": process, "at": now}
            connection.execute(sa.insert(servers).values(**row))

    @repeated
    def remove(self, account: str, url: str) -> None:
        """List a server no longer."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(servers).where(self._mine(account, url)))

    @repeated
    def of(self, account: str) -> list[Server]:
        """The servers of an account."""
        found = []
        with self._database.reading() as connection:
            now = self._database.time(connection)
            for row in connection.execute(sa.select(servers).where(servers.c.account == account)):
                process = msgspec.json.decode(row.process, type=Process)
                if abs(now - row.at) <= SILENT and not process.has_ended():
                    here = bool(process.machine) and process.machine == this_process().machine
                    found.append(Server(row.url, here))
        return found

    def _mine(self, account: str, url: str) -> sa.ColumnElement[bool]:
        """Servers on several machines may have the same address there, such as that of a loopback interface."""
        return sa.and_(servers.c.account == account, servers.c.url == url, servers.c.holder == self._me)
