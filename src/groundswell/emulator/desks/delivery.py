"""Sending answers: whole or in chunks, with delays, or as a fault changes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from email.utils import formatdate
from typing import Any

import msgspec

from groundswell.emulator.faults import Struck
from groundswell.emulator.http import JSON, Answer, Headers, Silence

HTML = b"text/html; charset=utf-8"
PAGE = b"<html><head><title>%d</title></head><body><h1>%d Gateway</h1></body></html>"
PLAIN = b"text/plain"

encode = msgspec.json.Encoder().encode


def page(status: int, headers: Headers) -> Answer:
    """The error page of a gateway."""
    return Answer(status, PAGE % (status, status), HTML, headers)


def advice(struck: Struck, now: float) -> Headers:
    """The retry headers of a fault's rule."""
    rule = struck.rule
    headers: list[tuple[bytes, bytes]] = []
    if struck.name == "429":
        match rule.retry_as:
            case "seconds":
                headers.append((b"retry-after", b"%g" % rule.retry_after))
            case "milliseconds":
                headers.append((b"retry-after-ms", b"%d" % round(rule.retry_after * 1000)))
            case "date":
                headers.append((b"retry-after", formatdate(now + rule.retry_after, usegmt=True).encode()))
    if rule.should_retry is not None:
        headers.append((b"x-should-retry", b"true" if rule.should_retry else b"false"))
    return headers


def whole(given: dict[str, Any] | Answer, fault: str, headers: Headers) -> Answer | Silence:
    """An answer in one piece."""
    answer = given._replace(headers=headers) if isinstance(given, Answer) else Answer(200, encode(given), JSON, headers)
    match fault:
        case "":
            return answer
        case "drop-after":
            return Silence()
        case "malformed":
            return answer._replace(body=answer.body[: len(answer.body) // 2])
        case "wrong-type":
            return answer._replace(content_type=PLAIN)
        case "truncated" | "stream-error" | "results-cut":
            return answer._replace(cut=len(answer.body) // 2)
        case "results-short":
            return answer._replace(body=answer.body[: _within_a_line(answer.body)])
    return answer


def _within_a_line(body: bytes) -> int:
    """A position in the middle of the middle line of a text."""
    half = len(body) // 2
    end = body.find(b"\n", half)
    return (body.rfind(b"\n", 0, half) + 1 + (len(body) if end < 0 else end)) // 2


def streamed(chunks: Sequence[bytes], fault: str, error: bytes, content_type: bytes, pause: float) -> Answer:
    """An answer in chunks, with a pause after each; `error` is the provider's last event of a failed stream."""
    half = list(chunks[: max(1, len(chunks) // 2)])
    cut = sum(map(len, half)) if fault == "truncated" else None
    match fault:
        case "stream-error":
            chunks = [*half, error]
        case "malformed":
            chunks = [*half, chunks[-1][:-3] + b"{\n\n"]
        case "empty":
            chunks = chunks[-1:]
        case "wrong-type":
            content_type = PLAIN
    return Answer(content_type=content_type, cut=cut, chunks=paced(chunks, pause))


async def paced(chunks: Sequence[bytes], pause: float) -> AsyncIterator[bytes]:
    """The chunks, with a pause after each."""
    for chunk in chunks:
        yield chunk
        if pause:
            await asyncio.sleep(pause)
