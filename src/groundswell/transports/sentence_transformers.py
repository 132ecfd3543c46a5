"""sentence-transformers in this process. The only file that knows it, and it needs nothing else of ours.

Texts are sorted by length and cut into batches by tokens, longest first: little is wasted on padding, and a batch that
does not fit into memory shows at once. It is halved then, and later ones stay below that.

A text's vector depends a little on what shares its batch, since sums are taken in another order: by less than 1e-6 of
its length in 32 bits, and, as must be expected, by more in 16.
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
"""What the ways of computing say when memory is too small."""
NUMBERS = 64
"""How many numbers a token may need at once, for each number of a vector: keys, values, and what lies between."""
FEWEST, MOST = 512, 1 << 17
"""Tokens in a batch to begin with: on a processor more than a few hundred for each core only fall out of its cache."""
PER_CORE = 256
PER_CHARACTER = 0.5
"""Tokens to expect where a model does not say how it counts them."""


class CannotLoad(Exception):
    """There is no such model, it cannot be fetched or read, or memory is too small for it."""


class Refused(Exception):
    """A request that the model cannot answer, whatever the texts."""


class GivenUp(Exception):
    """Nobody waits for the vectors any more."""


class Wish(NamedTuple):
    """How texts are to be embedded: what stands before each, how wide vectors are, and whether long texts are cut."""

    dimensions: int | None = None
    prompt: str | None = None
    prompt_name: str | None = None
    normalize: bool = False
    truncate: bool = False


class Encoder:
    """One model in memory, for all who ask it. Loads when it is first asked; threads may share it."""

    def __init__(self, name: str, revision: str | None = None, device: str | None = None) -> None:
        self.name = name
        self.revision = revision
        self.device = device
        self.room = 0
        """Tokens that a batch may have."""
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
        """The most tokens that a text may have, if there is a limit."""
        found = self._loaded().max_seq_length
        return int(found) if isinstance(found, int | float) and found < 1 << 30 else None

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        model = self._loaded()
        ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        return int(ask() or 0)

    def lengths(self, texts: Sequence[str], wish: Wish) -> list[int]:
        """How many tokens each text has, with what stands before it."""
        before = self._before(wish)
        tokenizer = self._loaded().tokenizer
        if not callable(tokenizer) or not texts:
            return [1 + int(PER_CHARACTER * (len(before) + len(text))) for text in texts]
        found = tokenizer([before + text for text in texts], truncation=False, verbose=False)["input_ids"]
        return [len(tokens) for tokens in found]

    def embed(
        self, texts: Sequence[str], lengths: Sequence[int], wish: Wish, stopped: threading.Event | None = None
    ) -> list[bytes | None]:
        """The vectors as packed 32-bit floats, in the order of the texts; None where memory is too small for one."""
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
        """Free the memory, or let the last call that is still under way do so."""
        with self._loading:
            where = None if self._model is None else self._model.device.type
            self._model = None
        if where is not None:
            _free(where)

    def _batch(self, texts: list[str], wish: Wish) -> list[bytes] | None:
        """The vectors of one batch; None if memory is too small for it."""
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
            raise Refused(f"dimensions: the vectors of this model have {self.width} numbers, not {wish.dimensions}")

    def _before(self, wish: Wish) -> str:
        """What stands before each text."""
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
    """How many texts, longest first, go into one batch: each takes as much of it as the longest. At least one."""
    return max(1, min(len(lengths), room // max(1, lengths[0]))) if lengths else 0


def is_full(error: BaseException) -> bool:
    """Whether memory was too small."""
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in FULL)


def installed() -> bool:
    """Whether what runs these models is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def best_device() -> str:
    """Where to compute: on a graphics processor if there is one."""
    torch = importlib.import_module("torch")
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _load(name: str, revision: str | None, device: str | None) -> Any:
    """The model, in memory; raises `CannotLoad`."""
    try:
        library = importlib.import_module(PACKAGE)
    except ImportError as error:
        raise CannotLoad(NOT_INSTALLED) from error
    with _quiet():
        try:
            return library.SentenceTransformer(name, revision=revision, device=device or best_device()).eval()
        except Exception as error:  # whatever a model's files make four libraries raise
            where = f" on {device}" if device else ""
            said = " ".join(str(error).split())[:300]
            raise CannotLoad(f"sentence-transformers cannot load {name}{where}: {said}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars meanwhile: they would run through those of whoever runs this."""
    logging = importlib.import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _room(model: Any) -> int:
    """How many tokens a batch may have to begin with, by the memory that is free."""
    torch = importlib.import_module("torch")
    if model.device.type != "cuda":
        return int(min(MOST, max(FEWEST, PER_CORE * torch.get_num_threads())))
    free, _ = torch.cuda.mem_get_info(model.device)
    ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(min(MOST, max(FEWEST, free // 2 // (4 * NUMBERS * (ask() or 1)))))


def _free(device: str) -> None:
    """Give back memory that is kept for later, and in the way now."""
    if device in ("cuda", "mps"):
        getattr(importlib.import_module("torch"), device).empty_cache()


def _is_unit(model: Any) -> bool:
    """Whether a model gives vectors of length 1."""
    return any(type(part).__name__ == "Normalize" for part in model)


def _narrowed(rows: Any, wish: Wish, *, unit: bool) -> Any:
    """Vectors cut to a width. What was of length 1 is so again."""
    if wish.dimensions is None:
        return rows
    rows = rows[:, : wish.dimensions]
    if not (unit or wish.normalize):
        return rows
    numpy = importlib.import_module("numpy")
    sizes = numpy.linalg.norm(rows, axis=1, keepdims=True)
    return rows / numpy.where(sizes == 0, 1, sizes)
