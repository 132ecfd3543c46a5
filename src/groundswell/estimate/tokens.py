"""How many tokens a text may have, without anybody's tokenizer. Pure.

English has four to five characters a token with the tokenizers in use, code and names fewer; three to five holds what
providers count. Beyond ASCII a token may be a whole word or a third of a character.
"""

from __future__ import annotations

from math import ceil

from groundswell.engine.ranges import NOTHING, Range
from groundswell.program.request import Embed, Message, Request, Text, canonical

PER_MESSAGE = Range(0, 8)
PER_IMAGE = Range(85, 3000)
WITH_SCHEMA = 400
"""Tokens that a provider may put before tools and schemas."""
CHARACTERS = 4
"""Of a token that is made up."""


def text_tokens(text: str) -> Range:
    """The tokens of a text."""
    beyond = 0 if text.isascii() else sum(character > "\x7f" for character in text)
    size = len(text) if not beyond else len(text.encode(errors="surrogatepass"))
    return Range(len(text) // 5, ceil((len(text) - beyond) / 3) + ceil((size - len(text) + beyond) / 1.5))


def request_tokens(request: Request) -> Range:
    """The input tokens of a request."""
    if isinstance(request, Embed):
        return sum((text_tokens(text) + Range(0, 2) for text in request.texts), NOTHING)
    prompt = sum(map(message_tokens, request.messages), NOTHING)
    if request.tools or request.schema:
        prompt += Range(0, WITH_SCHEMA + len(canonical((request.tools, request.schema))) / 3)
    return prompt


def message_tokens(message: Message) -> Range:
    """The tokens of a message, with what frames it."""
    called = [text for call in message.tool_calls for text in (call.name, call.arguments)]
    found = PER_MESSAGE + sum(map(text_tokens, called), NOTHING)
    if isinstance(message.content, str):
        return found + text_tokens(message.content)
    parts = (text_tokens(part.text) if isinstance(part, Text) else PER_IMAGE for part in message.content)
    return found + sum(parts, NOTHING)
