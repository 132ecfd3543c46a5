"""Nothing of a key, a header or a proxy's password is in what a transport of batches gives, raises or tells."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from groundswell.engine.records import Receipt, Wave
from groundswell.errors import WaveError
from groundswell.providers.accounts.account import Key
from groundswell.transports.batch import BatchTransport
from groundswell.transports.batch_client import Patience
from tests.planted import BOX, HEADER, STATUSES, leaked
from tests.transports.batch_scene import KINDS, Scene
from tests.transports.little import Got, answer, serving


def everywhere(got: Got, custom_ids: list[str]) -> dict[str, Any]:
    """Whatever a provider may answer, with our secrets in every place that it has."""
    said = {**got.headers, "bare": BOX}
    words = json.dumps(said)
    error = {"message": words, "type": BOX, "code": BOX, "param": words, "line": 1}
    return {
        "id": BOX,
        "object": "file" if "/files" in got.line else "batch",
        "type": BOX,
        "status": "failed",
        "processing_status": "ended",
        "errors": {"data": [error]},
        "error": error if "error" in custom_ids else None,
        "metadata": {"groundswell_run": BOX, "groundswell_wave": "7"},
        "created_at": 4e9,
        "request_counts": {"total": 2, "completed": 1, "failed": 1, "succeeded": 2},
        "output_file_id": BOX,
        "results_url": f"http://{got.headers['host']}/{BOX}",
        "endpoint": BOX,
        "has_more": False,
    }


def parrot(status: int, wave: Wave, *, good_ids: bool) -> Callable[[Got], bytes]:
    """A provider that repeats what it was sent, in objects, lists, lines and errors."""
    ids = [wave.custom_id(ask) for ask in wave.asks]

    def answering(got: Got) -> bytes:
        one = everywhere(got, ["error"] if status >= 400 else [])
        if good_ids:
            one = {**one, "id": "file-1" if "/files" in got.line else "batch_1", "metadata": None}
        if "/content" in got.line or "/results" in got.line or BOX in got.line:
            errors = [{"message": json.dumps(got.headers), "type": BOX, "code": BOX} for _ in ids]
            lines = [
                {"custom_id": id, "response": None, "error": error, "result": {"type": "errored", "error": error}}
                for id, error in zip(ids, errors, strict=True)
            ]
            return answer("\n".join(map(json.dumps, lines)).encode(), content_type=BOX.replace(" ", "-"))
        listed = got.line.startswith("GET") and "limit=" in got.line
        body = json.dumps({**one, "data": [one]} if listed else one).encode()
        return answer(body, f"{status} {BOX}", content_type="application/json", retry_after=BOX)

    return answering


async def everything(transport: BatchTransport, wave: Wave) -> AsyncIterator[Any]:
    """What comes of everything that a transport can do: given, told or raised."""

    async def collected(receipt: Receipt) -> list[Any]:
        return [settled async for settled in transport.collect(wave, receipt)]

    async def listed() -> list[Any]:
        return [info async for info in transport.listed(0.0)]

    for work in (
        lambda: transport.dispatch(wave),
        lambda: collected(Receipt({"batch": "batch_1"})),
        lambda: transport.adopt(wave),
        lambda: transport.look("batch_1"),
        lambda: transport.cancel("batch_1"),
        listed,
    ):
        try:
            yield await work()
        except WaveError as error:
            yield "".join(traceback.format_exception(error))
            yield [str(error), getattr(error, "fault", None)]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("status", [200, 401, 403, *STATUSES])
@pytest.mark.parametrize("good_ids", [True, False], ids=["good ids", "odd ids"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_our_secrets_is_told(kind: str, good_ids: bool, status: int) -> None:
    wave = Scene(kind, "http://127.0.0.1:1").wave(2)
    with serving(parrot(status, wave, good_ids=good_ids)) as little:
        scene = Scene(kind, little.url, key=Key(BOX), headers={"x-pass": Key(HEADER)})

        async def use(transport: BatchTransport) -> list[Any]:
            return [came async for came in everything(transport, wave)]

        came = scene.run(use, patience=Patience(5.0, silence=5.0))
    assert any(HEADER in got.headers["x-pass"] for got in little.got), "the secrets were not even sent"
    told: list[str | bytes] = [msgspec.json.encode(came, enc_hook=str), msgspec.json.encode(scene.seen.all), repr(came)]
    assert leaked(told) == set()
