"""Which requests of batches a rule of faults means by its path."""

from __future__ import annotations

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import running
from tests.emulator.calls import Calls, line


def test_batches_of_embeddings_are_told_from_those_of_chats() -> None:
    with running() as emulator:
        calls = Calls(emulator)
        emulator.set_faults(Rule(fault="line-400", path="batch:/v1/embeddings"))
        body = {"model": "text-embedding-3-small", "input": "x", "dimensions": 4}
        vectors = calls.batch([line("a", body, url="/v1/embeddings")], endpoint="/v1/embeddings")
        chats = calls.batch([line("a")])
        emulator.advance(700)
        assert [calls.look(id)["request_counts"]["failed"] for id in (vectors, chats)] == [1, 0]
