"""Model servers in the store."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from groundswell.store.journal import Store
from groundswell.store.process import Process, this_process
from groundswell.store.servers import Server
from tests.stores import BOTH, new_store, rows

URL = "http://127.0.0.1:8000/v1"


@pytest.fixture(params=BOTH)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    return new_store(request.param, tmp_path)


def test_a_server_is_listed_until_it_is_removed(place: str) -> None:
    store, other = Store(place), Store(place)
    assert store.servers.of("vllm") == []
    for _ in range(2):
        store.servers.add("vllm", URL)
    store.servers.add("other", "http://gpu:1/v1")
    assert other.servers.of("vllm") == [Server(URL, here=True)]
    other.servers.add("vllm", URL)  # on its own loopback interface
    other.servers.remove("vllm", URL)
    assert store.servers.of("vllm") == [Server(URL, here=True)]
    store.servers.remove("vllm", URL)
    assert store.servers.of("vllm") == []
    assert store.servers.of("other") == [Server("http://gpu:1/v1", here=True)]
    for each in (store, other):
        each.close_reading()


@pytest.mark.parametrize("gone", ["process", "silent"])
def test_a_server_whose_worker_has_gone_is_not_listed(place: str, gone: str) -> None:
    store = Store(place)
    store.servers.add("vllm", URL)
    if gone == "process":
        ended = msgspec.structs.replace(this_process(), started="0")
        rows(place, "UPDATE servers SET process = ?", msgspec.json.encode(ended).decode())
    else:
        rows(place, "UPDATE servers SET at = at - 31")
    assert store.servers.of("vllm") == []
    store.servers.add("other", URL)
    assert len(rows(place, "SELECT 1 FROM servers")) == (2 if gone == "process" else 1)
    store.servers.add("vllm", URL)
    assert store.servers.of("vllm") == [Server(URL, here=True)]
    store.close_reading()


def test_a_server_on_another_machine_is_told_apart(place: str) -> None:
    store = Store(place)
    store.servers.add("vllm", URL)
    there = Process(1, "1", "gpu7", "gpu7/boot/pid")
    rows(place, "UPDATE servers SET process = ?", msgspec.json.encode(there).decode())
    assert store.servers.of("vllm") == [Server(URL, here=False)]
    store.close_reading()
