"""However large a wave or its results are, only a little of them is in memory at any time."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from groundswell.engine.records import Intent, Receipt
from groundswell.program.request import Chat, Reply, user
from groundswell.transports.batch import BatchTransport
from tests.transports.batch_scene import KINDS, Scene

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

LINES, WIDE = 12_500, 8000
MEGABYTE = 1_000_000


def resident() -> int:
    """Bytes of memory that this process has now."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


class Bulk(BaseHTTPRequestHandler):
    """Takes any body without keeping it, and makes up results while it sends them."""

    protocol_version = "HTTP/1.1"
    intent: Intent
    taken: int

    def do_POST(self) -> None:
        left = int(self.headers["content-length"])
        while left:
            read = len(self.rfile.read(min(left, 1 << 16)))
            left -= read
            type(self).taken += read
        self.answer({"id": "x_1", "object": "file", "status": "validating", "processing_status": "in_progress"})

    def do_GET(self) -> None:
        if "/content" not in self.path and "/results" not in self.path:
            counts = {"total": LINES, "completed": LINES, "succeeded": LINES}
            ended = {"status": "completed", "processing_status": "ended", "output_file_id": "file-1"}
            self.answer({"id": "x_1", "request_counts": counts, **ended})
            return
        self.send_response(200)
        self.send_header("connection", "close")
        self.end_headers()
        for ask in self.intent.asks:
            self.wfile.write(self.line(self.intent.custom_id(ask)))
        self.close_connection = True

    def line(self, custom_id: str) -> bytes:
        message = {"content": [{"type": "text", "text": "x" * WIDE}], "stop_reason": "end_turn"}
        choice = {"message": {"content": "x" * WIDE}, "finish_reason": "stop"}
        body = {"choices": [choice], "usage": {}, "model": "m", "object": "chat.completion"}
        made = (
            {"response": {"status_code": 200, "body": body}}
            if "/content" in self.path
            else {"result": {"type": "succeeded", "message": message}}
        )
        return json.dumps({"custom_id": custom_id, **made}).encode() + b"\n"

    def answer(self, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def bulk(intent: Intent) -> Iterator[str]:
    """The address of a server for one wave."""
    Bulk.intent, Bulk.taken = intent, 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bulk)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_results_of_a_hundred_megabytes(kind: str) -> None:
    small, wave = (Scene(kind, "http://127.0.0.1:1").wave(lines) for lines in (100, LINES))

    async def use(transport: BatchTransport) -> tuple[int, int, int]:
        async for _ in transport.collect(small, Receipt({"batch": "x_1"})):
            pass  # a client takes some megabytes when it is first used
        Bulk.intent = wave
        before = most = resident()
        count = letters = 0
        async for settled in transport.collect(wave, Receipt({"batch": "x_1"})):
            count += 1
            assert isinstance(settled.settlement, Reply)
            letters += len(settled.settlement.text)
            if count % 500 == 0:
                most = max(most, resident())
        return count, letters, most - before

    with bulk(small) as url:
        count, letters, grown = Scene(kind, url).run(use)
    assert (count, letters) == (LINES, LINES * WIDE)
    assert grown < 20 * MEGABYTE


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_wave_of_a_hundred_megabytes(kind: str) -> None:
    request = Chat("m", (user("x" * WIDE),))
    wave = Scene(kind, "http://127.0.0.1:1").wave([request] * LINES)
    grown: list[int] = []
    stop = threading.Event()

    def watch(before: int) -> None:
        while not stop.wait(0.01):
            grown.append(resident() - before)

    async def use(transport: BatchTransport) -> Receipt:
        watching = threading.Thread(target=watch, args=(resident(),))
        watching.start()
        try:
            return await transport.dispatch(wave)
        finally:
            stop.set()
            watching.join()

    with bulk(wave) as url:
        receipt = Scene(kind, url).run(use)
    assert receipt.data["batch"] == "x_1"
    assert Bulk.taken > LINES * WIDE
    assert max(grown) < 20 * MEGABYTE
