"""An experiment as a user writes it, for tests of the server."""

from typing import Annotated

import msgspec
from msgspec import Meta

from groundswell import Run, Trial, program


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Count to a number, with a model's help."""

    to: Annotated[int, Meta(ge=1, description="How far.")] = 3
    model: Annotated[str, Meta(description="Who helps.")] = "emulated/keeper"


class Counted(msgspec.Struct):
    counted: int


@program("tests/web/count")
async def one(trial: Trial, spec: tuple[str, int]) -> int:
    await trial.ask(spec[0], f"Say {spec[1]}.", max_tokens=5)
    return spec[1]


async def count_to(run: Run, settings: Options) -> Counted:
    specs = [(settings.model, number) for number in range(settings.to)]
    return Counted(len([outcome async for outcome in run.map(one, specs) if outcome.ok]))
