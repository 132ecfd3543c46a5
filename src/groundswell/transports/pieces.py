"""A reply that comes in pieces, put together as the whole that OpenAI's dialect reads. Pure."""

from __future__ import annotations

from typing import Any

import msgspec


class Pieces:
    """What has come of a reply so far."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {"content": [], "reasoning_content": []}
        self._calls: dict[int, dict[str, Any]] = {}
        self._logprobs: list[Any] = []
        self._finish: str | None = None
        self._last: dict[str, Any] = {}
        self._error: dict[str, Any] | None = None
        self._any = False

    def add(self, chunk: dict[str, Any]) -> None:
        """Take in the next piece."""
        self._any = True
        if "error" in chunk:
            self._error = chunk
            return
        self._last.update({key: chunk[key] for key in ("model", "usage") if chunk.get(key) is not None})
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) == 0:
                self._add_choice(choice)

    def _add_choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name, texts in self._texts.items():
            texts.append(delta.get(name) or "")
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        self._logprobs += (choice.get("logprobs") or {}).get("content") or []
        self._finish = choice.get("finish_reason") or self._finish

    def _add_call(self, piece: dict[str, Any]) -> None:
        made = self._calls.setdefault(piece.get("index", 0), {"id": None, "function": {"name": None, "arguments": ""}})
        function, more = made["function"], piece.get("function") or {}
        made["id"] = piece.get("id") or made["id"]
        function["name"] = more.get("name") or function["name"]
        function["arguments"] += more.get("arguments") or ""

    def whole(self) -> tuple[int, bytes]:
        """Status and body, as a server that sends replies whole would give them."""
        if self._error is not None:
            error = self._error["error"]
            code = error.get("code") if isinstance(error, dict) else None
            return code if type(code) is int and code >= 400 else 500, msgspec.json.encode(self._error)
        if not self._any or self._finish is None:
            return 200, b""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts["content"])}
        if thoughts := "".join(self._texts["reasoning_content"]):
            message["reasoning_content"] = thoughts
        if self._calls:
            message["tool_calls"] = [self._calls[at] for at in sorted(self._calls)]
        choice: dict[str, Any] = {"index": 0, "finish_reason": self._finish, "message": message}
        if self._logprobs:
            choice["logprobs"] = {"content": self._logprobs}
        return 200, msgspec.json.encode({"object": "chat.completion", "choices": [choice], **self._last})
