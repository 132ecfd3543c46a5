"""Recognisable secrets, and a server that repeats everything it receives."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from pathlib import Path

from tests.transports.little import CUT, Got, answer

OPENAI = "sk-PLANTEDo-Zq7Xw2Kd9Lm4Bn6Vc"
ANTHROPIC = "sk-ant-PLANTEDa-Vb8Nc3Rt6Yh1Jm5"
BOX = "Qa1Zs2.of.no.known.form.Xd3Cf4"
HEADER = "Hj5Gf2 passes for words Pk9Lo0"
PROXY = "Ws4Ed6Rf8Tg0Yh2Uj"
URL = "Ik5Ol3Pm7Nb1Vx"
SECRETS = (OPENAI, ANTHROPIC, BOX, HEADER, PROXY, URL, base64.b64encode(f"me:{PROXY}".encode()).decode())
PIECE = 8
STATUSES = (300, 400, 402, 404, 408, 409, 413, 422, 429, 500, 503, 529)
MODELS = tuple(f"m-{status}" for status in (*STATUSES, "page", "complaint", "cut"))
"""The name of the model determines what the server does."""


def leaked(texts: Iterable[str | bytes]) -> set[str]:
    """The secrets of which a text contains a part."""
    whole = b"\n".join(text.encode("utf-8", "replace") if isinstance(text, str) else text for text in texts)
    pieces = {(secret, secret[at : at + PIECE].encode()) for secret in SECRETS for at in range(len(secret) - PIECE + 1)}
    return {secret for secret, piece in pieces if piece in whole}


def files_below(folder: Path) -> list[bytes]:
    """The bytes of all files in a folder."""
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "groundswell.toml"]


def parrot(got: Got) -> bytes:
    """An answer that repeats all request headers in every field."""
    heard = " ".join(f"{name}: {value}" for name, value in got.headers.items())
    bare = got.headers.get("x-api-key", got.headers.get("authorization", "")).removeprefix("Bearer ")
    error = {"message": f"{heard} {bare} {bare[3:20]}", "type": bare, "code": bare, "param": heard}
    wanted = re.search(rb"m-(\w+)", got.body)
    what = wanted[1].decode() if wanted else "404"
    body = json.dumps({"type": "error", "error": error, "message": heard, "detail": heard}).encode()
    told = {"x_request_id": bare, "retry_after": bare if what != "429" else "0"}
    if what == "page":
        return answer(heard.encode(), content_type=f"text/{bare.replace(' ', '-')}", **told)
    if what == "complaint":
        return answer(body, content_type="application/json", **told)
    if what == "cut":
        return answer(body)[:-5] + CUT
    return answer(body, f"{what} {bare}", content_type="application/json", **told)
