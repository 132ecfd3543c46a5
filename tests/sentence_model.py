"""A sentence-transformers model with random weights, for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.testing.random_sentences import TINY, make_sentences
from groundswell.transports import sentence_transformers

WORDS = ("the", "a", "stone", "water", "says", "tell", "me", "secret", "word", "please", "kindly", "now")
WIDTH, LONGEST = TINY.width, TINY.longest
needs_sentences = pytest.mark.skipif(
    not sentence_transformers.installed(), reason="needs sentence-transformers (pip install 'groundswell[embeddings]')"
)


def make(folder: Path, *, normalized: bool = False) -> Path:
    """A small model in a folder."""
    return make_sentences(folder, TINY, WORDS, normalized=normalized)


@pytest.fixture(scope="session")
def little_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small model, made once."""
    return make(tmp_path_factory.mktemp("sentences") / "little")
