"""Tools: which one is called, what its arguments can be taken from, and what is said of what it returned."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills.lines import fresh
from groundswell.emulator.skills.scene import spoken
from groundswell.emulator.skills.topics import is_dull
from groundswell.program.request import Chat, Message, Tool

LONGEST_READ = 4000
LONGEST_TOLD = 300
_WORD = re.compile(r"[^\W\d_]{3,}")
_EDGES = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\W]+")
_MENTIONED = re.compile(r"[\"“]([^\"“”\n]{1,80})[\"”]|(?<=[a-z0-9,:] )([A-Z][\w'’-]*(?: [A-Z][\w'’-]*){0,3})")
_FORMAL = (
    "the all any and for new use not tool tools function functions call calls called user users current given value"
    " values data information info return returns returned result results text string object input output name names"
    " number numbers list lists get gets set sets one two how who when where has have was are its his her can you did"
)
FORMAL = frozenset(_FORMAL.split())
"""Words that descriptions of tools are full of, whatever the tool is for."""

FOUND = (
    "Here is what I found: {0}",
    "I looked into it: {0}",
    "This is what came back: {0}",
    "The result is in: {0}",
)


def wanted(request: Chat) -> Tool | None:
    """The tool to call: the one named, any where some call is required, or else one that is plainly asked for."""
    choice, tools = request.tool_choice, request.tools
    if not tools or choice == "none":
        return None
    if choice is None or choice == "auto":
        return _asked_for(request)
    named = [tool for tool in tools if tool.name == choice]
    return named[0] if named else tools[0] if choice in ("required", "any") else None


def _asked_for(request: Chat) -> Tool | None:
    """The tool that the last message names, or shares most words with; not one whose result has just come."""
    messages = request.messages
    if not messages or messages[-1].role != "user":
        return None
    text = spoken(messages[-1])[:LONGEST_READ]
    words, flat = _words_of(text), f" {' '.join(_EDGES.split(text)).casefold()} "
    known = _just_answered(messages)
    best, most = None, 0
    for tool in request.tools:
        name, meant = _words_about(tool.name, tool.description)
        score = len(words & meant) + 100 * (f" {name} " in flat)
        if score > most and tool.name not in known:
            best, most = tool, score
    return best


@lru_cache(maxsize=1024)
def _words_about(name: str, description: str) -> tuple[str, frozenset[str]]:
    """A tool's name in words, and the words that tell what it is for."""
    spelt = " ".join(_EDGES.split(name)).casefold()
    return spelt, _words_of(f"{spelt} {description[:LONGEST_READ]}")


def _words_of(text: str) -> frozenset[str]:
    """The words of a text that mean something, without the endings of plurals."""
    words = [word.casefold() for word in _WORD.findall(text)]
    return frozenset([word.removesuffix("s") for word in words if word not in FORMAL and not is_dull(word)])


def _just_answered(messages: tuple[Message, ...]) -> set[str]:
    """The tools whose results stand directly before the last message."""
    at = len(messages) - 1
    while at > 0 and messages[at - 1].role == "tool":
        at -= 1
    if at == len(messages) - 1:
        return set()
    return {call.name for call in messages[at - 1].tool_calls} if at else set()


def arguments_of(tool: Tool) -> dict[str, Any]:
    """The schema of a tool's arguments: an object, and an empty one where no arguments are named."""
    if tool.parameters.get("properties"):
        return tool.parameters
    return {"type": "object", "additionalProperties": False, **tool.parameters}


def mentioned(text: str) -> tuple[str, ...]:
    """What a message quotes, and the names in it: what arguments are taken from."""
    found = [(quoted or name).strip() for quoted, name in _MENTIONED.findall(text[:LONGEST_READ])]
    return tuple(dict.fromkeys(one for one in found if one))


def returned(request: Chat) -> str | None:
    """What the tools have just returned, in words; None where the last message is no tool's."""
    messages = request.messages
    at = len(messages)
    while at > 0 and messages[at - 1].role == "tool":
        at -= 1
    if at == len(messages):
        return None
    told = "; ".join([_in_words(spoken(message)) for message in messages[at:]])
    return told if len(told) <= LONGEST_TOLD else f"{told[:LONGEST_TOLD]}..."


def _in_words(result: str) -> str:
    """A result without the signs of JSON."""
    text = result.strip()[:LONGEST_READ]
    if text[:1] not in ("{", "["):
        return text or "nothing"
    try:
        return _plain(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join([f"{key} {_plain(inner)}" for key, inner in value.items()]) or "nothing"
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "nothing"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "yes", False: "no"}[value]
    return str(value)


def report(told: str, recent: str, chance: Chance) -> str:
    """An answer that tells what a tool returned."""
    said = fresh(FOUND, recent, chance, told)
    return said if said[-1] in ".!?" else f"{said}."
