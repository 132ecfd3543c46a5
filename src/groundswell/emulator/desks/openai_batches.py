"""OpenAI's batches: validated as a whole, worked on while one looks, their results in files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from groundswell.emulator.batches import Agenda, Batch, Clerk, Line, page
from groundswell.emulator.desks.desk import Made, decode_body, encode, named
from groundswell.emulator.desks.files import Files
from groundswell.emulator.desks.openai import FAULTS, INVALID, OpenAIDesk
from groundswell.emulator.faults import Stage, Struck
from groundswell.emulator.http import Answer, HttpRequest, Silence
from groundswell.emulator.tokens import count_request
from groundswell.emulator.wire import Incoming, Rejected
from groundswell.emulator.wire import openai as wire
from groundswell.emulator.world import Account
from groundswell.program.request import Usage

MOST_LINES = 50_000
MOST_ERRORS = 100
READ: dict[str, Callable[[object], Incoming]] = {
    "/v1/chat/completions": wire.read_chat,
    "/v1/embeddings": wire.read_embed,
}
STAMPS = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
LEFT = {
    "expired": ("batch_expired", "This request could not be executed before the completion window expired."),
    "cancelled": ("batch_cancelled", "This request was not executed because the batch was cancelled."),
}
LINE_FAULTS = {"line-400": "400", "line-429": "429", "line-500": "500"}


class OpenAIBatch(Batch):
    """A batch with what OpenAI says of it."""

    endpoint: str
    input_file: str
    metadata: dict[str, str] | None
    lifetime: float | None = None
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
        self.tell: Callable[[str, str], None] = lambda event, batch: None

    def path_of(self, batch: OpenAIBatch) -> str:
        return f"batch:{batch.endpoint}"

    # The life of a batch.

    def open(self, batch: OpenAIBatch) -> None:
        """Take a batch in: whether it is any good is found out later."""
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
        """What is wrong with a batch; one bad line is enough to fail it."""
        file = self.files.find(batch.account, batch.input_file)
        if file is None:
            return [_problem("invalid_input_file", f"No such File object: {batch.input_file}", None, "input_file_id")]
        if batch.struck is not None and batch.struck.name == "batch-failed":
            return [_problem("internal_error", "The batch could not be validated.", None, None)]
        errors = read_lines(batch, file.content)
        if errors:
            return errors
        return self._check_tokens(batch)

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
        return [_problem("token_limit_exceeded", message, None, None)]

    def _enqueued(self, new: OpenAIBatch) -> int:
        """The tokens of an account's batches of one model, with a new one."""
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
        """Write the files."""
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

    def write_reply(self, batch: OpenAIBatch, line: Line, made: Made, *, filtered: bool) -> bytes:
        assert isinstance(self.desk, OpenAIDesk)
        written = self.desk.write_embeddings(made) if batch.endpoint == "/v1/embeddings" else self.desk.write_chat(made)
        assert isinstance(written, dict)
        if filtered:
            self.desk.spoil(written, "filter")
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

    async def create(self, http: HttpRequest) -> Answer | Silence:
        """POST /v1/batches"""

        async def work(account: Account, struck: Struck | None) -> dict[str, Any]:
            if struck is not None and struck.name == "enqueued-at-create":
                message = "Enqueued token limit reached. Please try again once some batches have been completed."
                raise Rejected(429, message, kind=INVALID, code="token_limit_exceeded")
            batch = self._read(account, decode_body(http.body))
            batch.struck = struck
            self.open(batch)
            return batch.show()

        return await self.desk.manage(http, work, Stage.BATCH)

    def _read(self, account: Account, data: Any) -> OpenAIBatch:
        wanted = _read_create(data)
        id, created = self.world.new_id("batch_"), self.world.clock.now()
        batch = OpenAIBatch(id, account, created, self.world.settings.batch.window)
        batch.endpoint = wanted.endpoint
        batch.input_file = wanted.input_file_id
        batch.metadata = wanted.metadata
        batch.lifetime = wanted.output_expires_after.seconds if wanted.output_expires_after else None
        return batch

    async def list(self, http: HttpRequest) -> Answer | Silence:
        """GET /v1/batches"""

        async def work(account: Account, struck: Struck | None) -> dict[str, Any]:
            await self.agenda.catch_up()
            own = [batch for batch in reversed(self.batches.values()) if batch.account.name == account.name]
            found, more = page(own, http.query, 100, "after")
            data = [self._show(batch) for batch in found]
            first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
            return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": more}

        return await self.desk.manage(http, work)

    def _show(self, batch: Batch) -> dict[str, Any]:
        assert isinstance(batch, OpenAIBatch)
        return batch.show()

    async def retrieve(self, http: HttpRequest, id: str) -> Answer | Silence:
        """GET /v1/batches/{id}"""

        async def work(account: Account, struck: Struck | None) -> dict[str, Any]:
            await self.agenda.catch_up()
            return self._get(account, id).show()

        return await self.desk.manage(http, work)

    async def stop(self, http: HttpRequest, id: str) -> Answer | Silence:
        """POST /v1/batches/{id}/cancel"""

        async def work(account: Account, struck: Struck | None) -> dict[str, Any]:
            await self.agenda.catch_up()
            batch = self._get(account, id)
            if not batch.open:
                message = f"Cannot cancel a batch with status '{batch.status}'."
                raise Rejected(409, message, kind=INVALID)
            self.cancel(batch, self.world.clock.now())
            return batch.show()

        return await self.desk.manage(http, work)

    def _get(self, account: Account, id: str) -> OpenAIBatch:
        batch = self.batches.get(id)
        if not isinstance(batch, OpenAIBatch) or batch.account.name != account.name:
            raise Rejected(404, f"No batch found with id '{id}'.", kind=INVALID)
        return batch


