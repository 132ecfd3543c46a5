"""Progress: readings are a function of counters and time."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import groundswell
from groundswell import Request, Trial, program
from groundswell.engine.records import BatchInfo, BatchState, Counters
from groundswell.engine.run import BatchInFlight
from groundswell.engine.spending import Tally, forecast
from groundswell.reporting.progress import LINE_EVERY, Lines, Meter, Progress, Reading, describe, in_batches


def fake_run(**counters: Any) -> Any:
    counted, tally = Counters(**counters), Tally()
    return SimpleNamespace(
        words="",
        counters=counted,
        open={1: None, 2: None},
        expected=100,
        record=SimpleNamespace(title="duels"),
        stopping=None,
        clock=SimpleNamespace(now=lambda: 1000.0),
        tally=tally,
        forecast=lambda trials: forecast(counted.usd, 0.01, trials - counted.settled, tally),
        in_flight=0,
        live_in_flight=0,
        batches_in_flight=[],
        waits=[("openai", 0.4), ("gpu", None), ("work", 75.0)],
        lacks_workers=False,
    )


def order(account: str, size: int, seconds: float, state: BatchState | None = None, done: int = 0) -> BatchInFlight:
    """A batch that left some seconds ago; with a state, it was looked at since."""
    info = None if state is None else BatchInfo("b", state, size, done, 0, 0.0)
    return BatchInFlight(account, size, state is not None, 1000.0 - seconds, info)


def with_batches(*orders: BatchInFlight, live: int = 0, **counters: Any) -> Any:
    """A run with batches in flight, and so many asks that travel live."""
    run = fake_run(**counters)
    run.batches_in_flight = list(orders)
    run.live_in_flight = live
    run.in_flight = live + sum(each.size for each in orders)
    return run


READING = Reading("duels", 10, 1, 5, 100, 40, 8.4, 3, 2, "$1.50", 90.0, False)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {},
            "duels: 10 of 100 trials done; 5 running; 1 missing; 40 requests sent, 8/s; 3 waves; 2 cached; cost $1.50; "
            "1 min 30 s left",
        ),
        (
            {"total": None, "left": None, "cost": "unknown"},
            "duels: 10 trials done; 5 running; 1 missing; 40 requests sent, 8/s; 3 waves; 2 cached; cost unknown",
        ),
        (
            {"retried": 7, "left": None},
            "duels: 10 of 100 trials done; 5 running; 1 missing; 40 requests sent, 8/s; 3 waves; 2 cached; 7 retried; "
            "cost $1.50",
        ),
        (
            {"stopping": True},
            "duels: 10 of 100 trials done; 5 running; 1 missing; 40 requests sent, 8/s; 3 waves; 2 cached; cost $1.50; "
            "stopping",
        ),
        (
            {"rate": None, "left": None, "batches": "1 batch: openai 3 of 9"},
            "duels: 10 of 100 trials done; 5 running; 1 missing; 40 requests sent; 3 waves; 2 cached; cost $1.50; "
            "1 batch: openai 3 of 9",
        ),
    ],
    ids=["with total", "open end", "turned away", "stopping", "in batches"],
)
def test_a_reading_as_one_line(changes: dict[str, Any], text: str) -> None:
    assert describe(READING._replace(**changes)) == text


def test_what_it_will_have_cost_is_said_once_enough_is_known() -> None:
    run = fake_run(planned=100, usable=19, usd=0.39)
    for _ in range(19):
        run.tally.add(0.02, reused=False)
    meter = Meter(run, now=0.0)
    assert meter.read(1.0).in_the_end == ""
    run.tally.add(0.02, reused=False)
    run.counters.usable, run.counters.usd = 20, 0.41
    reading = meter.read(2.0)
    assert reading.in_the_end == ", about $2.00 in total"
    assert "cost $0.4100, about $2.00 in total" in describe(reading)
    run.tally.add(0.08, reused=False)
    assert re.fullmatch(r", about \$\d\.\d\d to \$\d\.\d\d in total", meter.read(3.0).in_the_end)


@pytest.mark.parametrize(
    "changes", [{"unknown_cost": 1}, {"usd": 0.0}, {"usable": 100}], ids=["unknown", "free", "done"]
)
def test_nothing_is_said_of_costs_that_cannot_be_told(changes: dict[str, Any]) -> None:
    run = fake_run(**{"planned": 100, "usable": 50, "usd": 1.0, **changes})
    for _ in range(50):
        run.tally.add(0.02, reused=False)
    assert Meter(run, 0.0).read(1.0).in_the_end == ""


def test_time_left_counts_only_what_this_session_did() -> None:
    run = fake_run(planned=80, usable=50, sent=0)
    meter = Meter(run, now=0.0)
    assert meter.read(1.0).left is None
    run.counters.usable, run.counters.missing, run.counters.sent = 58, 2, 40
    reading = meter.read(5.0)
    assert (reading.done, reading.missing, reading.running, reading.total) == (60, 2, 2, 100)
    assert reading.left == pytest.approx(20.0)
    assert reading.rate == pytest.approx(8.0)


def test_the_rate_forgets_what_is_long_ago() -> None:
    run = fake_run(sent=0)
    meter = Meter(run, now=0.0)
    rates = []
    for second in range(1, 60):
        run.counters.sent += 100 if second < 30 else 10
        rates.append(meter.read(float(second)).rate)
    assert rates[28] == pytest.approx(100.0)
    assert rates[-1] == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("usd", "unknown", "text"),
    [(0.0, 0, "$0.00"), (0.0, 3, "unknown"), (2.5, 0, "$2.50"), (0.0123, 4, "$0.0123 and 4 requests of unknown price")],
)
def test_an_unknown_cost_is_never_shown_as_nothing(usd: float, unknown: int, text: str) -> None:
    assert Meter(fake_run(usd=usd, unknown_cost=unknown), 0.0).read(1.0).cost == text


def test_asks_that_were_turned_away_are_counted() -> None:
    assert Meter(fake_run(retried=7), 0.0).read(1.0).retried == 7


def test_accounts_that_are_waited_for_are_named_and_short_waits_are_not() -> None:
    reading = Meter(fake_run(), 0.0).read(1.0)
    assert reading.waits == ("gpu does not respond", "waiting 1 min 15 s for work")
    assert all(wait in describe(reading) for wait in reading.waits)


def test_a_run_without_a_worker_says_that_it_waits_for_one() -> None:
    run = fake_run()
    run.lacks_workers = True
    assert "waiting for a worker" in describe(Meter(run, 0.0).read(1.0))


@pytest.mark.parametrize(
    ("orders", "text"),
    [
        ([], ""),
        ([order("openai", 1000, 60, "in_progress", 450)], "1 batch: openai 450 of 1,000"),
        (
            [order("openai", 1000, 60, "in_progress", 450), order("anthropic", 1000, 720, "in_progress")],
            "2 batches: openai 450 of 1,000, anthropic in progress for 12 min",
        ),
        (
            [
                order("openai", 1000, 60, "finalizing", 1000),
                order("openai", 500, 60, "validating"),
                order("anthropic", 7, 30, "in_progress"),
                order("anthropic", 7, 7200, "cancelling"),
            ],
            "4 batches: openai 1,000 of 1,500, anthropic cancelling for 2 h",
        ),
        ([order("openai", 5, 3)], "1 batch: openai being sent"),
    ],
    ids=["none", "one", "two accounts", "several of one", "not sent yet"],
)
def test_batches_are_told_by_account(orders: list[Any], text: str) -> None:
    assert in_batches(with_batches(*orders)) == text


def test_a_batch_that_nobody_has_looked_at_yet_was_sent() -> None:
    sent = order("openai", 5, 90)._replace(sent=True)
    assert in_batches(with_batches(sent)) == "1 batch: openai sent 2 min ago"


def travel_as(run: Any, other: Any) -> None:
    """Have a run's asks travel as those of another."""
    for field in ("in_flight", "live_in_flight", "batches_in_flight"):
        setattr(run, field, getattr(other, field))


