"""Anthropic's batches: requests are validated one by one, and results appear when all have ended."""

from __future__ import annotations

import re
from typing import Any

from groundswell.emulator.batches import Agenda, Batch, Clerk, Line, listing, page
from groundswell.emulator.desks.anthropic import FAULTS, INVALID, LOW_BALANCE, AnthropicDesk, too_large
from groundswell.emulator.desks.delivery import encode
from groundswell.emulator.desks.desk import Errand, Made, decode_body
from groundswell.emulator.http import Answer
from groundswell.emulator.wire import Rejected
from groundswell.emulator.wire import anthropic as wire
from groundswell.emulator.wire.pieces import timestamp
from groundswell.emulator.world import Account
from groundswell.program.request import Reply

MOST_LINES = 100_000
LARGEST = 256 * 1024 * 1024
KEPT = 29 * 86_400.0
"""Seconds after creation for which results can be read."""
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
JSONL = b"application/x-jsonl"
STATUS = {
    "validating": "in_progress",
    "in_progress": "in_progress",
    "finalizing": "in_progress",
    "cancelling": "canceling",
}
UNSUPPORTED = ("stream", "speed")
LINE_FAULTS = {"line-400": "400", "line-429": "429", "line-500": "500", "line-529": "529", "line-bare": "500"}


class AnthropicBatch(Batch):
    """A batch with Anthropic's fields."""

    def __init__(self, id: str, account: Account, created: float, window: float) -> None:
        super().__init__(id, account, created, window)
        self.results: list[bytes] = []

    @property
    def ended(self) -> float | None:
        """When it ended."""
        return None if self.open else self.stamps[self.status]

    def show(self, base: str, now: float) -> dict[str, Any]:
        """The batch object; `base` is the address of this server."""
        archived = self.created + KEPT if now >= self.created + KEPT else None
        readable = self.ended is not None and archived is None
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": STATUS.get(self.status, "ended"),
            "request_counts": self._counts(),
            "created_at": timestamp(self.created),
            "expires_at": timestamp(self.expires),
            "ended_at": _stamp(self.ended),
            "cancel_initiated_at": _stamp(self.stamps.get("cancelling")),
            "archived_at": _stamp(archived),
            "results_url": f"{base}/v1/messages/batches/{self.id}/results" if readable else None,
        }

    def _counts(self) -> dict[str, int]:
        """Every request counts as processing until the whole batch has ended."""
        told = {} if self.open else self.outcomes
        return {
            "processing": len(self.lines) if self.open else 0,
            "succeeded": told.get("succeeded", 0),
            "errored": told.get("errored", 0),
            "canceled": told.get("cancelled", 0),
            "expired": told.get("expired", 0),
        }


