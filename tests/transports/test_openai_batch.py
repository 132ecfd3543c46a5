"""OpenAI's batches over real HTTP, against the emulator."""

from __future__ import annotations

import json
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.engine.records import Found, Intent, Receipt, Undecided, Wave
from groundswell.errors import NoBatches, QueueFull, WaveFailed, WaveLost
from groundswell.program.request import Chat, Embed, Embedding, Fault, FaultKind, Reply, Request, Settlement, user
from groundswell.providers.openai import OPENAI
from groundswell.providers.provider import Call
from groundswell.transports.batch import BatchTransport
from tests.transports.batch_scene import Scene, Scripted, by_place, embeds, forgotten, gathered, said
from tests.transports.little import answer, serving


@pytest.fixture
def scene(emulator: Threaded) -> Scene:
    return Scene("openai", emulator.url, emulator)


def test_a_wave_there_and_back(scene: Scene, emulator: Threaded) -> None:
    found = scene.there_and_back(scene.wave(7))
    assert sorted(found) == list(range(7))
    assert all(isinstance(settlement, Reply) and settlement.text for settlement in found.values())
    totals = emulator.ledger()["totals"]
    assert (totals["batch_requests"], totals["requests"]) == (7, 0)


def test_embeddings(scene: Scene) -> None:
    wave = scene.wave(embeds("text-embedding-3-small", 3))
    found = scene.there_and_back(wave)
    assert [len(one.vectors) for at in range(3) if isinstance(one := found[at], Embedding)] == [1, 2, 3]


@pytest.mark.parametrize("requests", [3, "embeddings"])
def test_another_process_collects_the_same(scene: Scene, requests: object) -> None:
    wave = scene.wave(3 if requests == 3 else embeds("text-embedding-3-small", 3))
    receipt = scene.run(lambda transport: transport.dispatch(wave))
    first = scene.run(lambda transport: gathered(transport, wave, receipt))
    assert scene.run(lambda transport: gathered(transport, forgotten(wave), receipt)) == first
    assert not any(isinstance(one, Fault) for one in first.values())


def test_everybody_may_see_how_it_goes(scene: Scene) -> None:
    wave = scene.wave(40)

    async def use(transport: BatchTransport) -> None:
        receipt = await transport.dispatch(wave)
        await gathered(transport, wave, receipt)
        last = transport.seen(receipt)
        assert last is not None
        assert (last.state, last.total, last.done, last.failed) == ("completed", 40, 40, 0)
        assert (last.run, last.wave) == (wave.run, wave.id)
        assert last.ended_at is not None
        assert last.ended_at >= last.created_at
        assert transport.seen(Receipt({"batch": "another"})) is None

    scene.run(use)
    assert scene.seen.states[:2] == ["validating", "in_progress"]
    assert scene.seen.states[-1] == "completed"
    done = [info.done for info in scene.seen.all]
    assert done == sorted(done)
    assert len(set(done)) > 3, "its progress was not told"
    assert len(scene.seen.all) == len(set(scene.seen.all)), "no news was told"


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("line-500", FaultKind.SERVER),
        ("line-429", FaultKind.RATE_LIMITED),
        ("line-400", FaultKind.BAD_REQUEST),
        ("line-bare", FaultKind.SERVER),
        ("line-lost", FaultKind.GARBLED),
        ("line-filter", FaultKind.FILTERED),
        ("low-balance", FaultKind.QUOTA),
    ],
)
def test_lines_that_go_wrong(scene: Scene, emulator: Threaded, fault: str, kind: FaultKind) -> None:
    emulator.set_faults(Rule(script=("ok", fault, "ok", fault, "ok")))
    found = scene.there_and_back(scene.wave(5))
    assert sorted(found) == list(range(5))
    assert [one.kind for one in found.values() if isinstance(one, Fault)] == [kind, kind]


def test_nothing_but_errors(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="line-500"))
    found = scene.there_and_back(scene.wave(3))
    assert [one.kind for one in found.values() if isinstance(one, Fault)] == [FaultKind.SERVER] * 3


# The file.


