"""llama.cpp in this process. The only file that knows xllamacpp.

A model's reply must not depend on other requests at the same time, nor on earlier ones. With flash attention, at most
32 rows at a time, and keys and values in 8 bits (with 16 bits, sums over more than 256 values are added up in another
order for a row that is alone), the values computed for a token are the same, bit for bit, whether it was read or
generated, alone or beside others. So requests share batches, and the prompt cache is used. Not every processor and
weight format may guarantee that: `Llama` tests it when it loads a model. If the test fails, it answers one request at a
time, without a cache.
"""

from __future__ import annotations

import importlib
import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from groundswell.transports.weights import short_name

SLOTS = 4
"""Requests that are processed at once."""
CONTEXT = 4096
"""Most tokens of a request and its reply together; at most what the model was trained on."""
LONGEST_TEXT = 2048
"""Most tokens of a text to embed: it is read in one pass."""
ROWS = 32
"""Above this, flash attention adds up in another order."""
BATCH = 64
"""Tokens that are read between checks whether the reply is still wanted."""
KEPT = 512
"""MiB for the prompt cache of conversations that have no slot at the moment."""
ALIKE = 0.5
"""The share of a prompt that a slot must have cached to be chosen for it. Common beginnings of prompts are shorter."""
MOST_THREADS = 8
LONGEST_SOCKET = 100
WAITING = "OMP_WAIT_POLICY"

PROBE = "The harbour was quiet that morning"
PROBED = 3

Answer = tuple[int, bytes]
"""A status and a body, as a server would give them."""


class CannotLoad(Exception):
    """llama.cpp cannot load a file, or there is not enough memory for it."""


class Llama:
    """The weights of one file in memory, shared by all users. They are loaded on first use; threads may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.exact: bool | None = None
        self._loading = threading.Lock()
        self._talks: Any = None
        self._embeds: Any = None
        self._turns = threading.Semaphore(SLOTS)
        self._one_text = threading.Lock()

    def chat(self, body: dict[str, Any], stopped: threading.Event) -> Answer:
        """The reply to a chat request. It is abandoned, with the text so far, soon after `stopped` is set."""
        server = self._talker()
        streamed = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
        pieces = StreamedReply()

        def hear(chunk: bytes) -> bool:
            pieces.add(msgspec.json.decode(chunk))
            return stopped.is_set()

        with self._turns:
            if not stopped.is_set():
                server.handle_chat_completions(
                    msgspec.json.encode({"cache_prompt": bool(self.exact), **body, **streamed}), hear
                )
        return pieces.whole()

    def embed(self, body: dict[str, Any], stopped: threading.Event) -> Answer:
        """The vectors of texts. llama.cpp reads them one by one: combined with others, their vectors would differ.

        The difference is not only in the last bits: with four slots, six of eight texts in one call had a cosine of
        0.88 to 0.97 with their vectors alone. The cause is unknown.
        """
        server = self._embedder()
        with self._one_text:
            answer: bytes = b"" if stopped.is_set() else server.handle_embeddings(msgspec.json.encode(body))
        data = msgspec.json.decode(answer) if answer else {}
        error = data.get("error")
        return (error.get("code", 500) if isinstance(error, dict) else 200), answer

    def unload(self) -> None:
        """Free the memory, or let the last running request do so."""
        with self._loading:
            self._talks = self._embeds = None

    def _talker(self) -> Any:
        with self._loading:
            if self._talks is None:
                server = _serve(self.path, _for_talk)
                self.exact = is_exact(server)
                if not self.exact:
                    self._turns = threading.Semaphore(1)
                self._talks = server
            return self._talks

    def _embedder(self) -> Any:
        with self._loading:
            if self._embeds is None:
                server = _serve(self.path, _for_embedding)
                if b'"error"' in server.handle_embeddings(b'{"input": ["a"]}'):  # the model has no pooling of its own
                    server = _serve(self.path, _for_mean)
                    server.handle_embeddings(b'{"input": ["a"]}')  # it cannot be stopped before it has started to work
                self._embeds = server
            return self._embeds


def is_exact(server: Any) -> bool:
    """Whether a reply is the same to the last bit alone, beside others, and with part of the prompt cached."""
    alone = _continued(server, PROBE, 1, reuse=False)
    if not alone or _continued(server, PROBE, SLOTS, reuse=False) != alone * SLOTS:
        return False
    longer = PROBE + alone[0][0] + " and"
    reused = _continued(server, longer, 1, reuse=True)
    return reused == _continued(server, longer, 1, reuse=False)


def _continued(server: Any, text: str, times: int, *, reuse: bool) -> list[tuple[str, list[float]]]:
    """Continuations of a text, several at once, with their probabilities."""
    found: dict[str, Any] = server.handle_completions(
        {
            "prompt": text,
            "max_tokens": PROBED,
            "temperature": 0.0,
            "logprobs": 1,
            "n": times,
            "cache_prompt": reuse,
            "seed": 0,
        }
    )
    return [
        (choice["text"], [token["logprob"] for token in choice["logprobs"]["content"]])
        for choice in found.get("choices", ())
    ]


def threads() -> int:
    """The number of threads: the processors of this process, as far as a model benefits from them."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, MOST_THREADS)


