"""How a server is set up, and what is refused before it listens."""

from __future__ import annotations

import ipaddress
import os
from functools import lru_cache

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.batch import MOST_ENTITIES
from groundswell.experiments.simulations.simulation import MOST_TURNS
from groundswell.providers.accounts.config import load_here

TOKEN = "GROUNDSWELL_TOKEN"
SHORTEST_TOKEN = 16


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens, whom it lets in, and how much it takes on.

    model            who speaks where a request names nobody; without it, what `groundswell ask` would take
    token            what clients must show; GROUNDSWELL_TOKEN where it is left out
    max_turns        turns of a simulation, all its rounds together
    max_trials       trials of one run of another experiment, where a request says how many
    max_running      batches that are worked on side by side; as many single simulations go on beside them
    max_waiting      batches that may wait for that, before more are refused
    max_streams      open streams of events
    max_concurrent   asks in flight per account, for all batches together
    account          changes to accounts, as the command line takes them
    stop_patience    seconds for which a stop waits for replies that are in flight
    """

    store: str = "groundswell.db"
    host: str = "127.0.0.1"
    port: int = 8000
    model: str | None = None
    token: str | None = None
    max_body_bytes: int = 1_000_000
    max_entities: int = MOST_ENTITIES
    max_turns: int = MOST_TURNS
    max_simulations: int = 10_000
    max_trials: int = 10_000
    max_running: int = 4
    max_waiting: int = 100
    max_streams: int = 200
    max_concurrent: int | None = None
    account: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    stop_patience: float = 3.0
    verbose: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise SettingsError(f"--port {self.port}: must be from 0 to 65535", field="port")
        counts = ("max_body_bytes", "max_entities", "max_turns", "max_simulations", "max_running", "max_streams")
        for field in counts:
            if getattr(self, field) < 1:
                flag = field.replace("_", "-")
                raise SettingsError(f"--{flag} {getattr(self, field)}: must be at least 1", field=field)
        if self.max_waiting < 0:
            raise SettingsError(f"--max-waiting {self.max_waiting}: must be at least 0", field="max_waiting")

    def __repr__(self) -> str:
        return f"<server on {self.host}:{self.port}, store {self.store}>"  # without the token

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def prepared(settings: ServerSettings) -> ServerSettings:
    """The settings with what was left out filled in; refuses a server that anybody could reach."""
    token = settings.token if settings.token is not None else os.environ.get(TOKEN) or None
    if token is not None:
        _check_token(token)
    elif not settings.is_local:
        raise SettingsError(
            f"--host {settings.host}: others can reach this address, so a token is needed: set {TOKEN} to at least "
            f"{SHORTEST_TOKEN} random characters, for instance those of `openssl rand -hex 24`",
            field="host",
        )
    model = settings.model or load_here(settings.account).default_model
    return msgspec.structs.replace(settings, token=token, model=model)


def _check_token(token: str) -> None:
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            f"{TOKEN}: must be at least {SHORTEST_TOKEN} letters, digits or signs, without blanks", field="token"
        )


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