def test_what_is_uploaded_and_ordered(scene: Scene) -> None:
    wave = scene.wave(3)
    made = {"id": "batch_1", "status": "validating", "created_at": 1}
    scripted = Scripted({"POST /v1/files": said({"id": "file-1", "object": "file"}), "POST /v1/batches": said(made)})
    with serving(scripted) as little:
        receipt = Scene("openai", little.url + "/v1").run(lambda transport: transport.dispatch(wave))
    assert receipt == Receipt({"batch": "batch_1", "created_at": 1.0})
    upload, order = little.got
    assert "transfer-encoding" not in upload.headers
    kind, _, boundary = upload.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    whole = b"content-type: multipart/form-data; boundary=%s\r\n\r\n%s" % (boundary.encode(), upload.body)
    parts: dict[Any, Any] = {
        part.get_param("name", header="content-disposition"): part for part in message_from_bytes(whole).walk()
    }
    texts = {name: part.get_payload() for name, part in parts.items()}
    assert (texts["purpose"], texts["expires_after[anchor]"], texts["expires_after[seconds]"]) == (
        "batch",
        "created_at",
        "259200",
    )
    assert parts["file"].get_filename() == f"a-run-{wave.id}.jsonl"
    lines = [json.loads(line) for line in texts["file"].splitlines()]
    assert [line["custom_id"] for line in lines] == [wave.custom_id(ask) for ask in wave.asks]
    assert {(line["method"], line["url"], line["body"]["model"]) for line in lines} == {
        ("POST", "/v1/chat/completions", scene.model)
    }
    assert json.loads(order.body) == {
        "input_file_id": "file-1",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {"groundswell_run": "a-run", "groundswell_wave": str(wave.id), "requests": "3"},
        "output_expires_after": {"anchor": "created_at", "seconds": 2_592_000},
    }


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("fault", ["500", "503", "429", "drop", "html", "drop-after", "malformed"])
def test_an_upload_is_tried_again(scene: Scene, emulator: Threaded, fault: str) -> None:
    emulator.set_faults(Rule(fault=fault, path="/v1/files", times=3))
    assert not any(isinstance(one, Fault) for one in scene.there_and_back(scene.wave(3)).values())


@pytest.mark.parametrize(
    ("fault", "error", "kind"),
    [
        ("500", WaveFailed, FaultKind.SERVER),
        ("429", QueueFull, FaultKind.RATE_LIMITED),
        ("drop", WaveFailed, FaultKind.CONNECTION),
        ("400", WaveFailed, FaultKind.UNSENT),
        ("413", WaveFailed, FaultKind.UNSENT),
        ("401", WaveFailed, FaultKind.AUTH),
        ("quota", WaveFailed, FaultKind.QUOTA),
        ("404", NoBatches, FaultKind.UNSENT),
    ],
)
def test_an_upload_that_fails_for_good(
    scene: Scene, emulator: Threaded, fault: str, error: type[WaveFailed], kind: FaultKind
) -> None:
    emulator.set_faults(Rule(fault=fault, path="/v1/files"))
    with pytest.raises(error) as raised:
        scene.there_and_back(scene.wave(3))
    assert type(raised.value) is error
    assert raised.value.fault.kind is kind


# What a batch holds.


def test_the_size_of_a_request_is_that_of_its_line(scene: Scene) -> None:
    wave = scene.wave([Chat(scene.model, (user("x" * n),), temperature=0.5) for n in (1, 100, 10_000)])

    async def use(transport: BatchTransport) -> list[int | Fault]:
        return [transport.size(item.request) for item in wave.items]

    calls = [OPENAI.batch.encode(item.request, scene.model) for item in wave.items]
    ids = [wave.custom_id(ask) for ask in wave.asks]
    lines = [OPENAI.batch.line(id, call) for id, call in zip(ids, calls, strict=True) if isinstance(call, Call)]
    assert scene.run(use) == [len(line) + 1 for line in lines]


