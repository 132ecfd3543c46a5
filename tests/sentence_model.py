"""A real model of sentence-transformers in tests, with random weights: whether it can be made, and making it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from groundswell.transports import encoder

WORDS = ("the", "a", "stone", "water", "says", "tell", "me", "secret", "word", "please", "kindly", "now")
WIDTH, LONGEST = 16, 24
needs_sentences = pytest.mark.skipif(
    not encoder.installed(), reason="needs sentence-transformers (pip install 'groundswell[embeddings]')"
)


def make(folder: Path, *, seed: int = 0, normalized: bool = False) -> Path:
    """A model of two layers in a folder, in the form that models at the hub have."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    tokenizers = importlib.import_module("tokenizers")
    marks = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    vocabulary = {word: at for at, word in enumerate((*marks, *WORDS))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    tokens = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LONGEST, **tokens)
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=64,
    )
    fast.save_pretrained(folder)
    transformers.BertModel(config).save_pretrained(folder)
    _describe(folder, normalized=normalized)
    return folder


def _describe(folder: Path, *, normalized: bool) -> None:
    kinds = ["Transformer", "Pooling", *["Normalize"] * normalized]
    paths = ["", "1_Pooling", "2_Normalize"]
    modules = [
        {"idx": at, "name": str(at), "path": paths[at], "type": f"sentence_transformers.models.{kind}"}
        for at, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": LONGEST, "do_lower_case": False}))
    prompts = {"prompts": {"query": "tell me "}, "default_prompt_name": None}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


@pytest.fixture(scope="session")
def little_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small model, made once."""
    return make(tmp_path_factory.mktemp("sentences") / "little")
