"""Models for the tests of environments: the emulator's, with parts that fail where a test says so."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from groundswell.emulator import in_process
from groundswell.program.request import Chat, Embed, Embedding, Fault, FaultKind, Reply, Request

DOWN = Fault(FaultKind.SERVER, "down for repair")
Answer = Reply | Embedding | Fault


def is_target(request: Request) -> bool:
    """Whether the guarded model is asked."""
    return isinstance(request, Chat) and request.model.startswith("emulated/guard")


def asked(request: Request) -> str:
    """The last thing that was said in a request."""
    assert isinstance(request, Chat)
    content = request.messages[-1].content
    assert isinstance(content, str)
    return content


class Emulated:
    """The emulator's models, with a count of what they were asked; where `fails` says so, they do."""

    def __init__(self, fails: Callable[[Request], bool] = lambda _: False) -> None:
        self.fails = fails
        self.requests: list[Request] = []

    def __call__(self, request: Request, sample: int) -> Answer:
        self.requests.append(request)
        return DOWN if self.fails(request) else in_process.answer(request, sample)

    @property
    def embeds(self) -> list[Embed]:
        """The texts that it was asked to embed."""
        return [request for request in self.requests if isinstance(request, Embed)]


def some_queries_fail(request: Request) -> bool:
    """A target that never answers about every third query: which ones, their words decide."""
    return is_target(request) and crc32(asked(request).encode()) % 3 == 0
