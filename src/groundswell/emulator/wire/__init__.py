"""What the providers' requests and answers look like from their own side. Pure; one module per provider."""

from __future__ import annotations

from typing import NamedTuple

from groundswell.errors import GroundswellError
from groundswell.program.request import Chat, Embed


class Rejected(GroundswellError):
    """A request that a provider turns down, in the words of that provider."""

    def __init__(
        self, status: int, message: str, *, kind: str, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.param = param
        self.code = code
        self.retry_after: float | None = None


class Incoming(NamedTuple):
    """A request as it came over the wire: what it asks, and how the answer is to be written."""

    request: Chat | Embed
    stream: bool = False
    usage_in_stream: bool = True
    base64: bool = False
    choices: int = 1
    """How many choices are wanted (OpenAI's `n`)."""
    legacy: bool = False
    """Ollama's /api/generate, which writes `response` where /api/chat writes `message`."""


class About(NamedTuple):
    """What an answer says of itself beside the reply."""

    id: str
    created: float
    model: str
