"""The measurements of bench/embeddings.py that use the engine."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import groundswell
from groundswell import Engine, RunOptions, Trial, program
from groundswell.emulator.latency import Latency
from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from groundswell.engine.events import Event, WaveSent
from groundswell.program.traps import together
from groundswell.providers.accounts.config import load
from groundswell.transports import weights

OPENAI, CHAT = "openai/text-embedding-3-small", "openai/gpt-4o-mini"
EMBEDDING = "embedding"
UNKEPT = RunOptions(cache=False)

Open = Callable[..., Engine]


@program("bench/embeddings/one")
async def one(trial: Trial, spec: tuple[str, str]) -> int:
    """One text."""
    return (await trial.embed(spec[0], [spec[1]])).width


@program("bench/embeddings/step")
async def step(trial: Trial, spec: str) -> int:
    """A step of an environment: a rewording, then the target and the embedding at once."""
    await trial.ask(CHAT, f"reword {spec}", max_tokens=5)
    said, found = await together(trial.ask(CHAT, spec, max_tokens=5), trial.embed(OPENAI, [spec], label=EMBEDDING))
    return len(said.text) + found.width


@contextmanager
def emulated(latency: float) -> Iterator[Open]:
    """A function that opens engines connected to an emulator."""
    with running(Settings(latency=Latency(latency))) as emulator, tempfile.TemporaryDirectory() as folder:
        variables = {"OPENAI_BASE_URL": f"{emulator.url}/v1", "OPENAI_API_KEY": "emulated"}
        accounts = load(variables, Path(folder), Path(folder))
        yield lambda store, **settings: groundswell.open(store, accounts=accounts, **settings)


def opened(store: Path, **settings: Any) -> Engine:
    """An engine with the models of this machine."""
    return groundswell.open(store, **settings)


def no_local_model() -> str | None:
    """Why the embedded model cannot be used."""
    try:
        weights.locate("local/smollm2")
    except groundswell.SettingsError as error:
        return str(error)
    return None


class Texts:
    """Embeds texts with one model, one trial per text."""

    def __init__(self, open_engine: Open, model: str) -> None:
        self._open = open_engine
        self._model = model

    async def __call__(self, texts: Sequence[str], at_once: bool) -> float:
        """The seconds for all texts, after a first request that loads the model."""
        with tempfile.TemporaryDirectory() as folder:
            async with self._open(Path(folder) / "runs.db", options=UNKEPT) as engine:
                run = engine.run()
                (await run.submit(one, (self._model, "first"))).unwrap()
                start = time.perf_counter()
                if at_once:
                    for outcome in await asyncio.gather(*[run.submit(one, (self._model, text)) for text in texts]):
                        outcome.unwrap()
                else:
                    for text in texts:
                        (await run.submit(one, (self._model, text))).unwrap()
                return time.perf_counter() - start


def steps(open_engine: Open, environments: int, count: int) -> dict[str, Any]:
    """Independent environments: calls for embeddings and milliseconds per step of all of them."""
    calls: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, WaveSent) and event.labels == (EMBEDDING,):
            calls.append(event.size)

    async def main() -> float:
        with tempfile.TemporaryDirectory() as folder:
            async with open_engine(Path(folder) / "runs.db", options=UNKEPT, listeners=[listen]) as engine:
                run = engine.run()

                async def environment(number: int) -> None:
                    for at in range(count):
                        (await run.submit(step, f"{number} {at}", key=f"{number}/{at}")).unwrap()

                start = time.perf_counter()
                await asyncio.gather(*map(environment, range(environments)))
                return time.perf_counter() - start

    seconds = asyncio.run(main())
    per_step = {"ms/step": seconds / count * 1000, "calls/step": len(calls) / count}
    return {"what": f"http {environments} environments", **per_step}
