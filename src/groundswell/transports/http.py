"""HTTP for the transports. The only file that knows the HTTP client.

It makes one attempt; the engine decides about retries. Redirects are not followed, because the key would be sent along.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import IO, NamedTuple, TypeVar
from urllib.parse import urlsplit

from pyreqwest.bytes import Bytes
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import (
    BodyDecodeError,
    DecodeError,
    DetailedPyreqwestError,
    PyreqwestError,
    RequestTimeoutError,
)
from pyreqwest.http import Url
from pyreqwest.proxy import ProxyBuilder
from pyreqwest.request import RequestBuilder
from pyreqwest.response import Response

from groundswell.errors import SettingsError
from groundswell.program.request import Fault, FaultKind
from groundswell.providers.accounts.account import Account

IDLE = timedelta(seconds=50)
"""Less than the minute after which many servers close idle connections."""
PROBE = timedelta(seconds=5)
PIECE = 256 * 1024
"""Bytes of a file that are in memory at once while it is uploaded."""
SLOWEST = 100_000
"""Slowest accepted upload speed in bytes per second. The time limit grows with the size of the file."""
LONGEST_DOWNLOAD = timedelta(hours=6)
"""Time limit of a whole download. Each chunk has the time limit of an answer."""
LARGEST_ANSWER = 64 * 1024 * 1024
"""Most bytes of an answer, or of a line of a file, after decompression: a few kilobytes may expand to gigabytes."""
CA_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name a file or directory of certificates to trust in addition to those of the system. The client
itself reads `SSL_CERT_FILE` and `SSL_CERT_DIR`.
"""
LARGEST_FILE = 16 * 1024 * 1024 * 1024
"""Most bytes of a file that is read line by line, after decompression."""

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")

T = TypeVar("T")
HeadersByKey = Callable[[str | None], Mapping[str, str]]
"""The headers of every request, by the key."""


class Answer(NamedTuple):
    """An answer of any status. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class FileBody(NamedTuple):
    """A file to upload, with the bytes before and after it in the request body."""

    file: IO[bytes]
    content_type: str
    before: bytes = b""
    after: bytes = b""

    @property
    def length(self) -> int:
        """The bytes of the whole body."""
        return len(self.before) + self.file.seek(0, 2) + len(self.after)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body in chunks."""
        yield self.before
        at = 0
        while self.file.seek(at) == at and (piece := self.file.read(PIECE)):
            at += len(piece)
            yield piece
        yield self.after


class NoAnswer(Exception):
    """No complete answer arrived; carries the fault, and whether anything had been sent."""

    def __init__(self, fault: Fault, *, sent: bool = True) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.sent = sent


