"""Text that is not valid Unicode, wherever it comes from, is the fault of its own trial."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Outcome, Request, SettingsError, Trial, program
from groundswell.transports.scripted import Scripted
from tests.engine.editions import counted, figures, status
from tests.engine.scenario import run_async
from tests.engine.stage import echo, one, said

ODD = "odd"
SPECS = ["a", ODD, "b"]


@program("tests/odd/relays")
async def relays(trial: Trial, spec: str) -> str:
    """Reads a reply as JSON, which may hold half a character, and sends that on."""
    return (await trial.ask("any", json.loads((await trial.ask("any", spec)).text))).text


@program("tests/odd/raises")
async def raises(trial: Trial, spec: str) -> str:
    if spec == ODD:
        raise ValueError("bad \udc80")
    return (await trial.ask("any", spec)).text


def garbled(request: Request) -> str:
    return "\ud83d" if said(request) == ODD else "yes"


def quoted(request: Request) -> str:
    return '"\\ud83d"' if said(request) == ODD else '"yes"'


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("cached", [False, True], ids=["fresh", "cached"])
@pytest.mark.parametrize(
    ("made", "script", "words"),
    [
        pytest.param(one, garbled, "not valid Unicode", id="reply"),
        pytest.param(relays, quoted, "", id="request"),
        pytest.param(raises, garbled, r"bad \udc80", id="error"),
    ],
)
def test_odd_text_makes_one_trial_missing(store: Path, made: Any, script: Any, words: str, cached: bool) -> None:
    async def main() -> list[Outcome[Any]]:
        async with groundswell.open(store, transport=Scripted(script, cached=cached)) as engine:
            return [outcome async for outcome in engine.run("story").map(made, SPECS)]

    found = run_async(main())
    assert [outcome.ok for outcome in found] == [True, False, True]
    assert found[1].fault is not None
    assert words in found[1].fault.message
    assert (figures(store), counted(store), status(store)) == ((2, 1), (2, 1), "partial")
    assert [outcome.fault for outcome in run_async(main())] == [outcome.fault for outcome in found]


@pytest.mark.parametrize("key", ["\udc80", "a\0b", ""], ids=["surrogate", "NUL", "empty"])
def test_a_key_that_cannot_be_written_is_refused(store: Path, key: str) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            run = engine.run("story")
            with pytest.raises(SettingsError, match=re.escape(f"trial key {key!r}: must be valid")):
                await run.submit(one, "a", key=key)
            assert (await run.submit(one, "a", key="fine")).result == "a!"

    run_async(main())
    assert status(store) == "completed"
