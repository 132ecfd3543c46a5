"""Who answers in a test: models by name, and the emulator for all others. What was asked is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from groundswell import Chat, Embed, Fault, FaultKind, Reply, Request
from groundswell.emulator import in_process
from groundswell.program.request import Embedding

Answer = Reply | Embedding | Fault
Part = Answer | str | Callable[[Request], Answer | Awaitable[Answer]]
NO_GOOD = Fault(FaultKind.BAD_REQUEST, "no good")


class Cast:
    """A script for `Session(script=...)`. A part is an answer, or a function of the request."""

    def __init__(self, **parts: Part) -> None:
        self.parts = {f"emulated/{name}": part for name, part in parts.items()}
        self.asked: list[Request] = []

    def __call__(self, request: Request, sample: int) -> Answer | Awaitable[Answer]:
        self.asked.append(request)
        part = self.parts.get(request.model)
        if part is None:
            return in_process.answer(request, sample)
        if isinstance(part, str):
            return Reply(part)
        return part(request) if callable(part) else part

    def chats(self, model: str) -> list[Chat]:
        """What a model was asked to say."""
        return [each for each in self.asked if isinstance(each, Chat) and each.model == f"emulated/{model}"]

    @property
    def embeds(self) -> list[Embed]:
        """What was to be embedded."""
        return [each for each in self.asked if isinstance(each, Embed)]


def text_of(chat: Chat) -> str:
    """All that a chat says."""
    return "\n".join(str(message.content) for message in chat.messages)
