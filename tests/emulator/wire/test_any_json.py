"""Whatever JSON comes in, it is a request or it is turned down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.emulator.tokens import count_request
from groundswell.emulator.wire import Incoming, Rejected, anthropic, ollama, openai
from groundswell.program.request import fingerprint
from tests.properties import examples
from tests.providers.strategies import changed, json_values

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
FUNCTION = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
USE = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "42"}]}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
LINK = {"url": "http://x.example/a"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}

OPENAI_CHAT = {
    "model": "gpt-4o",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": LINK}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
    ],
    "max_tokens": 5,
    "temperature": 0.5,
    "stop": ["x"],
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}},
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "look"}},
    "logprobs": True,
    "top_logprobs": 2,
    "stream": True,
    "stream_options": {"include_usage": True},
}
ANTHROPIC_CHAT = {
    "model": "claude",
    "max_tokens": 2000,
    "system": [{"type": "text", "text": "Be brief.", **MARK}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "see"}, {**PICTURE, **MARK}]},
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [RESULT]},
    ],
    "stop_sequences": ["x"],
    "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}, **MARK}],
    "tool_choice": {"type": "tool", "name": "look"},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
    **MARK,
}
OLLAMA_CHAT = {
    "model": "llama3.2",
    "messages": [
        {"role": "user", "content": "see", "images": ["aGk="]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"at": 1}}}]},
        {"role": "tool", "content": "42", "tool_name": "look"},
    ],
    "options": {"temperature": 1, "stop": ["x"], "num_predict": 3},
    "tools": [{"type": "function", "function": FUNCTION}],
    "format": SCHEMA,
    "think": True,
}
EMBED = {"model": "m", "input": ["a", "b"], "dimensions": 3, "encoding_format": "float"}
GENERATE = {"model": "m", "prompt": "see", "system": "Be brief.", "images": ["aGk="], "options": {"seed": 1}}

Read = Callable[[object], Incoming]
READERS: list[tuple[Read, Any]] = [
    (openai.read_chat, OPENAI_CHAT),
    (openai.read_embed, EMBED),
    (anthropic.read_chat, ANTHROPIC_CHAT),
    (ollama.read_chat, OLLAMA_CHAT),
    (ollama.read_generate, GENERATE),
    (ollama.read_embed, EMBED),
]
NAMES = ["openai chat", "openai embed", "anthropic chat", "ollama chat", "ollama generate", "ollama embed"]


def check(read: Read, data: Any) -> None:
    """A request that can be counted and told from others, or a plain refusal."""
    try:
        incoming = read(data)
        if read is anthropic.read_chat:
            anthropic.cache_points(data)
    except Rejected:
        return
    assert len(fingerprint(incoming.request)) == 16
    assert count_request(incoming.request) >= 0


@pytest.mark.parametrize("read", [row[0] for row in READERS], ids=NAMES)
@settings(max_examples=examples(60))
@given(json_values)
def test_any_json(read: Read, data: Any) -> None:
    check(read, data)


@pytest.mark.sampled
@pytest.mark.parametrize(("read", "good"), READERS, ids=NAMES)
@settings(max_examples=examples(200))
@given(st.data())
def test_good_requests_gone_wrong(read: Read, good: Any, data: st.DataObject) -> None:
    broken = data.draw(changed(good))
    if data.draw(st.booleans()):
        broken = data.draw(changed(broken))
    check(read, broken)


@pytest.mark.parametrize(("read", "good"), READERS, ids=NAMES)
def test_they_are_good_before_they_go_wrong(read: Read, good: Any) -> None:
    assert read(good).request.model == good["model"]
