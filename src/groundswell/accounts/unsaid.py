"""Takes secrets out of texts that somebody else wrote: a server may repeat what it was sent. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from groundswell.accounts.account import Account

PIECE = 8
"""So many characters of a secret in a row are taken out, wherever they stand."""
IN_PLACE = "[secret]"


def unsaid(text: str, account: Account) -> str:
    """A text without anything of the account's key, headers and proxy."""
    pieces = {secret[at : at + PIECE] for secret in _secrets(account) for at in range(len(secret) - PIECE + 1)}
    found = [at for at in range(len(text) - PIECE + 1) if text[at : at + PIECE] in pieces]
    said, end = "", 0
    for at in found:
        if at > end or not said:
            said += text[end:at] + IN_PLACE
        end = at + PIECE
    return said + text[end:]


def _secrets(account: Account) -> Iterator[str]:
    if account.key is not None:
        yield account.key.reveal()
    yield from (value.reveal() for value in account.headers.values())
    if account.proxy is not None:
        user = urlsplit(account.proxy.reveal()).netloc.rpartition("@")[0]
        yield from (user, unquote(user), base64.b64encode(unquote(user).encode()).decode())
