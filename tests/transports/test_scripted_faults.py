"""A scripted model that raises: its request has failed, and the run goes on."""

from __future__ import annotations

from pathlib import Path

import msgspec

import groundswell
from groundswell import Chat, Run, Trial, program, scripted_model


class Offer(msgspec.Struct):
    offer: int


@program("tests/scripted/offer")
async def offer(trial: Trial, spec: tuple[str, int]) -> int:
    return (await trial.ask(spec[0], f"offer {spec[1]}", into=Offer)).offer


async def offers(run: Run, settings: str) -> list[int | None]:
    return [outcome.result async for outcome in run.map(offer, [(settings, number) for number in range(4)])]


@scripted_model("picky")
def picky(request: Chat) -> str:
    """Says nonsense to one of four, and does not understand that it is asked again."""
    said = str(request.messages[-1].content)
    number = int(said.removeprefix("offer "))
    return "nonsense" if number == 2 else f'{{"offer": {number}}}'


@scripted_model("picky-later")
async def picky_later(request: Chat) -> str:
    return picky(request)


def test_a_script_that_does_not_understand_a_repair_loses_its_trial_and_no_more(tmp_path: Path) -> None:
    for name in ("picky", "picky-later"):
        with groundswell.open_sync(tmp_path / f"{name}.db") as engine:
            summary = engine.drive(offers, f"scripted/{name}", name="offers")
            assert summary.analysis == [0, 1, None, 3]
            assert (summary.status, summary.trials.missing) == ("partial", 1)
            (fault,) = engine.stored("offers").frame()["fault_message"].drop_nulls().to_list()
            assert fault.startswith(f"scripted/{name} raised ValueError: invalid literal for int()")
