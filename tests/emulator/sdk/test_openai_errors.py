"""What the official OpenAI client raises, when it tries again, and what that costs."""

from __future__ import annotations

import socket
from collections.abc import Callable

import openai
import pytest
from openai import OpenAI

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings

CHAT = "/v1/chat/completions"


@pytest.fixture
def client(emulator: Threaded, openai_client: OpenAI) -> OpenAI:
    return openai_client


@pytest.fixture
def once(client: OpenAI) -> OpenAI:
    """The client that never tries again."""
    return client.with_options(max_retries=0)


def say(client: OpenAI) -> str | None:
    """One chat."""
    reply = client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "Hello"}])
    return reply.choices[0].message.content


def counted(emulator: Threaded) -> tuple[int, int]:
    """How many requests came, and how many were paid for."""
    totals = emulator.ledger()["totals"]
    return totals["received"], totals["requests"]


ERRORS: dict[str, type[openai.APIStatusError]] = {
    "400": openai.BadRequestError,
    "401": openai.AuthenticationError,
    "403": openai.PermissionDeniedError,
    "404": openai.NotFoundError,
    "408": openai.APIStatusError,
    "409": openai.ConflictError,
    "413": openai.APIStatusError,
    "429": openai.RateLimitError,
    "429-bare": openai.RateLimitError,
    "quota": openai.RateLimitError,
    "context": openai.BadRequestError,
    "500": openai.InternalServerError,
    "502": openai.InternalServerError,
    "503": openai.InternalServerError,
    "504": openai.InternalServerError,
    "529": openai.InternalServerError,
}


@pytest.mark.parametrize(("fault", "error"), ERRORS.items(), ids=ERRORS)
def test_errors_by_status(once: OpenAI, emulator: Threaded, fault: str, error: type[openai.APIStatusError]) -> None:
    emulator.set_faults(Rule(fault=fault))
    with pytest.raises(error) as raised:
        say(once)
    assert type(raised.value) is error
    if fault.isdigit():
        assert raised.value.status_code == int(fault)
    assert raised.value.request_id
    assert counted(emulator) == (1, 0)


CODES = {
    "401": "invalid_api_key",
    "429": "rate_limit_exceeded",
    "quota": "insufficient_quota",
    "context": "context_length_exceeded",
}


@pytest.mark.parametrize(("fault", "code"), CODES.items(), ids=CODES)
def test_errors_by_code(once: OpenAI, emulator: Threaded, fault: str, code: str) -> None:
    emulator.set_faults(Rule(fault=fault))
    with pytest.raises(openai.APIStatusError) as raised:
        say(once)
    assert raised.value.code == code


BAD: dict[str, tuple[Callable[[OpenAI], object], type[openai.APIStatusError], str | None]] = {
    "unknown model": (
        lambda client: client.chat.completions.create(model="nobody", messages=[{"role": "user", "content": "x"}]),
        openai.NotFoundError,
        None,
    ),
    "misspelt model": (
        lambda client: client.chat.completions.create(model="gpt-4o-mni", messages=[{"role": "user", "content": "x"}]),
        openai.NotFoundError,
        None,
    ),
    "a custom tool": (
        lambda client: client.chat.completions.create(
            model="gpt-4o-mini",
            messages=[{"role": "user", "content": "x"}],
            tools=[{"type": "custom", "custom": {"name": "shell"}}],
        ),
        openai.BadRequestError,
        "tools[0].type",
    ),
    "no messages": (
        lambda client: client.chat.completions.create(model="gpt-4o-mini", messages=[]),
        openai.BadRequestError,
        "messages",
    ),
    "temperature": (
        lambda client: client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": "x"}], temperature=3
        ),
        openai.BadRequestError,
        "temperature",
    ),
    "a batch without a window": (
        lambda client: client.post("/batches", cast_to=object, body={"input_file_id": "x", "endpoint": CHAT}),
        openai.BadRequestError,
        "completion_window",
    ),
    "no such file": (lambda client: client.files.retrieve("file-x"), openai.NotFoundError, "id"),
    "no such endpoint": (lambda client: client.get("/nothing", cast_to=object), openai.NotFoundError, None),
}


