"""Made-up replies for rehearsals: text of a given length, JSON that fits a schema, values of a type. Pure."""

from __future__ import annotations

from functools import lru_cache
from itertools import cycle
from math import ceil, floor, inf
from typing import Any, NamedTuple

import msgspec

from groundswell.emulator.chance import Chance
from groundswell.emulator.schemas import Resolver, Schema
from groundswell.emulator.skills.regex_text import matching
from groundswell.engine.spending import LONG_THOUGHT, unlimited_reply
from groundswell.estimate.tokens import CHARACTERS, text_tokens
from groundswell.program.request import Chat, Embed, Embedding, Reply, ToolCall

WORDS = ("some", "words", "that", "nobody", "said", "stand", "here", "in", "place", "of", "a", "reply")
FORMATS = {
    "date": "2024-05-17",
    "date-time": "2024-05-17T09:30:00Z",
    "time": "09:30:00Z",
    "email": "a@example.org",
    "uri": "https://example.org",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "duration": "PT15M",
}
DEEPEST = 6
STEPS = 5000
ITEMS = 3
WIDTH = 8
MALFORMED = "This is not JSON: "


class Mood(NamedTuple):
    """How replies are made up: short or long, and with the lowest or the highest values that fit."""

    long: bool
    high: bool


@lru_cache(maxsize=64)
def words(tokens: float) -> str:
    """A text of about this many tokens. Cached, since a rehearsal needs thousands of replies of two lengths."""
    size, made, length = ceil(tokens * CHARACTERS), list[str](), 0
    for word in cycle(WORDS):
        if length >= size:
            break
        made.append(word)
        length += len(word) + 1
    return " ".join(made)[:size]


def longest(chat: Chat, most: float) -> float:
    """The maximum number of tokens of a reply: `max_tokens`, whatever was expected.

    If a request sets none, it is `most`, and more with reasoning; if `most` is infinite, it is what a budget reserves.
    A typed reply ends at `most` if that is less, because JSON that is cut off at `max_tokens` cannot be decoded.
    """
    if chat.max_tokens is not None:
        return chat.max_tokens if chat.schema is None else min(chat.max_tokens, most)
    if most == inf:
        return unlimited_reply(chat)
    return most + LONG_THOUGHT * (chat.reasoning is not None)


def shortest(chat: Chat, least: float) -> float:
    """Number of tokens of a short reply."""
    return least if chat.max_tokens is None else min(chat.max_tokens, least)


def reply(chat: Chat, mood: Mood, tokens: float, *, malformed: bool) -> tuple[Reply, float]:
    """A reply of about this many tokens, and the number of tokens that it counts for."""
    if mood.long and chat.tools and not any(message.role == "tool" for message in chat.messages):
        tool = chat.tools[0]
        arguments = _json(tool.parameters, mood, tokens)
        call = ToolCall("call-0", tool.name, arguments)
        size = max(tokens, text_tokens(arguments).high)
        return Reply("", finish="tool_calls", tool_calls=(call,)), _within(chat, size)
    if chat.schema is None or malformed:
        text = (MALFORMED if malformed else "") + words(tokens)
        return Reply(text), tokens
    text = _json(chat.schema, mood, tokens)
    counted = text_tokens(text)
    size = max(tokens, counted.high) if mood.long else counted.low
    return Reply(text), _within(chat, size)


def _within(chat: Chat, tokens: float) -> float:
    return tokens if chat.max_tokens is None else min(tokens, chat.max_tokens)


def embedding(request: Embed) -> Embedding:
    """Arbitrary vectors."""
    width = request.dimensions or WIDTH
    return Embedding.of([[1.0, *[0.0] * (width - 1)] for _ in request.texts])


def _json(schema: Schema, mood: Mood, tokens: float) -> str:
    return msgspec.json.encode(value(schema, mood, tokens)).decode()