def test_no_speed_and_no_time_left_are_told_while_everything_sits_in_batches() -> None:
    run = with_batches(planned=100, sent=0)
    meter = Meter(run, 0.0)
    run.counters.sent, run.counters.usable = 40, 10
    reading = meter.read(1.0)
    assert (reading.rate, reading.left is None, reading.batches) == (40.0, False, "")
    left = with_batches(order("openai", 1000, 5, "in_progress"), sent=1040, usable=10)
    run.counters = left.counters
    travel_as(run, left)
    reading = meter.read(20.0)
    assert (reading.rate, reading.left) == (None, None)
    assert reading.batches == "1 batch: openai in progress for 5 s"


def test_asks_that_leave_in_a_batch_are_no_speed_and_what_comes_back_is() -> None:
    run = with_batches(live=3, sent=10)
    meter = Meter(run, 0.0)
    travel_as(run, with_batches(order("openai", 1000, 1, "in_progress"), live=3))
    run.counters.sent = 1015
    assert meter.read(1.0).rate == pytest.approx(5.0)
    run.in_flight -= 200
    assert meter.read(2.0).rate == pytest.approx(102.5)


@pytest.mark.parametrize("terminal", [False, True], ids=["log", "terminal"])
def test_batches_are_on_the_display(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, highlight=False)
    run = with_batches(order("openai", 1000, 60, "in_progress", 450))

    async def main() -> None:
        async with Progress(SimpleNamespace(runs=[run]), console, above=False):  # type: ignore[arg-type]
            await asyncio.sleep(0)

    run.record.id = "r"
    asyncio.run(main())
    assert "1 batch: openai 450 of 1,000" in out.getvalue()
    assert "requests/s" not in out.getvalue()


