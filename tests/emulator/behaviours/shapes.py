"""The JSON of the two batch providers, key by key."""

from __future__ import annotations

from groundswell.emulator.faults import Rule
from tests.emulator.behaviours import Table
from tests.emulator.calls import Calls, chat, line, lines, message, request

OPENAI = Table("OpenAI shapes")
ANTHROPIC = Table("Anthropic shapes")
TABLES = (OPENAI, ANTHROPIC)

BATCH = (
    "id object endpoint model errors input_file_id completion_window status output_file_id error_file_id created_at "
    "in_progress_at expires_at finalizing_at completed_at failed_at expired_at cancelling_at cancelled_at "
    "request_counts usage metadata"
)
MESSAGE_BATCH = (
    "id type processing_status request_counts created_at expires_at ended_at cancel_initiated_at archived_at "
    "results_url"
)


@OPENAI.claim("a file object")
def _(calls: Calls) -> None:
    id = calls.upload(b"{}\n", "x.jsonl")
    file = calls.openai("GET", f"/v1/files/{id}").json
    assert file.pop("created_at") > 0
    assert file == {
        "id": id,
        "object": "file",
        "bytes": 3,
        "expires_at": None,
        "filename": "x.jsonl",
        "purpose": "batch",
        "status": "processed",
        "status_details": None,
    }


@OPENAI.claim("a deleted file")
def _(calls: Calls) -> None:
    id = calls.upload(b"{}\n")
    assert calls.openai("DELETE", f"/v1/files/{id}").json == {"id": id, "object": "file", "deleted": True}
    assert calls.openai("GET", f"/v1/files/{id}").status == 404


@OPENAI.claim("files come back byte by byte, and output files have the purpose batch_output")
def _(calls: Calls) -> None:
    content = b'{"a": "\r\n--x"}\r\n\n'
    id = calls.upload(content)
    assert calls.openai("GET", f"/v1/files/{id}/content").body == content
    batch = calls.batch(lines(1))
    calls.emulator.advance(700)
    output = calls.openai("GET", f"/v1/files/{calls.look(batch)['output_file_id']}").json
    assert output["purpose"] == "batch_output"


@OPENAI.claim("a batch object")
def _(calls: Calls) -> None:
    metadata = {"run": "r1", "wave": "3"}
    id = calls.batch(lines(1), metadata=metadata)
    calls.emulator.advance(700)
    batch = calls.look(id)
    assert batch.keys() == set(BATCH.split())
    assert (batch["object"], batch["metadata"], batch["errors"]) == ("batch", metadata, None)
    stamps = [batch[f"{name}_at"] for name in ("created", "in_progress", "finalizing", "completed")]
    assert stamps == sorted(stamps)