class _Expiry(msgspec.Struct):
    seconds: int
    anchor: str = "created_at"


class _Create(msgspec.Struct):
    input_file_id: str
    endpoint: str
    completion_window: str
    metadata: dict[str, str] | None = None
    output_expires_after: _Expiry | None = None


def _read_create(data: Any) -> _Create:
    """What a create asks for, or a refusal that names the parameter."""
    if not isinstance(data, dict):
        raise Rejected(400, "We could not parse the JSON body of your request.", kind=INVALID)
    for name in ("input_file_id", "endpoint", "completion_window"):
        if name not in data:
            message = f"Missing required parameter: '{name}'."
            raise Rejected(400, message, kind=INVALID, param=name, code="missing_required_parameter")
    try:
        wanted = msgspec.convert(data, _Create)
    except msgspec.ValidationError as error:
        raise Rejected(400, f"Invalid type: {error}", kind=INVALID, code="invalid_type") from None
    if wanted.endpoint not in READ:
        raise _bad_value("endpoint", wanted.endpoint, " or ".join(READ))
    if wanted.completion_window != "24h":
        raise _bad_value("completion_window", wanted.completion_window, "24h")
    if wanted.output_expires_after and not 3600 <= wanted.output_expires_after.seconds <= 2_592_000:
        raise _bad_value("output_expires_after.seconds", wanted.output_expires_after.seconds, "3600 to 2592000")
    _check_metadata(wanted.metadata or {})
    return wanted


def _check_metadata(metadata: dict[str, str]) -> None:
    if len(metadata) > 16:
        raise _bad_value("metadata", f"{len(metadata)} pairs", "at most 16 pairs")
    for key, value in metadata.items():
        if len(key) > 64:
            raise _bad_value(f"metadata.{key[:64]}", f"a key of {len(key)} characters", "at most 64")
        if len(value) > 512:
            raise _bad_value(f"metadata.{key}", f"a value of {len(value)} characters", "at most 512")


def _bad_value(param: str, value: object, right: str) -> Rejected:
    message = f"Invalid value for '{param}': {value!r}. Supported values are: {right}."
    return Rejected(400, message, kind=INVALID, param=param, code="invalid_value")


def read_lines(batch: OpenAIBatch, content: bytes) -> list[dict[str, Any]]:
    """Read the lines of a batch's file into it; returns what is wrong with them."""
    raw = [line for line in content.splitlines() if line.strip()]
    if not raw:
        return [_problem("empty_file", "The input file is empty.", None, None)]
    if len(raw) > MOST_LINES:
        message = f"The input file has {len(raw)} requests; at most {MOST_LINES} are allowed."
        return [_problem("too_many_tasks", message, None, None)]
    errors: list[dict[str, Any]] = []
    seen: set[str] = set()
    batch.lines = []
    for number, text in enumerate(raw, 1):
        try:
            batch.lines.append(_read_line(batch, decode_body(text), seen))
        except Rejected as wrong:
            errors.append(_problem(wrong.code, wrong.message, number, wrong.param))
    return errors


def _read_line(batch: OpenAIBatch, data: Any, seen: set[str]) -> Line:
    """One line of a batch. What only this request is wrong about is found out when it is worked on."""
    if not isinstance(data, dict):
        raise _bad_line("invalid_json_line", "This line is not parseable as valid JSON.")
    for name in ("custom_id", "method", "url", "body"):
        if name not in data:
            raise _bad_line("missing_required_parameter", f"Missing required parameter: '{name}'.", name)
    custom_id, body = data["custom_id"], data["body"]
    if not isinstance(custom_id, str) or not custom_id:
        raise _bad_line("invalid_type", "Invalid type for 'custom_id': expected a string.", "custom_id")
    if custom_id in seen:
        raise _bad_line("duplicate_custom_id", f"The custom_id '{custom_id}' is used more than once.", "custom_id")
    seen.add(custom_id)
    if data["method"] != "POST":
        raise _bad_line("invalid_method", "The method must be POST.", "method")
    if data["url"] != batch.endpoint:
        message = f"The URL '{data['url']}' does not match the batch endpoint '{batch.endpoint}'."
        raise _bad_line("mismatched_url", message, "url")
    return _read_body(batch, Line(custom_id, body), body)


def _read_body(batch: OpenAIBatch, line: Line, body: Any) -> Line:
    model = named(body)
    if batch.model is None:
        batch.model = model or None
    elif model and model != batch.model:
        message = f"The batch contains more than one model: '{batch.model}' and '{model}'."
        raise _bad_line("mismatched_model", message, "body.model")
    try:
        line.incoming = READ[batch.endpoint](body)
        line.tokens = count_request(line.incoming.request)
    except Rejected as rejected:
        if rejected.code == "missing_required_parameter":
            raise _bad_line(rejected.code, rejected.message, f"body.{rejected.param}") from None
        line.rejected = rejected
    if line.incoming is not None and line.incoming.stream:
        raise _bad_line("invalid_value", "Streaming is not supported in batches.", "body.stream")
    return line


def _bad_line(code: str, message: str, param: str | None = None) -> Rejected:
    return Rejected(400, message, kind=INVALID, param=param, code=code)


def _problem(code: str | None, message: str, line: int | None, param: str | None) -> dict[str, Any]:
    return {"code": code, "line": line, "message": message, "param": param}


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
