"""Live requests to one account. Read `Live` from top to bottom.

ask        encode (providers), choose an endpoint (endpoints.py), post (http.py), decode
collect    the asks of a wave, one call each; embeddings are combined
_missed    an endpoint that keeps failing is taken out and watched ...
_watch     ... until a health check succeeds; if all are out for long, asks fail and the run stops
_follow    endpoints that workers start and end are taken from the store
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from groundswell.engine.records import (
    Absent,
    AskId,
    EndpointFigures,
    Found,
    Intent,
    Item,
    Receipt,
    Settled,
    Undecided,
    Wave,
)
from groundswell.program.request import Embed, Embedding, Fault, FaultKind, Reply, Request, Standing
from groundswell.providers.accounts.account import WORKERS, Account, redact, redact_fault
from groundswell.transports.embeddings import embed_together, group_requests
from groundswell.transports.endpoints import Endpoint, Endpoints
from groundswell.transports.http import Http, NoAnswer, Url, parse_url

HEARS_EVERY = 0.02
MOST_AT_ONCE = 256
NEVER_ANSWERED, ANSWERED_BEFORE = 10.0, 900.0
"""Seconds to wait for an account that cannot be reached, before and after its first answer."""
TRIED_FOR = 1.0
"""Seconds after which a recovered endpoint gets its full share if its first request has not failed by then."""

FOLLOWS_EVERY = 1.0
"""Seconds between two looks for endpoints in the store."""

Notice = Callable[[str, str, str], None]
"""Called with account, endpoint and what happened to it."""
FindServers = Callable[[], tuple[Sequence[str], int]]
"""Returns the addresses of the servers that workers have started, and how many others only other machines can reach. It
may raise, and it blocks.
"""


class Live:
    """The transport of one account: one call per ask, on persistent connections."""

    name = "live"
    barrier = False
    vectorised = True

    def __init__(self, account: Account, notice: Notice | None = None, servers: FindServers | None = None) -> None:
        """`servers` finds what workers have started, for an account that has no other endpoints."""
        self.account = account
        self.models: dict[str, str] = {}
        self._notice = notice or (lambda account, endpoint, what: None)
        self._wire = account.wire
        self._decode = self._without_keys if self._wire.may_echo else self._wire.decode
        self.cached = self._wire.cached
        self._options = account.encode_options
        self._endpoints = Endpoints(account.endpoints)
        self._servers = servers
        self._http = Http(account, self._wire.headers)
        self._sent: dict[tuple[int, tuple[AskId, ...]], tuple[Item, ...]] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._waiting: list[asyncio.Future[None]] = []
        self._lacking: dict[str, set[Endpoint]] = {}
        self._urls: dict[tuple[str, str], Url] = {}
        self._heard_at = 0.0
        self._answered = False
        self._failing_since: float | None = None
        self._why_unreachable: str | None = None
        self._following: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether an endpoint accepts requests. If all have been given up, asks are accepted and fail."""
        if self._servers is not None and self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._follow(self._servers))
        return self._endpoints.only is not None or self._endpoints.open or self._why_unreachable is not None

    @property
    def max_wave(self) -> int:
        """1 while an endpoint is being tried: more requests would be held back and then sent all at once."""
        return MOST_AT_ONCE if self._endpoints.only is not None or self._endpoints.working else 1

    @property
    def figures(self) -> list[EndpointFigures]:
        """Counters and timings of each endpoint."""
        return [endpoint.figures for endpoint in (*self._endpoints.all, *self._endpoints.gone)]

    async def dispatch(self, wave: Wave) -> Receipt:
        self._sent[wave.id, wave.asks] = wave.items
        return Receipt()

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        items = self._sent.pop((intent.id, intent.asks))
        if len(items) == 1:
            yield Settled(items[0].ask, *await self.ask(items[0].request))
            return
        embeds = [item for item in items if type(item.request) is Embed]
        work = [self._single(item) for item in items if type(item.request) is not Embed]
        work += [embed_together(group, self.ask) for group in group_requests(embeds, self._endpoints.working)]
        async for several in _as_they_come(work):
            for settled in several:
                yield settled

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        return Absent(perhaps_paid=True)

    async def close(self) -> None:
        """Close the connections and stop the health checks."""
        tasks = [*self._watching, *([] if self._following is None else [self._following])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._http.close()

    async def _single(self, item: Item) -> list[Settled]:
        return [Settled(item.ask, *await self.ask(item.request))]

    async def ask(self, request: Request) -> tuple[Reply | Embedding | Fault, Sequence[Standing]]:
        """Make one attempt."""
        model = self.models.get(request.model, request.model)
        call = self._wire.encode(request, model, self._options)
        if isinstance(call, Fault):
            return call, ()
        path, body = call
        endpoint = self._endpoints.only or await self._chosen(model)
        if endpoint is None:
            why = self._why_unreachable
            kind = FaultKind.CONNECTION if why is None else FaultKind.UNREACHABLE
            return Fault(kind, why or "no endpoint is available at the moment", sent=False), ()
        started = time.monotonic()
        before = endpoint.take(started)
        url = self._urls.get((endpoint.url, path)) or self._url(endpoint, path)
        try:
            status, headers, content = await self._http.post(url, body)
        except NoAnswer as error:
            fault = msgspec.structs.replace(redact_fault(error.fault, self.account), sent=error.sent)
            return self._missed(endpoint, fault, time.monotonic()), ()
        except BaseException:
            endpoint.given_up()
            raise
        finally:
            if self._waiting:
                self._tell_waiting()
        now = time.monotonic()
        settlement = self._decode(request, status, headers, content, time.time())
        if type(settlement) is not Fault:
            self._replied(endpoint, before, now - started, now)
        else:
            settlement = redact_fault(settlement, self.account)
            if status >= 500 or settlement.kind in NO_GOOD:
                settlement = self._missed(endpoint, settlement, now)
            else:
                self._replied(endpoint, before, now - started, now)
            if settlement.kind is FaultKind.NOT_FOUND and self._another_may_have(model, endpoint):
                return await self.ask(request)
        # Read the reported rate limits: after every refusal, otherwise only now and then, to save time.
        if status != 429 and now - self._heard_at < HEARS_EVERY:
            return settlement, ()
        self._heard_at = now
        return settlement, self._wire.rate_limits(headers, time.time())

    def _without_keys(self, *answer: Any) -> Reply | Embedding | Fault:
        """What an answer means, without keys in the text of a reply."""
        found = self._wire.decode(*answer)
        if not isinstance(found, Reply):
            return found
        return msgspec.structs.replace(found, text=redact(found.text, self.account))

    async def _chosen(self, model: str) -> Endpoint | None:
        """The endpoint for a request. If the only candidates are being tried, wait for the result."""
        lacking: Collection[Endpoint] = self._lacking.get(model, ())
        if all(endpoint in lacking for endpoint in self._endpoints.all):
            lacking = ()
        while (endpoint := self._endpoints.choose(time.monotonic(), lacking)) is None and self._endpoints.tried:
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]
        return endpoint

    def _another_may_have(self, model: str, lacks_it: Endpoint) -> bool:
        """An endpoint does not have a model: do not ask it for that model again, unless no endpoint has it."""
        lacking = self._lacking.setdefault(model, set())
        if lacks_it not in lacking:
            lacking.add(lacks_it)
            if len(self._endpoints.all) > 1:
                self._notice(self.account.name, lacks_it.name, f"does not have {model}")
        return any(endpoint not in lacking for endpoint in self._endpoints.all)

    def _tell_waiting(self) -> None:
        """A request ended. Wake up those who wait for an endpoint, after its result has been recorded."""
        while self._waiting:
            one = self._waiting.pop()
            if not one.done():
                one.set_result(None)

    def _replied(self, endpoint: Endpoint, before: int, seconds: float, now: float) -> None:
        """Record a successful answer."""
        if endpoint.state == "down":  # an answer to an earlier request, or one that came before the health check
            self._notice(self.account.name, endpoint.name, "answers again")
        endpoint.answered(before, seconds, now)
        self._answered, self._failing_since, self._why_unreachable = True, None, None

    def _missed(self, endpoint: Endpoint, fault: Fault, now: float) -> Fault:
        """Record a failure. An endpoint that keeps failing is taken out and watched.

        Return the fault for the engine, without `retry_after` if another endpoint is available.
        """
        if self._failing_since is None:
            self._failing_since = now
        if endpoint.missed(fault.kind, now, fault.retry_after):
            self._notice(self.account.name, endpoint.name, f"down: {fault.message}")
            task = asyncio.create_task(self._watch(endpoint, fault))
            self._watching.add(task)
            task.add_done_callback(self._watching.discard)
        if fault.retry_after is not None and self._endpoints.spare(now):
            return msgspec.structs.replace(fault, retry_after=None)
        return fault

    async def _watch(self, endpoint: Endpoint, fault: Fault) -> None:
        """Check an endpoint that is out until it answers."""
        url = self._wire.url(endpoint.url, self._wire.health_path)
        while endpoint.state == "down":
            await asyncio.sleep(endpoint.next_pause() * (0.75 + 0.5 * random.random()))
            if await self._http.alive(url):
                if endpoint not in self._endpoints.all:
                    return
                if endpoint.state == "down":
                    endpoint.state = "trying"
                self._why_unreachable = None
                self._notice(self.account.name, endpoint.name, "answers again")
                await self._try_out(endpoint)
                return
            if not self._endpoints.open:
                self._consider_giving_up(fault, time.monotonic())

    async def _try_out(self, endpoint: Endpoint) -> None:
        """Return a recovered endpoint to full use after a moment.

        A broken one fails at once; a reply may take a minute.
        """
        misses = endpoint.misses
        while endpoint.state == "trying" and not endpoint.outstanding:
            await asyncio.sleep(TRIED_FOR / 10)
        await asyncio.sleep(TRIED_FOR)
        if endpoint.state == "trying" and endpoint.misses == misses:
            endpoint.state = "up"
            self._tell_waiting()

    def _consider_giving_up(self, fault: Fault, now: float) -> None:
        """If no endpoint has worked for too long, let asks fail."""
        # A server of a worker has answered that worker.
        patience = ANSWERED_BEFORE if self._answered or self._servers is not None else NEVER_ANSWERED
        if self._failing_since is not None and now - self._failing_since > patience:
            names = ", ".join(endpoint.name for endpoint in self._endpoints.all)
            self._why_unreachable = f"no answer from {names} ({fault.message}): {self._hint(fault)}"

    def _hint(self, fault: Fault) -> str:
        """Advice for an account that cannot be reached."""
        if fault.kind is FaultKind.TIMEOUT:
            return "increase the account's timeout, or check the load of the server"
        if self._answered:
            return "it stopped answering"
        if "corrupt message" in fault.message:
            return "the server does not seem to use TLS; try http:// instead of https://"
        return "check that the server is running and the address is right"

    async def _follow(self, servers: FindServers) -> None:
        """Use the servers that workers have started, as long as there are any."""
        began, told = time.monotonic(), ""
        thread = ThreadPoolExecutor(1, thread_name_prefix="groundswell-servers")
        try:
            while True:
                try:
                    urls, elsewhere = await asyncio.get_running_loop().run_in_executor(thread, servers)
                except Exception as error:  # noqa: BLE001  runs find out by themselves; until then nothing changes
                    lacks = f"the store cannot be read: {error}"
                else:
                    lacks = OTHER_MACHINE if elsewhere else "no worker has started a server"
                    if self._set_endpoints(urls):
                        began = time.monotonic()
                if self._endpoints.all:
                    lacks = ""
                elif time.monotonic() - began > ANSWERED_BEFORE:
                    self._why_unreachable = f"account {self.account.name}: {lacks} ({HOW_TO_SERVE})"
                if lacks and lacks != told:
                    self._notice(self.account.name, WORKERS, lacks)
                told = lacks
                await asyncio.sleep(FOLLOWS_EVERY)
        finally:
            thread.shutdown(wait=False, cancel_futures=True)

    def _set_endpoints(self, urls: Sequence[str]) -> bool:
        """Use these endpoints from now on. Returns whether they have changed."""
        before = self._endpoints.all
        if not self._endpoints.set(urls):
            return False
        for endpoint in self._endpoints.all:
            if endpoint not in before:
                self._notice(self.account.name, endpoint.name, "was started by a worker")
        for endpoint in before:
            if endpoint not in self._endpoints.all:
                self._notice(self.account.name, endpoint.name, "has ended")
        for lacking in self._lacking.values():
            lacking.intersection_update(self._endpoints.all)
        self._failing_since = self._why_unreachable = None
        self._tell_waiting()
        return True

    def _url(self, endpoint: Endpoint, path: str) -> Url:
        url = self._urls[endpoint.url, path] = parse_url(self._wire.url(endpoint.url, path))
        return url


OTHER_MACHINE = "workers have started servers, but only for their own machines: they need --server-host"
HOW_TO_SERVE = "see `groundswell worker --help`, option --server"
NO_GOOD = frozenset({FaultKind.RATE_LIMITED, FaultKind.OVERLOADED, FaultKind.GARBLED})
"""Faults that count against the endpoint whatever the status. Quick failures must not make it seem fast."""


async def _as_they_come(work: Sequence[Coroutine[Any, Any, list[Settled]]]) -> AsyncIterator[list[Settled]]:
    """Run several awaitables at once and yield each result as it arrives."""
    loop = asyncio.get_running_loop()
    done: deque[asyncio.Task[list[Settled]]] = deque()
    woken: list[asyncio.Future[None]] = []

    def ended(task: asyncio.Task[list[Settled]]) -> None:
        done.append(task)
        if woken and not woken[-1].done():
            woken[-1].set_result(None)

    tasks = [loop.create_task(one) for one in work]
    for task in tasks:
        task.add_done_callback(ended)
    left = len(tasks)
    try:
        while left:
            while not done:
                woken[:] = [loop.create_future()]
                await woken[-1]
            left -= 1
            yield done.popleft().result()
    finally:
        for task in tasks:
            task.cancel()
