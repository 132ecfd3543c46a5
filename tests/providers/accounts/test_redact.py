"""What is left of a text when an account's secrets are taken out of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.providers.accounts.account import PIECE, REDACTED, Account, Key, redact
from tests.properties import examples

KEY = "12345678abc"


def box(**given_: Any) -> Account:
    return Account(name="box", dialect="openai", endpoints=("http://h/v1",), **given_)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("nothing of it", "nothing of it"),
        ("", ""),
        ("the key 12345678abc is wrong", "the key [secret] is wrong"),
        ("12345678abc", "[secret]"),
        ("12345678abc12345678abc", "[secret]"),
        ("is 12345678 or 5678abcd?", "is [secret] or 5678abcd?"),
        ("is 45678abc or 12345678?", "is [secret] or [secret]?"),
        ("is 1234567?", "is 1234567?"),
    ],
)
def test_what_is_left_of_a_text(text: str, left: str) -> None:
    assert redact(text, box(key=Key(KEY))) == left


def test_headers_and_proxies_are_taken_out_as_well() -> None:
    account = box(headers={"x-a": Key("header-value")}, proxy=Key("http://me:pass%20word1@host:1"))
    text = "header-value, me:pass word1, me:pass%20word1, bWU6cGFzcyB3b3JkMQ==, host"
    assert redact(text, account) == "[secret], [secret], [secret], [secret], host"


def test_an_account_without_secrets_takes_nothing_out() -> None:
    assert redact("all of this", box()) == "all of this"


@settings(max_examples=examples(100))
@given(st.lists(st.one_of(st.text("18ab ", max_size=5), st.sampled_from([KEY[at:] for at in range(6)])), max_size=8))
def test_no_piece_of_the_key_is_left_and_the_rest_is(parts: list[str]) -> None:
    text = "".join(parts)
    left = redact(text, box(key=Key(KEY)))
    assert not any(KEY[at : at + PIECE] in left for at in range(len(KEY) - PIECE + 1))
    at = 0
    for kept in left.split(REDACTED):
        assert kept in text[at:]
        at = text.index(kept, at) + len(kept)
