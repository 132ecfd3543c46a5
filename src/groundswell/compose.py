"""Builds an engine from settings: `groundswell.open`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundswell.engine.engine import Engine
from groundswell.engine.events import BatchChanged, EndpointChanged, Listener, tell
from groundswell.engine.head import Crew
from groundswell.engine.options import RunOptions
from groundswell.engine.ports import Clock, LoopClock, Prices, Route, Router, Transport
from groundswell.engine.rate_limit import PaceLimits, Paces
from groundswell.engine.records import BatchInfo, EndpointFigures, Via
from groundswell.engine.retry import RetryPolicy
from groundswell.errors import SettingsError
from groundswell.local_workers import LocalWorkers
from groundswell.program.request import Embed, Embedding, Reply, Request
from groundswell.providers import registry
from groundswell.providers.accounts.account import Account, Target
from groundswell.providers.accounts.addresses import InvalidValue, endpoint, is_loopback
from groundswell.providers.accounts.config import Accounts, load_here
from groundswell.providers.application import APPLICATION
from groundswell.providers.prices import ModelPrices
from groundswell.ray_workers import RayWorkers, connect
from groundswell.store.names import is_postgres, shown
from groundswell.transports import sentences, weights
from groundswell.transports.batch import BatchTransport
from groundswell.transports.live import Live
from groundswell.transports.llama import SLOTS
from groundswell.transports.local import PIECE, Local
from groundswell.transports.scripted import Script, Scripted, find_script, registered
from groundswell.transports.sentences import Sentences

if TYPE_CHECKING:
    from groundswell.store.journal import Store
    from groundswell.store.servers import Server

MAX_CONCURRENT = 256
IN_PROCESS = registry.IN_PROCESS

_paces = Paces()
"""Rate limiters of the accounts, shared by all engines of the process."""


def at_once(most: int) -> PaceLimits:
    """Limits with full concurrency from the start."""
    return PaceLimits(max_concurrent=most, start=most)


class OneWay:
    """A router that uses one transport for everything."""

    def __init__(self, transport: Transport, max_concurrent: int) -> None:
        at_home = transport.name in IN_PROCESS
        self._route = Route(transport.name, transport, at_once(max_concurrent), at_home=at_home)

    def route(self, request: Request, via: Via = "live") -> Route:
        return self._route

    def transport(self, name: str, account: str) -> Transport | None:
        return self._route.transport if name == self._route.transport.name else None

    def figures(self) -> Mapping[str, Sequence[EndpointFigures]]:
        return {}

    async def close(self) -> None:
        return


class ByModel:
    """A router that uses the model string: an alias, or `account/model`."""

    def __init__(
        self,
        accounts: Callable[[], Accounts],
        max_concurrent: int | None,
        listeners: Sequence[Listener],
        servers: Callable[[str], Iterable[Server]] = lambda _: (),
    ) -> None:
        """`servers` finds what workers have started for an account."""
        self._servers = lambda account: _reachable(servers(account))
        self._load = accounts
        self._loaded: Accounts | None = None
        self._most = max_concurrent
        self._listeners = listeners
        self._inside = {"scripted": Scripted(registered), "emulated": Scripted(_emulated, name="emulated")}
        self._local = Local(self._notice)
        self._sentences = Sentences(self._notice)
        self._live: dict[str, Live] = {}
        self._batch: dict[str, BatchTransport] = {}

    def route(self, request: Request, via: Via = "live") -> Route:
        model = request.model
        full = model if model.partition("/")[0] in IN_PROCESS else self._accounts.resolve(model)
        provider = full.partition("/")[0]
        if provider == self._local.name:
            route = self._at_home(request, full)
        elif provider == self._sentences.name:
            route = self._in_sentences(request, full)
        elif provider in self._inside:
            route = self._within(provider, model, full)
        else:
            route = self._away(model, full, via)
        return route if full == model else route._replace(full=full)

    def _within(self, provider: str, model: str, full: str) -> Route:
        """The route to a scripted or emulated model."""
        if provider == "emulated":
            _check_emulated(full)
        else:
            find_script(full)
        way = self._inside[provider]
        way.models[model] = full
        return Route(provider, way, at_once(self._most or MAX_CONCURRENT), at_home=True)

    def _away(self, model: str, full: str, via: Via) -> Route:
        """The route to a provider: live, or by batch if it has a batch API and that is wanted."""
        target = self._accounts.find(full)
        live = self._lived(target.account)
        live.models[model] = target.model
        route = Route(
            target.account.name,
            live,
            self._limits(target.account),
            model=target.model,
            origin=target.account.origin,
            known_as=_known_as(model, full, target),
            limiter=target.account.owner,
            at_home=target.account.proxy is None and _is_here(target.account),
        )
        batch = None if via == "live" else self._batched(target.account)
        if batch is None:
            return route
        batch.models[model] = target.model
        return route._replace(transport=batch, live=route)

    def transport(self, name: str, account: str) -> Transport | None:
        ways: list[Transport] = [self._local, self._sentences, *self._inside.values()]
        inside = next((way for way in ways if way.name == name), None)
        if inside is None and name == "live":
            return self._lived(self._accounts.account(account))
        if inside is None:
            batch = self._batched(self._accounts.account(account))
            return batch if batch is not None and batch.name == name else None
        return inside

    def figures(self) -> Mapping[str, Sequence[EndpointFigures]]:
        return {name: live.figures for name, live in self._live.items()}

    async def close(self) -> None:
        for live in self._live.values():
            await live.close()
        for batch in self._batch.values():
            await batch.close()
        await self._local.close()
        await self._sentences.close()

    @property
    def _accounts(self) -> Accounts:
        """The accounts, read on first use: a run on emulated models needs none."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _lived(self, account: Account) -> Live:
        live = self._live.get(account.name)
        if live is None:
            servers = None if account.endpoints else partial(self._servers, account.name)
            live = self._live[account.name] = Live(account, self._notice, servers)
        return live

    def _batched(self, account: Account) -> BatchTransport | None:
        """The batch transport of an account; None if it has no batch API."""
        if account.batch_format is None:
            return None
        batch = self._batch.get(account.name)
        if batch is None:
            batch = self._batch[account.name] = BatchTransport(account, partial(self._moved, account.name))
        return batch

    def _at_home(self, request: Request, full: str) -> Route:
        """The route to a model in this process. It is identified by its file and the version of llama.cpp."""
        path = self._local.models[request.model] = weights.locate(full)
        which = weights.identity(path)
        most = PIECE if isinstance(request, Embed) else SLOTS
        return Route(
            self._local.name,
            self._local,
            at_once(min(self._most or most, most)),
            model=which,
            origin=f"llama.cpp {weights.runner_version()}",
            known_as=f"{weights.PREFIX}{which}",
            at_home=True,
        )

    def _in_sentences(self, request: Request, full: str) -> Route:
        """The route to a sentence-transformers model. Its identity is its files, or its name and commit."""
        if not isinstance(request, Embed):
            raise SettingsError(f"model {request.model!r}: {sentences.NO_CHAT}")
        place = self._sentences.models[request.model] = sentences.locate(full)
        return Route(
            self._sentences.name,
            self._sentences,
            at_once(min(self._most or sentences.AT_ONCE, sentences.AT_ONCE)),
            model=place.which,
            origin=f"{sentences.RUNNER} {weights.runner_version(sentences.RUNNER)}",
            known_as=f"{sentences.PREFIX}{place.which}",
        )

    def _limits(self, account: Account) -> PaceLimits:
        most = [limit for limit in (account.max_concurrent_requests, self._most) if limit is not None]
        return PaceLimits(
            max_concurrent=min(most, default=MAX_CONCURRENT),
            requests_per_minute=account.rate_limit_per_minute,
            tokens_per_minute=account.token_limit_per_minute,
            output_tokens_per_minute=account.output_token_limit_per_minute,
        )

    def _moved(self, account: str, info: BatchInfo) -> None:
        changed = BatchChanged(
            run="",
            at=time.time(),
            account=account,
            batch=info.id,
            state=info.state,
            done=info.done,
            failed=info.failed,
            total=info.total,
        )
        tell(self._listeners, changed)

    def _notice(self, account: str, endpoint: str, what: str) -> None:
        tell(
            self._listeners,
            EndpointChanged(run="", at=time.time(), account=account, endpoint=endpoint, what=what),
        )


