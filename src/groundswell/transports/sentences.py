"""Models of sentence-transformers inside this process, for embeddings. Read `Sentences` from top to bottom.

locate     find the model of a string: a directory, or a name on the hub with its commit
collect    the texts of a wave, and of waves that wait beside it (in_process.py), in one call
_embedded  count tokens, refuse texts that are too long, embed the rest in a thread (sentence_transformers.py)
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from groundswell.engine.records import Absent, AskId, Found, Intent, Item, Receipt, Settled, Undecided, Wave
from groundswell.errors import SettingsError
from groundswell.program.request import Embed, Embedding, Fault, FaultKind, Usage
from groundswell.transports import sentence_transformers
from groundswell.transports.embeddings import group_requests
from groundswell.transports.in_process import Coalescer, ModelPool, Notice, in_thread
from groundswell.transports.sentence_transformers import CannotLoad, Encoder, Refused, Wish

PREFIX = "sentences/"
RUNNER = "sentence-transformers"
DEVICE = "GROUNDSWELL_SENTENCES_DEVICE"
"""The variable that sets the device. By default the fastest one is used."""
HOME = "sentence-transformers"
"""Owner of a model on the hub if its name has none."""
PATIENCE = 10.0
"""Seconds for the hub to answer which commit a name means."""
AT_ONCE = 64
"""Asks that may wait for each other: this many fill a call, so more open trials are not needed."""
NO_CHAT = "this model only embeds texts; use embed, or choose a chat model"
EXTRAS = {"prompt": str, "prompt_name": str, "normalize": bool, "truncate": bool}

_HUB_NAME = re.compile(r"(?P<name>[\w.-]+(/[\w.-]+)?)(@(?P<revision>[\w./-]+))?")
_ASIDE = ("onnx", "openvino")
"""Directories with the same weights in other formats, which are not loaded."""


class Place(NamedTuple):
    """A directory, or a name on the hub and a commit; and an id of the content."""

    name: str
    revision: str | None
    which: str


def locate(model: str) -> Place:
    """Find the model of a string. The error says what is missing and how to fix it."""
    given = model.removeprefix(PREFIX)
    path = Path(os.path.expanduser(given))
    if not sentence_transformers.installed():
        raise SettingsError(f"model {model!r}: {sentence_transformers.NOT_INSTALLED}")
    if given and (path.is_dir() or given.startswith(("/", "~", "."))):
        return _folder(model, path)
    meant = _HUB_NAME.fullmatch(given)
    if meant is None:
        raise SettingsError(f"model {model!r}: write a folder, or a name on the hub such as BAAI/bge-small-en-v1.5")
    name = meant["name"] if "/" in meant["name"] else f"{HOME}/{meant['name']}"
    commit = _commit(model, name, meant["revision"])
    return Place(name, commit, f"{name}@{commit}")


def _folder(model: str, path: Path) -> Place:
    if not path.is_dir():
        raise SettingsError(f"model {model!r}: there is no folder {path.absolute()}")
    if not any((path / name).is_file() for name in ("modules.json", "config.json")):
        raise SettingsError(
            f"model {model!r}: {path.absolute()} contains no model (neither modules.json nor config.json)"
        )
    try:
        return Place(str(path.resolve()), None, identity(path.resolve()))
    except OSError as error:
        raise SettingsError(f"model {model!r}: {path.absolute()} cannot be read: {error.strerror}") from error


def _commit(model: str, name: str, revision: str | None) -> str:
    """The commit of a name: the downloaded one, else the hub's."""
    hub = importlib.import_module("huggingface_hub")
    try:
        return Path(hub.snapshot_download(name, revision=revision, local_files_only=True)).name
    except Exception:  # noqa: BLE001  whatever it raises, the model is not on this machine
        pass
    try:
        return str(hub.HfApi().model_info(name, revision=revision, timeout=PATIENCE).sha)
    except Exception as error:  # its exceptions change between versions
        status = getattr(getattr(error, "response", None), "status_code", None)
        what = f"{name}{'' if revision is None else f'@{revision}'}"
        if status in (401, 403, 404):
            problem = f"the hub does not give access to {what}: check the name, and set HF_TOKEN if it needs one"
        else:
            problem = f"{what} is not on this machine, and the hub cannot be reached; use a local folder"
        raise SettingsError(f"model {model!r}: {problem}") from error


def identity(folder: Path) -> str:
    """An id of the files of a model, independent of their location."""
    whole = hashlib.blake2b(digest_size=16)
    for path in sorted(_files(folder)):
        state = path.stat()
        digest = _digest(path, state.st_size, state.st_mtime_ns)
        whole.update(f"{path.relative_to(folder).as_posix()}\0{digest}\n".encode())
    return whole.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        aside = parts[0] in _ASIDE or any(part.startswith(".") for part in parts)
        if not aside and path.suffix != ".md" and path.is_file():
            yield path


