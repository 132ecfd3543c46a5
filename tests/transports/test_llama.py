"""llama.cpp in this process, with a stand-in for the library: what it is asked for, and when it is not trusted."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundswell.transports import llama
from groundswell.transports.llama import SLOTS, CannotLoad, Llama, is_exact


class Server:
    """Continues every text in the same words. `off` says when the last bits of its figures differ."""

    def __init__(self, off: Callable[[dict[str, Any]], bool] = lambda body: False, pooling: bool = True) -> None:
        self.off = off
        self.pooling = pooling
        self.chats: list[dict[str, Any]] = []
        self.at_once = self.most = 0
        self._lock = threading.Lock()

    def handle_completions(self, body: dict[str, Any]) -> dict[str, Any]:
        logprob = -1.0 - 1e-7 * self.off(body)
        return {"choices": [{"text": " sat", "logprobs": {"content": [{"logprob": logprob}]}}] * body["n"]}

    def handle_chat_completions(self, body: bytes, hear: Callable[[bytes], bool]) -> None:
        with self._lock:
            self.chats.append(json.loads(body))
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        hear(b'{"choices": [{"finish_reason": "stop", "delta": {"content": "hi"}}]}')
        with self._lock:
            self.at_once -= 1

    def handle_embeddings(self, body: bytes) -> bytes:
        if not self.pooling:
            return b'{"error": {"code": 400, "message": "no pooling"}}'
        return b'{"data": [{"embedding": [1.0], "index": 0}]}'


def loaded(monkeypatch: pytest.MonkeyPatch, *servers: Server) -> Llama:
    """A model whose servers are these, in turn."""
    left = list(servers)
    monkeypatch.setattr(llama, "_serve", lambda path, fit: left.pop(0))
    return Llama(Path("m.gguf"))


@pytest.mark.parametrize(
    ("off", "exact"),
    [
        (lambda body: False, True),
        (lambda body: body["n"] == SLOTS, False),
        (lambda body: body["cache_prompt"], False),
    ],
    ids=["the same always", "other figures beside others", "other figures from what was read before"],
)
def test_a_machine_on_which_replies_would_differ_is_found_out(off: Callable[[Any], bool], exact: bool) -> None:
    assert is_exact(Server(off)) is exact


def test_a_model_that_cannot_go_on_with_a_text_is_not_trusted() -> None:
    class Mute(Server):
        def handle_completions(self, body: dict[str, Any]) -> dict[str, Any]:
            return {"error": {"message": "no"}}

    assert not is_exact(Mute())


def talked(model: Llama, count: int) -> None:
    threads = [threading.Thread(target=lambda: model.chat({"messages": []}, threading.Event())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_an_exact_model_remembers_what_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    talked(loaded(monkeypatch, server), 3)
    assert [chat["cache_prompt"] for chat in server.chats] == [True] * 3


def test_another_answers_one_at_a_time_and_remembers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(lambda body: body["cache_prompt"])
    model = loaded(monkeypatch, server)
    talked(model, 8)
    assert (model.exact, server.most) == (False, 1)
    assert [chat["cache_prompt"] for chat in server.chats] == [False] * 8


def test_a_request_that_is_not_wanted_any_more_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    server, stopped = Server(), threading.Event()
    stopped.set()
    loaded(monkeypatch, server).chat({}, stopped)
    assert server.chats == []


@pytest.mark.parametrize("servers", [[Server()], [Server(pooling=False), Server()]], ids=["its own", "the mean"])
def test_a_model_that_was_not_made_for_it_embeds_with_the_mean(
    monkeypatch: pytest.MonkeyPatch, servers: list[Server]
) -> None:
    status, body = loaded(monkeypatch, *servers).embed({"input": ["x"]}, threading.Event())
    assert (status, json.loads(body)["data"][0]["embedding"]) == (200, [1.0])


class Library:
    """Stands in for xllamacpp: takes every setting."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.seen: dict[str, Any] = {}
        self.llama_flash_attn_type = self.llama_pooling_type = self.ggml_type = self
        self.LLAMA_FLASH_ATTN_TYPE_ENABLED, self.LLAMA_POOLING_TYPE_MEAN, self.GGML_TYPE_Q8_0 = "on", "mean", "8 bits"

    class CommonParams:
        def __init__(self) -> None:
            self.model = self.cpuparams = self.cpuparams_batch = type("Part", (), {})()

    def Server(self, params: Any) -> str:
        if self.fails:
            raise RuntimeError("Failed to init server")
        (address,) = params.hostnames
        self.seen = {**vars(params), "mode": stat.S_IMODE(os.stat(Path(address).parent).st_mode)}
        return "a server"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setattr(llama, "_library", lambda: made)
    return made


def test_a_server_is_silent_and_cannot_be_reached(library: Library) -> None:
    assert llama._serve(Path("/x/m.gguf"), llama._for_talk) == "a server"
    found = library.seen
    assert (found["mode"], len(found["api_keys"][0])) == (0o700, 32)
    assert not Path(found["hostnames"][0]).parent.exists()
    assert (found["verbosity"], found["model_alias"]) == (-1, {"m"})
    assert (found["n_parallel"], found["n_ubatch"], found["flash_attn_type"]) == (SLOTS, 32, "on")
    assert (found["cache_type_k"], found["cache_type_v"]) == ("8 bits", "8 bits")


def test_a_file_that_cannot_be_loaded(library: Library) -> None:
    library.fails = True
    with pytest.raises(CannotLoad, match=r"cannot load /x/m\.gguf"):
        llama._serve(Path("/x/m.gguf"), llama._for_talk)


def test_threads_are_those_that_the_process_may_use() -> None:
    assert 1 <= llama.threads() <= min(llama.MOST_THREADS, os.cpu_count() or 1)
