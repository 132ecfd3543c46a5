"""A tiny HTTP server that keeps the webhooks it is sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue
from typing import NamedTuple


class Posted(NamedTuple):
    """One webhook as it came; header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


class Listener:
    """Where it listens, and what came."""

    def __init__(self, port: int, posted: Queue[Posted]) -> None:
        self.url = f"http://127.0.0.1:{port}/hooks?from=emulator"
        self._posted = posted

    def next(self) -> Posted:
        """The next webhook, waiting for it if need be."""
        return self._posted.get(timeout=10)


@contextmanager
def listening(status: bytes = b"200 OK") -> Iterator[Listener]:
    """A listener that answers every webhook with one status line while the block runs."""
    posted: Queue[Posted] = Queue()

    class Keeper(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            posted.put(Posted(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.wfile.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

        def log_message(self, *about: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Keeper) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield Listener(server.server_port, posted)
        finally:
            server.shutdown()
            thread.join()
