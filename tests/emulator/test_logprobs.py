"""Logprobs: one per word, a distribution each, and what the official client takes."""

from __future__ import annotations

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion

from groundswell.emulator.logprobs import logprobs_of
from groundswell.emulator.model import answer
from groundswell.emulator.wire import About, openai
from groundswell.program.request import Chat, Tool, user
from tests.emulator.wire.sdk import judged


@given(st.text(max_size=100), st.integers(0, 20))
def test_the_words_are_the_text_and_each_is_the_likeliest(text: str, most: int) -> None:
    entries = logprobs_of(text, most)
    assert "".join(entry["token"] for entry in entries) == text
    assert b"".join(bytes(entry["bytes"]) for entry in entries) == text.encode()
    assert entries == logprobs_of(text, most)
    for entry in entries:
        top = entry["top_logprobs"]
        assert len({one["token"] for one in top}) == len(top) == most
        assert sum(exp(one["logprob"]) for one in top) < 1
        assert [one["logprob"] for one in top] == sorted([one["logprob"] for one in top], reverse=True)
        assert top[:1] == [{key: entry[key] for key in ("token", "logprob", "bytes")}][:most]


def test_words_differ_in_how_likely_they_were() -> None:
    assert len({entry["logprob"] for entry in logprobs_of("one two three one", 0)}) == 4


def test_the_official_client_reads_them() -> None:
    reply = answer(Chat("gpt-4o", (user("Hello."),), logprobs=3))
    read = judged(ChatCompletion, openai.write_chat([reply], About("1", 0.0, "gpt-4o")))
    found = read.choices[0].logprobs
    assert found is not None
    assert "".join(one.token for one in found.content or ()) == reply.text
    assert [len(one.top_logprobs) for one in found.content or ()] == [3] * len(found.content or ())


@pytest.mark.parametrize(
    "request_",
    [
        Chat("gpt-4o", (user("Hello."),)),
        Chat("gpt-4o", (user("Go."),), logprobs=2, tools=(Tool("go", "", {}),)),
    ],
    ids=["not asked for", "a call"],
)
def test_elsewhere_there_are_none(request_: Chat) -> None:
    assert answer(request_).logprobs is None


def test_half_characters_have_some_too() -> None:
    assert len(answer(Chat("echo", (user("a \ud800"),), logprobs=0)).logprobs) == 2
