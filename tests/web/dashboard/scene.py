"""Runs whose trials the pages show."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from groundswell import compose
from groundswell.program.request import Fault, FaultKind, Reply, Request, Usage
from groundswell.program.trial import Trial, program
from groundswell.transports.scripted import Answer, scripted_model
from tests.web.scene import Api

UNSAFE = "<img src=x onerror=alert(1)><script>alert(1)</script>"
KEYS = ("a/b/c", "what? 50% & #1", "שלום/é", '"quoted" <b>')
LONG = "x" * 1_000_000 + "THE END"
GAME: dict[str, Any] = {"models": ["emulated/leaker", "emulated/keeper"], "interactions": 6, "messages": 4}


@scripted_model("unsafe")
def unsafe(request: Request) -> Answer:
    """A model that replies with markup, a million letters, Hebrew, or a fault."""
    text = str(request)
    if "fail" in text:
        return Fault(FaultKind.FILTERED, f"refused {UNSAFE}")
    reply = LONG if "long" in text else "שלום עולם" if "hebrew" in text else UNSAFE
    return Reply(reply, Usage(7, 5), reasoning="I think <b>.")


@program("tests/web/dashboard/say")
async def say(trial: Trial, spec: str) -> str:
    return (await trial.ask("scripted/unsafe", spec, label="talker")).text[:20]


def scripted_run(api: Api, specs: dict[str, str], name: str = "script") -> str:
    """A run that a script made: it has no driver, so the server does not know its experiment."""

    async def made() -> str:
        async with compose.open(api.server.services.settings.store) as engine:
            run = engine.run(name)
            async with run:
                await asyncio.gather(*(run.submit(say, spec, key=key) for key, spec in specs.items()))
            return run.record.id

    with ThreadPoolExecutor(1) as thread:  # a browser test has an event loop in its own thread
        return thread.submit(lambda: asyncio.run(made())).result()


def played(api: Api, **changes: Any) -> str:
    """A finished secret game."""
    run: str = api("POST", "/experiments/secret-game/play", 201, json={**GAME, **changes})["run_id"]
    assert list(api.events(f"/runs/{run}"))[-1][0] == "end"
    return run
