"""What OpenAI tells a listener of its batches."""

from __future__ import annotations

import json

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from tests.emulator.behaviours import Table
from tests.emulator.calls import Calls, lines
from tests.emulator.listener import listening

TABLE = Table("OpenAI webhooks")
claim = TABLE.claim


def complete(calls: Calls) -> str:
    """A batch that completes."""
    id = calls.batch(lines(1))
    calls.emulator.advance(700)
    return id


def fail(calls: Calls) -> str:
    """A batch that fails in validation."""
    id = calls.batch([{}])
    calls.emulator.advance(700)
    return id


def expire(calls: Calls) -> str:
    """A batch that expires."""
    calls.emulator.set_faults(Rule(fault="batch-stuck"))
    id = calls.batch(lines(1))
    calls.emulator.advance(86_500)
    return id


def cancel(calls: Calls) -> str:
    """A batch that is cancelled."""
    id = calls.batch(lines(1))
    calls.openai("POST", f"/v1/batches/{id}/cancel")
    calls.emulator.advance(700)
    return id


ENDS = {"batch.completed": complete, "batch.failed": fail, "batch.expired": expire, "batch.cancelled": cancel}


def check(event: str) -> None:
    """One batch ends, and the listener is told so."""
    with listening() as listener, running(Settings(webhook=listener.url)) as emulator:
        calls = Calls(emulator)
        id = ENDS[event](calls)
        posted = listener.next()
    told = json.loads(posted.body)
    assert posted.path == "/hooks?from=emulator"
    assert posted.headers["content-type"] == "application/json"
    assert told.pop("id").startswith("evt_") is True
    assert isinstance(told.pop("created_at"), int)
    assert told == {"object": "event", "type": event, "data": {"id": id}}


@claim("batch.completed, and the shape of an event")
def _(calls: Calls) -> None:
    check("batch.completed")


@claim("batch.failed")
def _(calls: Calls) -> None:
    check("batch.failed")


@claim("batch.expired")
def _(calls: Calls) -> None:
    check("batch.expired")


@claim("batch.cancelled")
def _(calls: Calls) -> None:
    check("batch.cancelled")
