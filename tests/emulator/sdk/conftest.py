"""One emulator for the tests of the official clients, fresh for each of them, and one client of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from anthropic import Anthropic
from ollama import Client
from openai import OpenAI

from groundswell.emulator.server import Threaded, running


@pytest.fixture(scope="session")
def one_emulator() -> Iterator[Threaded]:
    with running() as emulator:
        yield emulator


@pytest.fixture
def emulator(one_emulator: Threaded) -> Threaded:
    """Empty books, no batches, no files, no faults."""
    one_emulator.reset()
    one_emulator.set_faults()
    return one_emulator


@pytest.fixture(scope="session")
def openai_client(one_emulator: Threaded) -> Iterator[OpenAI]:
    """With the client's defaults: two retries."""
    with OpenAI(api_key="sk-test", base_url=f"{one_emulator.url}/v1") as client:
        yield client


@pytest.fixture(scope="session")
def anthropic_client(one_emulator: Threaded) -> Iterator[Anthropic]:
    """With the client's defaults: two retries."""
    with Anthropic(api_key="sk-test", base_url=one_emulator.url) as client:
        yield client


@pytest.fixture(scope="session")
def ollama_client(one_emulator: Threaded) -> Iterator[Client]:
    with Client(host=one_emulator.url) as client:
        yield client
