"""A model server that a worker starts, and lists in the store for as long as both live."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from groundswell import attached
from groundswell.errors import SettingsError, StoreError
from groundswell.providers.accounts.account import WORKERS, Account
from groundswell.providers.accounts.addresses import InvalidValue, endpoint
from groundswell.providers.accounts.config import load_here
from groundswell.store.journal import Store

PORT = "{port}"
LOOK_EVERY = 0.5
"""Seconds between two looks at a server that is starting."""
TOLD_EVERY = 60.0
"""Seconds between two messages about a server that is starting."""
CONFIRMED_EVERY = 5.0
"""Seconds between two confirmations in the store that the server is there."""
RESTARTS, PAUSE = 20, 1.0
"""How often a server that keeps failing is started again, and the pause before that, in seconds."""
WORKS_WELL = 300.0
"""Seconds after which earlier failures are forgotten."""
GRACE = 3.0
"""Seconds that a server goes on when it is listed no longer, since others look for servers once a second."""
LINES = 20
"""How many of the last lines of its output are shown when a server fails."""
_direct = build_opener(ProxyHandler({}))


class ModelServer:
    """Keeps a model server running. Use it as a context manager: the server ends with it.

    `say` is told what happens. `gave_up` says why the server has ended and is not started again, if that is so, and
    `failed` is called then.
    """

    def __init__(
        self,
        store: str | Path,
        account: Account,
        command: str,
        *,
        host: str = "127.0.0.1",
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.gave_up: str | None = None
        self.failed: Callable[[], None] = lambda: None
        self._store = store
        self._account = account
        self._words = _split(command)
        self._host = host
        self._say = say
        self._leaving = threading.Event()
        self._ending = threading.Event()
        self._url(1)  # to say at once what is wrong
        self._thread = threading.Thread(target=self._keep, name="groundswell-model-server", daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
        self._ending.set()
        self._thread.join()

    def leave(self) -> None:
        """No more requests, if possible: the server is listed no longer, but answers until the end."""
        self._leaving.set()

    def _url(self, port: int) -> str:
        with suppress(InvalidValue):
            url = endpoint(f"http://{self._host}:{port}")
            if (parts := urlsplit(url)).port == port and not parts.path:
                return url
        raise SettingsError(f"--server-host {self._host!r}: must be a host name or an IP address")

    def _keep(self) -> None:
        """The thread of the server: start it again if it fails after it has worked."""
        problem, failures = "", 0
        try:
            while failures < RESTARTS:
                self._say("starting the model server")
                began = time.monotonic()
                worked, problem = self._run(_free_port())
                if self._leaving.is_set():
                    return
                if not worked:
                    break
                failures = 1 if time.monotonic() - began > WORKS_WELL else failures + 1
                self._say(f"{problem}. Starting it again")
                self._leaving.wait(PAUSE)
        except Exception as error:  # noqa: BLE001  the worker is to end with it
            problem = f"the model server cannot be kept running: {error}"
        self.gave_up = problem
        self.failed()

    def _run(self, port: int) -> tuple[bool, str]:
        """Run the server once. Returns whether it has ever answered, and how it ended."""
        command = [sys.executable, attached.__file__, *(word.replace(PORT, str(port)) for word in self._words)]
        last: deque[str] = deque(maxlen=LINES)
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches the worker alone, which ends the server after its last request
        )
        assert process.stdin is not None
        assert process.stdout is not None
        reader = threading.Thread(target=_read, args=(process.stdout, last), daemon=True)
        reader.start()
        try:
            worked = self._wait_for_answer(process, port)
            if worked:
                self._list(process, self._url(port))
        finally:
            process.stdin.close()
            process.wait()
            reader.join(1.0)  # unless something that the server started still writes there
        if not self._leaving.is_set():
            for line in last:
                self._say(f"  {line}")
        said = f": {last[-1]}" if last else ""
        return worked, f"the model server has ended with status {process.returncode}{said}"

    def _wait_for_answer(self, process: subprocess.Popen[str], port: int) -> bool:
        """Wait until the server answers. Returns whether it does."""
        address = self._account.wire.url(self._url(port), self._account.wire.health_path)
        began = told = time.monotonic()
        while process.poll() is None and not self._ending.is_set():
            if _answers(address):
                return True
            if time.monotonic() - told >= TOLD_EVERY:
                told = time.monotonic()
                self._say(f"the model server has not answered yet, after {told - began:.0f} s")
            self._ending.wait(LOOK_EVERY)
        return False

    def _list(self, process: subprocess.Popen[str], url: str) -> None:
        """List the server in the store until it ends or is to end."""
        name = self._account.name
        self._say(f"the model server of account {name} answers at {url}")
        store: Store | None = None
        confirmed: float | None = None
        while process.poll() is None and not self._leaving.is_set():
            if confirmed is None or time.monotonic() - confirmed >= CONFIRMED_EVERY:
                with suppress(StoreError):  # tried again; meanwhile others do not use it
                    store = store or Store(self._store)
                    store.servers.add(name, url)
                    confirmed = time.monotonic()
            self._leaving.wait(LOOK_EVERY)
        left = time.monotonic()
        if store is not None:
            with suppress(StoreError):
                store.servers.remove(name, url)
            store.close_reading()
        while process.poll() is None and not (self._ending.is_set() and time.monotonic() - left > GRACE):
            time.sleep(LOOK_EVERY)


def served_account(name: str, overrides: Sequence[str] = ()) -> Account:
    """The account that a server is for."""
    account = load_here(overrides).account(name)
    if account.endpoints:
        raise SettingsError(
            f'account {name} has the address {" ".join(account.endpoints)}: set base_url = "{WORKERS}" under '
            f"[accounts.{name}] in groundswell.toml, or use --account {name}.base_url={WORKERS}, here and where runs "
            "are started; a variable with an address takes precedence over the file"
        )
    return account


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SettingsError(f"--server: {error}") from None
    if not any(PORT in word for word in words):
        raise SettingsError(f"--server: must contain {PORT}, which is replaced by a free port")
    return words


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _answers(address: str) -> bool:
    try:
        with _direct.open(address, timeout=5.0):
            return True
    except HTTPError as error:
        return error.code < 500  # llama.cpp answers 503 while it loads the model
    except (URLError, OSError):
        return False


def _read(stream: IO[str], last: deque[str]) -> None:
    """Read what a server writes, so that it can go on, and keep the end of it."""
    with stream:
        for line in stream:
            if line.strip():
                last.append(line.rstrip())
