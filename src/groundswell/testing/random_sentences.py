"""A sentence-transformers model with random weights, made without a hub. Needs no other part of Groundswell."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


class Shape(NamedTuple):
    """The size of a model, and how many tokens it reads."""

    layers: int
    width: int
    heads: int
    longest: int


TINY = Shape(2, 16, 2, 24)
SMALL = Shape(6, 384, 12, 256)
"""The size of all-MiniLM-L6-v2."""


def make_sentences(
    folder: Path, shape: Shape, words: Sequence[str], *, seed: int = 0, normalized: bool = False
) -> Path:
    """Write a model that knows these words, in the format of models on the hub. Return its folder."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    importlib.import_module("transformers.utils.logging").disable_progress_bar()
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(MARKS) + len(words),
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        max_position_embeddings=2 * shape.longest,
    )
    transformers.BertModel(config).save_pretrained(folder)
    _write_tokenizer(folder, shape, words)
    _describe(folder, shape, normalized=normalized)
    return folder


def _write_tokenizer(folder: Path, shape: Shape, words: Sequence[str]) -> None:
    """Every word is a token."""
    tokenizers = importlib.import_module("tokenizers")
    known = {word: at for at, word in enumerate((*MARKS, *words))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    ends = [(mark, known[mark]) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    marks = {f"{mark[1:-1].lower()}_token": mark for mark in MARKS}
    fast = importlib.import_module("transformers").PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, model_max_length=shape.longest, **marks).save_pretrained(folder)


def _describe(folder: Path, shape: Shape, *, normalized: bool) -> None:
    """Write the pooling configuration: the mean of the tokens, normalised if wanted."""
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), *[("Normalize", "2_Normalize")] * normalized]
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (kind, path) in enumerate(kinds)
    ]
    pooling = {"word_embedding_dimension": shape.width, "pooling_mode_mean_tokens": True}
    written = {
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": shape.longest, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": "tell me "}, "default_prompt_name": None},
        "1_Pooling/config.json": {**pooling, "pooling_mode_cls_token": False},
    }
    for name, what in written.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(what))
