"""An HTTP/1.1 server that can delay, truncate or drop an answer.

An application is a function from a request to an answer, or to an awaitable of one. Answers that are ready need no
task: a delay is a timer. The requests of one connection are answered in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import NamedTuple, cast
from urllib.parse import parse_qsl, unquote

import httptools
import msgspec

MAX_BODY = 600 * 1024 * 1024
MAX_HEAD = 256 * 1024
MOST_WAITING = 100
LARGE = 64 * 1024
JSON = b"application/json"
Headers = Iterable[tuple[bytes, bytes]]


class HttpRequest(NamedTuple):
    """A request; header names are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    version: str = "1.1"


class Answer(NamedTuple):
    """An answer, and how to send it.

    `cut` closes the connection after this many bytes of the body; with `chunks` the body is a stream. `ended` is called
    with whether the whole answer was sent: it was not if the client had disconnected.
    """

    status: int = 200
    body: bytes = b""
    content_type: bytes = JSON
    headers: Headers = ()
    delay: float = 0.0
    cut: int | None = None
    chunks: AsyncIterator[bytes] | None = None
    ended: Callable[[bool], None] | None = None


class Silence(NamedTuple):
    """No answer: the connection is closed, at once or never."""

    hang: bool = False


_log = logging.getLogger(__name__)
Application = Callable[[HttpRequest], "Answer | Silence | Awaitable[Answer | Silence]"]

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


def _head(answer: Answer, length: int | None, *, keep: bool, chunked: bool = False) -> bytes:
    line = _STATUS_LINES.get(answer.status) or b"HTTP/1.1 %d Other\r\n" % answer.status
    parts = [line, b"content-type: ", answer.content_type]
    if length is not None:
        parts.append(b"\r\ncontent-length: %d" % length)
    elif chunked:
        parts.append(b"\r\ntransfer-encoding: chunked")
    for name, value in answer.headers:
        parts += (b"\r\n", name, b": ", value)
    parts.append(b"\r\n\r\n" if keep else b"\r\nconnection: close\r\n\r\n")
    return b"".join(parts)


def _target(url: bytes) -> bytes:
    """The path and query of a URL. Clients that use a proxy send the whole URL."""
    if url.startswith(b"/"):
        return url
    _, scheme, rest = url.partition(b"://")
    return b"/" + rest.partition(b"/")[2] if scheme else url


def _error(status: int, message: str, kind: str) -> Answer:
    return Answer(status, msgspec.json.encode({"error": {"message": message, "type": kind}}))


def _broken(request: HttpRequest) -> Answer:
    """The answer if the application raised; the log has the exception."""
    _log.exception("%s %s could not be answered", request.method, request.path)
    return _error(500, "Internal error of the emulator; see its log.", "emulator_error")


class Waiting(NamedTuple):
    """A request that waits for its turn; an invalid one already has its answer."""

    request: HttpRequest
    keep: bool
    answer: Answer | None = None


