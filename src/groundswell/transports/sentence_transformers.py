"""sentence-transformers in this process. The only file that knows it, and it needs no other part of Groundswell.

Texts are sorted by length and cut into batches by tokens, longest first: little is wasted on padding, and a batch that
does not fit into memory fails at once. Such a batch is halved, and later ones stay below its size.

A text's vector depends slightly on the other texts of its batch, since sums are computed in another order: by less than
1e-6 of its length in 32 bits, and by more in 16 bits.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

PACKAGE = "sentence_transformers"
NOT_INSTALLED = "sentence-transformers is not installed: pip install 'groundswell[embeddings]'"
FULL = ("out of memory", "can't allocate memory", "not enough memory")
"""Messages of the backends when memory is exhausted."""
NUMBERS = 64
"""Numbers per token in memory, for each number of a vector: keys, values, and intermediate results."""
FEWEST, MOST = 512, 1 << 17
"""Tokens in the first batch. On a CPU, more than a few hundred per core do not fit into its cache."""
PER_CORE = 256
PER_CHARACTER = 0.5
"""Expected tokens per character if a model has no tokeniser."""


class CannotLoad(Exception):
    """The model does not exist, cannot be downloaded or read, or there is not enough memory for it."""


class Refused(Exception):
    """A request that the model cannot answer, whatever the texts."""


class GivenUp(Exception):
    """The request was cancelled."""


class Wish(NamedTuple):
    """How to embed texts: the prompt before each, the size of vectors, and whether long texts are truncated."""

    dimensions: int | None = None
    prompt: str | None = None
    prompt_name: str | None = None
    normalize: bool = False
    truncate: bool = False


class Encoder:
    """One model in memory, shared by all users. It is loaded on first use; threads may share it."""

    def __init__(self, name: str, revision: str | None = None, device: str | None = None) -> None:
        self.name = name
        self.revision = revision
        self.device = device
        self.room = 0
        """Most tokens of a batch."""
        self.calls = 0
        self._model: Any = None
        self._loading = threading.Lock()
        self._one_call = threading.Lock()

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory."""
        return self._model is not None

    @property
    def longest(self) -> int | None:
        """Most tokens of a text, if there is a limit."""
        found = self._loaded().max_seq_length
        return int(found) if isinstance(found, int | float) and found < 1 << 30 else None

    @property
    def width(self) -> int:
        """The size of a vector."""
        model = self._loaded()
        ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        return int(ask() or 0)

    def lengths(self, texts: Sequence[str], wish: Wish) -> list[int]:
        """The number of tokens of each text, including its prompt."""
        before = self._before(wish)
        tokenizer = self._loaded().tokenizer
        if not callable(tokenizer) or not texts:
            return [1 + int(PER_CHARACTER * (len(before) + len(text))) for text in texts]
        found = tokenizer([before + text for text in texts], truncation=False, verbose=False)["input_ids"]
        return [len(tokens) for tokens in found]

    def embed(
        self, texts: Sequence[str], lengths: Sequence[int], wish: Wish, stopped: threading.Event | None = None
    ) -> list[bytes | None]:
        """The vectors as packed 32-bit floats, in the order of the texts; None if memory is too small for one."""
        self._check(wish)
        longest = self.longest
        held = [length if longest is None else min(length, longest) for length in lengths]
        order = sorted(range(len(texts)), key=lambda at: -held[at])
        found: list[bytes | None] = [None] * len(texts)
        at = 0
        with self._one_call:
            self.calls += 1
            while at < len(order):
                if stopped is not None and stopped.is_set():
                    raise GivenUp
                size = fitting([held[each] for each in order[at:]], self.room)
                batch = order[at : at + size]
                rows = self._batch([texts[each] for each in batch], wish)
                if rows is None and size > 1:
                    self.room = max(1, size * held[batch[0]] // 2)
                    continue
                for each, row in zip(batch, rows or (), strict=False):
                    found[each] = row
                at += size
        return found

    def unload(self) -> None:
        """Free the memory, or let the last running call do so."""
        with self._loading:
            where = None if self._model is None else self._model.device.type
            self._model = None
        if where is not None:
            _free(where)

    def _batch(self, texts: list[str], wish: Wish) -> list[bytes] | None:
        """The vectors of one batch; None if there is not enough memory for it."""
        model = self._loaded()
        try:
            rows = model.encode(
                texts,
                batch_size=len(texts),
                prompt=wish.prompt,
                prompt_name=wish.prompt_name,
                normalize_embeddings=wish.normalize and wish.dimensions is None,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        except (MemoryError, RuntimeError) as error:
            if not is_full(error):
                raise Refused(f"{type(error).__name__}: {error}") from error
            _free(model.device.type)
            return None
        return [row.tobytes() for row in _narrowed(rows.astype("<f4"), wish, unit=_is_unit(model))]

    def _check(self, wish: Wish) -> None:
        names = self._prompts()
        if wish.prompt_name is not None and wish.prompt_name not in names:
            raise Refused(f"prompt_name: the model has no prompt {wish.prompt_name!r} ({', '.join(names) or 'none'})")
        if wish.dimensions is not None and wish.dimensions > self.width:
            raise Refused(f"dimensions: the vectors of this model have {self.width} dimensions, not {wish.dimensions}")

    def _before(self, wish: Wish) -> str:
        """The prompt before each text."""
        if wish.prompt is not None:
            return wish.prompt
        name = wish.prompt_name or self._loaded().default_prompt_name
        return str(self._prompts().get(name) or "") if name is not None else ""

    def _prompts(self) -> dict[str, str]:
        return dict(getattr(self._loaded(), "prompts", None) or {})

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                self._model = _load(self.name, self.revision, self.device)
                self.device = str(self._model.device)
                self.room = self.room or _room(self._model)
            return self._model


def fitting(lengths: Sequence[int], room: int) -> int:
    """How many texts, longest first, fit into one batch: each takes as much room as the longest. At least one."""
    return max(1, min(len(lengths), room // max(1, lengths[0]))) if lengths else 0


def is_full(error: BaseException) -> bool:
    """Whether the error means that memory is exhausted."""
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in FULL)


def installed() -> bool:
    """Whether sentence-transformers is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def best_device() -> str:
    """The device to compute on: a GPU if there is one."""
    torch = importlib.import_module("torch")
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _load(name: str, revision: str | None, device: str | None) -> Any:
    """Load the model; raises `CannotLoad`."""
    try:
        library = importlib.import_module(PACKAGE)
    except ImportError as error:
        raise CannotLoad(NOT_INSTALLED) from error
    with _quiet():
        try:
            return library.SentenceTransformer(name, revision=revision, device=device or best_device()).eval()
        except Exception as error:  # the files of a model can make four libraries raise anything
            where = f" on {device}" if device else ""
            said = " ".join(str(error).split())[:300]
            raise CannotLoad(f"sentence-transformers cannot load {name}{where}: {said}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress progress bars of the libraries, which would mix with those of the caller."""
    logging = importlib.import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _room(model: Any) -> int:
    """The number of tokens of the first batch, by the free memory."""
    torch = importlib.import_module("torch")
    if model.device.type != "cuda":
        return int(min(MOST, max(FEWEST, PER_CORE * torch.get_num_threads())))
    free, _ = torch.cuda.mem_get_info(model.device)
    ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(min(MOST, max(FEWEST, free // 2 // (4 * NUMBERS * (ask() or 1)))))


def _free(device: str) -> None:
    """Return cached memory to the device."""
    if device in ("cuda", "mps"):
        getattr(importlib.import_module("torch"), device).empty_cache()


def _is_unit(model: Any) -> bool:
    """Whether a model returns vectors of length 1."""
    return any(type(part).__name__ == "Normalize" for part in model)


def _narrowed(rows: Any, wish: Wish, *, unit: bool) -> Any:
    """Truncate vectors to a size. Vectors of length 1 are normalised again."""
    if wish.dimensions is None:
        return rows
    rows = rows[:, : wish.dimensions]
    if not (unit or wish.normalize):
        return rows
    numpy = importlib.import_module("numpy")
    sizes = numpy.linalg.norm(rows, axis=1, keepdims=True)
    return rows / numpy.where(sizes == 0, 1, sizes)
