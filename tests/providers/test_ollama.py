"""What is particular to Ollama's dialect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundswell.program.request import Chat, Fault, FaultKind, Image, Message, Reply, Text, ToolCall, Usage, user
from groundswell.providers.ollama import OLLAMA
from groundswell.providers.provider import Call

CHAT = Chat("m", (user("go on"),))


def body(chat: Chat, model: str = "llama3.2") -> dict[str, Any]:
    made = OLLAMA.encode(chat, model)
    assert isinstance(made, Call)
    return msgspec.json.decode(made.body, type=dict[str, Any])


def test_nothing_is_streamed() -> None:
    assert body(CHAT) == {"model": "llama3.2", "messages": [{"role": "user", "content": "go on"}], "stream": False}


def test_settings_are_options_and_those_passed_through_join_them() -> None:
    chat = Chat("m", (user("x"),), max_tokens=5, temperature=0.0, seed=1, extra={"options": {"num_ctx": 9, "seed": 2}})
    assert body(chat)["options"] == {"num_predict": 5, "temperature": 0.0, "seed": 2, "num_ctx": 9}


@pytest.mark.parametrize(
    ("model", "reasoning", "think"),
    [("qwen3", "low", True), ("qwen3", "none", False), ("gpt-oss:20b", "low", "low"), ("gpt-oss:20b", "none", False)],
)
def test_only_some_models_are_told_how_hard_to_think(model: str, reasoning: str, think: bool | str) -> None:
    assert body(Chat("m", (user("x"),), reasoning=reasoning), model)["think"] == think


def test_images_stand_beside_the_text() -> None:
    content = (Text("a"), Image(data="aGk="), Text("b"))
    assert body(Chat("m", (user(content),)))["messages"] == [{"role": "user", "content": "a\nb", "images": ["aGk="]}]


def test_a_result_names_its_tool() -> None:
    calls = Message("assistant", "", (ToolCall("c1", "look", '{"at":1}'),))
    sent = body(Chat("m", (calls, Message("tool", "42", tool_call_id="c1"))))["messages"]
    assert sent[0]["tool_calls"] == [{"id": "c1", "function": {"name": "look", "arguments": {"at": 1}}}]
    assert sent[1] == {"role": "tool", "content": "42", "tool_call_id": "c1", "tool_name": "look"}


UNFIT = [
    ("tool_choice", Chat("m", (user("a"),), tool_choice="required")),
    ("reasoning", Chat("m", (user("a"),), reasoning="xhigh")),
    ("URL", Chat("m", (user((Image(url="https://x.example/a"),)),))),
    ("arguments", Chat("m", (Message("assistant", "", (ToolCall("c", "look", "nonsense"),)),))),
]


@pytest.mark.parametrize(("word", "chat"), UNFIT, ids=[row[0] for row in UNFIT])
def test_what_ollama_does_not_have_is_refused_by_name(word: str, chat: Chat) -> None:
    made = OLLAMA.encode(chat, "m")
    assert isinstance(made, Fault)
    assert made.kind is FaultKind.BAD_REQUEST
    assert word in made.message


def test_counts_that_are_left_out_are_zero() -> None:
    answer = b'{"model":"m","message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop"}'
    assert OLLAMA.decode(CHAT, 200, {}, answer, 0.0) == Reply("hi", Usage(), model="m")


def test_an_object_written_over_many_lines_is_one_answer() -> None:
    answer = b'{\n "message": {"content": "hi"},\n "done": true,\n "eval_count": 3\n}\n'
    assert OLLAMA.decode(CHAT, 200, {}, answer, 0.0) == Reply("hi", Usage(0, 3))


def test_a_key_is_sent_if_there_is_one() -> None:
    assert OLLAMA.headers("k")["authorization"] == "Bearer k"
    assert "authorization" not in OLLAMA.headers(None)