@OPENAI.claim("metadata: 16 pairs, keys of 64 and values of 512 characters")
def _(calls: Calls) -> None:
    wanted = {"input_file_id": "file-x", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    full = {f"{number:064}": "v" * 512 for number in range(16)}
    statuses = [
        calls.openai("POST", "/v1/batches", {**wanted, "metadata": metadata}).status
        for metadata in (full, full | {"one": "more"}, {"k" * 65: ""}, {"k": "v" * 513})
    ]
    assert statuses == [200, 400, 400, 400]


@OPENAI.claim("output_expires_after: 3600 to 2592000 seconds")
def _(calls: Calls) -> None:
    wanted = {"input_file_id": "file-x", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    statuses = [
        calls.openai(
            "POST", "/v1/batches", {**wanted, "output_expires_after": {"anchor": "created_at", "seconds": seconds}}
        ).status
        for seconds in (3599, 3600, 2_592_000, 2_592_001)
    ]
    assert statuses == [400, 200, 200, 400]


@OPENAI.claim("an output file expires when output_expires_after says so")
def _(calls: Calls) -> None:
    id = calls.batch(lines(1), output_expires_after={"anchor": "created_at", "seconds": 3600})
    calls.emulator.advance(700)
    output = calls.look(id)["output_file_id"]
    assert calls.openai("GET", f"/v1/files/{output}").status == 200
    calls.emulator.advance(3600)
    assert calls.openai("GET", f"/v1/files/{output}").status == 404


@OPENAI.claim("the completion window is 24h only")
def _(calls: Calls) -> None:
    wanted = {"input_file_id": "file-x", "endpoint": "/v1/chat/completions", "completion_window": "1h"}
    answer = calls.openai("POST", "/v1/batches", wanted)
    assert (answer.status, answer.json["error"]["param"]) == (400, "completion_window")


@OPENAI.claim("an output line")
def _(calls: Calls) -> None:
    id = calls.batch(lines(1))
    calls.emulator.advance(700)
    (written,) = calls.content(calls.look(id)["output_file_id"])
    assert written.keys() == {"id", "custom_id", "response", "error"}
    assert written["id"].startswith("batch_req_")
    assert written["response"].keys() == {"status_code", "request_id", "body"}
    assert written["response"]["body"]["object"] == "chat.completion"
    assert written["error"] is None


@OPENAI.claim("an error line with a response")
def _(calls: Calls) -> None:
    id = calls.batch([line("a", chat(temperature=9)), line("b")])
    calls.emulator.advance(700)
    (written,) = calls.content(calls.look(id)["error_file_id"])
    assert (written["custom_id"], written["error"]) == ("a", None)
    assert written["response"]["status_code"] == 400
    assert written["response"]["body"]["error"].keys() == {"message", "type", "param", "code"}


@OPENAI.claim("an error line without a response")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(fault="line-bare", path="batch:*"))
    id = calls.batch(lines(1))
    calls.emulator.advance(700)
    (written,) = calls.content(calls.look(id)["error_file_id"])
    assert written["response"] is None
    assert written["error"].keys() == {"code", "message"}


@OPENAI.claim("a live error has all four keys")
def _(calls: Calls) -> None:
    for body in ({}, chat(model="no-such-model"), chat(temperature=9)):
        error = calls.openai("POST", "/v1/chat/completions", body).json["error"]
        assert error.keys() == {"message", "type", "param", "code"}


@ANTHROPIC.claim("a batch object")
def _(calls: Calls) -> None:
    batch = calls.look_message_batch(calls.message_batch([request("a")]))
    assert batch.keys() == set(MESSAGE_BATCH.split())
    assert batch["type"] == "message_batch"
    assert batch["request_counts"].keys() == {"processing", "succeeded", "errored", "canceled", "expired"}


@ANTHROPIC.claim("a result that succeeded, under the service tier batch")
def _(calls: Calls) -> None:
    id = calls.message_batch([request("a")])
    calls.emulator.advance(700)
    result = calls.results(id)["a"]
    assert result.keys() == {"type", "message"}
    assert (result["type"], result["message"]["type"]) == ("succeeded", "message")
    assert result["message"]["usage"]["service_tier"] == "batch"


@ANTHROPIC.claim("a result that errored")
def _(calls: Calls) -> None:
    id = calls.message_batch([request("a", temperature=9)])
    calls.emulator.advance(700)
    result = calls.results(id)["a"]
    assert result.keys() == {"type", "error"}
    assert result["error"].keys() == {"type", "error", "request_id"}
    assert result["error"]["error"].keys() == {"type", "message"}


@ANTHROPIC.claim("results that were canceled or expired say nothing else")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(fault="batch-stuck"))
    cancelled, expired = calls.message_batch([request("a")]), calls.message_batch([request("a")])
    calls.anthropic("POST", f"/v1/messages/batches/{cancelled}/cancel")
    calls.emulator.advance(86_500)
    assert calls.results(cancelled) == {"a": {"type": "canceled"}}
    assert calls.results(expired) == {"a": {"type": "expired"}}


ERRORS = {
    "400": "invalid_request_error",
    "401": "authentication_error",
    "403": "permission_error",
    "404": "not_found_error",
    "413": "request_too_large",
    "429": "rate_limit_error",
    "500": "api_error",
    "529": "overloaded_error",
}


@ANTHROPIC.claim("errors by their status")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(script=tuple(ERRORS)))
    for status, kind in ERRORS.items():
        answer = calls.anthropic("POST", "/v1/messages", message())
        assert answer.json.keys() == {"type", "error", "request_id"}
        assert (answer.status, answer.json["type"], answer.json["error"]["type"]) == (int(status), "error", kind)
