"""A proxy before a PostgreSQL server that breaks connections at a COMMIT."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

When = Literal["before", "after", "late", "stale"]
"""The server never gets what was sent; its answer is lost; it gets it when the client has come back; at the end."""
SOCKET = ".s.PGSQL.5432"


class Cutter:
    """Listens on a Unix socket in a folder, and passes everything on until `cut` says otherwise."""

    def __init__(self, folder: Path, url: str) -> None:
        self._server = f"{parse_qs(urlsplit(url).query)['host'][0]}/{SOCKET}"
        self.url = f"{url.partition('?')[0]}?host={folder}"
        self.cuts = 0
        self._plans: list[tuple[When, bytes]] = []
        self._hold = False
        self._held: list[tuple[socket.socket, bytes]] = []
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, when: When, wanted: bytes = b"COMMIT") -> None:
        """Break the connection that sends this the next time.

        What is planned later begins when everything before it has happened.
        """
        with self._lock:
            self._plans.append((when, wanted))
            self._hold |= when == "stale"

    @property
    def left(self) -> int:
        """How many plans have not happened yet."""
        return len(self._plans)

    def close(self) -> None:
        self.deliver()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                if not self._hold:
                    self.deliver()
                threading.Thread(target=self._from_client, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(server, client), daemon=True).start()

    def _from_client(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                when = self._armed(data)
                if when is None:
                    server.sendall(data)
                    continue
                if when in ("late", "stale"):
                    self._held.append((server, data))
                    _end(client)
                    return
                _end(client)
                if when == "after":
                    server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                    while server.recv(1 << 16):
                        """The answer gets lost."""
                break
        _end(client)
        _end(server)

    def _armed(self, data: bytes) -> When | None:
        with self._lock:
            if not self._plans or self._plans[0][1] not in data:
                return None
            self.cuts += 1
            return self._plans.pop(0)[0]

    def deliver(self) -> None:
        """What was held up arrives."""
        while self._held:
            server, data = self._held.pop()
            with suppress(OSError):
                server.sendall(data)
                server.shutdown(socket.SHUT_WR)

    def _pass_on(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                client.sendall(data)
        _end(client)
        _end(server)


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