def _serve(path: Path, fit: Callable[[Any, Any], None]) -> Any:
    """Start a server for a model that only this process can reach; raises `CannotLoad`."""
    llama = _library()
    params = llama.CommonParams()
    params.model.path = str(path)
    params.model_alias = {short_name(path)}
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads()
    params.verbosity = -1
    params.n_threads_http = 1
    params.warmup = params.fit_params = params.ui = params.endpoint_slots = False
    params.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.api_keys = [secrets.token_hex(16)]
    fit(llama, params)
    with _hidden_socket() as socket:
        if socket is not None:
            params.hostnames = [socket]
        try:
            return llama.Server(params)
        except (RuntimeError, MemoryError) as error:
            raise CannotLoad(
                f"llama.cpp cannot load {path}: the file is damaged, or there is not enough memory"
            ) from error


def _library() -> Any:
    """Import xllamacpp. Its threads must not spin while waiting: on a busy machine that is ten times slower.

    This is set by an environment variable that is read once. It affects other libraries too, so it is removed again.
    """
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # otherwise an abort starts a debugger
    said = os.environ.get(WAITING)
    os.environ[WAITING] = said or "passive"
    try:
        return importlib.import_module("xllamacpp")
    finally:
        if said is None:
            del os.environ[WAITING]


def _for_talk(llama: Any, params: Any) -> None:
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * CONTEXT
    params.n_batch, params.n_ubatch = BATCH, ROWS
    params.cache_type_k = params.cache_type_v = llama.ggml_type.GGML_TYPE_Q8_0
    params.cache_ram_mib = KEPT
    params.slot_prompt_similarity = ALIKE


def _for_embedding(llama: Any, params: Any) -> None:
    params.n_parallel = 1
    params.n_ctx = params.n_batch = params.n_ubatch = LONGEST_TEXT
    params.cache_ram_mib = 0
    params.embedding = True


def _for_mean(llama: Any, params: Any) -> None:
    """For a model that was not made for embedding: use the mean over all tokens."""
    _for_embedding(llama, params)
    params.pooling_type = llama.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN


@contextmanager
def _hidden_socket() -> Iterator[str | None]:
    """An address for the server that is removed once it has started: it must listen, but nobody should connect.

    If the path would be too long for a socket, it is a local port, protected by a random key.
    """
    with tempfile.TemporaryDirectory(prefix="groundswell-") as folder:
        path = str(Path(folder) / "llama.sock")
        yield path if len(path) <= LONGEST_SOCKET else None


class StreamedReply:
    """A streamed reply, assembled into the whole reply of OpenAI's wire format."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {"content": [], "reasoning_content": []}
        self._calls: dict[int, dict[str, Any]] = {}
        self._logprobs: list[Any] = []
        self._finish: str | None = None
        self._last: dict[str, Any] = {}
        self._error: dict[str, Any] | None = None
        self._any = False

    def add(self, chunk: dict[str, Any]) -> None:
        """Add the next chunk."""
        self._any = True
        if "error" in chunk:
            self._error = chunk
            return
        self._last.update({key: chunk[key] for key in ("model", "usage") if chunk.get(key) is not None})
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) == 0:
                self._add_choice(choice)

    def _add_choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name, texts in self._texts.items():
            texts.append(delta.get(name) or "")
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        self._logprobs += (choice.get("logprobs") or {}).get("content") or []
        self._finish = choice.get("finish_reason") or self._finish

    def _add_call(self, piece: dict[str, Any]) -> None:
        made = self._calls.setdefault(piece.get("index", 0), {"id": None, "function": {"name": None, "arguments": ""}})
        function, more = made["function"], piece.get("function") or {}
        made["id"] = piece.get("id") or made["id"]
        function["name"] = more.get("name") or function["name"]
        function["arguments"] += more.get("arguments") or ""

    def whole(self) -> tuple[int, bytes]:
        """Status and body, as a server without streaming would send them."""
        if self._error is not None:
            error = self._error["error"]
            code = error.get("code") if isinstance(error, dict) else None
            return code if type(code) is int and code >= 400 else 500, msgspec.json.encode(self._error)
        if not self._any or self._finish is None:
            return 200, b""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts["content"])}
        if thoughts := "".join(self._texts["reasoning_content"]):
            message["reasoning_content"] = thoughts
        if self._calls:
            message["tool_calls"] = [self._calls[at] for at in sorted(self._calls)]
        choice: dict[str, Any] = {"index": 0, "finish_reason": self._finish, "message": message}
        if self._logprobs:
            choice["logprobs"] = {"content": self._logprobs}
        return 200, msgspec.json.encode({"object": "chat.completion", "choices": [choice], **self._last})
