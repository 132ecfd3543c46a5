"""The wire format of an application: what is sent, and what counts as a reply."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.query_mutation.leaking import refuses
from groundswell.program.request import Chat, Fault, FaultKind, Reply, assistant, system, user
from groundswell.providers.accounts.addresses import InvalidValue
from groundswell.providers.accounts.settings import SETTINGS
from groundswell.providers.application import APPLICATION, LONGEST_REPLY, value_at
from groundswell.providers.provider import Call
from tests.properties import examples

JSON = {"content-type": "application/json"}
TALK = (system("Keep it."), user("one"), assistant("no"), user("two"))


def sent(chat: Chat, body: str) -> Any:
    """The body of a request, decoded."""
    call = APPLICATION.encode(chat, "bot", {"body": body})
    assert isinstance(call, Call)
    return msgspec.json.decode(call.body)


def decoded(status: int, body: bytes, reply: str = "data.reply", **headers: str) -> Reply | Fault:
    """What an answer means."""
    found = APPLICATION.configured({"reply": reply}).decode(Chat("m", TALK), status, headers or JSON, body, 0.0)
    assert isinstance(found, Reply | Fault)
    return found


def test_placeholders_are_replaced_and_instructions_are_not_sent() -> None:
    chat = Chat("shop/bot", TALK, extra={"session": "s1"})
    body = '{"q":"> {query}","all":"{messages}","of":{"s":["{session}",1,null,true]},"m":"{model}"}'
    talk = [{"role": each.role, "content": each.content} for each in TALK[1:]]
    assert sent(chat, body) == {"q": "> two", "all": talk, "of": {"s": ["s1", 1, None, True]}, "m": "bot"}


@settings(max_examples=examples(100))
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_query_is_sent_as_it_is_whatever_it_contains(query: str) -> None:
    assert sent(Chat("m", (user(query),)), '{"q":"a {query} b {session}"}')["q"].startswith(f"a {query} b ")
    assert sent(Chat("m", (user("{session}{query}"),)), '{"q":"{query}"}') == {"q": "{session}{query}"}


def test_a_conversation_needs_a_place_in_the_body() -> None:
    made = APPLICATION.encode(Chat("m", TALK), "m", {"body": '{"q":"{query}"}'})
    assert isinstance(made, Fault)
    assert "{session}" in made.message
    assert sent(Chat("m", TALK), '{"q":"{query}","s":"{session}"}')["q"] == "two"


@pytest.mark.parametrize(
    ("body", "reply", "text"),
    [
        (b'{"data": {"reply": "hi"}}', "data.reply", "hi"),
        (b'{"choices": [{"message": {"content": "yo"}}]}', "choices.0.message.content", "yo"),
        (b'{"reply": ""}', "reply", ""),
    ],
)
def test_the_reply_is_at_its_path(body: bytes, reply: str, text: str) -> None:
    assert decoded(200, body, reply) == Reply(text)


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (200, b'{"data": {}}', FaultKind.GARBLED, "nothing at 'data.reply'"),
        (200, b'{"data": {"reply": 7}}', FaultKind.GARBLED, "a value of type int"),
        (200, b"[1]", FaultKind.GARBLED, "not a JSON object"),
        (200, b"", FaultKind.GARBLED, "an empty body"),
        (200, b'{"data": {"reply": "%s"}}' % (b"a" * (LONGEST_REPLY + 1)), FaultKind.GARBLED, "200,001 characters"),
        (200, b'{"error": "broken", "data": {"reply": "lantern"}}', FaultKind.SERVER, "broken"),
        (302, b'{"data": {"reply": "lantern"}}', FaultKind.BAD_REQUEST, "HTTP 302"),
        (404, b'{"data": {"reply": "lantern"}}', FaultKind.NOT_FOUND, "HTTP 404"),
        (429, b"slow down", FaultKind.RATE_LIMITED, "HTTP 429"),
        (500, b'{"data": {"reply": "lantern"}}', FaultKind.SERVER, "HTTP 500"),
    ],
)
def test_anything_else_is_a_fault(status: int, body: bytes, kind: FaultKind, says: str) -> None:
    found = decoded(status, body)
    assert isinstance(found, Fault)
    assert found.kind is kind
    assert says in found.message


def test_a_status_may_be_a_refusal() -> None:
    wire = APPLICATION.configured({"refusal_status": str(SETTINGS["refusal_status"].read([403, "422"]))})
    found = [wire.decode(Chat("m", TALK), status, JSON, b'{"reply": "lantern"}', 0.0) for status in (403, 422, 400)]
    assert [type(each) for each in found] == [Reply, Reply, Fault]
    assert isinstance(found[0], Reply)
    assert refuses(found[0].text)
    assert "lantern" not in found[0].text
    for wrong in (200, "500", "", "403;404"):
        with pytest.raises(InvalidValue):
            SETTINGS["refusal_status"].read(wrong)


def test_a_page_is_no_reply() -> None:
    found = decoded(200, b"<html>lantern</html>", **{"content-type": "text/html; charset=utf-8"})
    assert isinstance(found, Fault)
    assert "text/html" in found.message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@settings(max_examples=examples(100))
@given(json_values, st.text())
def test_no_path_raises(data: Any, path: str) -> None:
    value_at(data, path)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"message": "hello"}, "must contain {query}"),
        ("hello", "must be a table"),
        ({"q": "{query}", "token": "sk-abcdefgh12345678"}, "looks like a key"),
    ],
)
def test_a_body_that_cannot_be(body: Any, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        SETTINGS["body"].read(body)
