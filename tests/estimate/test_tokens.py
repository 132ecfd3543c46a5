"""How many tokens a text has lies between two bounds, whoever counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import Chat, Embed, Image, Text, Tool, assistant, user
from groundswell.emulator.tokens import count_request
from groundswell.estimate.tokens import request_tokens, text_tokens

TEXTS = st.text(max_size=300)


@given(st.lists(TEXTS, min_size=1, max_size=6))
def test_what_the_emulator_counts_lies_between(texts: list[str]) -> None:
    chat = Chat("m", tuple(user(text) for text in texts))
    assert count_request(chat) in request_tokens(chat)
    embed = Embed("m", tuple(texts))
    assert count_request(embed) in request_tokens(embed)


COUNTED = [
    ("prose", "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all.", 18),
    ("long words", "Internationalization considerations notwithstanding, straightforward", 11),
    ("Chinese", "人工智能正在改变世界的每一个角落。", 13),
    ("German", "Die Donaudampfschifffahrtsgesellschaft fährt nicht mehr.", 16),
    ("emoji", "😀🎉🚀", 6),
]


@pytest.mark.parametrize(("text", "tokens"), [pytest.param(text, n, id=name) for name, text, n in COUNTED])
def test_what_real_tokenizers_count_lies_between(text: str, tokens: int) -> None:
    assert tokens in text_tokens(text)


def test_pictures_tools_and_schemas_cost_too() -> None:
    plain = request_tokens(Chat("m", (user("x"),)))
    seen = request_tokens(Chat("m", (user((Text("x"), Image(url="u"))),)))
    tooled = request_tokens(Chat("m", (user("x"),), tools=(Tool("t", "d" * 300, {}),)))
    assert seen.low >= plain.low + 85
    assert tooled.high >= plain.high + 100
    assert tooled.low == plain.low
    assert request_tokens(Chat("m", (user("x"), assistant("y" * 50)))).low == plain.low + 8
