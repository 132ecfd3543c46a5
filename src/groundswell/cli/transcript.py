"""One trial as people read it: who was told what, and what they answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from groundswell.engine.replay import Exchange
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
)
from groundswell.store.results import TrialResult

INDENT = "    "


def transcript(result: TrialResult, exchanges: Iterable[Exchange]) -> Iterator[str]:
    """The lines of a transcript, with how the trial ended."""
    yield f"trial {result.key}  {result.program}  {result.status}"
    yield f"spec {result.spec_json}"
    for exchange in exchanges:
        yield ""
        yield _heading(exchange)
        if exchange.request is not None:
            yield from _told(exchange.request)
        yield from _said(exchange.settlement)
    yield ""
    if result.fault is not None:
        yield f"missing: {result.fault.kind}: {result.fault.message}"
    else:
        yield f"result {result.result_json}" if result.result_json is not None else "unfinished"


def _heading(exchange: Exchange) -> str:
    request = exchange.request
    if request is None:
        return f"[{exchange.path}] recorded; the program as it is now does not ask this"
    if isinstance(request, Invoke):
        return f"[{exchange.path}] call {request.function}"
    return f"[{exchange.path}] {exchange.label or 'ask'} ({request.model})"


def _told(request: Request | Invoke) -> Iterator[str]:
    if isinstance(request, Invoke):
        yield from _block("with", msgspec.json.encode([*request.arguments, request.options or {}]).decode())
    elif isinstance(request, Embed):
        for text in request.texts:
            yield from _block("text", text)
    else:
        for message in _latest(request):
            yield from _block(message.role, _content(message))


def _latest(chat: Chat) -> Sequence[Message]:
    """What was said since the model spoke last."""
    messages = chat.messages
    after = max((at + 1 for at, message in enumerate(messages[:-1]) if message.role == "assistant"), default=0)
    return messages[after:]


def _content(message: Message) -> str:
    if isinstance(message.content, str):
        text = message.content
    else:
        text = "\n".join(part.text if isinstance(part, Text) else "[image]" for part in message.content)
    return "\n".join([text, *_calls(message.tool_calls)])


def _calls(calls: Sequence[ToolCall]) -> list[str]:
    return [f"[calls {call.name}({call.arguments})]" for call in calls]


def _said(settlement: Settlement | None) -> Iterator[str]:
    match settlement:
        case None:
            yield f"{INDENT}(no reply yet)"
        case Reply():
            yield from _block("=>", "\n".join([settlement.text, *_calls(settlement.tool_calls)]))
        case Embedding():
            yield from _block("=>", f"{len(settlement.vectors)} vectors of {settlement.width} numbers")
        case Returned():
            yield from _block("=>", msgspec.json.encode(settlement.value).decode())
        case Fault():
            yield from _block("=>", f"failed: {settlement.kind}: {settlement.message}")


def _block(who: str, text: str) -> Iterator[str]:
    """A text with who said it before its first line and the rest below that."""
    first, *rest = text.rstrip().splitlines() or [""]
    yield f"{INDENT}{who}: {first}" if who != "=>" else f"{INDENT}=> {first}"
    for more in rest:
        yield f"{INDENT}   {more}"
