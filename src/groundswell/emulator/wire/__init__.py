"""The providers' requests and answers, from the server's side. Pure; one module per provider."""

from __future__ import annotations

from typing import NamedTuple

from groundswell.errors import GroundswellError
from groundswell.program.request import Chat, Embed


class Rejected(GroundswellError):
    """A request that a provider rejects, in the words of that provider."""

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
    """A request from the wire: its content, and the format of the answer."""

    request: Chat | Embed
    stream: bool = False
    usage_in_stream: bool = True
    base64: bool = False
    choices: int = 1
    """Number of choices (OpenAI's `n`)."""
    legacy: bool = False
    """Ollama's /api/generate, which writes `response` where /api/chat writes `message`."""


class About(NamedTuple):
    """The metadata of an answer."""

    id: str
    created: float
    model: str
