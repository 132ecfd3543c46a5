"""A little HTTP server that answers with the bytes it is told to, and keeps what it was sent."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Got(NamedTuple):
    """One request as it came; header names are in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


Answering = Callable[[Got], bytes | None]
"""The bytes of an answer, or None for none at all. After an answer that ends in CUT the connection is closed."""
CUT = b"<cut>"


class Little:
    """Where it listens, what came, and over how many connections. `closed` is set when a client has gone."""

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.got: list[Got] = []
        self.connections = 0
        self.came = threading.Event()
        self.gone = threading.Event()
        self.over = threading.Event()
        self.port = 0
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def talk(self, connection: socket.socket) -> None:
        """Answer what comes over one connection, until it ends."""
        self.connections += 1
        with connection, connection.makefile("rb") as lines:
            while (line := lines.readline().decode("latin-1").strip()) and not self.over.is_set():
                headers: dict[str, str] = {}
                while head := lines.readline().decode("latin-1").strip():
                    name, _, value = head.partition(":")
                    headers[name.lower()] = value.strip()
                got = Got(line, headers, lines.read(int(headers.get("content-length", "0"))))
                self.got.append(got)
                answer = self.answering(got)
                self.came.set()
                if answer is None:
                    lines.read(1)  # until the client goes
                    break
                connection.sendall(answer.removesuffix(CUT))
                if answer.endswith(CUT):
                    break
        self.gone.set()


def answer(body: bytes = b"{}", status: str = "200 OK", **headers: str) -> bytes:
    """An answer with a body of that length."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {status}", f"content-length: {len(body)}", *lines])
    return head.encode() + b"\r\n\r\n" + body


@contextmanager
def serving(answering: Answering, tls: ssl.SSLContext | None = None) -> Iterator[Little]:
    """A server while the block runs, on threads of its own."""
    little = Little(answering)
    little.scheme = "http" if tls is None else "https"

    class Talk(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                little.talk(self.request if tls is None else tls.wrap_socket(self.request, server_side=True))
            except OSError:
                little.gone.set()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True
        request_queue_size = 256

    with Server(("127.0.0.1", 0), Talk) as server:
        little.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield little
        finally:
            little.over.set()
            server.shutdown()
            thread.join()


@contextmanager
def closed_port() -> Iterator[int]:
    """A port on which nobody listens, and which nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
