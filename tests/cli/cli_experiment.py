"""A small experiment that the tests of the command line run: it counts, fails, breaks or waits as told."""

import asyncio
import os
import re
import time
from pathlib import Path

import msgspec

from groundswell import Chat, Fault, FaultKind, Reply, Run, Trial, function, program, scripted_model
from groundswell.store.journal import Store


class Inner(msgspec.Struct, frozen=True):
    depth: int = 1


class Settings(msgspec.Struct, frozen=True):
    trials: int = 4
    asks: int = 2
    faulty: tuple[int, ...] = ()
    word: str = "hello"
    folder: str = ""
    model: str = "scripted/echo"
    broken: bool = False
    inner: Inner = Inner()


class Spec(msgspec.Struct, frozen=True):
    number: int
    asks: int
    model: str
    word: str
    faulty: bool = False
    folder: str = ""


class Result(msgspec.Struct, frozen=True):
    number: int
    said: list[str]


@scripted_model("echo")
def echo(request: Chat) -> Reply | Fault:
    """Say the same; or refuse."""
    text = str(request.messages[-1].content)
    if "refuse" in text:
        return Fault(FaultKind.BAD_REQUEST, "this model refuses")
    return Reply(f"you said {text!r}")


@scripted_model("gated")
async def gated(request: Chat) -> str:
    """Tell that an ask arrived, and answer once the gate is open."""
    folder = Path(str(request.messages[-1].content).partition(" in ")[2])
    with (folder / "arrived").open("a") as arrived:
        arrived.write("x")
    while not (folder / "gate").exists():
        await asyncio.sleep(0.005)
    return "at last"


@function("tests/stuck")
def stuck(folder: str) -> None:
    """Hold a thread for longer than any test waits."""
    (Path(folder) / "arrived").write_text("x")
    time.sleep(120)


@program("tests/counting", version=1)
async def counting(trial: Trial, spec: Spec) -> Result:
    """Ask a few times, one after the other."""
    said: list[str] = []
    for turn in range(spec.asks):
        text = "refuse" if spec.faulty and turn == 1 else f"{spec.word} {spec.number}.{turn}"
        if spec.folder:
            text += f" in {spec.folder}"
        said.append((await trial.ask(spec.model, text, label=f"turn {turn}")).text)
    return Result(spec.number, said)


@program("tests/computing", version=1)
async def computing(trial: Trial, spec: Spec) -> None:
    """Search for longer than any test waits, and hold up everything else."""
    (Path(spec.folder) / "arrived").write_text("x")
    re.search("(a|aa)+$", "a" * 200 + "b")


@program("tests/sticking", version=1)
async def sticking(trial: Trial, spec: Spec) -> None:
    """Call a function that does not return."""
    await trial.call(stuck, spec.folder)


async def driver(run: Run, settings: Settings) -> dict[str, object]:
    """Run the trials; print what would spoil the JSON if it went to standard output."""
    print("the driver talks")
    specs = [
        Spec(number, settings.asks, settings.model, settings.word, number in settings.faulty, settings.folder)
        for number in range(settings.trials)
    ]
    said = [outcome.result.said[-1] async for outcome in run.map(counting, specs) if outcome.result is not None]
    if settings.broken:
        raise LookupError("the driver is broken")
    return {"said": said}


async def computing_driver(run: Run, settings: Settings) -> None:
    """One trial that computes without end."""
    await run.submit(computing, Spec(0, 0, "", "", folder=settings.folder))


async def signalled_driver(run: Run, settings: Settings) -> None:
    """Send a signal to this process once its store is closed. Only for processes that end then."""
    close = Store.close

    async def closing(self: Store) -> None:
        await close(self)
        os.kill(os.getpid(), settings.trials)

    Store.close = closing  # type: ignore[method-assign]


async def stuck_driver(run: Run, settings: Settings) -> None:
    """One trial that hangs in a thread."""
    await run.submit(sticking, Spec(0, 0, "", "", folder=settings.folder))