def test_more_trials_than_expected_raise_the_total() -> None:
    assert Meter(fake_run(planned=120), 0.0).read(1.0).total == 120


def test_plain_lines_are_seconds_apart_and_one_comes_at_the_end() -> None:
    written: list[str] = []
    lines = Lines(written.append, now=0.0)
    for tick in range(1, 100):
        lines.show([READING._replace(done=tick)], tick / 8)
    assert len(written) == int(99 / 8 / LINE_EVERY)
    lines.show([READING], 12.5, final=True)
    assert len(written) == int(99 / 8 / LINE_EVERY) + 1


def seconds_of_lines(readings: dict[float, Reading]) -> list[float]:
    """The moments of the readings that are written as a line."""
    written: list[float] = []
    now = 0.0
    lines = Lines(lambda _: written.append(now), now=0.0)
    for now, reading in readings.items():
        lines.show([reading], now)
    return written


def test_small_changes_get_a_plain_line_a_minute() -> None:
    slow = {5.0 * tick: READING._replace(done=10 + tick // 4, sent=40 + tick) for tick in range(1, 31)}
    assert seconds_of_lines(slow) == [5.0, 65.0, 125.0]


@pytest.mark.parametrize(
    "change",
    [{"done": 15}, {"stopping": True}, {"waits": ("openai does not respond",)}, {"batches": "1 batch: openai 4 of 9"}],
    ids=["progress", "stopping", "waiting", "batches"],
)
def test_noticeable_changes_get_a_plain_line_at_once(change: dict[str, Any]) -> None:
    assert seconds_of_lines({5.0: READING, 10.0: READING._replace(**change)}) == [5.0, 10.0]


def test_plain_lines_in_which_nothing_moved_are_not_repeated() -> None:
    written: list[str] = []
    lines = Lines(written.append, now=0.0)
    other = READING._replace(title="other", stopping=True)
    for tick in range(1, 10):  # asks per second fall while the last replies are looked at, and no more are sent
        lines.show([READING._replace(rate=8.0 / tick, left=90.0 - tick), other], tick * LINE_EVERY)
    lines.show([READING._replace(rate=0.0, left=None), other._replace(stopping=False)], 100.0, final=True)
    assert [line.partition(":")[0] for line in written] == ["duels", "other", "other"]


@program("progress/one", version=1)
async def one(trial: Trial, spec: int) -> int:
    await trial.ask("any/model", str(spec))
    return spec


def yes(request: Request) -> str:
    return "yes"


@pytest.mark.parametrize("terminal", [False, True], ids=["log", "terminal"])
def test_a_short_run_is_shown(tmp_path: Path, terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, highlight=False)

    async def main() -> None:
        async with groundswell.open(tmp_path / "s.db", script=yes) as engine:
            run = engine.run("short")
            async with Progress(engine, console, above=False):
                assert [outcome.result async for outcome in run.map(one, range(5))] == list(range(5))

    asyncio.run(main())
    shown = "5/5" if terminal else "short: 5 of 5 trials done; 0 running; 0 missing; 5 requests sent"
    assert shown in out.getvalue()
    assert "cost unknown" in out.getvalue()
