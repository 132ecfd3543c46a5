"""The ways out: one lane per account and transport, shared by all runs of an engine."""

from __future__ import annotations

from collections.abc import Callable

from groundswell.engine.pace import Pace, PaceLimits
from groundswell.engine.ports import Clock, Route, Router, Transport
from groundswell.program.request import Request

UNLIMITED = 1 << 40


class Lane:
    """An account, how it is reached, and its limiter."""

    __slots__ = ("account", "barrier", "cached", "pace", "transport")

    def __init__(self, account: str, transport: Transport, pace: Pace) -> None:
        self.account = account
        self.transport = transport
        self.barrier = transport.barrier
        self.cached = transport.cached
        self.pace = pace


class Lanes:
    """Finds the lane of a request, and tells every run when a lane has room again."""

    def __init__(self, router: Router, clock: Clock) -> None:
        self.router = router
        self._clock = clock
        self._by_model: dict[tuple[type, str], Lane] = {}
        self._by_route: dict[tuple[str, str], Lane] = {}
        self._runs: list[Callable[[], None]] = []

    def of(self, request: Request) -> Lane:
        """The lane of a request."""
        by_model = (type(request), request.model)
        lane = self._by_model.get(by_model)
        if lane is None:
            route = self.router.route(request)
            lane = self._lane(route)
            self._by_model[by_model] = lane
        return lane

    def that_carried(self, account: str, transport: str) -> Lane:
        """The lane of a wave that was sent earlier, whatever way its requests would go now."""
        lane = self._by_route.get((account, transport))
        if lane is None:
            way = self.router.transport(transport, account)
            assert way is not None, "recovery has asked for it"
            lane = self._lane(Route(account, way))
        return lane

    def _lane(self, route: Route) -> Lane:
        key = (route.account, route.transport.name)
        lane = self._by_route.get(key)
        if lane is None:
            limit = UNLIMITED if route.transport.barrier else route.max_concurrent
            pace = Pace(PaceLimits(max_concurrent=limit), self._clock.now())
            lane = self._by_route[key] = Lane(route.account, route.transport, pace)
        return lane

    @property
    def slots(self) -> int:
        """How many requests may be in flight on all lanes that are in use and have a limit."""
        return sum(lane.pace.cap for lane in self._by_route.values() if not lane.barrier)

    @property
    def barrier(self) -> bool:
        """Whether some lane in use sends whole waves."""
        return any(lane.barrier for lane in self._by_route.values())

    def join(self, flush: Callable[[], None]) -> None:
        """A run wants to know when there is room."""
        self._runs.append(flush)

    def leave(self, flush: Callable[[], None]) -> None:
        """A run has ended."""
        if flush in self._runs:
            self._runs.remove(flush)

    def freed(self) -> None:
        """Something came back: let the runs send, each in its turn first."""
        if len(self._runs) > 1:
            self._runs.append(self._runs.pop(0))
        for flush in self._runs:
            flush()
