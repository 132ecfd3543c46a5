"""What the tests of troubles share: an emulator in a hurry, runs in batches against it, and what became of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

import groundswell
from groundswell import Outcome, RunOptions, Trial, program
from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded
from groundswell.emulator.settings import BatchTimes, Settings
from groundswell.engine.events import AskRetried, BatchChanged, BatchHeldBack, BatchSent, Event, RouteChosen
from groundswell.engine.records import Counters
from groundswell.errors import RunStopped
from groundswell.program.request import assistant, user
from groundswell.program.trial import Program
from groundswell.providers.accounts.config import load
from tests.patience import PATIENCE
from tests.transports.scene import MODELS, environment

E = TypeVar("E", bound=Event)
HURRY = 250.0
"""How many of a run's seconds pass in a real one: waits of its own take no time to speak of."""
SPEED = 2e4
BATCH = RunOptions(via="batch")
LIVE = RunOptions(cache=False)
TIMES = BatchTimes(validating=5, working=120, finalizing=5, cancelling=30)
HURRIED = Settings(speed=SPEED, batch=TIMES)
CREATE = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches"}
_LIVE: dict[tuple[str, tuple[Any, ...]], list[Any]] = {}


class Topic(msgspec.Struct, frozen=True):
    """A conversation: with whom, about what, of how many turns."""

    model: str
    about: str
    turns: int = 1


@program("tests/troubles/talk")
async def talk(trial: Trial, spec: Topic) -> list[str]:
    """Each turn carries all that was said before, so that waves grow. The same request always has the same reply."""
    said = []
    messages = [user(f"Tell me about {spec.about}.")]
    for turn in range(spec.turns):
        reply = await trial.ask(spec.model, messages, max_tokens=30, temperature=0.0)
        said.append(reply.text)
        messages += [assistant(reply.text), user(f"And then, number {turn}?")]
    return said


def topics(provider: str, number: int, turns: int = 1) -> list[Topic]:
    """So many conversations, no two alike."""
    return [Topic(MODELS[provider], f"thing {each}", turns) for each in range(number)]


class Hurried:
    """A run's clock that is fast, and can be moved."""

    def __init__(self, speed: float = HURRY) -> None:
        self._speed = speed
        self._moved = 0.0
        self._start = time.monotonic()
        self._number = count()
        self._due: dict[int, tuple[float, Callable[[], None]]] = {}

    def now(self) -> float:
        return self._moved + (time.monotonic() - self._start) * self._speed

    def wall(self) -> float:
        return time.time()

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        number = next(self._number)
        self._due[number] = when, then
        self._set(number, when)

        def cancel() -> None:
            self._due.pop(number, None)

        return cancel

    def move(self, seconds: float) -> None:
        """Let time pass at once."""
        self._moved += seconds
        for number, (when, _) in list(self._due.items()):
            self._set(number, when)

    def _set(self, number: int, when: float) -> None:
        asyncio.get_running_loop().call_later(max(0.0, when - self.now()) / self._speed, self._ring, number)

    def _ring(self, number: int) -> None:
        if number in self._due:
            self._due.pop(number)[1]()


class Ran(NamedTuple):
    """What became of a run."""

    outcomes: list[Outcome[Any]]
    status: str
    error: str | None
    counters: Counters
    events: list[Event]

    @property
    def texts(self) -> list[Any]:
        """The results, None where one is missing."""
        return [None if outcome.fault else outcome.result for outcome in self.outcomes]

    @property
    def faults(self) -> Counter[str]:
        """How many trials are missing, by kind."""
        return Counter(outcome.fault.kind.value for outcome in self.outcomes if outcome.fault)

    def told(self, kind: type[E]) -> list[E]:
        """The events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def lived(self) -> list[tuple[int, str]]:
        """How many asks went live instead of in a batch, and why."""
        return [(event.size, event.why) for event in self.told(RouteChosen) if event.way == "live"]

    @property
    def held(self) -> list[str]:
        """Why asks were held back."""
        return [event.why for event in self.told(BatchHeldBack)]

    @property
    def sent(self) -> list[int]:
        """The sizes of the batches that the provider has taken."""
        return [event.size for event in self.told(BatchSent)]

    @property
    def retried(self) -> Counter[str]:
        """How often asks were sent again, by the kind of fault."""
        return Counter(event.kind for event in self.told(AskRetried))

    @property
    def states(self) -> set[str]:
        """The states that batches were seen in."""
        return {event.state for event in self.told(BatchChanged)}


class Scene:
    """A folder with a store, and accounts that all lead to one emulator."""

    def __init__(self, folder: Path, emulator: Threaded) -> None:
        self.folder, self.emulator, self.url = folder, emulator, emulator.url
        self.flags = [f"{name}.batch_poll=0.02" for name in CREATE]
        self.on: list[Callable[[Event], None]] = []
        self.clock = Hurried()

    def run(
        self,
        program_: Program[Any, Any],
        specs: Sequence[Any],
        options: RunOptions = BATCH,
        *,
        name: str = "a run",
        prices: Any = None,
    ) -> Ran:
        """Run, or go on with, the run of a name; it must end by itself."""
        events: list[Event] = []

        async def main() -> Ran:
            accounts = load(environment(self.url), self.folder, self.folder / "home", self.flags)
            listeners = [events.append, *self.on]
            store = self.folder / "runs.db"
            opened = groundswell.open(
                store, accounts=accounts, options=options, clock=self.clock, listeners=listeners, prices=prices
            )
            outcomes: list[Outcome[Any]] = []
            async with asyncio.timeout(PATIENCE), opened as engine:
                run = engine.run(name)
                try:
                    async for outcome in run.map(program_, specs):
                        outcomes.append(outcome)
                    await run.end()
                except RunStopped as stopped:
                    await run.end(stopped)
            record = run.record
            return Ran(outcomes, record.status, record.error, record.counters, events)

        return asyncio.run(main())

    def undisturbed(self, program_: Program[Any, Any], specs: Sequence[Any]) -> list[Any]:
        """The results of a live run of which the books know nothing any more."""
        key = program_.name, tuple(specs)
        if key not in _LIVE:
            self.emulator.set_faults()
            aside = self.folder / "live"
            aside.mkdir()
            ran = Scene(aside, self.emulator).run(program_, specs, LIVE)
            assert ran.status == "completed"
            self.emulator.reset()
            _LIVE[key] = ran.texts
        return _LIVE[key]

    def disturb(self, *rules: Rule) -> None:
        """Put these rules into force."""
        self.emulator.set_faults(*rules)

    @property
    def books(self) -> dict[str, Any]:
        """The sums of the emulator's ledger."""
        totals: dict[str, Any] = self.emulator.ledger()["totals"]
        return totals