def value(schema: object, mood: Mood, tokens: float = 1) -> Any:
    """A value that is valid under a schema, as far as possible. Long texts have `tokens` tokens."""
    return _Filler(schema, mood, tokens).value(schema, 0)


class _Filler:
    def __init__(self, root: object, mood: Mood, tokens: float) -> None:
        self.schemas = Resolver(root, STEPS)
        self.mood = mood
        self.tokens = tokens

    def value(self, schema: object, depth: int) -> Any:
        plain = self.schemas.resolved(schema)
        if "const" in plain:
            return plain["const"]
        if options := plain.get("enum"):
            return options[-1 if self.mood.high else 0]
        if (branches := plain.get("anyOf") or plain.get("oneOf")) and depth < 2 * DEEPEST:
            return self.value(self.branch(branches, depth), depth + 1)
        match self.kind(plain):
            case "object":
                return self.object(plain, depth)
            case "array":
                return self.array(plain, depth)
            case "integer" | "number" as kind:
                return self.number(plain, whole=kind == "integer")
            case "boolean":
                return self.mood.high
            case "null":
                return None
        return self.text(plain)

    def branch(self, branches: list[Any], depth: int) -> object:
        """One of several branches. With low values, and when nested deeply, null if that is allowed."""
        kinds = [self.kind(self.schemas.resolved(branch)) for branch in branches]
        if "null" in kinds and (not self.mood.high or depth >= DEEPEST):
            return branches[kinds.index("null")]
        return next(branch for branch, kind in zip(branches, kinds, strict=True) if kind != "null" or len(kinds) == 1)

    def kind(self, schema: Schema) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            there = [one for one in kind if one != "null"]
            return "null" if "null" in kind and not self.mood.high else (there or ["null"])[0]
        hints = {"properties": "object", "items": "array", "prefixItems": "array", "minimum": "number"}
        return kind or next((hint for key, hint in hints.items() if key in schema), "string")

    def object(self, schema: Schema, depth: int) -> dict[str, Any]:
        """An object with its required fields; in a long reply also with the optional ones."""
        properties, required = schema.get("properties", {}), schema.get("required", ())
        wanted = dict.fromkeys([*required, *(properties if self.mood.long and depth < DEEPEST else ())])
        return {name: self.value(properties.get(name, {}), depth + 1) for name in wanted}

    def array(self, schema: Schema, depth: int) -> list[Any]:
        fixed = [self.value(inner, depth + 1) for inner in schema.get("prefixItems", ())]
        least = schema.get("minItems", 0)
        wanted = max(least, ITEMS) if self.mood.long and depth < DEEPEST else least
        inner = schema.get("items", {})
        if inner is False:
            return fixed
        count = int(min(wanted, schema.get("maxItems", wanted)))
        return fixed + [self.value(inner, depth + 1) for _ in range(count - len(fixed))]

    def number(self, schema: Schema, *, whole: bool) -> float:
        """The lowest or highest number that fits. Without a bound, 0 or a little more."""
        step = 1 if whole else 1e-6
        low = max(schema.get("minimum", -1e15), schema.get("exclusiveMinimum", -1e16) + step)
        high = min(schema.get("maximum", 1e15), schema.get("exclusiveMaximum", 1e16) - step)
        found = (high if high < 1e15 else max(low, 3)) if self.mood.high else (low if low > -1e15 else min(high, 0))
        if multiple := schema.get("multipleOf"):
            found = (floor(found / multiple) if self.mood.high else ceil(found / multiple)) * multiple
        return int(found) if whole else float(found)

    def text(self, schema: Schema) -> str:
        """The first text of a long reply has its full length."""
        if known := FORMATS.get(schema.get("format", "")):
            return known
        if (pattern := schema.get("pattern")) and (made := matching(pattern, Chance(b"made up"))) is not None:
            return made
        least = int(schema.get("minLength", 0))
        made = words(self.tokens) if self.mood.long else WORDS[0]
        self.tokens = 1
        return made.ljust(least, "x")[: int(schema.get("maxLength", max(least, len(made))))]