UNREADABLE = HttpRequest("", "", {}, {}, b"")


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, application: Application, connections: set[Connection]) -> None:
        self._application = application
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Waiting] = deque()
        self._busy = False
        self._ended: Callable[[bool], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._working: asyncio.Task[None] | None = None
        self._streaming: asyncio.Task[None] | None = None
        self._lost = self._paused = False
        self._refused = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = self._head_size = 0

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports do not inherit from asyncio's
        self._connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Requests in progress are finished, as a provider would; only their answers are dropped."""
        self._lost = True
        if self._working is None:
            self._connections.discard(self)
        self._waiting.clear()
        self._writable.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._streaming is not None:
            self._streaming.cancel()
        self._finish(sent=False)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(400, f"this is not HTTP/1.1: {error}")
        if len(self._waiting) > MOST_WAITING and not self._paused:
            self._paused = True
            self._transport.pause_reading()  # until _next has handled them

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # Called by the parser.

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._count_head(len(name) + len(value))

    def _count_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > MAX_HEAD:
            self._refuse(431, f"the head is larger than {MAX_HEAD} bytes")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > MAX_BODY:
            self._refuse(413, f"the body is larger than {MAX_BODY} bytes")
        elif not self._refused:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._refused or self._parser.should_upgrade():
            return  # see _refuse, and _decline
        path, _, query = _target(self._url).decode("latin-1").partition("?")
        request = HttpRequest(
            self._parser.get_method().decode(),
            unquote(path) if "%" in path else path,
            dict(parse_qsl(query)) if query else {},
            self._headers,
            self._body[0] if len(self._body) == 1 else b"".join(self._body),
            self._parser.get_http_version(),
        )
        self._waiting.append(Waiting(request, self._parser.should_keep_alive()))
        self._begin()
        if not self._busy:
            self._next()

    # Our own actions.

    def _decline(self, rest: bytes) -> None:
        """Continue with HTTP/1.1 if a client offers another protocol, as clients that prefer HTTP/2 do.

        The parser would treat the rest as that other protocol, so it reads the head again without the offer.
        """
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._refuse(400, "this server is not a proxy")
            return
        kept = {name: value for name, value in self._headers.items() if name not in ("upgrade", "connection")}
        lines = [f"{name}: {value}\r\n".encode("latin-1") for name, value in kept.items()]
        head = b"".join([method, b" ", self._url, b" HTTP/1.1\r\n", *lines, b"\r\n"])
        self._parser = httptools.HttpRequestParser(self)
        self._begin()
        self.data_received(head + rest)

    def _next(self) -> None:
        """Start the next request of this connection. Each starts when the one before has ended."""
        while self._waiting and not self._busy and not self._transport.is_closing():
            self._busy = True
            request, keep, refusal = self._waiting.popleft()
            try:
                answer = refusal or self._application(request)
            except Exception:  # noqa: BLE001  # the outer edge: a client must not wait for an answer that never comes
                answer = _broken(request)
            if isinstance(answer, Answer | Silence) and self._writable.is_set():
                self._give(answer, request, keep)
            else:
                self._working = asyncio.ensure_future(self._wait_for(answer, request, keep))
        if self._paused and not self._waiting and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    async def _wait_for(
        self, answer: Answer | Silence | Awaitable[Answer | Silence], request: HttpRequest, keep: bool
    ) -> None:
        """Wait for an answer, and for a client that is slow to read earlier ones."""
        try:
            given = answer if isinstance(answer, Answer | Silence) else await answer
        except Exception:  # noqa: BLE001  # the same edge
            given = _broken(request)
        await self._writable.wait()
        self._working = None
        if not self._lost:
            self._give(given, request, keep)
        else:
            self._connections.discard(self)
            if isinstance(given, Answer) and given.ended is not None:
                given.ended(False)
        self._next()

    def _give(self, answer: Answer | Silence, request: HttpRequest, keep: bool) -> None:
        if isinstance(answer, Silence):
            if not answer.hang:
                self._transport.abort()
            return
        self._ended = answer.ended
        if answer.delay > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(answer.delay, self._send_late, answer, request, keep)
        else:
            self._send(answer, request, keep)

    def _send_late(self, answer: Answer, request: HttpRequest, keep: bool) -> None:
        self._timer = None
        self._send(answer, request, keep)
        self._next()

    def _send(self, answer: Answer, request: HttpRequest, keep: bool) -> None:
        if answer.chunks is not None and request.method != "HEAD":
            self._streaming = asyncio.ensure_future(self._stream(answer, answer.chunks, request, keep))
            return
        keep = keep and answer.cut is None
        head = _head(answer, len(answer.body), keep=keep)
        body = b"" if request.method == "HEAD" else answer.body[: answer.cut]
        if len(body) < LARGE:
            self._transport.write(head + body)
        else:  # results of hundreds of megabytes are not copied just to add a head
            self._transport.write(head)
            self._transport.write(body)
        self._end(keep)

    async def _stream(self, answer: Answer, chunks: AsyncIterator[bytes], request: HttpRequest, keep: bool) -> None:
        chunked = request.version != "1.0"
        keep = keep and chunked and answer.cut is None
        self._transport.write(_head(answer, None, keep=keep, chunked=chunked))
        sent = 0
        async for chunk in chunks:
            await self._writable.wait()
            if answer.cut is not None and sent + len(chunk) > answer.cut:
                break
            sent += len(chunk)
            self._transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)
        else:
            if chunked and answer.cut is None:
                self._transport.write(b"0\r\n\r\n")
        self._streaming = None
        self._end(keep)
        self._next()

    def _end(self, keep: bool) -> None:
        self._finish(sent=True)
        self._busy = False
        if not keep:
            self._transport.close()

    def _finish(self, *, sent: bool) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(sent)

    def _refuse(self, status: int, message: str) -> None:
        """Answer that this is not a valid request, after all pending answers, and stop reading."""
        if self._refused:
            return
        self._refused = True
        self._waiting.append(Waiting(UNREADABLE, False, _error(status, message, "invalid_request_error")))
        if not self._busy:
            self._next()

    def close(self) -> None:
        """Close the connection, whatever its state."""
        if self._working is not None:
            self._working.cancel()
        self._transport.abort()


class HttpServer:
    """Listens on one address until it is closed."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """The number of connections that are open or still have requests in progress."""
        return len(self._connections)

    async def listen(self, host: str, port: int) -> int:
        """Start accepting connections; returns the port, which is chosen if it is 0."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._application, self._connections), host, port, backlog=4096
        )
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def close(self) -> None:
        """Stop listening and close all connections."""
        assert self._server is not None
        self._server.close()
        for _ in range(3):  # some may have been accepted but not yet created
            for connection in tuple(self._connections):
                connection.close()
            await asyncio.sleep(0)
        await self._server.wait_closed()
