"""Token counts of the emulator: one token per four characters, and three more per message. Tests can do the same."""

from __future__ import annotations

from groundswell.program.request import Embed, Message, Request, Text

CHARS_PER_TOKEN = 4
PER_MESSAGE = 3
PER_IMAGE = 85


def count(text: str) -> int:
    """The tokens of a text; 0 for an empty one."""
    return (len(text) + CHARS_PER_TOKEN - 1) // CHARS_PER_TOKEN


def count_message(message: Message) -> int:
    """The tokens of one message, including its framing."""
    content = message.content
    if isinstance(content, str):
        tokens = PER_MESSAGE + (len(content) + CHARS_PER_TOKEN - 1) // CHARS_PER_TOKEN
    else:
        tokens = PER_MESSAGE + sum(count(part.text) if isinstance(part, Text) else PER_IMAGE for part in content)
    if message.tool_calls:
        tokens += sum(count(call.name) + count(call.arguments) for call in message.tool_calls)
    return tokens


def count_request(request: Request) -> int:
    """The input tokens of a request."""
    if isinstance(request, Embed):
        return sum(count(text) for text in request.texts)
    return sum(map(count_message, request.messages))


def cut(text: str, max_tokens: int) -> str:
    """The beginning of a text, up to this many tokens."""
    return text[: max_tokens * CHARS_PER_TOKEN]