class FileRefused(Exception):
    """The answer to a download was not the file."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.status}")
        self.answer = answer


class Http:
    """The connections of one account."""

    def __init__(
        self,
        account: Account,
        usual: HeadersByKey,
        *,
        largest_answer: int = LARGEST_ANSWER,
        largest_file: int = LARGEST_FILE,
    ) -> None:
        self._largest_answer = largest_answer
        self._largest_file = largest_file
        self._timeout = account.timeout
        self._connect_timeout = account.connect_timeout
        self._client = _client(account, usual)

    async def post(self, url: Url, body: bytes) -> Answer:
        """Make one attempt; raises `NoAnswer`."""
        try:
            async with self._client.post(url).body_bytes(body).build_streamed() as response:
                content = await response.body_reader.read(self._largest_answer + 1)
                return Answer(response.status, response.headers, self._checked(content))
        except PyreqwestError as error:
            raise self._no_answer(error) from None

    async def get(self, url: Url, seconds: float) -> Answer:
        """GET with a time limit; raises `NoAnswer`."""
        try:
            answer = await self._answer(self._client.get(url).timeout(timedelta(seconds=seconds)))
        except PyreqwestError as error:
            raise self._no_answer(error, seconds) from None
        raise_if_cancelled()
        return answer

    async def post_file(self, url: Url, enclosed: FileBody) -> Answer:
        """Upload a file with only a chunk of it in memory; raises `NoAnswer`."""
        length = enclosed.length
        seconds = self._timeout + length / SLOWEST
        sending = self._client.post(url).timeout(timedelta(seconds=seconds)).body_stream(enclosed.pieces())
        sending = sending.header("content-type", enclosed.content_type).header("content-length", str(length))
        try:
            return await self._answer(sending)
        except PyreqwestError as error:
            raise self._no_answer(error, seconds) from None

    async def lines(self, url: Url) -> AsyncGenerator[bytes, None]:
        """The lines of a file as they arrive. The last one may be truncated if the server does not send a length.

        Raises `FileRefused` if there is no such file, and `NoAnswer` if the download is interrupted.
        """
        # With a buffer, the received part of a short file would be lost when the download is interrupted.
        request = self._client.get(url).timeout(LONGEST_DOWNLOAD).streamed_read_buffer_limit(0).build_streamed()
        try:
            async with AsyncExitStack() as stack:
                response = await self._in_time(stack.enter_async_context(request))
                if response.status != 200:
                    body = await self._in_time(self._body(response))
                    raise FileRefused(Answer(response.status, response.headers, body))
                async for line in _split(self._pieces(response), self._largest_answer):
                    yield line
        except PyreqwestError as error:
            raise self._no_answer(error) from None

    async def _pieces(self, response: Response) -> AsyncIterator[bytes]:
        """The chunks of a body, each with its time limit."""
        size = 0
        while (piece := await self._in_time(response.body_reader.read_chunk())) is not None:
            raise_if_cancelled()
            size += len(piece)
            if size > self._largest_file:
                raise _too_large("the file", self._largest_file)
            yield piece.to_bytes()

    async def _answer(self, request: RequestBuilder) -> Answer:
        """Send a request and read its answer, up to the largest size."""
        async with request.build_streamed() as response:
            return Answer(response.status, response.headers, await self._body(response))

    async def _body(self, response: Response) -> bytes:
        return self._checked(await response.body_reader.read(self._largest_answer + 1))

    def _checked(self, body: Bytes | None) -> bytes:
        """The body of an answer, decompressed while it is read; raises `NoAnswer` if it is too large."""
        if body is None:
            return b""
        if len(body) > self._largest_answer:
            raise _too_large("the answer", self._largest_answer)
        return body.to_bytes()

    async def _in_time(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._timeout):
                return await work
        except TimeoutError:
            raise NoAnswer(Fault(FaultKind.TIMEOUT, f"no data was received for {self._timeout:g} s")) from None

    async def alive(self, url: str) -> bool:
        """Whether a server answers at all."""
        try:
            async with self._client.get(url).timeout(PROBE).streamed_read_buffer_limit(0).build_streamed() as response:
                status = response.status
        except PyreqwestError:
            return False
        raise_if_cancelled()
        return status < 500

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _no_answer(self, error: PyreqwestError, seconds: float | None = None) -> NoAnswer:
        """The error of a failed attempt. Without a connection nothing was sent."""
        said = _causes(error)
        connecting = any("(Connect)" in one for one in said)
        return NoAnswer(self._fault(error, said, connecting, seconds or self._timeout), sent=not connecting)

    def _fault(self, error: PyreqwestError, said: list[str], connecting: bool, seconds: float) -> Fault:
        if isinstance(error, RequestTimeoutError):
            if connecting:
                return Fault(FaultKind.CONNECTION, f"could not connect within {self._connect_timeout:g} s")
            return Fault(FaultKind.TIMEOUT, f"no answer within {seconds:g} s")
        why = said[-1] if said else type(error).__name__
        if isinstance(error, BodyDecodeError):
            return Fault(FaultKind.CONNECTION, f"the answer was interrupted or could not be decoded: {why}")
        if isinstance(error, DecodeError):
            return Fault(FaultKind.GARBLED, f"the answer is not HTTP: {why}")
        return Fault(FaultKind.CONNECTION, f"{'could not connect' if connecting else 'the connection was lost'}: {why}")


def raise_if_cancelled() -> None:
    """Raise if the current task was cancelled.

    The client drops a cancellation if an answer arrives at the same moment, and a polling loop would then never end.
    The answer to a creation request is more important than the cancellation, so only the next poll raises.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def parse_url(url: str) -> Url:
    """Parse a URL once instead of for every request."""
    return Url(url)


