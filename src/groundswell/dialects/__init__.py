"""The providers' wire formats. Pure: what to send for a request, and what an answer means.

Every dialect is a module with the same four functions:

    encode(request, model) -> Call | Fault       what to send; a fault where the provider has no such thing
    decode(request, status, headers, body, now) -> Reply | Embedding | Fault      what an answer means
    headers(key) -> dict                         what goes along with every call
    standings(headers, now) -> tuple[Standing, ...]      what the headers of an answer say of rate limits

`model` is the provider's own name, without our `provider/` before it. `decode` and `standings` never raise, whatever
came; `standings` wants the names of headers in lower case. `HEALTH_PATH` is what a GET tells of whether a server is
there: it costs nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_VERSIONED = re.compile(r"/v\d\w*(/openai)?$")


class Call(NamedTuple):
    """A POST to be made: where, below the provider's address, and with what body."""

    path: str
    body: bytes


def address(base: str, path: str) -> str:
    """The URL of a call. A base may end in its version (`…/v1`, as OpenAI's clients have it); it stands there once."""
    base = base.rstrip("/")
    return base + (path.removeprefix("/v1") if _VERSIONED.search(base) else path)
