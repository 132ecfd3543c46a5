"""Estimates the number of tokens of a text without a tokenizer. Pure.

English has four to five characters per token with current tokenizers, more in long words, fewer in code and names. The
range of three to six includes what providers count. Beyond ASCII, a token may be a whole word or a third of a
character.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

from groundswell.engine.spending import NOTHING, Range
from groundswell.program.request import Embed, Message, Request, Text, canonical

PER_MESSAGE = Range(0, 8)
PER_TEXT = Range(0, 2)
PER_IMAGE = Range(85, 3000)
WITH_SCHEMA = 400
"""Tokens that a provider may put before tools and schemas."""
CHARACTERS = 4
"""Characters of a made-up token."""


@lru_cache(maxsize=16_384)
def text_tokens(text: str) -> Range:
    """The tokens of a text. Cached, since every turn of a conversation contains all earlier messages."""
    beyond = 0 if text.isascii() else sum(character > "\x7f" for character in text)
    size = len(text) if not beyond else len(text.encode(errors="surrogatepass"))
    return Range(len(text) // 6, ceil((len(text) - beyond) / 3) + ceil((size - len(text) + beyond) / 1.5))


def request_tokens(request: Request) -> Range:
    """The input tokens of a request."""
    if isinstance(request, Embed):
        return _sum([text_tokens(text) for text in request.texts], PER_TEXT)
    prompt = _sum([message_tokens(message) for message in request.messages], PER_MESSAGE)
    if request.tools or request.schema:
        prompt += Range(0, WITH_SCHEMA + len(canonical((request.tools, request.schema))) / 3)
    return prompt


def message_tokens(message: Message) -> Range:
    """The tokens of a message, without those that the provider adds per message."""
    content = message.content
    if isinstance(content, str) and not message.tool_calls:
        return text_tokens(content)
    parts = [text_tokens(text) for call in message.tool_calls for text in (call.name, call.arguments)]
    if isinstance(content, str):
        return _sum([*parts, text_tokens(content)])
    return _sum([*parts, *(text_tokens(part.text) if isinstance(part, Text) else PER_IMAGE for part in content)])


def _sum(ranges: list[Range], each: Range = NOTHING) -> Range:
    """The sum of all ranges, plus `each` for every one."""
    more = each * len(ranges)
    return Range(sum(one.low for one in ranges) + more.low, sum(one.high for one in ranges) + more.high)
