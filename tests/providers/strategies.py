"""Requests, replies and JSON for property tests: any that a program could make, and any that a server could send."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from groundswell.program.request import Chat, Embed, Image, Message, Reply, Text, Tool, ToolCall, Usage

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
names = st.from_regex(r"[a-z][a-z0-9_-]{0,7}", fullmatch=True)
counts = st.integers(0, 10_000)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(names, json_values, max_size=2).map(lambda made: msgspec.json.encode(made).decode())
tool_calls = st.lists(st.builds(ToolCall, names, names, arguments), min_size=1, max_size=2).map(tuple)
tools = st.lists(
    st.builds(Tool, names, st.just("") | words, st.just({"type": "object", "properties": {}})), min_size=1, max_size=2
).map(tuple)

media_types = st.sampled_from(["image/png", "image/jpeg", "image/webp"])
by_url = st.builds(Image, url=names.map("https://pictures.example/{}.png".format))
by_data = st.builds(Image, data=st.binary(max_size=6).map(lambda made: made.hex()), media_type=media_types)
parts = st.lists(words.map(Text) | by_url | by_data, min_size=2, max_size=3).map(tuple)
texts = st.lists(words.map(Text), min_size=2, max_size=3).map(tuple)

systems = st.builds(Message, st.just("system"), words)
users = st.builds(Message, st.just("user"), words | parts)
assistants = st.builds(Message, st.just("assistant"), words | texts) | st.builds(
    Message, st.just("assistant"), words | st.just(""), tool_calls
)
results = st.builds(Message, st.just("tool"), words, tool_call_id=names)
turns = users | assistants | results

SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"title": "Two Things", "type": "object", "properties": {"a": {"type": "string"}, "b": {"default": 1}}},
    {"type": "object", "properties": {"by_name": {"type": "object", "additionalProperties": {"type": "number"}}}},
    {"type": "array", "items": {"$ref": "#/$defs/X"}, "$defs": {"X": {"type": "object", "properties": {"x": {}}}}},
)
schemas = st.none() | st.sampled_from(SCHEMAS)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def limits() -> st.SearchStrategy[Any]:
    return maybe(st.integers(1, 10_000))


def fractions(most: float) -> st.SearchStrategy[Any]:
    return maybe(st.floats(0, most))


@st.composite
def openai_chats(draw: st.DrawFn) -> Chat:
    offered = draw(st.just(()) | tools)
    schema = draw(schemas)
    said = draw(st.lists(systems | turns, min_size=1, max_size=4))
    if schema == {"type": "object"}:
        said.append(Message("user", "Answer in JSON."))
    return Chat(
        draw(st.sampled_from(["gpt-4o-mini", "o3", "gpt-5-nano", "vendor/llama-3"])),
        tuple(said),
        max_tokens=draw(limits()),
        temperature=draw(fractions(2)),
        top_p=draw(fractions(1)),
        seed=draw(maybe(st.integers(-(2**63), 2**63 - 1))),
        stop=draw(st.lists(words, max_size=4).map(tuple)),
        schema=schema,
        tools=offered,
        tool_choice=draw(maybe(st.sampled_from(["auto", "none", "required", "look-up"]))) if offered else None,
        reasoning=draw(maybe(st.sampled_from(["none", "minimal", "low", "xhigh"]))),
        logprobs=draw(maybe(st.integers(0, 20))),
        extra=draw(maybe(st.just({"user": "someone", "logit_bias": {"50256": -100}}))),
    )


@st.composite
def anthropic_chats(draw: st.DrawFn) -> Chat:
    offered = draw(st.just(()) | tools)
    return Chat(
        "claude-opus-4-7",
        (*draw(st.lists(systems, max_size=2)), *draw(st.lists(turns, min_size=1, max_size=4))),
        max_tokens=draw(limits()),
        temperature=draw(fractions(1)),
        top_p=draw(fractions(1)),
        seed=draw(maybe(st.integers(0, 100))),
        stop=draw(st.lists(words.filter(str.strip), max_size=4).map(tuple)),
        schema=draw(st.none() | st.sampled_from([SCHEMAS[1], SCHEMAS[2], SCHEMAS[4]])),
        tools=offered,
        tool_choice=draw(maybe(st.sampled_from(["auto", "none", "required", "look-up"]))),
        reasoning=draw(maybe(st.sampled_from(["none", "low", "medium", "max"]))),
        extra=draw(maybe(st.just({"metadata": {"user_id": "someone"}}))),
    )


@st.composite
def ollama_chats(draw: st.DrawFn) -> Chat:
    pictures = st.lists(st.builds(Image, data=names), min_size=1, max_size=2)
    seen = st.builds(lambda text, images: Message("user", (Text(text), *images)), words, pictures)
    spoken = st.builds(Message, st.sampled_from(["system", "user", "assistant"]), st.just("") | words)
    called = st.builds(Message, st.just("assistant"), st.just("") | words, tool_calls)
    return Chat(
        draw(st.sampled_from(["llama3.2", "gpt-oss:20b"])),
        tuple(draw(st.lists(spoken | seen | called | results, max_size=4))),
        max_tokens=draw(limits()),
        temperature=draw(fractions(3)),
        top_p=draw(fractions(1)),
        seed=draw(maybe(st.integers(0, 100))),
        stop=draw(st.lists(words, max_size=4).map(tuple)),
        schema=draw(schemas),
        tools=draw(st.just(()) | tools),
        reasoning=draw(maybe(st.sampled_from(["none", "medium"]))),
        logprobs=draw(maybe(st.integers(0, 20))),
        extra=draw(maybe(st.just({"keep_alive": "5m", "options": {"num_ctx": 4096}}))),
    )


embeds = st.builds(Embed, names, st.lists(words, min_size=1, max_size=3).map(tuple), maybe(st.integers(1, 64)))


@st.composite
def replies(draw: st.DrawFn, *, refusing: bool = True, thinking: bool = True, detailed: bool = True) -> Reply:
    """Replies; what is left out is what a provider cannot say."""
    finish = draw(st.sampled_from(["stop", "length", "tool_calls", "refusal"] if refusing else ["stop", "length"]))
    cached = draw(counts) if detailed else 0
    usage = Usage(cached + draw(counts), draw(counts), cached, draw(counts) if detailed else 0)
    return Reply(
        draw(st.just("") | words),
        usage,
        finish,
        "the-model",
        draw(tool_calls) if finish == "tool_calls" else (),
        draw(maybe(words)) if thinking else None,
    )


@st.composite
def changed(draw: st.DrawFn, data: Any) -> Any:
    """A JSON value with one thing in it, wherever it is, replaced by something else or taken away."""
    if isinstance(data, dict) and data and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(data)))
        rest = {name: value for name, value in data.items() if name != key}
        return rest if not draw(st.integers(0, 5)) else {**rest, key: draw(changed(data[key]))}
    if isinstance(data, list) and data and draw(st.integers(0, 9)):
        at = draw(st.integers(0, len(data) - 1))
        return [*data[:at], draw(changed(data[at])), *data[at + 1 :]]
    return draw(json_values)