def _known_as(model: str, full: str, target: Target) -> str | None:
    """The name of a model in the cache: the same for all accounts of a provider, and for an alias."""
    account = target.account
    name = f"{account.provider}/{target.model}" if account.official and account.provider else full
    return None if name == model else name


def _is_here(account: Account) -> bool:
    """Whether the requests of an account stay on this machine. Servers of workers may be anywhere."""
    return bool(account.endpoints) and all(map(is_loopback, account.endpoints))


def _reachable(servers: Iterable[Server]) -> tuple[list[str], int]:
    """The addresses of servers of workers that can be used from here, and how many can only be used on other machines.

    Whatever else a store contains is left out.
    """
    found, elsewhere = set(), 0
    for url, here in servers:
        with suppress(InvalidValue):
            if endpoint(url) == url and url.startswith("http://"):
                if here or not is_loopback(url):
                    found.add(url)
                else:
                    elsewhere += 1
    return sorted(found), elsewhere


def _check_emulated(model: str) -> None:
    """Report a wrong name before anything is sent."""
    from groundswell.emulator import in_process

    in_process.known(model)


def _emulated(request: Request, sample: int) -> Reply | Embedding:
    from groundswell.emulator import in_process  # its vocabulary is only loaded when needed

    return in_process.answer(request, sample)


