"""Embeddings one text at a time, compared with one call per wave: `python bench/embeddings.py`.

  http        OpenAI's format at the emulator, every reply after 50 ms, through the engine; and environments that each
              ask, then ask and embed at once: calls for embeddings per step, and time per step
  local       local/smollm2 in this process, through the engine
  sentences   sentence-transformers on the CPU, and on a GPU if there is one, without the engine

`sentences` uses the model in a folder (`--model`), or creates one with random weights as large as all-MiniLM-L6-v2
(`--make-model small`, the default without a folder; nothing is downloaded). It needs only torch, transformers and
sentence-transformers: `PYTHONPATH=src python bench/embeddings.py --only sentences`. `apart` is the distance between
the vector of a text alone and its vector beside other texts, relative to the length of the vector.

Parts with missing packages are skipped with a message. Everything takes less than two minutes.
"""

from __future__ import annotations

import argparse
import array
import asyncio
import importlib
import importlib.util
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = Path(__file__).parent / "out"
LATENCY = 0.05
LITTLE = 0.004
"""The share of GPU memory for the test with batches that do not fit."""
PATIENCE = 5.0
"""Maximum seconds of one measurement."""
SHORT = (
    "the",
    "old",
    "harbour",
    "was",
    "quiet",
    "and",
    "nobody",
    "knew",
    "why",
    "rain",
    "bread",
    "bees",
    "night",
    "train",
)
"""Words that are one token for any model."""
VOCABULARY = [*SHORT, *(f"word{number}" for number in range(30_000))]
"""As many words as all-MiniLM-L6-v2 has tokens."""
STEPS = 8

Row = dict[str, Any]


def main() -> None:
    """Measure the chosen parts, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--model", help="folder with a sentence-transformers model")
    parser.add_argument(
        "--make-model", choices=["small", "tiny"], help="create a model with random weights (default: small)"
    )
    parser.add_argument("--device", action="append", help="cpu, cuda, ...; may be repeated (default: all available)")
    options = parser.parse_args()
    rows: list[Row] = []
    for part in options.only:
        lacks = [name for name in PARTS[part][0] if importlib.util.find_spec(name) is None]
        if lacks:
            print(f"{part}: skipped, {', '.join(lacks)} not installed", flush=True)
            continue
        for row in PARTS[part][1](options):
            rows.append(row)
            print(shown(row), flush=True)
    OUT.mkdir(exist_ok=True)
    (OUT / "embeddings.json").write_text(json.dumps(rows, indent=1) + "\n")


def shown(row: Row) -> str:
    """One line of the table."""
    figures = [f"{name} {value:,.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()]
    return f"{row['what']:28}" + "  ".join(f"{each:>20}" for each in figures[1:])


def phrases(count: int, *, seed: int = 1, words: Sequence[str] = VOCABULARY, longest: int = 40) -> list[str]:
    """Texts of at least four words."""
    draw = random.Random(seed)
    return [" ".join(draw.choice(words) for _ in range(draw.randint(4, longest))) for _ in range(count)]


def in_http(options: argparse.Namespace) -> Iterator[Row]:
    """Over HTTP, at the emulator."""
    engines = importlib.import_module("embeddings_engine")
    with engines.emulated(LATENCY) as open_engine:
        yield from speeds("http", engines.Texts(open_engine, engines.OPENAI), 20, (16, 64, 1024))
        for environments in (16, 64):
            yield engines.steps(open_engine, environments, STEPS)


def in_local(options: argparse.Namespace) -> Iterator[Row]:
    """On the embedded model."""
    engines = importlib.import_module("embeddings_engine")
    if (problem := engines.no_local_model()) is not None:
        print(f"local: skipped, {problem}", flush=True)
        return
    yield from speeds("local smollm2", engines.Texts(engines.opened, "local/smollm2"), 16, (16,))


Taking = Callable[[Sequence[str], bool], Coroutine[Any, Any, float]]
"""Embeds texts, at once or one by one, and returns the seconds."""


def speeds(what: str, taking: Taking, few: int, waves: Sequence[int]) -> Iterator[Row]:
    """Texts per second, one by one and in waves of several sizes."""
    texts = partial(phrases, words=SHORT, longest=8)
    pace = few / asyncio.run(taking(texts(few), False))
    yield {"what": what, "texts at once": 1, "texts/s": pace}
    for size in waves:
        rate = size / asyncio.run(taking(texts(size, seed=size), True))
        yield {"what": what, "texts at once": size, "texts/s": rate, "times": rate / pace}


def in_sentences(options: argparse.Namespace) -> Iterator[Row]:
    """On sentence-transformers."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    encoder = by_path("transports/sentence_transformers.py")
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or made(Path(folder), options.make_model or "small")
        for device in options.device or devices():
            yield from on_device(encoder, model, device)


