"""What cache markers cover."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.tokens import count_request
from groundswell.emulator.wire import Rejected
from groundswell.emulator.wire.anthropic import cache_points, read_chat
from groundswell.program.request import Chat
from groundswell.providers.anthropic import ANTHROPIC
from groundswell.providers.provider import Call
from tests.providers.strategies import anthropic_chats

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def text(words: str, mark: Any = None) -> dict[str, Any]:
    return {"type": "text", "text": words} | ({"cache_control": mark} if mark else {})


def request(*blocks: dict[str, Any], system: Any = None, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": list(blocks)}]
    return {"model": "m", "max_tokens": 9, "messages": messages, **({"system": system} if system else {}), **more}


def test_no_marker_covers_nothing() -> None:
    assert cache_points(request(text("hello"))) == []


def test_markers_cover_what_stands_before_them() -> None:
    made = request(text("abcdefgh", MARK), text("more"), system=[text("sys", HOUR)])
    first, second = cache_points(made)
    assert (first.tokens, first.ttl) == (3 + 1, "1h")
    assert (second.tokens, second.ttl) == (4 + 3 + 2, "5m")


def test_a_result_and_what_is_said_beside_it_are_two_messages() -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": "four"}
    made = request(result, text("four"), text("four", MARK))
    assert cache_points(made)[0].tokens == count_request(read_chat(made).request) == 2 * 3 + 3 * 1


def test_the_next_turn_begins_with_the_digest_of_the_last() -> None:
    before = request(text("one", MARK))
    after = request(text("one", MARK), text("two", MARK))
    assert cache_points(after)[0].digest == cache_points(before)[0].digest
    assert cache_points(after)[1].digest != cache_points(before)[0].digest


def test_where_the_markers_stand_does_not_change_what_is_said() -> None:
    marked = cache_points(request(text("one", MARK), text("two", MARK)))
    moved = cache_points(request(text("one"), text("two", HOUR)))
    assert moved[0].digest == marked[1].digest
    assert cache_points(request(text("one", MARK)))[0].digest == cache_points(request(text("one", HOUR)))[0].digest


@pytest.mark.parametrize(
    "other",
    [
        request(text("two", MARK)),
        request(text("one", MARK), system="x"),
        {**request(text("one", MARK)), "model": "other"},
        request(text("one", MARK), tools=[{"name": "x", "input_schema": {}}]),
    ],
    ids=["words", "system", "model", "tools"],
)
def test_another_prompt_has_another_digest(other: dict[str, Any]) -> None:
    assert cache_points(other)[0].digest != cache_points(request(text("one", MARK)))[0].digest


def test_a_marker_on_the_whole_request_stands_at_its_end() -> None:
    whole = cache_points(request(text("one"), text("two"), cache_control=MARK))
    assert whole == cache_points(request(text("one"), text("two", MARK)))
    assert len(cache_points(request(text("one", MARK), cache_control=MARK))) == 1


def test_a_string_is_a_block_of_text() -> None:
    plain = {**request(), "messages": [{"role": "user", "content": "one"}], "cache_control": MARK}
    assert cache_points(plain) == cache_points(request(text("one", MARK)))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (request(*[text("x", MARK)] * 5), "A maximum of 4 blocks with cache_control may be provided. Found 5."),
        (request(text("x", {"type": "eternal"})), "cache_control.type"),
        (request(text("x", {"type": "ephemeral", "ttl": "2d"})), "cache_control.ephemeral.ttl"),
    ],
    ids=["too many", "type", "ttl"],
)
def test_wrong_markers_are_turned_down(made: dict[str, Any], words: str) -> None:
    with pytest.raises(Rejected, match=words):
        cache_points(made)


@given(anthropic_chats(), st.sampled_from(["5m", "1h"]))
def test_a_marker_at_the_end_covers_as_many_tokens_as_are_counted(chat: Chat, ttl: Any) -> None:
    made = ANTHROPIC.encode(chat, "m", {"prompt_cache": ttl})
    assert isinstance(made, Call)
    body = {**msgspec.json.decode(made.body), "cache_control": MARK}
    assert cache_points(body)[-1].tokens == count_request(read_chat(body).request)