@lru_cache(maxsize=1024)
def _digest(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


POOL: ModelPool[Place, Encoder] = ModelPool(
    lambda place: place.which,
    lambda place: Encoder(place.name, place.revision, os.environ.get(DEVICE) or None),
)


class Sentences:
    """The transport of all sentence-transformers models of an engine. `models` maps each model string to its place."""

    name = "sentences"
    barrier = False
    cached = True
    vectorised = True
    ready = True
    max_wave = 1024

    def __init__(self, notice: Notice | None = None) -> None:
        self.models: dict[str, Place] = {}
        self._notice = notice or (lambda account, model, what: None)
        self._taken: dict[str, tuple[str, Encoder]] = {}
        self._joined: dict[str, Coalescer] = {}
        self._sent: dict[tuple[int, tuple[AskId, ...]], tuple[Item, ...]] = {}

    async def dispatch(self, wave: Wave) -> Receipt:
        self._sent[wave.id, wave.asks] = wave.items
        return Receipt()

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        items = self._sent.pop((intent.id, intent.asks))
        for item in items:
            if not isinstance(item.request, Embed):
                yield Settled(item.ask, Fault(FaultKind.BAD_REQUEST, f"model {item.request.model!r}: {NO_CHAT}"))
        for group in group_requests([item for item in items if isinstance(item.request, Embed)], 1):
            which = self.models[group[0].request.model].which
            joining = self._joined.setdefault(which, Coalescer(self._settled))
            for settled in await joining.settled(group):
                yield settled

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        return Absent(perhaps_paid=True)

    async def close(self) -> None:
        """Release the models."""
        taken, self._taken = self._taken, {}
        for key, _ in taken.values():
            POOL.release(key)

    async def _settled(self, items: Sequence[Item]) -> list[Settled]:
        """The settlements of asks for one model, with one call for each kind of request."""
        found: dict[int, Embedding | Fault] = {}
        for group in group_requests(items, 1):
            requests = [item.request for item in group if isinstance(item.request, Embed)]
            answers = await self._embedded(requests)
            found.update((id(item), answer) for item, answer in zip(group, answers, strict=True))
        return [Settled(item.ask, found[id(item)]) for item in items]

    async def _embedded(self, requests: Sequence[Embed]) -> Sequence[Embedding | Fault]:
        """The answers to requests with the same model and settings."""
        place = self.models[requests[0].model]
        wish = wished(requests[0])
        if isinstance(wish, Fault):
            return [wish] * len(requests)
        model = self._encoder(place)
        try:
            return await in_thread(lambda stopped: answered(model, requests, wish, stopped))
        except CannotLoad as error:
            fault = Fault(FaultKind.UNREACHABLE, str(error))
        except Refused as error:
            fault = Fault(FaultKind.BAD_REQUEST, f"sentence-transformers: {error}")
        return [fault] * len(requests)

    def _encoder(self, place: Place) -> Encoder:
        taken = self._taken.get(place.which)
        if taken is None:
            taken = self._taken[place.which] = POOL.acquire(place)
            if not taken[1].loaded:
                self._notice(self.name, short_name(place.name), "loading the weights")
        return taken[1]


def wished(request: Embed) -> Wish | Fault:
    """The embedding settings of a request."""
    extra = request.extra or {}
    for name, value in extra.items():
        if name not in EXTRAS:
            return Fault(FaultKind.BAD_REQUEST, f"extra: unknown key {name!r}; use {', '.join(EXTRAS)}")
        if not isinstance(value, EXTRAS[name]):
            return Fault(FaultKind.BAD_REQUEST, f"extra: {name} must be a {EXTRAS[name].__name__}, not {value!r}")
    if "prompt" in extra and "prompt_name" in extra:
        return Fault(FaultKind.BAD_REQUEST, "extra: set prompt or prompt_name, not both")
    if request.dimensions is not None and request.dimensions < 1:
        return Fault(FaultKind.BAD_REQUEST, f"dimensions {request.dimensions}: must be at least 1")
    return Wish(request.dimensions, **extra)


def answered(
    model: Encoder, requests: Sequence[Embed], wish: Wish, stopped: threading.Event
) -> list[Embedding | Fault]:
    """The answers to requests, with all texts in one call. A request with a text that is too long is refused alone."""
    counts = iter(model.lengths([text for request in requests for text in request.texts], wish))
    measured = [[next(counts) for _ in request.texts] for request in requests]
    most = None if wish.truncate else model.longest
    fit = [most is None or max(lengths, default=0) <= most for lengths in measured]
    texts = [text for request, fits in zip(requests, fit, strict=True) if fits for text in request.texts]
    taken = [length for lengths, fits in zip(measured, fit, strict=True) if fits for length in lengths]
    vectors = iter(model.embed(texts, taken, wish, stopped))
    return [
        _answer(model, lengths, [next(vectors) for _ in lengths]) if fits else _too_long(lengths, most)
        for lengths, fits in zip(measured, fit, strict=True)
    ]


def _answer(model: Encoder, lengths: Sequence[int], vectors: Sequence[bytes | None]) -> Embedding | Fault:
    rows = [vector for vector in vectors if vector is not None]
    if len(rows) < len(vectors):
        problem = f"{model.device} does not have enough memory for a text of {max(lengths)} tokens"
        return Fault(FaultKind.CONTEXT, f"{problem}; shorten it, or set {DEVICE}=cpu")
    most = model.longest
    used = sum(length if most is None else min(length, most) for length in lengths)
    return Embedding(b"".join(rows), len(rows[0]) // 4 if rows else 0, Usage(used), short_name(model.name))


def _too_long(lengths: Sequence[int], most: int | None) -> Fault:
    what = f"a text has {max(lengths)} tokens, the limit of the model is {most}"
    return Fault(FaultKind.CONTEXT, f'{what}; shorten it, or truncate it with extra={{"truncate": True}}')


def short_name(name: str) -> str:
    """The name of a model in replies and messages."""
    return Path(name).name if Path(name).is_absolute() else name
