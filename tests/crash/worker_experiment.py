"""A driver for runs whose workers, head and database are killed."""

from __future__ import annotations

import msgspec

from groundswell import Run, driver, program
from groundswell.program.trial import Trial

TURNS = 3


@program("tests/crash/chat")
async def chat(trial: Trial, spec: int) -> str:
    """A conversation in which each request depends on the replies before it."""
    said = f"stone {spec}"
    for turn in range(TURNS):
        reply = await trial.ask("openai/gpt-4o-mini", f"{turn}: {said[-80:]}", temperature=0.0, max_tokens=12)
        said += f" {reply.text}"
    return said


class Wanted(msgspec.Struct):
    """How many conversations."""

    trials: int = 300


@driver("tests/crash/chats")
async def chats(run: Run, wanted: Wanted) -> list[str]:
    """What was said in all of them."""
    return [outcome.unwrap() async for outcome in run.map(chat, range(wanted.trials))]
