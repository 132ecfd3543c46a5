"""Batches of many megabytes, up and down, as clients send them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from tests.emulator.calls import BOUNDARY, OPENAI, Calls, chat, line, request

MEGABYTE = 1_000_000
ROOMY = Settings(context=10 * MEGABYTE)
LINES = [line(f"r{number}", chat(f"{number} " + "x" * MEGABYTE, "echo")) for number in range(20)]
"""20 MB, to a model that says them again."""


@pytest.fixture
def calls() -> Iterator[Calls]:
    with running(ROOMY) as emulator:
        yield Calls(emulator)


def upload_in_chunks(calls: Calls, content: bytes) -> str:
    """As a client does that does not say beforehand how much it will send."""
    part = f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="'
    form = f'{part}purpose"\r\n\r\nbatch\r\n{part}file"; filename="in.jsonl"\r\n\r\n'.encode() + content
    form += f"\r\n--{BOUNDARY}--\r\n".encode()
    pieces = (form[start : start + 300_000] for start in range(0, len(form), 300_000))
    headers = {**OPENAI, "content-type": f"multipart/form-data; boundary={BOUNDARY}", "transfer-encoding": "chunked"}
    connection = HTTPConnection(calls.address, timeout=20)
    try:
        connection.request("POST", "/v1/files", pieces, headers, encode_chunked=True)
        file = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    assert file["bytes"] == len(content)
    return str(file["id"])


@pytest.mark.slow
def test_a_batch_of_openais_of_20_megabytes(calls: Calls) -> None:
    content = b"".join(json.dumps(one).encode() + b"\n" for one in LINES)
    batch = calls.create(upload_in_chunks(calls, content))
    calls.emulator.advance(1_000)
    output = calls.content(calls.look(batch["id"])["output_file_id"])
    said = {one["custom_id"]: one["response"]["body"]["choices"][0]["message"]["content"] for one in output}
    assert said == {one["custom_id"]: one["body"]["messages"][0]["content"] for one in LINES}


def test_a_batch_of_anthropics_of_20_megabytes_is_created(calls: Calls) -> None:
    asked = [request(f"r{number}", system="x" * MEGABYTE, max_tokens=5) for number in range(20)]
    batch = calls.look_message_batch(calls.message_batch(asked))
    assert batch["request_counts"]["processing"] == 20


def test_a_file_that_is_too_large_is_a_413(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundswell.emulator.desks.files.LARGEST", 1_000)
    calls.upload(b"x" * 1_000)
    with pytest.raises(AssertionError, match="1001 bytes; batch files may have at most 1000"):
        calls.upload(b"x" * 1_001)