class AnthropicBatches(Clerk):
    """The batches of all accounts; an account sees its own."""

    def __init__(self, desk: AnthropicDesk, agenda: Agenda) -> None:
        super().__init__(desk, agenda)

    def path_of(self, batch: AnthropicBatch) -> str:
        return "batch:/v1/messages"

    # The lines of its results.

    def write_reply(self, batch: AnthropicBatch, line: Line, made: Made) -> bytes:
        (reply,) = made.replies
        assert isinstance(reply, Reply)
        written = wire.write_message(reply, made.about, "batch", for_an_hour=made.cache.hour)
        return _result(line, {"type": "succeeded", "message": written})

    def write_failure(self, batch: AnthropicBatch, line: Line, rejected: Rejected | None) -> bytes:
        assert rejected is not None
        return _result(line, {"type": "errored", "error": self.desk.error(rejected)})

    def write_left(self, batch: AnthropicBatch, line: Line, why: str) -> bytes:
        return _result(line, {"type": "canceled" if why == "cancelled" else why})

    def put(self, batch: AnthropicBatch, written: bytes, *, failed: bool) -> None:
        batch.results.append(written)

    def closed(self, batch: AnthropicBatch, status: str, when: float) -> None:
        """Keep the results for a while."""
        self.agenda.at(batch.created + KEPT, lambda at: batch.results.clear())

    def fault_of_line(self, name: str) -> Rejected | None:
        if name == "low-balance":
            return Rejected(400, LOW_BALANCE, kind=INVALID)
        kind, message = FAULTS[LINE_FAULTS[name]]
        return Rejected(int(LINE_FAULTS[name]), message, kind=kind)

    # The endpoints.

    def create(self, errand: Errand) -> dict[str, Any]:
        """POST /v1/messages/batches"""
        if errand.struck is not None and errand.struck.name == "enqueued-at-create":
            raise self._queue_full(0)
        if len(errand.http.body) > LARGEST:
            too_large(errand.http.body)
        lines = _read_create(decode_body(errand.http.body))
        self._check_queue(errand.account, len(lines))
        created, window = self.world.clock.now(), self.world.settings.batch.window
        batch = AnthropicBatch(self.world.new_id("msgbatch_"), errand.account, created, window)
        batch.lines, batch.struck = lines, errand.struck
        self.batches[batch.id] = batch
        self.begin(batch, created)
        return self._show(batch, errand)

    def _check_queue(self, account: Account, new: int) -> None:
        limit = self.world.settings.limits.queued_requests
        waiting = sum(
            len(batch.left) for batch in self.batches.values() if batch.open and batch.account.name == account.name
        )
        if limit is not None and waiting + new > limit:
            self.world.ledger.entry(account.name, "").limits_broken["queued_requests"] += 1
            raise self._queue_full(limit)

    def _queue_full(self, limit: int) -> Rejected:
        message = f"This request would exceed your organization's limit of {limit:,} batch requests in the queue."
        return Rejected(429, message, kind="rate_limit_error")

    def list(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/messages/batches"""
        own = [batch for batch in reversed(self.batches.values()) if batch.account.name == errand.account.name]
        found, more = page(own, errand.http.query, 1000, "after_id", "before_id")
        return listing([self._show(batch, errand) for batch in found], more)

    def retrieve(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/messages/batches/{id}"""
        return self._show(self._get(errand), errand)

    def stop(self, errand: Errand) -> dict[str, Any]:
        """POST /v1/messages/batches/{id}/cancel"""
        batch = self._get(errand)
        if not batch.open:
            raise Rejected(400, f"Batch {batch.id} has already ended.", kind=INVALID)
        self.cancel(batch, self.world.clock.now())
        return self._show(batch, errand)

    def delete(self, errand: Errand) -> dict[str, Any]:
        """DELETE /v1/messages/batches/{id}"""
        batch = self._get(errand)
        if batch.open:
            message = f"Batch {batch.id} is still in progress. Cancel it and wait until it has ended."
            raise Rejected(400, message, kind=INVALID)
        del self.batches[batch.id]
        return {"id": batch.id, "type": "message_batch_deleted"}

    def results(self, errand: Errand) -> Answer:
        """GET /v1/messages/batches/{id}/results"""
        batch = self._get(errand)
        if batch.show("", self.world.clock.now())["results_url"] is None:
            raise Rejected(404, f"Batch {batch.id} has no results to read.", kind="not_found_error")
        return Answer(body=b"".join(batch.results), content_type=JSONL)

    def _show(self, batch: Batch, errand: Errand) -> dict[str, Any]:
        assert isinstance(batch, AnthropicBatch)
        return batch.show(f"http://{errand.http.headers.get('host', 'localhost')}", self.world.clock.now())

    def _get(self, errand: Errand) -> AnthropicBatch:
        batch = self.batches.get(errand.id)
        if not isinstance(batch, AnthropicBatch) or batch.account.name != errand.account.name:
            raise Rejected(404, f"Batch {errand.id} was not found.", kind="not_found_error")
        return batch


def _read_create(data: Any) -> list[Line]:
    """Read the requests of a batch. Errors in their `params` appear in the results."""
    requests = data.get("requests") if isinstance(data, dict) else None
    if not isinstance(requests, list):
        raise Rejected(400, "requests: Field required", kind=INVALID)
    if not 1 <= len(requests) <= MOST_LINES:
        message = f"requests: a batch holds 1 to {MOST_LINES} requests, not {len(requests)}"
        raise Rejected(400, message, kind=INVALID)
    seen: set[str] = set()
    return [_read_line(request, number, seen) for number, request in enumerate(requests)]


def _read_line(request: Any, number: int, seen: set[str]) -> Line:
    custom_id = request.get("custom_id") if isinstance(request, dict) else None
    if not isinstance(custom_id, str) or not CUSTOM_ID.fullmatch(custom_id):
        message = f"requests.{number}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
        raise Rejected(400, message, kind=INVALID)
    if custom_id in seen:
        raise Rejected(400, f"requests.{number}.custom_id: '{custom_id}' is used more than once", kind=INVALID)
    seen.add(custom_id)
    if not isinstance(request.get("params"), dict):
        raise Rejected(400, f"requests.{number}.params: Field required", kind=INVALID)
    line = Line(custom_id, request["params"])
    try:
        line.incoming = _read_params(line.data)
    except Rejected as rejected:
        line.rejected = rejected
    return line


def _read_params(params: dict[str, Any]) -> Any:
    for name in UNSUPPORTED:
        if params.get(name):
            raise Rejected(400, f"{name}: not supported in batches", kind=INVALID)
    return wire.read_chat(params)


def _result(line: Line, result: dict[str, Any]) -> bytes:
    return encode({"custom_id": line.custom_id, "result": result}) + b"\n"


def _stamp(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)
