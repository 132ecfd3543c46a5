"""Who may see the dashboard: a token for programs, a cookie for browsers, and links that share one run.

A browser cannot send a bearer header with a page or an event stream. So the login page exchanges the token for a
cookie. A share link exchanges a signature for another cookie, which allows reading one run. Both are signed with a
key of the token, so nothing is stored, and a new token ends all sessions and links.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import lru_cache
from hashlib import scrypt, sha256

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

SESSION, SHARE, THEME = "groundswell_session", "groundswell_share", "theme"
SESSION_SECONDS = 30 * 86400
SAFE = ("GET", "HEAD")
FIRST_DELAY, LONGEST_DELAY = 0.1, 3.0
"""Seconds before a wrong login is answered."""
MOST_COUNTED = 10
ALL, SHARED, NOTHING = "all", "shared", "nothing"
_ACCESS = "groundswell.access"


class WrongLogins:
    """Delays the answers to wrong logins: each one within a minute waits longer, up to a few seconds."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._latest: deque[float] = deque(maxlen=MOST_COUNTED)

    async def wait(self) -> None:
        """Count a wrong login, and wait until it may be answered."""
        now = self._clock()
        self._latest.append(now)
        recent = sum(now - each < 60 for each in self._latest)
        await self._sleep(min(FIRST_DELAY * 2 ** (recent - 1), LONGEST_DELAY))


class Signer:
    """Signs sessions and share links with a key that is derived from a token.

    Deriving it is slow on purpose, so that who holds a link cannot guess a weak token by trying many.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._key = _key_of(self._token)

    def session(self, now: float | None = None) -> str:
        """The value of a session cookie."""
        until = str(int((time.time() if now is None else now) + SESSION_SECONDS))
        return f"{until}.{self._signature('session', until)}"

    def share(self, run: str, seconds: float, now: float | None = None) -> str:
        """What a link contains that shares one run for some time."""
        until = str(int((time.time() if now is None else now) + seconds))
        return f"{run}.{until}.{self._signature('share', run, until)}"

    def is_session(self, value: str, now: float | None = None) -> bool:
        """Whether this is the value of a session that has not ended."""
        until, _, signature = value.partition(".")
        return self._valid(signature, now, "session", until)

    def shared_run(self, value: str, now: float | None = None) -> str | None:
        """The run that a link shares; None if the link is wrong or has ended."""
        run, _, rest = value.partition(".")
        until, _, signature = rest.partition(".")
        return run if run and self._valid(signature, now, "share", run, until) else None

    def is_token(self, given: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(given.encode(), self._token)

    def _valid(self, signature: str, now: float | None, *words: str) -> bool:
        expected = self._signature(*words)
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            return False
        return float(words[-1]) > (time.time() if now is None else now)

    def _signature(self, *words: str) -> str:
        return hmac.new(self._key, "\0".join(("groundswell", *words)).encode(), sha256).hexdigest()


@lru_cache(maxsize=16)
def _key_of(token: bytes) -> bytes:
    """The key for signatures. It takes about 50 ms."""
    return scrypt(token, salt=b"groundswell share links", n=2**14, r=8, p=1)


def cookies_of(headers: Headers) -> dict[str, str]:
    """Our cookies in a request."""
    found = {}
    for each in headers.getlist("cookie"):
        for pair in each.split(";"):
            name, _, value = pair.strip().partition("=")
            if name in (SESSION, SHARE, THEME) and re.fullmatch(r"[\w.-]{1,200}", value, re.ASCII):
                found[name] = value
    return found


def keep_own_cookies(scope: Scope) -> None:
    """Remove all other cookies from a request.

    The parser of the standard library, which FastAPI calls for every request, takes quadratic time for quoted values,
    and stops at cookies of other programs on this host that it does not like.
    """
    headers = scope["headers"]
    if not any(name == b"cookie" for name, _ in headers):
        return
    ours = "; ".join(f"{name}={value}" for name, value in cookies_of(Headers(scope=scope)).items())
    scope["headers"] = [each for each in headers if each[0] != b"cookie"] + [(b"cookie", ours.encode())]


def may_read(path: str, run: str) -> bool:
    """Whether a link that shares a run allows reading this path. Labels, with the names of readers, are not shared."""
    parts = path.removeprefix("/api").split("/")
    return parts[:3] == ["", "runs", run] and parts[3:4] != ["labels"]


def own_origin(headers: Headers) -> bool:
    """Whether a request that changes something comes from a page of this server."""
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or len(origins) > 1:
        return False
    if origins:
        return origins[0].lower() in (f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}")
    return headers.get("sec-fetch-site") == "same-origin"


def scheme_of(request: Request) -> str:
    """The scheme that the client uses: `http` or `https`. A proxy in front of the server names it in a header."""
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return forwarded if forwarded in ("http", "https") else request.url.scheme


def grant(scope: Scope, access: str) -> None:
    """Record what a request may do."""
    scope[_ACCESS] = access


def access_of(scope: Scope) -> str:
    """What a request may do: everything, only read one shared run, or only see the login page and its errors."""
    found: str = scope.get(_ACCESS, ALL)
    return found