NEEDS_POSTGRES = (
    "workers need a store in PostgreSQL, since several processes write to it. Start one on this machine with "
    "`groundswell postgres up`, and give its URL with --store"
)


def open(
    store: str | Path = "groundswell.db",
    *,
    script: Script | None = None,
    transport: Transport | None = None,
    router: Router | None = None,
    accounts: Accounts | None = None,
    account: Sequence[str] = (),
    max_concurrent: int | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    options: RunOptions | None = None,
    prices: Prices | None = None,
    listeners: Sequence[Listener] = (),
    clock: Clock | None = None,
) -> Engine:
    """Open a store and return an engine. Use it as `async with groundswell.open("runs.db") as engine`.

    Models are named `provider/model`, or by an alias. Accounts come from `groundswell.toml` and the environment. For
    tests, give a `script`, a `transport` or a `router` instead; requests then have no price unless you give `prices`.

    Args:
        store: Path of the store, or the URL of a PostgreSQL database. It is created if it does not exist.
        script: Function that answers all requests. Failed requests are retried without delay.
        transport: Transport for all requests.
        router: Chooses the transport for each request.
        accounts: Accounts to use instead of those from `groundswell.toml` and the environment.
        account: Changes to account settings, such as `"openai.rate_limit_per_minute=3500"`.
        max_concurrent: Maximum number of requests in flight for each account and model.
        workers: Number of processes on this machine that run the trials; the store must be a PostgreSQL database. With
            0, workers that are started elsewhere with `groundswell worker` run them.
        cluster: Run the trials in workers of a Ray cluster: `ray` for the one that runs on this machine, or its
            address. `workers` is then their number; by default there is one for each CPU of the cluster.
        options: Default options of runs.
        prices: Function that returns the price of a request.
        listeners: Functions that receive the events of all runs.
        clock: Clock to use instead of the system clock.

    Returns:
        The engine.

    Raises:
        SettingsError: If an argument is invalid.
        StoreError: If the store cannot be opened.
    """
    from groundswell.store.journal import Store  # brings SQLAlchemy, which is slow to import

    if max_concurrent is not None and max_concurrent < 1:
        raise SettingsError(f"max_concurrent {max_concurrent}: must be at least 1")
    how: dict[str, Any] = {"max_concurrent": max_concurrent, "account": account}
    crew: Callable[[], Crew] | None = None
    if workers is not None or cluster is not None:
        _check_workers(workers or 0, store, script or transport or router or accounts)
        if cluster is None:
            crew = partial(LocalWorkers, store, workers or 0, **how)
        else:
            connect(cluster)  # to say at once what is wrong
            crew = partial(RayWorkers, str(store), workers, cluster, **how)
    opened = Store(store)
    if script is not None:
        transport = Scripted(script)
        options = options or RunOptions(retry=RetryPolicy(first_wait=0.0, patience=0.0))
    if transport is not None:
        router = OneWay(transport, max_concurrent or MAX_CONCURRENT)
    if router is None:
        known = cache(lambda: accounts or load_here(account))
        router = ByModel(known, max_concurrent, listeners, opened.servers.of)
        prices = prices or ModelPrices(known)
    return Engine(
        opened,
        router,
        clock or LoopClock(),
        options=options,
        prices=prices,
        listeners=listeners,
        paces=_paces if clock is None else None,
        crew=crew,
    )