@pytest.mark.parametrize(("act", "error", "param"), BAD.values(), ids=BAD)
def test_bad_requests(
    once: OpenAI, act: Callable[[OpenAI], object], error: type[openai.APIStatusError], param: str | None
) -> None:
    with pytest.raises(error) as raised:
        act(once)
    assert raised.value.param == param
    assert raised.value.type == "invalid_request_error"


def test_a_wrong_key() -> None:
    with running(Settings(keys={"us": "sk-right"})) as emulator:
        with OpenAI(api_key="sk-wrong", base_url=f"{emulator.url}/v1") as client:
            with pytest.raises(openai.AuthenticationError):
                say(client)
            assert say(client.with_options(api_key="sk-right"))
        assert emulator.ledger()["accounts"].keys() == {"unknown", "us"}


# Connections.


def test_a_dropped_connection(once: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="drop"))
    with pytest.raises(openai.APIConnectionError):
        say(once)
    assert counted(emulator) == (1, 0)


def test_nobody_there() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}/v1"
        with OpenAI(api_key="x", base_url=url, max_retries=0) as client, pytest.raises(openai.APIConnectionError):
            say(client)


def test_a_reply_that_is_lost_on_its_way_is_paid_for(once: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="drop-after"))
    with pytest.raises(openai.APIConnectionError):
        say(once)
    assert counted(emulator) == (1, 1)


def test_no_answer(once: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="hang"))
    with pytest.raises(openai.APITimeoutError):
        say(once.with_options(timeout=0.3))
    assert counted(emulator) == (1, 0)


def test_a_stream_that_fails_after_it_has_begun(once: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="stream-error"))
    with once.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": "Hello"}], stream=True
    ) as stream:
        assert next(stream).choices[0].delta.role == "assistant"
        with pytest.raises(openai.APIError, match="server had an error"):
            list(stream)


def test_a_reply_that_breaks_off(once: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="truncated"))
    with pytest.raises(openai.APIConnectionError):
        say(once)
    assert counted(emulator) == (1, 1)


# Replies that are not what was hoped for.


def test_a_refusal(client: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="refusal"))
    reply = client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "Hello"}])
    assert reply.choices[0].message.refusal
    assert reply.choices[0].message.content is None


def test_the_content_filter(client: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="filter"))
    with pytest.raises(openai.ContentFilterFinishReasonError):
        client.chat.completions.parse(model="gpt-4o-mini", messages=[{"role": "user", "content": "Hello"}])


def test_no_choices(client: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="empty"))
    reply = client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "Hello"}])
    assert reply.choices == []


# Trying again.

TRIES: dict[str, tuple[tuple[str, ...], int]] = {
    "429": (("429", "ok"), 2),
    "twice 429": (("429", "429", "ok"), 3),
    "500 and 429": (("500", "429", "ok"), 3),
    "408": (("408", "ok"), 2),
    "409": (("409", "ok"), 2),
    "503": (("503", "ok"), 2),
    "a drop": (("drop", "ok"), 2),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("script", "came"), TRIES.values(), ids=TRIES)
def test_the_client_tries_again_and_pays_once(
    client: OpenAI, emulator: Threaded, script: tuple[str, ...], came: int
) -> None:
    emulator.set_faults(Rule(script=script, retry_after=0.01))
    assert say(client)
    assert counted(emulator) == (came, 1)


def test_the_client_gives_up_after_two_retries(client: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="429", retry_after=0.01))
    with pytest.raises(openai.RateLimitError):
        say(client)
    assert counted(emulator) == (3, 0)


def test_a_reply_that_was_lost_is_asked_for_and_paid_again(client: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(script=("drop-after", "ok")))
    assert say(client)
    assert counted(emulator) == (2, 2)
    assert emulator.ledger()["totals"]["paid_again"] == 1


@pytest.mark.parametrize("fault", ["400", "401", "403", "404", "413"])
def test_what_is_not_tried_again(client: OpenAI, emulator: Threaded, fault: str) -> None:
    emulator.set_faults(Rule(fault=fault))
    with pytest.raises(openai.APIStatusError):
        say(client)
    assert counted(emulator) == (1, 0)


def test_a_wait_of_more_than_two_minutes_is_not_waited_out(client: OpenAI, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="429", retry_after=121))
    with pytest.raises(openai.RateLimitError) as raised:
        say(client)
    assert raised.value.response.headers["retry-after"] == "121"
    assert counted(emulator) == (1, 0)
