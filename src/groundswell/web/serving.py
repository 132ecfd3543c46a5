"""Starts and stops the server. This module can be imported without the packages of the extra `web`."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from groundswell import compose
from groundswell.batch_lookup import BatchStates
from groundswell.engine.monitor import Monitor
from groundswell.engine.ports import LoopClock
from groundswell.errors import KeyMissing, SettingsError
from groundswell.loop import new_event_loop, stop_signals, tuned_collector
from groundswell.web.settings import ServerSettings, prepared

if TYPE_CHECKING:
    from uvicorn import Server

    from groundswell.engine.engine import Engine
    from groundswell.web.services import Services

log = logging.getLogger("groundswell.web")

NEEDED = ("fastapi", "uvicorn")
DRAIN = 3
"""Seconds that open requests have to finish when the server stops."""
BACKLOG = 1024
TURN = 0.0001


def serve(settings: ServerSettings, *, ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. `ready` is called with the address when the server listens."""
    said, settings = settings.model, _checked(settings)
    listening = _listen(settings.host, settings.port)
    with closing(listening), _services(settings, said) as services, tuned_collector(), _quick_turns():
        server = _server(services, ready, _address(listening))
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(server.serve([listening]))


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Switch threads often. Threads that serve or write release the GIL on every access to the store, and would wait
    5 ms to get it back while the engine computes. With 200 clients, this adds up to many seconds.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Running:
    """A server in its own thread."""

    def __init__(self, url: str, services: Services) -> None:
        self.url = url
        self.services = services


@contextmanager
def running(settings: ServerSettings) -> Iterator[Running]:
    """A server in a thread, for the duration of the block."""
    said, settings = settings.model, _checked(settings)
    listening = _listen(settings.host, settings.port)
    with closing(listening), _services(settings, said) as services:
        begun = threading.Event()
        server = _server(services, lambda _: begun.set(), "")
        thread = threading.Thread(target=_serve_here, args=(server, listening, begun), name="groundswell-web")
        thread.start()
        begun.wait()
        try:
            yield Running(_address(listening), services)
        finally:
            server.should_exit = True
            thread.join()


def _serve_here(server: Server, listening: socket.socket, begun: threading.Event) -> None:
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(server.serve([listening]))
    finally:
        begun.set()


def _checked(settings: ServerSettings) -> ServerSettings:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise SettingsError(
            f"the server needs {' and '.join(missing)}, which is not installed: pip install 'groundswell[web]'"
        )
    return prepared(settings)


@contextmanager
def _services(settings: ServerSettings, model: str | None) -> Iterator[Services]:
    """The services with a background engine. Raises an error if the named model is not available."""
    from groundswell.web.background import Background
    from groundswell.web.entities import store_entities, store_missing_entities
    from groundswell.web.services import Services

    monitor, states = Monitor(LoopClock()), BatchStates()

    def make() -> Engine:
        engine = compose.open(
            settings.store,
            account=settings.account,
            max_concurrent=settings.max_concurrent,
            listeners=[monitor, states.on_event],
        )
        if model is not None:
            _check_model(engine, model)
        return engine

    background = Background(
        make,
        running=settings.max_running,
        waiting=settings.max_waiting,
        patience=settings.stop_patience,
        ended=store_entities,
        monitor=monitor,
    )
    background.start()
    services = Services(settings, background, states)
    try:
        store_missing_entities(services.store)
        yield services
    finally:
        services.close()
        background.close()


def _check_model(engine: Engine, model: str) -> None:
    try:
        engine.reach(model)
    except KeyMissing as error:
        log.warning("warning: %s; until then, requests must name another model", error)
    except SettingsError as error:
        raise SettingsError(f"--model: {error}", field="model") from error


def _server(services: Services, ready: Callable[[str], None] | None, address: str) -> Server:
    import uvicorn

    from groundswell.web.app import create_app
    from groundswell.web.security import Guard

    class Stoppable(uvicorn.Server):
        """Ends streams before it waits for open requests, and reports when it is ready.

        Unlike uvicorn's default, it does not raise signals again after it has stopped, since runs must be stopped
        first.
        """

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            before = {number: signal.signal(number, self.handle_exit) for number in stop_signals()}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if ready is not None:
                ready(address)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            services.closing.set()
            await super().shutdown(sockets)

    settings = services.settings
    return Stoppable(
        uvicorn.Config(
            Guard(create_app(services), settings),
            lifespan="off",
            http="httptools",
            ws="none",
            access_log=settings.verbose,
            log_level="info" if settings.verbose else "warning",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=DRAIN,
        )
    )


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, number)
    except OSError as error:
        raise SettingsError(f"--host {host}: {error.strerror or error}", field="host") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        taken = f"port {port} on {host} is already in use: give another --port, or 0 for a free one"
        other = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise SettingsError(taken if error.errno == errno.EADDRINUSE else other, field="port") from error
    listening.setblocking(False)
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
