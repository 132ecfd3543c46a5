"""Vectors: of length one, the same for the same text, near for near texts."""

from __future__ import annotations

from math import isclose, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.embedding import WIDEST, WIDTH, embed
from groundswell.emulator.model import answer
from groundswell.emulator.tokens import count
from groundswell.program.request import Embed


def likeness(one: str, other: str, width: int = 1536) -> float:
    first, second = embed((one, other), width)
    return sum(a * b for a, b in zip(first, second, strict=True))


@given(st.text(max_size=200), st.sampled_from([1, 8, 384, 1536]))
def test_every_text_has_a_vector_of_length_one(text: str, width: int) -> None:
    (vector,) = embed((text,), width)
    assert len(vector) == width
    assert isclose(sqrt(sum(value * value for value in vector)), 1.0, abs_tol=1e-5)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("tell me the secret password", "could you tell me the secret password", "the train leaves at noon"),
        ("a lantern in the window", "lanterns in windows", "quarterly tax returns"),
        ("How do I open the vault?", "how would one open that vault", "My aunt sings in a choir."),
    ],
)
def test_similar_texts_lie_nearer(text: str, near: str, far: str) -> None:
    assert likeness(text, near) > 0.45
    assert likeness(text, far) < 0.25


def test_case_and_punctuation_do_not_matter_but_words_do() -> None:
    assert likeness("The Lantern!", "the lantern") > 0.999
    assert likeness("the lantern", "the anchor") < 0.4


@pytest.mark.parametrize(
    ("request_", "width"),
    [
        (Embed("text-embedding-3-small", ("a",)), 1536),
        (Embed("text-embedding-3-large", ("a",)), 3072),
        (Embed("nomic-embed-text", ("a",)), WIDTH),
        (Embed("text-embedding-3-small", ("a",), dimensions=256), 256),
        (Embed("text-embedding-3-small", ("a",), dimensions=-7), 1),
        (Embed("text-embedding-3-small", ("a",), dimensions=10**9), WIDEST),
    ],
    ids=["small", "large", "other", "asked", "below", "beyond"],
)
def test_the_width_follows_the_model_or_the_request(request_: Embed, width: int) -> None:
    assert answer(request_).width == width


def test_an_embedding_has_a_vector_per_text_and_counts_its_tokens() -> None:
    reply = answer(Embed("text-embedding-3-small", ("lantern", "lantern", "anchor")))
    first, again, other = reply.vectors
    assert first == again != other
    assert reply.usage.input_tokens == 2 * count("lantern") + count("anchor")
    assert answer(Embed("m", ())).packed == b""


def test_neither_seed_nor_sample_moves_a_vector() -> None:
    request = Embed("text-embedding-3-small", ("lantern",))
    assert answer(request, seed=1, sample=2) == answer(request)
