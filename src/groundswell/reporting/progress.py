"""Progress of a run on standard error: a live display on a terminal, occasional plain lines elsewhere.

The display polls the counters of the open runs several times a second. The engine does no work for it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from groundswell.reporting.words import age, cost, duration

if TYPE_CHECKING:
    from groundswell.engine.engine import Engine
    from groundswell.engine.run import BatchInFlight, Run

EVERY = 1 / 8
LINE_EVERY = 5.0
"""Minimum number of seconds between two plain lines."""
QUIET_AT_MOST = 60.0
"""Seconds after which any change is worth a plain line."""
NOTICEABLE = 0.05
"""Share of the trials that must have ended since the last plain line."""
RATE_OVER = 5.0


class Reading(NamedTuple):
    """A run at one moment. `total` is None if the number of trials is unknown.

    `rate` is None while all requests in flight are in provider batches; `batches` describes those.
    """

    title: str
    done: int
    missing: int
    running: int
    total: int | None
    sent: int
    rate: float | None
    waves: int
    cached: int
    cost: str
    left: float | None
    stopping: bool
    waits: tuple[str, ...] = ()
    retried: int = 0
    in_the_end: str = ""
    batches: str = ""
    words: str = ""


class Meter:
    """Reads one run and computes rates."""

    def __init__(self, run: Run, now: float) -> None:
        self.run = run
        self._start = (now, run.counters.settled)
        self._sent: deque[tuple[float, int]] = deque([(now, self._moved())])

    def read(self, now: float) -> Reading:
        """The current state of the run."""
        run, counters = self.run, self.run.counters
        total = None if run.expected is None else max(run.expected, counters.planned)
        priced = counters.usd > 0 or not counters.unknown_cost
        waits, rate = bool(run.batches_in_flight), self._rate(now)
        return Reading(
            title=run.record.title,
            done=counters.settled,
            missing=counters.missing,
            running=len(run.open),
            total=total,
            sent=counters.sent,
            rate=None if waits and not run.live_in_flight and not rate else rate,
            waves=counters.waves,
            cached=counters.cached,
            cost=cost(counters.usd if priced else None, counters.unknown_cost),
            left=None if waits else self._left(now, counters.settled, total),
            stopping=run.stopping is not None and run.live_in_flight > 0,
            retried=counters.retried,
            in_the_end=_in_the_end(run, total),
            batches=in_batches(run),
            words=run.words,
            waits=self._waits(),
        )

    def _waits(self) -> tuple[str, ...]:
        """What the run waits for, except for short waits."""
        accounts = [_wait(*each) for each in self.run.waits if each[1] is None or each[1] >= 1]
        return (*accounts, *(["waiting for a worker"] if self.run.lacks_workers else []))

    def _moved(self) -> int:
        """The number of requests sent. Those in provider batches count when their results arrive."""
        return self.run.counters.sent - (self.run.in_flight - self.run.live_in_flight)

    def _rate(self, now: float) -> float:
        """Requests per second over the last few seconds."""
        sent = self._moved()
        self._sent.append((now, sent))
        while len(self._sent) > 2 and self._sent[1][0] <= now - RATE_OVER:
            self._sent.popleft()
        then, before = self._sent[0]
        return max(0.0, (sent - before) / (now - then)) if now > then else 0.0

    def _left(self, now: float, done: int, total: int | None) -> float | None:
        """Seconds until the last trial ends, at the average speed of this session."""
        then, before = self._start
        if total is None or done <= before or now <= then:
            return None
        return (total - done) * (now - then) / (done - before)


def _in_the_end(run: Run, total: int | None) -> str:
    """The predicted total cost of the run, if it can be predicted."""
    counters = run.counters
    if total is None or not counters.usd or counters.unknown_cost or counters.settled >= total:
        return ""
    found = run.forecast(total)
    if found is None:
        return ""
    low, high = cost(found.low, 0), cost(found.high, 0)
    return f", about {low} in total" if low == high else f", about {low} to {high} in total"


def in_batches(run: Run) -> str:
    """The state of the batches of a run: `2 batches: openai 450 of 1,000, anthropic in progress for 12 min`."""
    orders: dict[str, list[BatchInFlight]] = {}
    for order in run.batches_in_flight:
        orders.setdefault(order.account, []).append(order)
    if not orders:
        return ""
    count, now = sum(map(len, orders.values())), run.clock.now()
    told = ", ".join(f"{account} {_stand(some, now)}" for account, some in orders.items())
    return f"{count} {'batch' if count == 1 else 'batches'}: {told}"


def _stand(orders: Sequence[BatchInFlight], now: float) -> str:
    """The state of the batches of one account: requests done if known, else how long they have been in their state."""
    done = sum(order.info.done for order in orders if order.info is not None)
    if done:
        return f"{done:,} of {sum(order.size for order in orders):,}"
    first = min(orders, key=lambda order: order.since)
    info = first.info
    if info is None:
        return "being sent" if not first.sent else f"sent {age(now - first.since)} ago"
    return f"{info.state.replace('_', ' ')} for {age(now - first.since)}"


def _wait(account: str, seconds: float | None) -> str:
    return f"{account} does not respond" if seconds is None else f"waiting {duration(seconds)} for {account}"


def describe(reading: Reading) -> str:
    """A reading as one line."""
    of = "" if reading.total is None else f" of {reading.total}"
    parts = reading.words.splitlines()
    parts += [f"{reading.done}{of} trials done", f"{reading.running} running", f"{reading.missing} missing"]
    rate = "" if reading.rate is None else f", {reading.rate:.0f}/s"
    parts += [f"{reading.sent} requests sent{rate}", _waves(reading), f"{reading.cached} cached"]
    if reading.retried:
        parts.append(f"{reading.retried} retried")
    parts.append(f"cost {reading.cost}{reading.in_the_end}")
    parts += [reading.batches] * bool(reading.batches)
    parts += reading.waits
    if reading.stopping:
        parts.append("stopping")
    elif reading.left is not None and reading.left > 0:
        parts.append(f"{duration(reading.left)} left")
    return f"{reading.title}: " + "; ".join(parts)


def _waves(reading: Reading) -> str:
    return "1 wave" if reading.waves == 1 else f"{reading.waves:,} waves"


class Lines:
    """Plain lines for logs: one when something changed noticeably, and the last state once."""

    def __init__(self, write: Callable[[str], None], now: float) -> None:
        self._write = write
        self._start = now
        self._written: dict[int, tuple[float, Reading]] = {}

    def show(self, readings: Sequence[Reading], now: float, *, final: bool = False) -> None:
        """Write the readings that differ enough from the last line about their run."""
        for number, reading in enumerate(readings):
            at, before = self._written.get(number, (self._start, None))
            counted = reading._replace(rate=None, left=None)
            if counted != before and (final or _is_news(counted, before, now - at)):
                self._written[number] = (now, counted)
                self._write(describe(reading))

    def close(self) -> None:
        """Nothing to close."""


def _is_news(reading: Reading, before: Reading | None, seconds: float) -> bool:
    """Whether a changed reading deserves a line, so many seconds after the last one.

    Progress by a share of the trials and changes of state do after a few seconds, anything else after a minute.
    """
    if seconds < LINE_EVERY:
        return False
    if before is None or seconds >= QUIET_AT_MOST:
        return True
    if (reading.stopping, bool(reading.waits), bool(reading.batches)) != (
        before.stopping,
        bool(before.waits),
        bool(before.batches),
    ):
        return True
    return reading.done - before.done >= NOTICEABLE * (reading.total or before.done) and reading.done > before.done


class Display:
    """The live display on a terminal. Other output appears above it."""

    def __init__(self, console: Console, *, above: bool) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=above)
        self._live.start()

    def show(self, readings: Sequence[Reading], now: float, *, final: bool = False) -> None:
        """Draw the readings."""
        self._live.update(Group(*(_drawn(reading) for reading in readings)), refresh=True)

    def close(self) -> None:
        """Restore the terminal."""
        self._live.stop()


class Notebook:
    """Lines below the cell of a notebook, which are updated in place."""

    def __init__(self, display: Any) -> None:
        """`display` is the module `IPython.display`."""
        self._html = display.HTML
        self._shown = display.display(self._html(""), display_id=True)

    def show(self, readings: Sequence[Reading], now: float, *, final: bool = False) -> None:
        """Update the lines."""
        self._shown.update(self._html("<br>".join(escape(describe(reading)) for reading in readings)))

    def close(self) -> None:
        """The last lines stay."""


def notebook_display() -> Any:
    """The module `IPython.display`; None outside a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.modules.get("IPython.display") if getattr(shell, "kernel", None) is not None else None