__all__ = ["Answer", "FileBody", "FileRefused", "Http", "NoAnswer", "Url", "parse_url", "raise_if_cancelled"]


def _too_large(what: str, most: int) -> NoAnswer:
    return NoAnswer(Fault(FaultKind.GARBLED, f"{what} is too large: more than {most:,} bytes when decompressed"))


async def _split(pieces: AsyncIterator[bytes], longest: int = LARGEST_ANSWER) -> AsyncIterator[bytes]:
    """Split chunks into lines. Only the incomplete last line is kept in memory."""
    parts: list[bytes] = []
    held = 0
    async for piece in pieces:
        first, *others = piece.split(b"\n")
        parts.append(first)
        held += len(first)
        if held > longest:
            raise _too_large("a line of the file", longest)
        if others:
            yield b"".join(parts)
            for line in others[:-1]:
                yield line
            parts, held = [others[-1]], len(others[-1])
    if held:
        yield b"".join(parts)


def _causes(error: PyreqwestError) -> list[str]:
    """The causes of an error, without those that contain the URL, which may hold credentials."""
    details = error.details if isinstance(error, DetailedPyreqwestError) else None
    causes = (details["causes"] if details else None) or []
    return [one["message"] for one in causes if "://" not in one["message"]]


def _client(account: Account, usual: HeadersByKey) -> Client:
    """A client with the settings of an account. No secret is in a local variable, since tracebacks may show those."""
    builder = (
        ClientBuilder()
        # With one thread, all requests would wait while that thread waits for the interpreter lock.
        .runtime_multithreaded(True)
        .user_agent("groundswell")
        .timeout(timedelta(seconds=account.timeout))
        .connect_timeout(timedelta(seconds=account.connect_timeout))
        .pool_idle_timeout(IDLE)
        .follow_redirects(False)
        .referer(False)
    )
    if any(url.startswith("https://") for url in account.endpoints):
        builder = _with_ca_bundle(builder, account)
    try:
        builder = builder.default_headers(_headers(account, usual))
        if account.proxy is not None:
            builder = builder.proxy(ProxyBuilder.all(account.proxy.reveal()))
        elif all(_on_this_machine(url) for url in account.endpoints):  # also if workers start its servers
            builder = builder.no_proxy()
        return builder.build()
    except (ValueError, PyreqwestError) as error:
        problem = type(error).__name__
    raise SettingsError(
        f"account {account.name}: invalid proxy or headers ({problem}): "
        "a proxy is written http://host:port, and header values are plain text"
    )


def _with_ca_bundle(builder: ClientBuilder, account: Account) -> ClientBuilder:
    """Trust the certificates that the environment names, for instance for a company proxy."""
    named = next((name for name in CA_BUNDLES if os.environ.get(name)), None)
    if named is None:
        return builder
    path = Path(os.environ[named])
    try:
        files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
        texts = [file.read_text("latin-1") for file in files]
        found = [one.encode("latin-1") for text in texts for one in _CERTIFICATE.findall(text)]
        _trusting(ClientBuilder(), found).build()  # invalid certificates raise only here
    except (OSError, PyreqwestError) as error:
        problem = error.strerror if isinstance(error, OSError) else "a certificate in it is invalid"
    else:
        if found:
            return _trusting(builder, found)
        problem = "it contains no certificate"
    raise SettingsError(
        f"account {account.name}: {named} names {path}, which cannot be used: {problem}. "
        f"Set {named} to a file of certificates in PEM form, or unset it"
    )


def _trusting(builder: ClientBuilder, certificates: Sequence[bytes]) -> ClientBuilder:
    for certificate in certificates:
        builder = builder.add_root_certificate_pem(certificate)
    return builder


def _on_this_machine(url: str) -> bool:
    """Whether an address is on this machine. A proxy from the environment is not used for it."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _headers(account: Account, usual: HeadersByKey) -> dict[str, str]:
    said = {name: value.reveal() for name, value in account.headers.items()}
    return {**usual(None if account.key is None else account.key.reveal()), **said}
