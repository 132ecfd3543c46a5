"""A clock that runs a thousand times as fast as real time, seen over HTTP: real time stands still between the steps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from tests.emulator.calls import Calls, Json, Stopped, lines, requests

SPEED = 1000
DAY = 86_400


@pytest.fixture
def calls() -> Iterator[Calls]:
    clock = Stopped()
    with running(Settings(speed=SPEED), real=clock) as emulator:
        yield Calls(emulator, clock)


def now(calls: Calls) -> float:
    time: float = calls.send("GET", "/emulator/clock", None, {}).json["time"]
    return time


def seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def statuses(calls: Calls, openai: str, anthropic: str) -> tuple[str, str]:
    return calls.look(openai)["status"], calls.look_message_batch(anthropic)["processing_status"]


def test_batches_of_ten_minutes_take_a_little_more_than_half_a_second(calls: Calls) -> None:
    openai, anthropic = calls.batch(lines(30)), calls.message_batch(requests(30))
    seen = [statuses(calls, openai, anthropic)]
    for step in (0.1, 0.3, 0.3):
        calls.later(step)
        seen.append(statuses(calls, openai, anthropic))
    working = ("in_progress", "in_progress")
    assert seen == [("validating", "in_progress"), working, working, ("completed", "ended")]
    assert len(calls.content(calls.look(openai)["output_file_id"])) == 30
    assert len(calls.results(anthropic)) == 30


def test_times_are_those_of_the_emulators_clock(calls: Calls) -> None:
    calls.later(50)
    begun = now(calls)
    made = calls.batch(lines(5)), calls.message_batch(requests(5))
    calls.later(1)
    openai, anthropic = calls.look(made[0]), calls.look_message_batch(made[1])
    assert now(calls) == pytest.approx(begun + SPEED, abs=0.01)
    assert openai["created_at"] == int(begun)
    assert openai["expires_at"] == int(begun + DAY)
    assert begun < openai["in_progress_at"] <= openai["finalizing_at"] <= openai["completed_at"] < now(calls)
    assert seconds(anthropic["created_at"]) == pytest.approx(begun, abs=0.01)
    assert seconds(anthropic["expires_at"]) == pytest.approx(begun + DAY, abs=0.01)
    assert begun < seconds(anthropic["ended_at"]) < now(calls)
    file = calls.openai("GET", f"/v1/files/{openai['output_file_id']}").json
    assert file["created_at"] == openai["completed_at"]


def test_a_batch_that_stalls_expires_in_a_minute_and_a_half(calls: Calls) -> None:
    rules: Json = {"rules": [{"fault": "batch-stalls"}]}
    calls.send("POST", "/emulator/faults", rules, {})
    openai, anthropic = calls.batch(lines(4)), calls.message_batch(requests(4))
    calls.later(86)
    assert statuses(calls, openai, anthropic) == ("in_progress", "in_progress")
    calls.later(1)
    assert statuses(calls, openai, anthropic) == ("expired", "ended")


@pytest.mark.parametrize("path", ["/v1/batches", "/v1/models", "/health"])
def test_no_answer_says_what_time_it_is(calls: Calls, path: str) -> None:
    """There are two times, and a client lives by its own: a header could only be right about one of them."""
    assert "date" not in calls.openai("GET", path).headers