def _drawn(reading: Reading) -> RenderableType:
    head = Table.grid(padding=(0, 1))
    counted = f"{reading.done}" if reading.total is None else f"{reading.done}/{reading.total}"
    head.add_row(
        Text(reading.title, style="bold"),
        ProgressBar(total=reading.total, completed=reading.done, width=32, pulse=reading.total is None),
        Text(counted, style="green"),
        Text(_ahead(reading), style="cyan"),
    )
    rate = "" if reading.rate is None else f"{reading.rate:,.0f} requests/s · "
    detail = f"  {reading.running} running · {reading.missing} missing · {rate}"
    detail += f"{_waves(reading)} · {reading.cached:,} cached · "
    detail += f"{reading.retried:,} retried · " * bool(reading.retried) + f"cost {reading.cost}{reading.in_the_end}"
    detail += "".join(f" · {wait}" for wait in reading.waits)
    words = [Text(f"  {line}") for line in reading.words.splitlines()]
    batches = [Text(f"  {reading.batches}", style="dim")] * bool(reading.batches)
    return Group(head, *words, Text(detail, style="dim"), *batches)


def _ahead(reading: Reading) -> str:
    if reading.stopping:
        return "stopping"
    return "" if reading.left is None else f"{duration(reading.left)} left"


class Progress:
    """Shows the open runs of an engine while its body runs: `async with Progress(engine, console)`."""

    def __init__(self, engine: Engine, console: Console, *, above: bool = True) -> None:
        now = time.monotonic()
        self._engine = engine
        self._meters: dict[str, Meter] = {}
        self._task: asyncio.Task[None] | None = None
        self._display: Lines | Display | Notebook
        if (notebook := notebook_display()) is not None:
            self._display = Notebook(notebook)
        elif console.is_terminal:
            self._display = Display(console, above=above)
        else:
            self._display = Lines(lambda text: console.print(text, markup=False, soft_wrap=True), now)

    async def __aenter__(self) -> Progress:
        self._task = asyncio.create_task(self._poll())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        try:
            self._show(final=True)
        finally:
            self._display.close()

    async def _poll(self) -> None:
        while True:
            self._show()
            await asyncio.sleep(EVERY)

    def _show(self, *, final: bool = False) -> None:
        now = time.monotonic()
        for run in self._engine.runs:
            if run.record.id not in self._meters:
                self._meters[run.record.id] = Meter(run, now)
        self._display.show([meter.read(now) for meter in self._meters.values()], now, final=final)
