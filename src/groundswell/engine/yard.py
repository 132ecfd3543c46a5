"""What waits to be sent in one run, lane by lane, and how much of it is under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from groundswell.engine.context import Pending, RunContext
from groundswell.engine.lanes import Lane
from groundswell.engine.torn import Torn


class Queue:
    """What waits for one lane, and what is under way on it.

    asks      no wave has them yet; `released` counts those of a barrier wave that have not all left
    cohort    how many were released at once
    flying    how many asks the pace counts as in flight
    unsure    how many replies have come and are not durable yet
    calls     how many waves are under way, where a wave is one call
    """

    __slots__ = ("asks", "calls", "cohort", "flying", "released", "unsure")

    def __init__(self) -> None:
        self.asks: deque[Pending] = deque()
        self.released = 0
        self.cohort = 0
        self.flying = 0
        self.unsure = 0
        self.calls = 0


class Yard:
    """The queues of one run.

    flying    how many asks are under way, in waves or by themselves
    landing   how many of them must be waited for, because what a live connection brings is lost with it. A batch can
              be collected by another process
    retrying  how many failed and will be queued again
    """

    def __init__(self, context: RunContext, torn: Torn, made_room: Callable[[], None]) -> None:
        self._context = context
        self._made_room = made_room
        self._torn = torn
        self.queues: dict[Lane, Queue] = {}
        self.flying = 0
        self.landing = 0
        self.retrying = 0

    def of(self, lane: Lane) -> Queue:
        """The queue of a lane."""
        queue = self.queues.get(lane)
        if queue is None:
            queue = self.queues[lane] = Queue()
            self._torn.at_work(lane)
            self._made_room()  # how many trials are open depends on the lanes in use
        return queue

    def count(self, lane: Lane, asks: int) -> None:
        """So many more asks are under way on a lane, or fewer."""
        self.flying += asks
        if not lane.barrier:
            self.landing += asks

    @property
    def leaving_live(self) -> bool:
        """Whether asks are about to leave on lanes without a barrier, as soon as their pace allows it."""
        waves = self._context.options.schedule == "waves"
        live = (queue for lane, queue in self.queues.items() if not lane.barrier)
        return any(queue.released if waves else queue.asks for queue in live)
