"""Batches of texts by length and memory, with a stand-in for the library."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.transports import sentence_transformers
from groundswell.transports.sentence_transformers import CannotLoad, Encoder, GivenUp, Refused, Wish, fitting, is_full
from tests.properties import examples

PLAIN = Wish()


class Device(NamedTuple):
    """Where a stand-in computes."""

    type: str = "cpu"


class Model:
    """Embeds a text as its length and its first letter. More than `memory` letters, with padding, do not fit."""

    device = Device()
    max_seq_length: int | None = 50
    default_prompt_name: str | None = None

    def __init__(self, memory: int = 1 << 30) -> None:
        self.memory = memory
        self.batches: list[list[str]] = []
        self.prompts = {"query": "q: "}
        self.error: Exception = RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def tokenizer(self, texts: Sequence[str], **options: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[0] * len(text) for text in texts]}

    def get_embedding_dimension(self) -> int:
        return 3

    def encode(self, texts: list[str], **options: Any) -> Any:
        self.batches.append(texts)
        if len(texts) * max(map(len, texts)) > self.memory:
            raise self.error
        return np.array([[len(text), ord(text[0]), 0.5] for text in texts])

    def __iter__(self) -> Any:
        return iter(())


def holding(monkeypatch: pytest.MonkeyPatch, model: Model, room: int = 1000) -> Encoder:
    """An encoder whose model is a stand-in."""
    monkeypatch.setattr(sentence_transformers, "_load", lambda name, revision, device: model)
    monkeypatch.setattr(sentence_transformers, "_room", lambda model: room)
    return Encoder("any")


def embedded(held: Encoder, texts: Sequence[str], wish: Wish = PLAIN) -> list[list[float] | None]:
    rows = held.embed(texts, held.lengths(texts, wish), wish)
    return [None if row is None else np.frombuffer(row, dtype="<f4").tolist() for row in rows]


TEXTS = st.lists(st.text("abc", min_size=1, max_size=40), max_size=30)


@settings(max_examples=examples(60))
@given(TEXTS, st.integers(1, 200), st.integers(40, 200))
def test_every_text_gets_its_vector_whatever_room_and_memory_there_are(
    texts: list[str], room: int, memory: int
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        held = holding(monkeypatch, Model(memory), room)
        assert embedded(held, texts) == [[float(len(text)), float(ord(text[0])), 0.5] for text in texts]


@settings(max_examples=examples(80))
@given(st.lists(st.integers(1, 100), min_size=1, max_size=40), st.integers(1, 500))
def test_a_batch_is_as_large_as_its_room_and_no_larger(lengths: list[int], room: int) -> None:
    ordered = sorted(lengths, reverse=True)
    size = fitting(ordered, room)
    assert 1 <= size <= len(ordered)
    assert size == 1 or size * ordered[0] <= room
    assert size == len(ordered) or (size + 1) * ordered[0] > room


def test_texts_of_about_one_length_share_a_batch_the_longest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    embedded(holding(monkeypatch, model, 20), ["a" * 3, "b" * 10, "c" * 4, "d" * 9, "e" * 5])
    assert [[len(text) for text in batch] for batch in model.batches] == [[10, 9], [5, 4, 3]]


def test_a_batch_that_does_not_fit_is_halved_and_later_ones_stay_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(memory=30)
    held = holding(monkeypatch, model, 100)
    texts = ["abcde"] * 20
    assert None not in embedded(held, texts)
    assert [len(batch) for batch in model.batches] == [20, 10, 5, 5, 5, 5]
    model.batches.clear()
    assert None not in embedded(held, texts)
    assert [len(batch) for batch in model.batches] == [5, 5, 5, 5]


def test_a_text_that_does_not_fit_by_itself_is_left_out_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    held = holding(monkeypatch, Model(memory=10))
    assert [row is None for row in embedded(held, ["aa", "b" * 20, "ccc"])] == [False, True, False]


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 17.9 GB)"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
    ids=["python", "cuda", "mps", "cpu", "another"],
)
def test_what_says_that_memory_is_too_small(error: Exception, full: bool) -> None:
    assert is_full(error) is full


def test_what_else_goes_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(memory=0)
    model.error = RuntimeError("shapes cannot be multiplied")
    with pytest.raises(Refused, match="shapes"):
        embedded(holding(monkeypatch, model), ["a"])
    assert len(model.batches) == 1


def test_vectors_are_cut_to_a_width_and_made_unit_ones_if_that_is_wished(monkeypatch: pytest.MonkeyPatch) -> None:
    held = holding(monkeypatch, Model())
    assert embedded(held, ["d" * 3], Wish(dimensions=2)) == [[3.0, 100.0]]
    (row,) = embedded(held, ["d" * 3], Wish(dimensions=2, normalize=True))
    assert row == pytest.approx([3 / 10009**0.5, 100 / 10009**0.5])


@pytest.mark.parametrize(
    ("wish", "said"),
    [(Wish(dimensions=4), "dimensions: .* 3 dimensions"), (Wish(prompt_name="doc"), r"prompt_name: .*'doc' \(query\)")],
    ids=["too wide", "no such prompt"],
)
def test_what_a_model_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch, wish: Wish, said: str) -> None:
    with pytest.raises(Refused, match=said):
        embedded(holding(monkeypatch, Model()), ["a"], wish)


@pytest.mark.parametrize(
    ("wish", "default", "length"),
    [(PLAIN, None, 2), (Wish(prompt="x"), None, 3), (Wish(prompt_name="query"), None, 5), (PLAIN, "query", 5)],
    ids=["none", "given", "named", "the model's own"],
)
def test_what_stands_before_a_text_counts(
    monkeypatch: pytest.MonkeyPatch, wish: Wish, default: str | None, length: int
) -> None:
    model = Model()
    model.default_prompt_name = default
    assert holding(monkeypatch, model).lengths(["ab"], wish) == [length]


def test_a_model_that_does_not_count_tokens_has_its_texts_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    model.tokenizer = None  # type: ignore[method-assign, assignment]
    short, long = holding(monkeypatch, model).lengths(["a", "a" * 100], PLAIN)
    assert 1 <= short < long


def test_work_that_nobody_waits_for_is_given_up_between_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()

    class Slow(Model):
        def encode(self, texts: list[str], **options: Any) -> Any:
            stopped.set()
            return super().encode(texts, **options)

    model = Slow()
    held = holding(monkeypatch, model, 5)
    with pytest.raises(GivenUp):
        held.embed(["abcde"] * 3, [5, 5, 5], PLAIN, stopped)
    assert len(model.batches) == 1


def test_a_model_is_loaded_once_and_again_after_it_was_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    held = holding(monkeypatch, Model())

    def load(name: str, revision: str | None, device: str | None) -> Model:
        loads.append(name)
        return Model()

    monkeypatch.setattr(sentence_transformers, "_load", load)
    assert not held.loaded
    embedded(held, ["a"])
    embedded(held, ["b"])
    assert (held.loaded, loads) == (True, ["any"])
    held.unload()
    assert not held.loaded
    embedded(held, ["c"])
    assert loads == ["any", "any"]


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_transformers, "PACKAGE", "no_such_package_anywhere")
    assert not sentence_transformers.installed()
    with pytest.raises(CannotLoad, match=r"pip install 'groundswell\[embeddings\]'"):
        Encoder("any").lengths(["a"], PLAIN)
