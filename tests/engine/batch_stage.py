"""What the tests of batches share: conversations, a provider with both ways, and sessions on a clock that jumps."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

import msgspec

from groundswell import AskFailed, Outcome, Reply, Request, RetryPolicy, Run, RunOptions, Trial, Usage, program
from groundswell.engine import engine as engine_module
from groundswell.engine.batching import prompt_tokens
from groundswell.engine.engine import Engine
from groundswell.engine.events import Event
from groundswell.engine.ports import Prices
from groundswell.engine.records import AskId, Counters
from groundswell.program.request import Chat
from groundswell.store.journal import Store
from groundswell.testing.batch import Answer, Entry, ProviderBooks, ScriptedLive
from groundswell.testing.clock import FakeClock
from groundswell.testing.crash import CrashingStore, CrashPoint
from groundswell.testing.provider import ProviderBatches, TwoWays

E = TypeVar("E", bound=Event)

TAKES = 40.0
NO_END = 4000.0
"""Fake seconds after which a run is taken to hang."""
NEVER = CrashPoint(0, "before")
RETRY = RetryPolicy(first_wait=1.0)


class Talk(msgspec.Struct, frozen=True):
    """One conversation: whom it asks, turn by turn."""

    number: int
    models: tuple[str, ...] = ("m", "m")


@program("batches/talk")
async def talk(trial: Trial, spec: Talk) -> list[str]:
    heard = [f"talk {spec.number}"]
    for turn, model in enumerate(spec.models):
        try:
            heard.append((await trial.ask(model, heard[-1], max_tokens=10, label=f"turn {turn}")).text)
        except AskFailed as failed:
            heard.append(f"({failed.fault.kind})")
    return heard


def said(request: Request) -> str:
    assert isinstance(request, Chat)
    return str(request.messages[-1].content)


def echo(request: Request, nth: int) -> Answer:
    return Reply(f"{said(request)}!", Usage(prompt_tokens(request), 5))


def via(way: str = "batch", **more: Any) -> RunOptions:
    """Options of a run that goes a way."""
    return msgspec.convert({"via": way, "retry": msgspec.to_builtins(RETRY)} | more, RunOptions)


def half_price(model: str, usage: Usage, transport: str) -> float:
    """A cent a token; half of it in batches."""
    return (usage.input_tokens + usage.output_tokens) / (200 if transport == "batch" else 100)


class Ended(NamedTuple):
    """What came of a session: outcomes, or the error that it ended with."""

    outcomes: list[Outcome[Any]]
    events: list[Event]
    error: BaseException | None
    seconds: float

    def told(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def results(self) -> list[Any]:
        """What was found; the session must have come to its end."""
        if self.error is not None:
            raise AssertionError("the session did not end well") from self.error
        return [outcome.result for outcome in self.outcomes]


class Stage:
    """A store and a provider's books, used in one session after the other; time goes on between them."""

    def __init__(self, folder: Path, script: Callable[[Request, int], Answer] = echo, *, prices: Prices | None = None):
        self.path = folder / "runs.db"
        self.books = ProviderBooks(folder / "books.jsonl")
        self.script = script
        self.now = 0.0
        self._prices = prices

    def session(
        self,
        talks: Iterable[Talk],
        options: RunOptions | None = None,
        *,
        at: Sequence[tuple[float, Callable[[Run], None]]] = (),
        drive: Callable[[Run, list[Talk]], Any] | None = None,
        point: CrashPoint = NEVER,
        only_live: str = "",
        slowest: float = 2.0,
        cap: int = 1000,
        **knobs: Any,
    ) -> Ended:
        """One session of the run. `at` says what is done to it, and when; `knobs` are the provider's."""
        clock, events, outcomes = FakeClock(self.now), list[Event](), list[Outcome[Any]]()

        async def main() -> None:
            store = Store(self.path, around=point.around)
            clock.watch(store)
            batch = ProviderBatches(self.books, self.script, clock, **({"takes": TAKES} | knobs))
            live = ScriptedLive(self.books, self.script, clock, slowest=slowest)
            router = TwoWays(live, batch, only_live=only_live, max_concurrent=cap)
            async with Engine(
                CrashingStore(store, point), router, clock, prices=self._prices, listeners=[events.append]
            ) as engine:
                run = engine.run("story", seed=7, options=options or via())
                for seconds, act in at:
                    clock.call_at(self.now + seconds, lambda act=act: act(run))  # type: ignore[misc]
                in_time = end_in_time(clock, self.now + NO_END)
                try:
                    outcomes.extend(await (drive or _map)(run, list(talks)))
                finally:
                    in_time()

        error: BaseException | None = None
        try:
            with patch.object(engine_module, "CANCEL_EVERY", 500.0):  # each look takes longer than a fake hour
                clock.run(main())
        except asyncio.CancelledError:
            raise AssertionError("the run hangs: nothing comes of it any more") from None
        except Exception as raised:  # noqa: BLE001  handed to the test
            error = raised
        started, self.now = self.now, clock.now()
        return Ended(outcomes, events, error, self.now - started)

    @property
    def counters(self) -> Counters:
        return msgspec.json.decode(self._one("SELECT counters FROM runs"), type=Counters)

    @property
    def status(self) -> str:
        return str(self._one("SELECT status FROM runs"))

    @property
    def open_waves(self) -> int:
        return int(self._one("SELECT count(*) FROM waves WHERE ended_at IS NULL"))

    @property
    def batches(self) -> list[Entry]:
        """The batches that a provider worked on, oldest first."""
        return [entry for entry in self.books.entries() if entry.batch is not None and not entry.turned]

    @property
    def sizes(self) -> list[int]:
        return [len(entry.orders) for entry in self.batches]

    @property
    def placed(self) -> int:
        return self.books.placed().total()

    def paid_twice(self) -> dict[AskId, int]:
        return {ask: times for ask, times in self.books.paid().items() if times > 1}

    def _one(self, sql: str) -> Any:
        with sqlite3.connect(self.path) as reading:
            [(value,)] = reading.execute(sql).fetchall()
        reading.close()
        return value


async def _map(run: Run, talks: list[Talk]) -> list[Outcome[Any]]:
    return [outcome async for outcome in run.map(talk, talks)]


def end_in_time(clock: FakeClock, when: float = NO_END) -> Callable[[], None]:
    """Cancel what asks for it if it goes on for too long; gives what calls that off."""
    task = asyncio.current_task()
    assert task is not None

    def end() -> None:
        task.cancel()

    return clock.call_at(when, end)


@contextmanager
def fresh_stage(script: Callable[[Request, int], Answer] = echo, *, prices: Prices | None = None) -> Iterator[Stage]:
    """A stage in memory, where there is such a folder."""
    with TemporaryDirectory() as folder:
        yield Stage(Path(folder), script, prices=prices)


def talks(many: int, *models: str) -> list[Talk]:
    return [Talk(number, models or ("m", "m")) for number in range(many)]


def expected(some: Iterable[Talk]) -> list[list[str]]:
    """What conversations find when everybody echoes."""
    return [[f"talk {talk.number}" + "!" * turn for turn in range(len(talk.models) + 1)] for talk in some]
