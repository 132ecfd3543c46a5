"""Every fault of the emulator as our own dialects see it: each becomes what a client has to do about it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from groundswell.emulator.faults import KINDS, RetryForm, Rule, Stage
from groundswell.emulator.http import Answer, Silence
from groundswell.emulator.settings import Settings
from groundswell.program.request import Chat, Fault, FaultKind, Reply, user
from groundswell.providers.provider import Call
from groundswell.providers.registry import WIRE_FORMATS
from tests.emulator.desk_scene import Scene
from tests.emulator.emulated import EMULATED

CHAT = Chat("m", (user("Tell me about the harbour."),))
DIALECTS = {name: (wire, EMULATED[name]) for name, wire in WIRE_FORMATS.items() if name in EMULATED}
LIVE = [name for name, kind in KINDS.items() if kind.stage in (Stage.REQUEST, Stage.REPLY)]
SEEN: dict[str, FaultKind] = {
    "429": FaultKind.RATE_LIMITED,
    "429-bare": FaultKind.RATE_LIMITED,
    "quota": FaultKind.QUOTA,
    "400": FaultKind.BAD_REQUEST,
    "401": FaultKind.AUTH,
    "403": FaultKind.AUTH,
    "404": FaultKind.NOT_FOUND,
    "408": FaultKind.TIMEOUT,
    "409": FaultKind.SERVER,
    "413": FaultKind.CONTEXT,
    "500": FaultKind.SERVER,
    "502": FaultKind.SERVER,
    "503": FaultKind.OVERLOADED,
    "504": FaultKind.TIMEOUT,
    "529": FaultKind.OVERLOADED,
    "context": FaultKind.CONTEXT,
    "html": FaultKind.GARBLED,
    "truncated": FaultKind.GARBLED,
    "malformed": FaultKind.GARBLED,
    "empty": FaultKind.GARBLED,
    "filter": FaultKind.FILTERED,
    "stream-error": FaultKind.GARBLED,
}
SILENT = ("drop", "hang", "drop-after")
READABLE = {
    "all": ("refusal", "wrong-type"),
    "openai": (),
    "anthropic": ("empty", "filter"),  # a model that falls silent; its filter is told as a refusal
    "ollama": ("empty", "filter"),  # an empty text is one; it has no filter
}
AS_OTHERS = {("ollama", "quota"): FaultKind.RATE_LIMITED}


@pytest.fixture
def scenes() -> Iterator[list[Scene]]:
    made: list[Scene] = []
    yield made
    for scene in made:
        scene.close()


def answered(scenes: list[Scene], provider: str, fault: str, **body: Any) -> Answer | Silence:
    """The answer to one chat that meets a fault."""
    return answered_by(scenes, provider, Rule(fault=fault, retry_after=7), **body)


def answered_by(scenes: list[Scene], provider: str, rule: Rule, **body: Any) -> Answer | Silence:
    scene = Scene(Settings(faults=(rule,)))
    scenes.append(scene)
    dialect, model = DIALECTS[provider]
    call = dialect.encode(CHAT, model)
    assert isinstance(call, Call)
    sent = {**msgspec.json.decode(call.body), **body}
    return scene.call("POST", call.path, sent, headers={"anthropic-version": "2023-06-01"})


def seen(provider: str, answer: Answer, now: float = 0.0) -> Reply | Fault:
    """What the dialect makes of an answer, as far as it arrived."""
    headers = {"content-type": answer.content_type.decode()}
    headers |= {name.decode(): value.decode() for name, value in answer.headers}
    got = DIALECTS[provider][0].decode(CHAT, answer.status, headers, answer.body[: answer.cut], now)
    assert isinstance(got, Reply | Fault)
    return got


def test_the_tables_here_hold_every_live_fault() -> None:
    assert {*SEEN, *SILENT, *READABLE["all"]} == set(LIVE)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("provider", DIALECTS)
@pytest.mark.parametrize("fault", LIVE)
def test_every_live_fault_is_seen_for_what_it_is(scenes: list[Scene], provider: str, fault: str) -> None:
    answer = answered(scenes, provider, fault)
    if fault in SILENT:
        assert answer == Silence(hang=fault == "hang")
        return
    assert isinstance(answer, Answer)
    got = seen(provider, answer)
    if fault in (*READABLE["all"], *READABLE[provider]):
        assert isinstance(got, Reply), got
        assert fault != "refusal" or provider == "ollama" or got.finish == "refusal"
        return
    assert isinstance(got, Fault), got
    assert got.kind is AS_OTHERS.get((provider, fault), SEEN[fault])
    assert got.retry_after == (7 if fault == "429" else None)


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "date"])
def test_when_to_come_again_is_told_in_three_ways(scenes: list[Scene], form: RetryForm) -> None:
    answer = answered_by(scenes, "openai", Rule(fault="429", retry_after=7, retry_as=form))
    assert isinstance(answer, Answer)
    got = seen("openai", answer, now=scenes[-1].at)
    assert isinstance(got, Fault)
    assert got.retry_after == 7


@pytest.mark.parametrize(("told", "kind"), [(True, FaultKind.SERVER), (False, FaultKind.BAD_REQUEST)])
def test_whether_to_come_again_at_all(scenes: list[Scene], told: bool, kind: FaultKind) -> None:
    answer = answered_by(scenes, "anthropic", Rule(fault="500", should_retry=told))
    assert isinstance(answer, Answer)
    got = seen("anthropic", answer)
    assert isinstance(got, Fault)
    assert got.kind is kind


@pytest.mark.parametrize("provider", DIALECTS)
@pytest.mark.parametrize("fault", [name for name in LIVE if KINDS[name].stage is Stage.REPLY])
def test_what_is_made_is_paid_even_if_it_is_spoilt(scenes: list[Scene], provider: str, fault: str) -> None:
    for stream in (False, True):
        answered(scenes, provider, fault, stream=stream)
        entry = scenes[-1].entry(DIALECTS[provider][1])
        assert (entry["received"], entry["requests"], entry["faults"]) == (1, 1, {fault: 1})


async def gathered(answer: Answer) -> list[bytes]:
    """The chunks that leave before the connection is cut."""
    assert answer.chunks is not None
    chunks, sent = [], 0
    async for chunk in answer.chunks:
        sent += len(chunk)
        if answer.cut is not None and sent > answer.cut:
            break
        chunks.append(chunk)
    return chunks


def streamed(scenes: list[Scene], provider: str, fault: str) -> tuple[Answer, bytes]:
    answer = answered(scenes, provider, fault, stream=True)
    assert isinstance(answer, Answer)
    return answer, b"".join(asyncio.run(gathered(answer)))


ENDS = {"openai": b"data: [DONE]", "anthropic": b'"message_stop"', "ollama": b'"done":true'}


@pytest.mark.parametrize("provider", DIALECTS)
def test_streams_break_off_fail_or_are_ended(scenes: list[Scene], provider: str) -> None:
    end = ENDS[provider]
    answer, text = streamed(scenes, provider, "truncated")
    assert answer.cut is not None
    assert end not in text
    _, text = streamed(scenes, provider, "stream-error")
    assert b'"error"' in text
    assert end not in text
    answer, text = streamed(scenes, provider, "wrong-type")
    assert answer.content_type == b"text/plain"
    assert end in text
    told = {"openai": b'"content_filter"', "anthropic": b'"stop_reason":"refusal"', "ollama": b'"done_reason":"stop"'}
    _, text = streamed(scenes, provider, "filter")
    assert told[provider] in text