def _check_workers(workers: int, store: str | Path, given: object) -> None:
    if workers < 0:
        raise SettingsError(f"workers {workers}: must be at least 0")
    if not is_postgres(store):
        raise SettingsError(NEEDS_POSTGRES)
    if given is not None:
        raise SettingsError(
            "workers are other processes: they take models from groundswell.toml and the environment, and cannot be "
            "given a script, a transport, a router or accounts"
        )


def provider_of(model: str, accounts: Accounts | None = None, account: Sequence[str] = ()) -> str:
    """The provider of a model, such as `openai` or `local`, or the name of an account that has no provider.

    Aliases are resolved. No key is needed. The accounts are those that `open` would use.
    """
    target = _target(model, accounts, account)
    return target if isinstance(target, str) else target.provider or target.name


def account_of(model: str, account: Sequence[str] = ()) -> str | None:
    """The name of the account that serves a model; None for a model in this process. No key is needed."""
    target = _target(model, None, account)
    return None if isinstance(target, str) else target.name


def _target(model: str, accounts: Accounts | None, account: Sequence[str]) -> Account | str:
    """The account of a model, or the provider name of a model in this process."""
    if (inside := model.partition("/")[0]) in IN_PROCESS:
        return inside
    known = accounts or load_here(account)
    if (inside := known.resolve(model).partition("/")[0]) in IN_PROCESS:
        return inside
    return known.whose(model).account


def application_body(model: str, account: Sequence[str] = ()) -> str | None:
    """The body template of an application; None for a model. No key is needed."""
    target = _target(model, None, account)
    return None if isinstance(target, str) or target.dialect != APPLICATION.name else target.encode_options["body"]


def allowed_targets(account: Sequence[str] = ()) -> tuple[str, ...]:
    """The models that groundswell.toml allows as targets: full names, or patterns such as `work/*`."""
    return load_here(account).targets


def place_of(store: str | Path) -> str | Path:
    """The file of a store, whether it exists or not, as an absolute path; the URL of a PostgreSQL database."""
    from groundswell.store.open import database_path

    return str(store) if is_postgres(store) else database_path(store).resolve()


def shown_place(store: str | Path) -> str:
    """The same for people and files: a URL without its password."""
    return shown(place_of(store))


def folder_of(store: str | Path) -> Path:
    """The folder for files that belong to a store: its own, or the current one if the store is in PostgreSQL."""
    place = place_of(store)
    return place.parent if isinstance(place, Path) else Path.cwd()


@contextmanager
def look_into(store: str | Path) -> Iterator[Store | None]:
    """Open a store for reading without an event loop; None if it does not exist. It is not created."""
    from groundswell.store.journal import Store
    from groundswell.store.open import exists

    if not exists(store):
        yield None
        return
    opened = Store(store)
    try:
        yield opened
    finally:
        opened.close_reading()
