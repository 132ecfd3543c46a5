"""A live experiment that the tests of kills run with `groundswell run`: conversations, side by side and in turns."""

from __future__ import annotations

import msgspec

from groundswell import Run, Trial, program, together

MODEL = "openai/gpt-4o-mini"


class Settings(msgspec.Struct, frozen=True):
    trials: int = 60
    turns: int = 3
    children: int = 0


class Spec(msgspec.Struct, frozen=True):
    number: int
    turns: int
    children: int


@program("tests/crash/live")
async def conversation(trial: Trial, spec: Spec) -> list[str]:
    """Say different things in turns; then ask several at once. No two asks of an experiment are equal."""
    said: list[str] = []
    for turn in range(spec.turns):
        said.append((await trial.ask(MODEL, f"trial {spec.number}, turn {turn}, {len(said)}", max_tokens=8)).text)

    async def child(number: int) -> str:
        return (await trial.ask(MODEL, f"trial {spec.number}, child {number}", max_tokens=8)).text

    return [*said, *await together(*map(child, range(spec.children)))] if spec.children else said


async def driver(run: Run, settings: Settings) -> list[list[str] | None]:
    specs = [Spec(number, settings.turns, settings.children) for number in range(settings.trials)]
    return [outcome.result async for outcome in run.map(conversation, specs)]
