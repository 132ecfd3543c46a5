"""Webhooks: signed as OpenAI signs them, in order, and never in the way of the emulator's work."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from openai import InvalidWebhookSignatureError, OpenAI

from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from tests.emulator.behaviours.webhooks import ENDS
from tests.emulator.calls import Calls
from tests.emulator.listener import Posted, listening

SECRETS = {
    "encoded": "whsec_" + base64.b64encode(b"a secret of 32 bytes, more or so").decode(),
    "plain": "just some words",
}


@pytest.fixture(scope="module")
def client() -> OpenAI:
    return OpenAI(api_key="sk-test", base_url="http://127.0.0.1:9", max_retries=0)


def posted(settings: Callable[[str], Settings], act: Callable[[Calls], str] = ENDS["batch.completed"]) -> Posted:
    """The first webhook of an emulator."""
    with listening() as listener, running(settings(listener.url)) as emulator:
        act(Calls(emulator))
        return listener.next()


def counts(emulator: Threaded, wanted: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """The emulator's count of webhooks, once it is as wanted."""
    calls, until = Calls(emulator), time.monotonic() + 10
    while True:
        told: dict[str, Any] = calls.openai("GET", "/emulator/ledger").json["webhooks"]
        if wanted(told):
            return told
        assert time.monotonic() < until, told


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
@pytest.mark.parametrize("event", ENDS)
def test_the_official_client_unwraps_them(client: OpenAI, event: str, secret: str) -> None:
    hook = posted(lambda url: Settings(webhook=url, webhook_secret=secret), ENDS[event])
    unwrapped = client.webhooks.unwrap(hook.body, hook.headers, secret=secret)
    assert unwrapped.type == event
    assert unwrapped.id == hook.headers["webhook-id"]


def test_the_official_client_finds_out_a_forgery(client: OpenAI) -> None:
    secret = SECRETS["encoded"]
    hook = posted(lambda url: Settings(webhook=url, webhook_secret=secret))
    with pytest.raises(InvalidWebhookSignatureError):
        client.webhooks.unwrap(hook.body.replace(b"completed", b"cancelled"), hook.headers, secret=secret)
    with pytest.raises(InvalidWebhookSignatureError):
        client.webhooks.unwrap(hook.body, hook.headers, secret=SECRETS["plain"])


def test_the_signature_is_as_old_as_the_real_clock_says(client: OpenAI) -> None:
    def act(calls: Calls) -> str:
        calls.emulator.advance(30 * 86_400)
        return ENDS["batch.completed"](calls)

    secret = SECRETS["encoded"]
    hook = posted(lambda url: Settings(webhook=url, webhook_secret=secret), act)
    assert client.webhooks.unwrap(hook.body, hook.headers, secret=secret).created_at > time.time() + 29 * 86_400


def test_without_a_secret_they_are_not_signed() -> None:
    assert "webhook-signature" not in posted(lambda url: Settings(webhook=url)).headers


def test_they_come_in_order_and_each_has_an_id_of_its_own() -> None:
    with listening() as listener, running(Settings(webhook=listener.url)) as emulator:
        calls = Calls(emulator)
        made = [ENDS["batch.completed"](calls) for _ in range(3)]
        hooks = [listener.next() for _ in made]
        assert [json.loads(hook.body)["data"]["id"] for hook in hooks] == made
        assert len({hook.headers["webhook-id"] for hook in hooks}) == 3
        assert counts(emulator, lambda told: told["delivered"] == 3)["failed"] == 0


@pytest.mark.parametrize("status", [b"500 No", b"nonsense here"], ids=["refused", "not-http"])
def test_one_that_is_not_accepted_is_counted_and_the_next_still_comes(status: bytes) -> None:
    with listening(status) as listener, running(Settings(webhook=listener.url)) as emulator:
        calls = Calls(emulator)
        for _ in range(2):
            ENDS["batch.completed"](calls)
            listener.next()
        assert counts(emulator, lambda told: told["failed"] == 2)["delivered"] == 0


def test_nobody_listens() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        with running(Settings(webhook=f"http://127.0.0.1:{unheard.getsockname()[1]}/")) as emulator:
            calls = Calls(emulator)
            id = ENDS["batch.completed"](calls)
            assert calls.look(id)["status"] == "completed"
            assert counts(emulator, lambda told: told["failed"] == 1)["delivered"] == 0


def test_a_secret_that_cannot_be_read_does_not_stop_the_emulator() -> None:
    with listening() as listener, running(Settings(webhook=listener.url, webhook_secret="whsec_a")) as emulator:
        calls = Calls(emulator)
        for _ in range(2):
            ENDS["batch.completed"](calls)
        assert counts(emulator, lambda told: told["failed"] == 2)["delivered"] == 0
