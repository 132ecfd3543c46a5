"""The settings of a server, and their checks."""

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
    """The address, access and limits of a server.

    model            model for requests that name none; the default is that of `groundswell ask`
    token            token that clients must send; the default is GROUNDSWELL_TOKEN
    max_turns        maximum number of turns of a simulation, over all rounds
    max_trials       maximum number of trials of a run of another experiment
    max_running      maximum number of runs in progress; single simulations are counted separately
    max_waiting      maximum number of waiting runs; further ones are refused
    max_streams      maximum number of open event streams
    max_concurrent   maximum number of requests in flight per account, over all runs
    account          account settings, as on the command line
    stop_patience    seconds to wait for replies in flight when the server stops
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
    """The settings with defaults filled in. Refuses a public address without a token."""
    token = settings.token if settings.token is not None else os.environ.get(TOKEN) or None
    if token is not None:
        _check_token(token)
    elif not settings.is_local:
        raise SettingsError(
            f"--host {settings.host}: other machines can reach this address, so a token is required: set {TOKEN} to at "
            f"least {SHORTEST_TOKEN} random characters, for example from `openssl rand -hex 24`",
            field="host",
        )
    model = settings.model or load_here(settings.account).default_model
    return msgspec.structs.replace(settings, token=token, model=model)


def _check_token(token: str) -> None:
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            f"{TOKEN}: must have at least {SHORTEST_TOKEN} printable ASCII characters, without spaces", field="token"
        )


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a host name or address is local to this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
