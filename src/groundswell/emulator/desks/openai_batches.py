"""OpenAI's batches: validated as a whole, processed over time, with their results in files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groundswell.emulator.batches import Agenda, Batch, Clerk, Line, listing, page
from groundswell.emulator.desks.bad_lines import BadLines
from groundswell.emulator.desks.delivery import encode
from groundswell.emulator.desks.desk import Errand, Made, decode_body
from groundswell.emulator.desks.files import Files
from groundswell.emulator.desks.openai import FAULTS, INVALID, OpenAIDesk
from groundswell.emulator.desks.openai_lines import Read, problem, read_create, read_lines
from groundswell.emulator.wire import Rejected
from groundswell.emulator.wire import openai as wire
from groundswell.emulator.world import Account
from groundswell.program.request import Usage

MOST_ERRORS = 100
STAMPS = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
LEFT = {
    "expired": ("batch_expired", "This request could not be executed before the completion window expired."),
    "cancelled": ("batch_cancelled", "This request was not executed because the batch was cancelled."),
}
LINE_FAULTS = {"line-400": "400", "line-429": "429", "line-500": "500", "line-529": "529"}


class OpenAIBatch(Batch):
    """A batch with OpenAI's fields."""

    endpoint: str
    input_file: str
    metadata: dict[str, str] | None
    lifetime: float = 30 * 86_400.0
    """Seconds for which its results are kept."""
    model: str | None = None
    output_file: str | None = None
    error_file: str | None = None
    usage: Usage = Usage()

    def __init__(self, id: str, account: Account, created: float, window: float) -> None:
        super().__init__(id, account, created, window)
        self.errors: list[dict[str, Any]] = []
        self.output: list[bytes] = []
        self.failures: list[bytes] = []

    def show(self) -> dict[str, Any]:
        """The batch object."""
        stamps = {f"{name}_at": _whole(self.stamps.get(name)) for name in STAMPS}
        succeeded, failed = self.outcomes.get("succeeded", 0), self.outcomes.get("errored", 0)
        total = 0 if self.status in ("validating", "failed") else len(self.lines)
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.endpoint,
            "model": self.model,
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "input_file_id": self.input_file,
            "completion_window": "24h",
            "status": self.status,
            "output_file_id": self.output_file,
            "error_file_id": self.error_file,
            "created_at": int(self.created),
            "expires_at": int(self.expires),
            **stamps,
            "request_counts": {"total": total, "completed": succeeded, "failed": failed},
            "usage": _show_usage(self.usage),
            "metadata": self.metadata,
        }


