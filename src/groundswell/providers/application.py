"""The wire format of an application of your own: a JSON body from a template, and a reply at a path.

    [accounts.shop]
    dialect = "application"
    base_url = "http://127.0.0.1:8001/chat"
    body = { message = "{query}", session = "{session}" }
    reply = "data.reply"

Placeholders are replaced inside texts, in one pass. A text that is exactly `{messages}` becomes the conversation as a
list of `role` and `content`. System messages are not sent: an application has instructions of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

import msgspec

from groundswell.program.request import Chat, Embed, Embedding, Fault, Message, Reply, Request, Text
from groundswell.providers.bodies import bad_request, build_call, non_finite_setting, read_object
from groundswell.providers.faults import SHARED, FaultTable, garbled
from groundswell.providers.provider import NO_OPTIONS, Call, Option, Options, WireFormat

BODY, REPLY = '{"message":"{query}"}', "reply"
MESSAGES, QUERY, SESSION = "{messages}", "{query}", "{session}"
PLACEHOLDERS = (QUERY, MESSAGES, SESSION, "{model}")
REFUSED = "The application blocked this message (HTTP {status}): I can't help with that."
"""What stands for an answer with a status of `refusal_status`. Its body is not read."""
LONGEST_REPLY = 200_000
"""Characters. A longer text is not a chat reply."""
_PLACEHOLDER = re.compile("|".join(map(re.escape, PLACEHOLDERS)))


class Application(WireFormat):
    """An HTTP endpoint that takes a message and returns a reply. Its replies are not cached: it may keep state."""

    name = "application"
    health_path = ""
    cached = False
    may_echo = True
    options = MappingProxyType(
        {
            "body": Option(
                (),
                BODY,
                f"For `application`: body of a request, as a table with the placeholders {', '.join(PLACEHOLDERS)}. "
                'Default: `{ message = "{query}" }`.',
            ),
            "reply": Option(
                (),
                REPLY,
                "For `application`: path of the reply in the answer, such as `data.reply` or "
                "`choices.0.message.content`. Default: `reply`.",
            ),
            "refusal_status": Option(
                (),
                None,
                "For `application`: statuses from 400 to 499, such as `403` or `400,403`, with which it blocks a "
                "message. Such an answer counts as a refusal, and not as an error. Default: none.",
            ),
        }
    )

    def __init__(self, faults: FaultTable = SHARED, reply: str = REPLY, refusals: str = "") -> None:
        super().__init__(faults)
        self._reply = reply
        self._refusals = frozenset(refusals.split(","))

    def configured(self, options: Options) -> Application:
        """The format with the reply path and the statuses of an account."""
        return Application(self.faults, options.get("reply") or REPLY, options.get("refusal_status") or "")

    def headers(self, key: str | None) -> dict[str, str]:
        """The headers. The key, if there is one, is sent as a bearer token."""
        sent = {"content-type": "application/json", "accept": "application/json"}
        return sent if key is None else {**sent, "authorization": f"Bearer {key}"}

    def url(self, base: str, path: str) -> str:
        """The address as written: an application has one endpoint."""
        return base + path

    def encode(self, request: Request, model: str, options: Options = NO_OPTIONS) -> Call | Fault:
        if isinstance(request, Embed):
            return bad_request("an application cannot embed texts; use a model for embeddings")
        if problem := non_finite_setting(request) or _unfit(request):
            return bad_request(problem)
        written = options.get("body") or BODY
        said = [_plain(message) for message in request.messages if message.role != "system"]
        if None in said or not said:
            return bad_request("messages: an application accepts text only, and at least one message")
        messages = [each for each in said if each is not None]
        if len(messages) > 1 and not keeps_conversation(written):
            return bad_request(f"the body has neither {MESSAGES} nor {SESSION}, so it cannot hold a conversation")
        values = {
            QUERY: messages[-1]["content"],
            MESSAGES: messages,
            SESSION: str((request.extra or {}).get("session") or _session(messages)),
            "{model}": model,
        }
        template = _template(written)
        return (
            bad_request("body: must be a JSON object")
            if template is None
            else build_call("", _filled(template, values), None)
        )

    def decode(
        self, request: Request, status: int, headers: Mapping[str, str], body: bytes, now: float
    ) -> Reply | Embedding | Fault:
        if str(status) in self._refusals:
            return Reply(REFUSED.format(status=status))
        data = read_object(status, headers, body, now, self.faults)
        if isinstance(data, Fault):
            return data
        found = value_at(data, self._reply)
        if not isinstance(found, str):
            what = "nothing" if found is None else f"a value of type {type(found).__name__}"
            return garbled(f"the answer has {what} at {self._reply!r}, not a text; check `reply` of the account")
        if len(found) > LONGEST_REPLY:
            return garbled(f"the reply has {len(found):,} characters; the maximum is {LONGEST_REPLY:,}")
        return Reply(found)


def keeps_conversation(body: str) -> bool:
    """Whether a body template sends the conversation, or a session id."""
    return MESSAGES in body or SESSION in body


def value_at(data: object, path: str) -> object:
    """The value at a dotted path, whose parts are keys and positions in lists; None if there is none."""
    for part in path.split("."):
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and part.isdecimal() and part.isascii() and len(part) < 10:
            data = data[int(part)] if int(part) < len(data) else None
        else:
            return None
    return data


@lru_cache(maxsize=64)
def _template(written: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(written, type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with values in place of placeholders. Values are not searched for placeholders again."""
    if isinstance(template, dict):
        return {name: _filled(each, values) for name, each in template.items()}
    if isinstance(template, list):
        return [_filled(each, values) for each in template]
    if not isinstance(template, str):
        return template
    return values[MESSAGES] if template == MESSAGES else _PLACEHOLDER.sub(lambda at: _text(values[at[0]]), template)


def _text(value: str | Sequence[Mapping[str, str]]) -> str:
    """A value inside a text; a conversation as one line per message."""
    return value if isinstance(value, str) else "\n".join(f"{each['role']}: {each['content']}" for each in value)


def _unfit(chat: Chat) -> str | None:
    """The first setting that an application cannot keep. It has its own model, and its own sampling settings."""
    named = {"schema": chat.schema, "tools": chat.tools, "logprobs": chat.logprobs}
    return next((f"{name}: an application does not support it; remove it" for name, one in named.items() if one), None)


def _plain(message: Message) -> dict[str, str] | None:
    """A message as role and content; None if it has anything but text."""
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content}
    parts = [part.text for part in message.content if isinstance(part, Text)]
    return {"role": message.role, "content": "\n".join(parts)} if len(parts) == len(message.content) else None


def _session(messages: Sequence[Mapping[str, str]]) -> str:
    """The session id of a request that names none."""
    return blake2b(repr(messages).encode(errors="surrogatepass"), digest_size=8).hexdigest()


APPLICATION = Application()
