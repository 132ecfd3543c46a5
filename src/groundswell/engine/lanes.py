"""Lanes: one for each account, transport and model, shared by all runs of an engine."""

from __future__ import annotations

from typing import Protocol

from groundswell.engine.batch_quota import BatchQuota, ProviderQueue
from groundswell.engine.ports import Batching, Clock, Route, Router, ShareTable, Singly, Transport
from groundswell.engine.rate_limit import Allowance, Pace, Paces
from groundswell.engine.records import Via
from groundswell.engine.shares import SharedLimits
from groundswell.program.request import Embed, Request


class Lane:
    """A model of an account, with its transport and its rate limiter.

    together  the asks of a wave leave as one call
    singly    how asks leave by themselves, where they do
    batching  how they leave in batches, where they do; `quota` is the room for these, `live` the other way
    full      what the model string stands for, if it is an alias
    known_as  what the cache calls the model, if not that
    limiter   who shares its limits, if other processes may
    at_home   whether requests stay on this machine
    """

    __slots__ = (
        "account",
        "at_home",
        "barrier",
        "batching",
        "cached",
        "full",
        "known_as",
        "limiter",
        "live",
        "model",
        "origin",
        "pace",
        "quota",
        "singly",
        "together",
        "transport",
    )

    def __init__(
        self, route: Route, pace: Pace, *, together: bool, quota: BatchQuota | None = None, live: Lane | None = None
    ) -> None:
        self.account = route.account
        self.transport: Transport = route.transport
        self.barrier = route.transport.barrier
        self.cached = route.transport.cached
        self.origin = b"" if route.origin is None else f"{route.origin}\0{route.model}".encode()
        self.full = route.full
        self.known_as = route.known_as
        self.model = route.model
        self.limiter = route.limiter
        self.at_home = route.at_home
        self.pace = pace
        self.batching = route.transport if isinstance(route.transport, Batching) else None
        self.quota = quota
        self.live = live
        self.together = together
        self.singly = route.transport if isinstance(route.transport, Singly) and not together else None


class Waiting(Protocol):
    """A run that has requests to send."""

    def schedule(self) -> None:
        """Check the queues soon."""
        ...

    def room_on(self, lane: Lane) -> None:
        """A slot of a lane is free."""
        ...

    def wants(self, allowance: Allowance) -> int:
        """How many requests are in flight with an account, or wait to be sent there."""
        ...

    def share_changed(self, allowance: Allowance) -> None:
        """More or fewer requests may be in flight with an account."""
        ...


class Lanes:
    """Finds the lane of a request, and notifies runs when a lane has room again."""

    def __init__(self, router: Router, clock: Clock, paces: Paces, shares: ShareTable | None = None) -> None:
        self.router = router
        self._clock = clock
        self._paces = paces
        self._own_paces = Paces()
        self._by_model: dict[tuple[type, str, Via], Lane] = {}
        self._by_route: dict[tuple[Route, bool], Lane] = {}
        self._rooms: dict[tuple[object, str], ProviderQueue] = {}
        self._runs: list[Waiting] = []
        self._shared = None
        if shares is not None:
            self._shared = SharedLimits(shares, clock, self._wanted, self._share_changed)

    def of(self, request: Request, via: Via = "live") -> Lane:
        """The lane of a request."""
        by_model = (type(request), request.model, via)
        lane = self._by_model.get(by_model)
        if lane is None:
            route = self.router.route(request, via)
            apart = isinstance(request, Embed) and (route.transport.vectorised or route.transport.barrier)
            lane = self._by_model[by_model] = self._lane(route, apart=apart)
        return lane

    def use(self, lane: Lane) -> None:
        """Requests are about to be sent on a lane: share its limits with other processes."""
        if self._shared is not None and lane.limiter is not None and not lane.barrier:
            self._shared.join(lane.limiter, lane.pace.allowance)

    def that_carried(self, account: str, transport: str) -> Lane:
        """The lane of a wave that was sent earlier, even if its requests would now take another one."""
        way = self.router.transport(transport, account)
        assert way is not None, "recovery has asked for it"
        return self._lane(Route(account, way), apart=False)

    def _lane(self, route: Route, *, apart: bool) -> Lane:
        """The lane of a route. Embeddings have their own lane if they are sent together or elsewhere."""
        key = (route, apart)
        lane = self._by_route.get(key)
        if lane is None:
            together = apart and route.transport.vectorised
            paces = self._own_paces if route.limiter is None else self._paces
            limiter = (route.account, route.transport.name) if route.limiter is None else route.limiter
            pace = paces.of(limiter, (route.model, together), route.limits, self._clock.now())
            live = (
                None if route.live is None else self._lane(route.live, apart=apart and route.live.transport.vectorised)
            )
            quota = None if live is None else self._quota(route, limiter)
            lane = Lane(route, pace, together=together, quota=quota, live=live)
            self._by_route[key] = lane
        return lane

    def _quota(self, route: Route, limiter: object) -> BatchQuota | None:
        """The room for batches. Tokens are counted for each model, requests for the whole account."""
        if not isinstance(route.transport, Batching):
            return None
        capacity = route.transport.capacity
        key = (limiter, route.model if capacity.counts == "tokens" else "")
        room = self._rooms.setdefault(key, ProviderQueue(capacity.queue))
        return BatchQuota(capacity, room)

    @property
    def slots(self) -> int:
        """How many requests may be in flight on all lanes that are in use and have a limit."""
        return sum(lane.pace.cap for lane in self._by_route.values() if not lane.barrier)

    def waits(self) -> list[tuple[str, float | None]]:
        """Accounts that accept no request now, with the seconds to wait; None: until they answer again."""
        now, found = self._clock.now(), dict[str, float | None]()
        for lane in self._by_route.values():
            left = max(lane.pace.not_before, lane.pace.held_until) - now
            if not lane.transport.ready:
                found[lane.account] = None
            elif left > 0 and found.get(lane.account, 0.0) is not None:
                found[lane.account] = max(left, found.get(lane.account) or 0.0)
        return list(found.items())

    def join(self, run: Waiting) -> None:
        """Notify a run when there is room."""
        self._runs.append(run)

    def leave(self, run: Waiting) -> None:
        """A run has ended: its slots are free for others."""
        if run in self._runs:
            self._runs.remove(run)
        self.wake()

    def wake(self) -> None:
        """There is room in a provider's queue, possibly for another model."""
        for run in self._runs:
            run.schedule()

    async def close(self) -> None:
        """Give shares of limits back to other processes."""
        if self._shared is not None:
            await self._shared.close()

    def _wanted(self, allowance: Allowance) -> int:
        return sum(run.wants(allowance) for run in self._runs)

    def _share_changed(self, allowance: Allowance) -> None:
        for run in list(self._runs):
            run.share_changed(allowance)

    def freed(self, lane: Lane) -> None:
        """A slot is free: let the runs send, in turn."""
        if len(self._runs) > 1:
            self._runs.append(self._runs.pop(0))
        for run in self._runs:
            run.room_on(lane)