class OpenAIBatches(Clerk):
    """The batches of all accounts; an account sees its own."""

    def __init__(self, desk: OpenAIDesk, agenda: Agenda, files: Files) -> None:
        super().__init__(desk, agenda)
        self.files = files
        self.bad_lines = BadLines(self.world.settings.seed)
        self.tell: Callable[[str, str], None] = lambda event, batch: None

    def path_of(self, batch: OpenAIBatch) -> str:
        return f"batch:{batch.endpoint}"

    def forget(self) -> None:
        super().forget()
        self.bad_lines = BadLines(self.world.settings.seed)

    # The life of a batch.

    def open(self, batch: OpenAIBatch) -> None:
        """Accept a batch. It is validated later."""
        self.batches[batch.id] = batch
        times = self.world.settings.batch
        exists = self.files.find(batch.account, batch.input_file) is not None
        wait = times.validating if exists else times.missing_file
        self.agenda.at(batch.created + wait, lambda at: self._validate(batch, at))

    def _validate(self, batch: OpenAIBatch, when: float) -> None:
        if batch.status != "validating":
            return
        errors = self._check(batch)
        if errors:
            batch.errors = errors[:MOST_ERRORS]
            batch.lines = []
            batch.become("failed", when)
            self.tell("batch.failed", batch.id)
            return
        self.begin(batch, when)

    def _check(self, batch: OpenAIBatch) -> list[dict[str, Any]]:
        """The errors of a batch. One invalid line fails it."""
        file = self.files.find(batch.account, batch.input_file)
        if file is None:
            return [problem("invalid_input_file", f"No such File object: {batch.input_file}", None, "input_file_id")]
        if batch.struck is not None and batch.struck.name == "batch-failed":
            return [problem("internal_error", "The batch could not be validated.", None, None)]
        read = read_lines(batch.endpoint, file.content)
        batch.lines, batch.model = read.lines, read.model
        return read.problems or self._complain(batch, read) or self._check_tokens(batch)

    def _complain(self, batch: OpenAIBatch, read: Read) -> list[dict[str, Any]]:
        """The errors of an injected fault in valid lines."""
        if batch.struck is None or batch.struck.name != "bad-lines":
            return []
        message = "The request of this line could not be accepted."
        places = self.bad_lines.among([line.data for line in read.lines])
        return [problem("invalid_request", message, read.numbers[place], "body") for place in places]

    def _check_tokens(self, batch: OpenAIBatch) -> list[dict[str, Any]]:
        limit = self.world.settings.limits.enqueued_tokens
        forced = batch.struck is not None and batch.struck.name == "enqueued"
        if not forced and (limit is None or self._enqueued(batch) <= limit):
            return []
        self.world.ledger.entry(batch.account.name, batch.model or "").limits_broken["enqueued_tokens"] += 1
        message = (
            f"Enqueued token limit reached for {batch.model} in organization org-{batch.account.name}. "
            f"Limit: {limit or 0:,} enqueued tokens. "
            "Please try again once some in_progress batches have been completed."
        )
        return [problem("token_limit_exceeded", message, None, None)]

    def _enqueued(self, new: OpenAIBatch) -> int:
        """The enqueued tokens of an account's batches of one model, including a new one."""
        return sum(
            sum(line.tokens for line in batch.lines)
            for batch in self.batches.values()
            if isinstance(batch, OpenAIBatch)
            and (batch is new or (batch.status in ("in_progress", "finalizing", "cancelling")))
            and (batch.account.name, batch.model) == (new.account.name, new.model)
        )

    def earned(self, batch: OpenAIBatch, made: Made) -> None:
        sums, usage = batch.usage, made.usage
        batch.usage = Usage(
            sums.input_tokens + usage.input_tokens,
            sums.output_tokens + usage.output_tokens,
            sums.cached_tokens + usage.cached_tokens,
            sums.reasoning_tokens + usage.reasoning_tokens,
        )

    def closed(self, batch: OpenAIBatch, status: str, when: float) -> None:
        """Write the result files."""
        if batch.output:
            name = f"{batch.id}_output.jsonl"
            batch.output_file = self._keep(batch, name, batch.output)
        if batch.failures:
            name = f"{batch.id}_error.jsonl"
            batch.error_file = self._keep(batch, name, batch.failures)
        batch.output, batch.failures = [], []
        self.tell(f"batch.{status}", batch.id)

    def _keep(self, batch: OpenAIBatch, name: str, lines: list[bytes]) -> str:
        content = b"".join(lines)
        return self.files.add(batch.account, name, "batch_output", content, batch.lifetime).id

    # The lines of its results.

    def write_reply(self, batch: OpenAIBatch, line: Line, made: Made) -> bytes:
        assert isinstance(self.desk, OpenAIDesk)
        written = self.desk.write_embeddings(made) if batch.endpoint == "/v1/embeddings" else self.desk.write_chat(made)
        return self._write(line, {"status_code": 200, "request_id": self.world.new_id("req_"), "body": written}, None)

    def write_failure(self, batch: OpenAIBatch, line: Line, rejected: Rejected | None) -> bytes:
        if rejected is None:
            return self._write(line, None, {"code": "server_error", "message": "The request could not be executed."})
        body = wire.write_error(rejected)
        response = {"status_code": rejected.status, "request_id": self.world.new_id("req_"), "body": body}
        return self._write(line, response, None)

    def write_left(self, batch: OpenAIBatch, line: Line, why: str) -> bytes:
        code, message = LEFT[why]
        return self._write(line, None, {"code": code, "message": message})

    def _write(self, line: Line, response: dict[str, Any] | None, error: dict[str, Any] | None) -> bytes:
        id = self.world.new_id("batch_req_")
        return encode({"id": id, "custom_id": line.custom_id, "response": response, "error": error}) + b"\n"

    def put(self, batch: OpenAIBatch, written: bytes, *, failed: bool) -> None:
        (batch.failures if failed else batch.output).append(written)

    def fault_of_line(self, name: str) -> Rejected | None:
        if name == "line-bare":
            return None
        if name == "low-balance":
            message = "You exceeded your current quota, please check your plan and billing details."
            return Rejected(429, message, kind="insufficient_quota", code="insufficient_quota")
        status = LINE_FAULTS[name]
        message, kind, code = FAULTS[status]
        return Rejected(int(status), message, kind=kind, code=code)

    # The endpoints.

    def create(self, errand: Errand) -> dict[str, Any]:
        """POST /v1/batches"""
        if errand.struck is not None and errand.struck.name == "enqueued-at-create":
            message = "Enqueued token limit reached. Please try again once some batches have been completed."
            raise Rejected(429, message, kind=INVALID, code="token_limit_exceeded")
        batch = self._read(errand.account, decode_body(errand.http.body))
        batch.struck = errand.struck
        self.open(batch)
        return batch.show()

    def _read(self, account: Account, data: Any) -> OpenAIBatch:
        wanted = read_create(data)
        id, created = self.world.new_id("batch_"), self.world.clock.now()
        batch = OpenAIBatch(id, account, created, self.world.settings.batch.window)
        batch.endpoint = wanted.endpoint
        batch.input_file = wanted.input_file_id
        batch.metadata = wanted.metadata
        if wanted.output_expires_after is not None:
            batch.lifetime = wanted.output_expires_after.seconds
        return batch

    def list(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/batches"""
        own = [batch for batch in reversed(self.batches.values()) if batch.account.name == errand.account.name]
        found, more = page(own, errand.http.query, 100, "after")
        return {"object": "list", **listing([_shown(batch) for batch in found], more)}

    def retrieve(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/batches/{id}"""
        return self._get(errand).show()

    def stop(self, errand: Errand) -> dict[str, Any]:
        """POST /v1/batches/{id}/cancel"""
        batch = self._get(errand)
        if not batch.open:
            raise Rejected(409, f"Cannot cancel a batch with status '{batch.status}'.", kind=INVALID)
        self.cancel(batch, self.world.clock.now())
        return batch.show()

    def _get(self, errand: Errand) -> OpenAIBatch:
        batch = self.batches.get(errand.id)
        if not isinstance(batch, OpenAIBatch) or batch.account.name != errand.account.name:
            raise Rejected(404, f"No batch found with id '{errand.id}'.", kind=INVALID)
        return batch


def _shown(batch: Batch) -> dict[str, Any]:
    assert isinstance(batch, OpenAIBatch)
    return batch.show()


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds)


def _show_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
