"""The log: which line each event is, and which are told without -v."""

from __future__ import annotations

from typing import Any

import pytest

from groundswell.cli.log import LONG_WAIT, Log
from groundswell.engine.event_lines import SHOWN_LABELS, SHOWN_TRIALS
from groundswell.engine.events import (
    AskRetried,
    BatchChanged,
    BatchHeldBack,
    BatchReordered,
    BatchSent,
    EndpointChanged,
    Event,
    RouteChosen,
    RunEnded,
    RunOpened,
    RunStopping,
    TrialEnded,
    WaveEnded,
    WaveSent,
)

ON: dict[str, Any] = {"run": "r", "at": 0.0, "account": "openai"}
FIRST = 1 << 32


def told(*events: Event, verbose: bool = True) -> list[str]:
    lines: list[str] = []
    log = Log(verbose=verbose, say=lines.append)
    for event in events:
        log(event)
    return lines


def sent(wave: int = FIRST + 7, **changes: Any) -> WaveSent:
    given = {"transport": "openai_batch", "labels": ("Agent 1",), "trials": ("a", "b"), "whole": True, "first": True}
    return WaveSent(**{**ON, "wave": wave, "size": 5, **given, **changes})


def ended(wave: int = FIRST + 7, size: int = 5, seconds: float = 125.5) -> WaveEnded:
    return WaveEnded(**ON, wave=wave, size=size, seconds=seconds)


def test_the_log_of_a_wave() -> None:
    assert told(sent(), ended()) == [
        "Processing wave 7 with 5 requests for Agent 1 (first messages)",
        "Wave 7 conversations: a, b",
        "Wave 7 completed in 125.50 seconds, avg 25.10 sec per message",
    ]


def test_waves_have_their_numbers_in_the_run_and_end_in_any_order() -> None:
    second = sent(FIRST + 9, labels=("Agent 2",), first=False)
    lines = told(sent(), second, ended(FIRST + 9, seconds=1.0), ended())
    assert [line for line in lines if "conversations" not in line] == [
        "Processing wave 7 with 5 requests for Agent 1 (first messages)",
        "Processing wave 9 with 5 requests for Agent 2 (responses)",
        "Wave 9 completed in 1.00 seconds, avg 0.20 sec per message",
        "Wave 7 completed in 125.50 seconds, avg 25.10 sec per message",
    ]


def test_live_waves_are_counted_and_never_have_the_number_of_a_batch() -> None:
    live = [sent(FIRST + number, transport="openai") for number in (1, 8)]
    lines = told(*live, sent(FIRST + 15), sent(FIRST + 16, transport="openai"))
    assert [line.split()[2] for line in lines if line.startswith("Processing")] == ["1", "2", "15", "16"]


def test_many_names_are_cut_short() -> None:
    labels = tuple(f"Agent {number}" for number in range(SHOWN_LABELS + 2))
    trials = tuple(f"t{number}" for number in range(SHOWN_TRIALS + 480))
    first, second = told(sent(labels=labels, trials=trials))
    assert first == "Processing wave 7 with 5 requests for Agent 0, Agent 1, Agent 2 and 2 more (first messages)"
    assert second == f"Wave 7 conversations: {', '.join(trials[:SHOWN_TRIALS])} and 480 more"


def test_a_wave_of_asks_without_labels_is_its_accounts() -> None:
    assert told(sent(labels=("",)))[0] == "Processing wave 7 with 5 requests for openai (first messages)"


def test_asks_that_leave_as_they_come_up_are_no_wave() -> None:
    assert told(sent(whole=False)) == []
    assert told(sent(whole=False), ended(size=1, seconds=0.5)) == ["wave 7: 1 request, openai, 0.50 s"]


def moved(state: str, done: int, failed: int = 0) -> BatchChanged:
    return BatchChanged(**ON, batch="batch_1", state=state, done=done, failed=failed, total=9)


def test_a_batch_is_told_of_when_its_state_changes() -> None:
    assert told(moved("in_progress", 0), moved("in_progress", 4), moved("completed", 9, 2)) == [
        "openai: batch_1: in_progress, 0 of 9 done",
        "openai: batch_1: completed, 9 of 9 done, 2 of them failed",
    ]


LOST = BatchReordered(**ON, wave=1, batch="batch_1", model="m", size=40, usd=0.5, why="it is not shown")
HELD = BatchHeldBack(**ON, model="m", size=40, why="its queue is full", wait=LONG_WAIT)
OUT = EndpointChanged(**ON, endpoint="http://x", what="is out")
QUIET: list[tuple[Event, list[str]]] = [
    (RunOpened(run="r", at=0.0, unfinished=0), ["run r: opened"]),
    (RunOpened(run="r", at=0.0, unfinished=3), ["run r: opened, continuing 3 unfinished trials"]),
    (
        RouteChosen(**ON, model="m", way="openai_batch", size=9, why="half the price"),
        ["openai/m: 9 requests by openai_batch: half the price"],
    ),
    (RouteChosen(**ON, model="m", way="live", size=0, why="it has none"), ["openai: live, because it has none"]),
    (
        BatchSent(**ON, wave=1, batch="batch_1", model="m", size=9, usd=0.5),
        ["openai: batch_1 sent: 9 requests, about $0.5000"],
    ),
    (
        BatchSent(**ON, wave=1, batch="batch_1", model="m", size=9, usd=None, found=True),
        ["openai: batch_1 found again: 9 requests"],
    ),
    (
        AskRetried(run="r", at=0.0, trial="a", path="0", kind="server", message="oh", attempt=2, wait=1.5),
        ["trial a, request 0: server: oh; attempt 2 in 1.5 s"],
    ),
    (RunStopping(run="r", at=0.0, reason="budget", why="all is spent"), ["run r: stopping: all is spent"]),
    (RunEnded(run="r", at=0.0, status="completed"), ["run r: completed"]),
    (TrialEnded(run="r", at=0.0, trial="a", fault=None), []),
    (
        BatchHeldBack(**ON, model="m", size=4, why="its queue is full", wait=0.0),
        ["openai: 4 requests wait: its queue is full"],
    ),
]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("event", "lines"), QUIET, ids=lambda value: type(value).__name__)
def test_what_is_told_with_v_alone(event: Event, lines: list[str]) -> None:
    assert told(event) == lines
    assert told(event, verbose=False) == []


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (HELD, "openai: 40 requests wait: its queue is full; next attempt in 5.0 s"),
        (OUT, "openai at http://x: is out"),
        (
            LOST,
            "openai: batch_1 is treated as lost: it is not shown; its 40 requests (about $0.5000) are sent again "
            "and may be billed twice",
        ),
    ],
    ids=["long wait", "endpoint", "lost batch"],
)
@pytest.mark.parametrize("verbose", [False, True], ids=["plain", "-v"])
def test_what_is_always_told(event: Event, line: str, verbose: bool) -> None:
    assert told(event, verbose=verbose) == [line]
