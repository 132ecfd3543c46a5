"""The turns of a trial, without text that was already shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

import msgspec

from groundswell.program.request import (
    Chat,
    Embed,
    Embedding,
    Fault,
    Invoke,
    Message,
    Reply,
    Request,
    Returned,
    Settlement,
    Text,
    ToolCall,
    Usage,
)
from groundswell.reporting.words import clipped

RECALLED = 60
LEAST_LEFT_OUT = 200
USUAL = ("stop", "tool_calls")

Kind = Literal["system", "told", "recalled", "reasoning", "reply", "fault", "open"]


class Exchange(NamedTuple):
    """One request or call and its settlement, which is None while it is open.

    `request` is None if the program no longer makes it, or, with a label, if the program is not loaded. `seconds` is
    the time from sending the request to its settlement. It is None for cache hits, calls, and old runs.
    """

    path: str
    label: str
    request: Request | Invoke | None
    settlement: Settlement | None
    seconds: float | None = None


class Line(NamedTuple):
    """One message to a model, or its reply. `who` is the role of the message."""

    kind: Kind
    who: str
    text: str


class Turn(NamedTuple):
    """One exchange: the speaker, the model, and the new lines."""

    path: str
    speaker: str
    model: str
    note: str
    lines: Sequence[Line]


def turns(exchanges: Iterable[Exchange]) -> Iterator[Turn]:
    """The turns of a trial. Every request of a conversation repeats earlier messages; only new ones are shown."""
    reader = _Reader()
    for exchange in exchanges:
        request = exchange.request
        told: list[Line] = []
        if isinstance(request, Chat):
            told = list(reader.told(exchange, request))
        elif isinstance(request, Embed):
            told = [Line("told", "text", text) for text in request.texts]
        elif request is not None:
            told = [Line("told", "with", _json([*request.arguments, request.options or {}]))]
        said = list(_said(exchange.settlement))
        reader.heard(exchange, said)
        model = "" if request is None or isinstance(request, Invoke) else request.model
        yield Turn(exchange.path, _speaker(exchange), model, _note(exchange.settlement), [*told, *said])


class _Reader:
    """What the reader of a transcript has already seen.

    shown   how often each text was shown
    places  the path at which each text was first shown
    latest  the last text and its path, by speaker and role
    """

    def __init__(self) -> None:
        self._shown = Counter[str]()
        self._places: dict[str, str] = {}
        self._latest: dict[tuple[str, str], tuple[str, str]] = {}
        self._just_said = ""

    def told(self, exchange: Exchange, chat: Chat) -> Iterator[Line]:
        """The new messages of a request. The last one is always named, since the model answers it."""
        met = Counter[str]()
        for at, message in enumerate(chat.messages, 1):
            text = _content(message)
            met[text] += 1
            if met[text] > self._shown[text]:
                yield Line(_kind(message), message.role, self._without_beginning(exchange, message.role, text))
                self._show(exchange.path, text)
            elif at == len(chat.messages) and text != self._just_said:
                first = clipped(text.partition("\n")[0], RECALLED)
                yield Line("recalled", message.role, f"{first} [as in {self._places[text]}]")
            self._latest[exchange.label, message.role] = (text, exchange.path)

    def heard(self, exchange: Exchange, said: Sequence[Line]) -> None:
        """Remember replies, since later requests repeat them."""
        self._just_said = ""
        for line in said:
            if line.kind == "reply":
                self._show(exchange.path, line.text)
                self._just_said = line.text

    def _show(self, path: str, text: str) -> None:
        self._shown[text] += 1
        self._places.setdefault(text, path)

    def _without_beginning(self, exchange: Exchange, role: str, text: str) -> str:
        """The new part of a text that continues the previous one, such as a prompt that contains a conversation."""
        before, path = self._latest.get((exchange.label, role), ("", ""))
        lines = zip(before.splitlines(keepends=True), text.splitlines(keepends=True), strict=False)
        same = sum(len(now) for _, now in takewhile(lambda pair: pair[0] == pair[1], lines))
        if same < LEAST_LEFT_OUT:
            return text
        return f"[{same:,} characters as in {path}]\n{text[same:]}"


def _kind(message: Message) -> Kind:
    return "system" if message.role == "system" else "told"


def _speaker(exchange: Exchange) -> str:
    if exchange.request is None:
        return exchange.label or "recorded; the current program does not make this request"
    if isinstance(exchange.request, Invoke):
        return f"call {exchange.request.function}"
    return exchange.label or "ask"


def _content(message: Message) -> str:
    if isinstance(message.content, str):
        text = message.content
    else:
        text = "\n".join(part.text if isinstance(part, Text) else "[image]" for part in message.content)
    return _with_calls(text, message.tool_calls)


def _with_calls(text: str, calls: Sequence[ToolCall]) -> str:
    return "\n".join([text, *(f"[calls {call.name}({call.arguments})]" for call in calls)])


def _said(settlement: Settlement | None) -> Iterator[Line]:
    match settlement:
        case None:
            yield Line("open", "", "(no reply yet)")
        case Reply():
            if settlement.reasoning:
                yield Line("reasoning", "thinks", settlement.reasoning)
            yield Line("reply", "", _with_calls(settlement.text, settlement.tool_calls))
        case Embedding():
            yield Line("reply", "", f"{len(settlement.vectors)} vectors of {settlement.width} numbers")
        case Returned():
            yield Line("reply", "", _json(settlement.value))
        case Fault():
            yield Line("fault", "", f"failed: {settlement.kind}: {settlement.message}")


def _note(settlement: Settlement | None) -> str:
    """Tokens of a reply, and its finish reason if it is unusual."""
    if not isinstance(settlement, Reply | Embedding):
        return ""
    usage = settlement.usage
    notes = [] if usage == Usage() else [f"{usage.input_tokens} tokens in, {usage.output_tokens} out"]
    if isinstance(settlement, Reply) and settlement.finish not in USUAL:
        notes.append(f"finish: {settlement.finish}")
    return ", ".join(notes)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