def on_device(encoder: Any, model: str, device: str) -> Iterator[Row]:
    """One model on one device."""
    held, wish = encoder.Encoder(model, device=device), encoder.Wish()
    start = time.perf_counter()
    embed(held, wish, phrases(2))
    what = f"sentences {device}"
    yield {"what": what, "load s": time.perf_counter() - start, "tokens at once": held.room}
    texts = phrases(4096 if device == "cuda" else 128)
    alone, each, done = time.perf_counter(), [], 0
    while done < len(texts) and time.perf_counter() - alone < PATIENCE:
        each += embed(held, wish, texts[done : done + 1])
        done += 1
    pace = done / (time.perf_counter() - alone)
    yield {"what": what, "texts at once": 1, "texts/s": pace}
    for size in (16, 64, len(texts)):
        embed(held, wish, texts[:size])  # kernels are chosen when a shape is first seen
        start = time.perf_counter()
        rows = embed(held, wish, texts[:size])
        rate = size / (time.perf_counter() - start)
        yield {"what": what, "texts at once": size, "texts/s": rate, "times": rate / pace, "apart": apart(each, rows)}
    if device.startswith("cuda"):
        yield squeezed(held, wish, what)
    held.unload()


def squeezed(held: Any, wish: Any, what: str) -> dict[str, Any]:
    """Long texts with very little memory: batches that do not fit are halved, and every text gets its vector."""
    torch = importlib.import_module("torch")
    draw = random.Random(0)
    texts = [" ".join(draw.choices(VOCABULARY, k=draw.randint(100, 250))) for _ in range(4096)]
    plenty, before = embed(held, wish, texts), held.room
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(LITTLE)
    began = time.perf_counter()
    found = embed(held, wish, texts)
    rate = len(texts) / (time.perf_counter() - began)
    torch.cuda.set_per_process_memory_fraction(1.0)
    lost = sum(each is None for each in found)
    rooms = f"{before:,} to {held.room:,}"
    return {
        "what": f"{what}, {LITTLE:.1%} of memory",
        "texts/s": rate,
        "lost": lost,
        "tokens at once": rooms,
        "apart": apart(plenty, found),
    }


def embed(held: Any, wish: Any, texts: Sequence[str]) -> list[bytes]:
    """The vectors of texts, in one call."""
    found: list[bytes] = held.embed(texts, held.lengths(texts, wish), wish)
    return found


def apart(some: Sequence[bytes], others: Sequence[bytes]) -> float:
    """The largest relative distance of vectors that should be equal."""
    most = 0.0
    for one, other in zip(some, others, strict=False):
        left, right = array.array("f", one), array.array("f", other)
        most = max(most, math.dist(left, right) / (math.hypot(*left) or 1.0))
    return most


def devices() -> list[str]:
    """The CPU, and the best other device if there is one."""
    best: str = by_path("transports/sentence_transformers.py").best_device()
    return ["cpu"] if best == "cpu" else ["cpu", best]


def made(folder: Path, size: str) -> str:
    """A model with random weights."""
    making = by_path("testing/random_sentences.py")
    shape = making.SMALL if size == "small" else making.TINY
    return str(making.make_sentences(folder / size, shape._replace(longest=256), VOCABULARY))


def by_path(path: str) -> Any:
    """Import a module of Groundswell by its path, where the package cannot be imported."""
    name = f"alone_{Path(path).stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "src" / "groundswell" / path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


Part = tuple[tuple[str, ...], Callable[[argparse.Namespace], Iterator[Row]]]
OURS = ("msgspec", "sqlalchemy", "alembic", "pyreqwest", "httptools", "uvloop")
PARTS: dict[str, Part] = {
    "http": (OURS, in_http),
    "local": ((*OURS, "xllamacpp"), in_local),
    "sentences": (("torch", "transformers", "sentence_transformers"), in_sentences),
}

if __name__ == "__main__":
    main()
