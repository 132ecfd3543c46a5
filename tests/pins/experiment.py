"""A small experiment that the pinned commands run."""

from __future__ import annotations

import msgspec

from groundswell import Chat, Fault, FaultKind, Reply, Run, Trial, program, scripted_model


class Settings(msgspec.Struct, frozen=True):
    """How many trials there are, and which of them fail."""

    trials: int = 3
    faulty: tuple[int, ...] = ()
    model: str = "scripted/pinned-echo"


class Spec(msgspec.Struct, frozen=True):
    """One trial."""

    number: int
    model: str
    faulty: bool


@scripted_model("pinned-echo")
def echo(request: Chat) -> Reply | Fault:
    """Repeat the message, or refuse."""
    text = str(request.messages[-1].content)
    return Fault(FaultKind.BAD_REQUEST, "this model refuses") if "refuse" in text else Reply(f"you said {text!r}")


@program("pins/counting", version=1)
async def counting(trial: Trial, spec: Spec) -> dict[str, object]:
    """Ask twice, one after the other."""
    first = await trial.ask(spec.model, f"number {spec.number}", label="first")
    last = await trial.ask(spec.model, "refuse" if spec.faulty else f"again {spec.number}", label="last")
    return {"number": spec.number, "said": [first.text, last.text]}


async def driver(run: Run, settings: Settings) -> dict[str, int]:
    """Run every trial, and count those that are usable."""
    specs = [Spec(number, settings.model, number in settings.faulty) for number in range(settings.trials)]
    return {"usable": len([each async for each in run.map(counting, specs) if each.result is not None])}