UNFIT: dict[str, Request] = {
    "no messages": Chat("gpt-4o-mini", ()),
    "no texts": Embed("text-embedding-3-small", ()),
    "too many texts": Embed("text-embedding-3-small", ("a",) * 50_001),
    "a stream": Chat("gpt-4o-mini", (user("a"),), extra={"stream": True}),
    "another model": Chat("gpt-4o-mini", (user("a"),), extra={"model": "gpt-4o"}),
    "messages taken away": Chat("gpt-4o-mini", (user("a"),), extra={"messages": None}),
    "input taken away": Embed("text-embedding-3-small", ("a",), extra={"input": []}),
    "no Unicode": Chat("gpt-4o-mini", (user("\ud800"),)),
    "no JSON": Chat("gpt-4o-mini", (user("a"),), extra={"metadata": {1j: 2}}),
    "not finite": Chat("gpt-4o-mini", (user("a"),), temperature=float("inf")),
    "larger than a batch": Chat("gpt-4o-mini", (user("a" * 199_000_001),)),
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("unfit", UNFIT)
def test_what_would_fail_a_batch_is_found_before(scene: Scene, emulator: Threaded, unfit: str) -> None:
    async def use(transport: BatchTransport) -> int | Fault:
        return transport.size(UNFIT[unfit])

    fault = scene.run(use)
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.BAD_REQUEST


def test_what_fits_by_its_size_has_not_too_many_texts(scene: Scene) -> None:
    """A batch may hold 50,000 texts, in however many requests."""

    async def use(transport: BatchTransport) -> None:
        for texts in (1, 7, 2048, 50_000):
            size = transport.size(Embed("text-embedding-3-small", ("a",) * texts))
            assert isinstance(size, int)
            assert transport.capacity.bytes // size * texts <= 50_000
            assert size <= transport.capacity.bytes

    scene.run(use)


@pytest.mark.parametrize(
    "requests",
    [
        [Chat("gpt-4o-mini", (user("a"),)), Chat("gpt-4o", (user("a"),))],
        [Chat("gpt-4o-mini", (user("a"),)), Embed("gpt-4o-mini", ("a",))],
    ],
    ids=["two models", "two endpoints"],
)
def test_a_batch_is_for_one_model_and_endpoint(scene: Scene, emulator: Threaded, requests: list[Request]) -> None:
    with pytest.raises(WaveFailed, match="one model and endpoint, this one has gpt-4o"):
        scene.there_and_back(scene.wave(requests))
    assert emulator.ledger()["totals"]["received"] == 0


def test_a_request_that_cannot_be_sent_stops_its_wave(scene: Scene, emulator: Threaded) -> None:
    with pytest.raises(WaveFailed, match="valid Unicode"):
        scene.there_and_back(scene.wave([Chat(scene.model, (user("a"),)), Chat(scene.model, (user("\ud800"),))]))
    assert emulator.ledger()["totals"]["received"] == 0


def test_a_wave_that_cannot_be_written_down(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundswell.transports.batch.IN_MEMORY", 10)
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(WaveFailed, match="temporary file: No such file"):
        scene.there_and_back(scene.wave(3))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device here")
def test_a_disk_that_is_full_is_found_out_before_anything_is_ordered(
    scene: Scene, emulator: Threaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the last lines are buffered in is written late."""
    full = Path("/dev/full").open("w+b")  # noqa: SIM115  the transport closes it
    monkeypatch.setattr("groundswell.transports.batch.SpooledTemporaryFile", lambda _: full)
    with pytest.raises(WaveFailed, match="temporary file: No space left"):
        scene.there_and_back(scene.wave(3))
    assert emulator.ledger()["totals"]["received"] == 0


# Batches that fail as a whole.


async def until_it_fails(
    transport: BatchTransport, wave: Wave, receipt: Receipt | None = None
) -> dict[int, Settlement]:
    """What comes of a wave before it fails, by the place of the ask; the failure is under -1."""
    found = []
    try:
        async for settled in transport.collect(wave, receipt or await transport.dispatch(wave)):
            found.append(settled)
    except WaveFailed as failed:
        return {**by_place(wave, found), -1: failed.fault}
    return by_place(wave, found)


def test_lines_that_are_to_blame(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="bad-lines", path="/v1/batches", times=1))
    found = scene.run(lambda transport: until_it_fails(transport, scene.wave(20)))
    count = len(found) - 1
    assert 0 < count < 20
    assert found.pop(-1) == Fault(FaultKind.UNSENT, f"the batch failed because of {count} invalid requests")
    assert {one.kind for one in found.values() if isinstance(one, Fault)} == {FaultKind.BAD_REQUEST}
    assert emulator.ledger()["totals"]["batch_requests"] == 0


@pytest.mark.parametrize("lines", [(2, 4), (4, 2, 2), (1, 2, 3, 4), (0, 5, 2, -1, 2**70)], ids=str)
def test_which_lines_are_to_blame(scene: Scene, lines: tuple[int, ...]) -> None:
    problems = [{"code": "x", "message": f"bad line {line}", "line": line, "param": "body.messages"} for line in lines]
    wave, batch = scene.wave(4), ended(status="failed", errors={"object": "list", "data": problems})
    with serving(Scripted({"GET /v1/batches/batch_1": said(batch)})) as little:
        there = Scene("openai", little.url)
        found = there.run(lambda transport: until_it_fails(transport, wave, Receipt({"batch": "batch_1"})))
    named = {line - 1 for line in lines if 1 <= line <= 4}
    assert found.keys() == (named if len(named) == 4 else {*named, -1})
    assert all(
        found[at] == Fault(FaultKind.BAD_REQUEST, f"bad line {at + 1} (body.messages)") for at in found.keys() - {-1}
    )


def test_a_queue_that_is_full(emulator: Threaded) -> None:
    with running(Settings(limits=RateLimits(enqueued_tokens=1000))) as tight:
        scene = Scene("openai", tight.url, tight)
        with pytest.raises(QueueFull, match="Enqueued token limit reached") as raised:
            scene.there_and_back(scene.wave([Chat(scene.model, (user("x" * 8000),))]))
    assert raised.value.limit == 1000


def test_a_batch_that_fails_for_no_reason_of_ours(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="batch-failed", path="/v1/batches"))
    with pytest.raises(WaveFailed, match="the batch failed: The batch could not be validated") as raised:
        scene.there_and_back(scene.wave(3))
    assert raised.value.fault.kind is FaultKind.UNSENT


# Odd providers.


def ended(**fields: Any) -> dict[str, Any]:
    """A batch of two that has ended."""
    counts = {"total": 2, "completed": 2, "failed": 0}
    return {"id": "batch_1", "status": "completed", "created_at": 1.0, "request_counts": counts, **fields}


def line_of(intent: Intent, place: int, text: str) -> bytes:
    """A reply as it stands in a file of results."""
    message = {"role": "assistant", "content": text}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}, "model": "m"}
    response = {"status_code": 200, "body": {**body, "object": "chat.completion"}}
    return json.dumps({"custom_id": intent.custom_id(intent.asks[place]), "response": response}).encode()


def error_of(intent: Intent, place: int) -> bytes:
    error = {"code": "server_error", "message": "no"}
    return json.dumps({"custom_id": intent.custom_id(intent.asks[place]), "response": None, "error": error}).encode()


def collected(answers: dict[str, Any], wave: Wave) -> dict[int, Settlement]:
    """What is collected of batch_1 from a provider that answers so."""
    with serving(Scripted(answers)) as little:
        scene = Scene("openai", little.url)
        return scene.run(lambda transport: gathered(transport, wave, Receipt({"batch": "batch_1"})))


def test_a_reply_is_worth_more_than_an_error(scene: Scene) -> None:
    wave = scene.wave(2)
    answers = {
        "GET /v1/batches/batch_1": said(ended(output_file_id="out", error_file_id="err")),
        "GET /v1/files/err": answer(b"\n".join([error_of(wave, 0), error_of(wave, 1)])),
        "GET /v1/files/out": answer(line_of(wave, 1, "yes") + b"\n\r\n" + line_of(wave, 1, "again")),
    }
    found = collected(answers, wave)
    assert isinstance(found[0], Fault)
    assert isinstance(found[1], Reply)
    assert found[1].text == "yes"


def test_files_that_are_not_there_yet(scene: Scene) -> None:
    wave = scene.wave(2)
    whole = answer(line_of(wave, 0, "a") + b"\n" + line_of(wave, 1, "b"))
    answers = {
        "GET /v1/batches/batch_1": [said(ended()), said(ended(status="a new one")), said(ended(output_file_id="out"))],
        "GET /v1/files/out": whole,
    }
    assert [one.text for _, one in sorted(collected(answers, wave).items()) if isinstance(one, Reply)] == ["a", "b"]


def test_files_that_are_not_there_yet_of_a_batch_that_counts_nothing(scene: Scene) -> None:
    """Not everybody who speaks this API counts requests. All of them would be sent, and paid for, again."""
    wave = scene.wave(2)
    answers = {
        "GET /v1/batches/batch_1": [
            said(ended(request_counts=None)),
            said(ended(request_counts=None, output_file_id="out")),
        ],
        "GET /v1/files/out": answer(line_of(wave, 0, "a") + b"\n" + line_of(wave, 1, "b")),
    }
    assert [one.text for _, one in sorted(collected(answers, wave).items()) if isinstance(one, Reply)] == ["a", "b"]


def test_replies_that_are_not_there_yet(scene: Scene) -> None:
    """The errors are there already."""
    wave, counts = scene.wave(2), {"total": 2, "completed": 1, "failed": 1}
    soon = ended(request_counts=counts, error_file_id="err")
    answers = {
        "GET /v1/batches/batch_1": [said(soon), said({**soon, "output_file_id": "out"})],
        "GET /v1/files/err": answer(error_of(wave, 0)),
        "GET /v1/files/out": answer(line_of(wave, 1, "yes")),
    }
    found = collected(answers, wave)
    assert isinstance(found[0], Fault)
    assert isinstance(found[1], Reply)


def test_files_that_never_come(scene: Scene) -> None:
    """The replies were paid for: they are waited for as long as a batch that is not shown."""
    with pytest.raises(WaveLost, match=r"the results of batch batch_1 for 6[01] minutes"):
        collected({"GET /v1/batches/batch_1": said(ended())}, scene.wave(2))


def test_files_that_come_late(scene: Scene) -> None:
    wave = scene.wave(1)
    answers = {
        "GET /v1/batches/batch_1": [*[said(ended())] * 20, said(ended(output_file_id="out"))],
        "GET /v1/files/out": answer(line_of(wave, 0, "mine")),
    }
    assert isinstance(collected(answers, wave)[0], Reply)


def test_a_model_that_batches_are_not_for(scene: Scene) -> None:
    message = "The provided model 'gpt-4o-mini' is not supported by the Batch API."
    problem = {"code": "model_not_found", "message": message, "line": 1, "param": "body.model"}
    failed = ended(status="failed", errors={"object": "list", "data": [problem]})
    with pytest.raises(NoBatches, match="not supported by the Batch API"):
        collected({"GET /v1/batches/batch_1": said(failed)}, scene.wave(2))


def test_another_batch_than_the_one_asked_for(scene: Scene) -> None:
    wave = scene.wave(1)
    answers = {
        "GET /v1/batches/batch_1": [said({**ended(), "id": "batch_2"}), said(ended(output_file_id="out"))],
        "GET /v1/files/out": answer(line_of(wave, 0, "mine")),
    }
    assert isinstance(collected(answers, wave)[0], Reply)


def test_a_list_in_a_circle_decides_nothing(scene: Scene) -> None:
    page = {"data": [{**ended(), "created_at": 4e9}], "has_more": True, "last_id": "batch_1"}
    with serving(Scripted({"GET /v1/batches": said(page)})) as little:
        found = Scene("openai", little.url).run(lambda transport: transport.adopt(forgotten(scene.wave(1))))
    assert isinstance(found, Undecided)


def test_a_wave_on_a_later_page_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundswell.providers.openai.PER_PAGE", 1)
    waves = [scene.wave(1, number) for number in range(3)]

    async def use(transport: BatchTransport) -> None:
        receipts = [await transport.dispatch(wave) for wave in waves]
        for wave, receipt in zip(waves, receipts, strict=True):
            assert await transport.adopt(forgotten(wave)) == Found(receipt)

    scene.run(use)


def test_a_list_that_begins_with_the_oldest(scene: Scene) -> None:
    """That the first page is all of long ago says nothing of the next then."""
    wave = scene.wave(1)
    mine = {"groundswell_run": wave.run, "groundswell_wave": str(wave.id)}
    old = [{**ended(), "id": f"batch_{n}", "created_at": 1e9 + n} for n in range(2)]
    pages = [said({"data": old, "has_more": True, "last_id": "batch_1"})]
    pages.append(said({"data": [{**ended(metadata=mine), "id": "batch_2", "created_at": 4e9}]}))
    with serving(Scripted({"GET /v1/batches": pages})) as little:
        found = Scene("openai", little.url).run(lambda transport: transport.adopt(forgotten(wave)))
    assert found == Found(Receipt({"batch": "batch_2", "created_at": 4e9}))
