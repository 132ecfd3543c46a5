"""The real model in this process: SmolLM2-135M in llama.cpp, asked through runs. A few tokens each, to be quick."""

from __future__ import annotations

import asyncio
import math
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

import groundswell
from groundswell import FaultKind, Message, Outcome, RunOptions, Trial, assistant, program, system, user
from groundswell.program.request import Chat, Embed, Embedding, Fault, Reply
from groundswell.program.trial import Program
from groundswell.transports import in_process, llama
from groundswell.transports.local import POOL, Local
from tests.local_model import MODEL, WEIGHTS, held_model, needs_model
from tests.patience import PATIENCE

pytestmark = [needs_model, pytest.mark.usefixtures(held_model.__name__)]
__all__ = ["held_model"]

TOPICS = ("cats", "rain", "bread", "chess")


class Verdict(msgspec.Struct, frozen=True):
    """What the model must fill in."""

    colour: Literal["red", "green", "blue"]
    sure: bool


@program("tests/local/talk")
async def talk(trial: Trial, spec: str) -> list[str]:
    """A conversation that grows, and names no seed."""
    said: list[Message] = [system("Brief."), user(f"A word on {spec}.")]
    for _ in range(2):
        said += [assistant((await trial.ask(MODEL, said, max_tokens=5, temperature=1.0)).text), user("More?")]
    return [str(message.content) for message in said if message.role == "assistant"]


@program("tests/local/verdict")
async def verdict(trial: Trial, spec: str) -> Verdict:
    """A reply of a given form, which the model is held to."""
    return await trial.ask(MODEL, f"Colour of {spec}?", into=Verdict, max_tokens=60, temperature=0.0)


@program("tests/local/long")
async def too_long(trial: Trial, spec: int) -> str:
    """More than fits."""
    return (await trial.ask(MODEL, "stone " * spec, max_tokens=1)).text


def results(
    store: Path, program_: Program[Any, Any], specs: Sequence[Any], **settings: Any
) -> tuple[dict[Any, Outcome[Any]], int]:
    """The outcomes of a run by spec, and how many asks were sent."""

    async def main() -> tuple[dict[Any, Outcome[Any]], int]:
        async with groundswell.open(store, **settings) as engine:
            run = engine.run(seed=7)
            found = [outcome async for outcome in run.map(program_, specs)]
            return dict(zip(specs, found, strict=True)), run.counters.sent

    return asyncio.run(main())


@pytest.mark.slow
def test_replies_follow_from_the_seed_whatever_the_order_and_the_concurrency(tmp_path: Path) -> None:
    first, sent = results(tmp_path / "one.db", talk, TOPICS, max_concurrent=1)
    shuffled = random.Random(3).sample(TOPICS, len(TOPICS))
    again, _ = results(tmp_path / "two.db", talk, shuffled)
    said = {spec: outcome.result for spec, outcome in first.items()}
    assert sent == 2 * len(TOPICS)
    assert {spec: outcome.result for spec, outcome in again.items()} == said
    assert len({str(result) for result in said.values()}) == len(TOPICS)


@pytest.mark.slow
def test_another_run_with_the_same_seed_has_its_replies_from_the_cache(tmp_path: Path) -> None:
    first, sent = results(tmp_path / "runs.db", talk, TOPICS[:2])
    again, sent_again = results(tmp_path / "runs.db", talk, TOPICS[:2])
    assert (sent, sent_again) == (4, 0)
    assert [one.result for one in again.values()] == [one.result for one in first.values()]


@pytest.mark.slow
def test_a_reply_of_a_given_form(tmp_path: Path) -> None:
    found, _ = results(tmp_path / "runs.db", verdict, ["grass"])
    assert isinstance(found["grass"].result, Verdict)


@pytest.mark.slow
def test_what_does_not_fit_the_context_is_told_so(tmp_path: Path) -> None:
    found, sent = results(tmp_path / "runs.db", too_long, [6000], options=RunOptions(cache=False))
    fault = found[6000].fault
    assert fault is not None
    assert (fault.kind, sent) == (FaultKind.CONTEXT, 1)


def ask(*requests: Chat | Embed, sample: int = 1) -> list[Reply | Embedding | Fault]:
    """Ask a transport of its own, one request after the other."""

    async def main() -> list[Reply | Embedding | Fault]:
        assert WEIGHTS is not None
        transport = Local()
        transport.models["m"] = WEIGHTS
        try:
            return [await transport._ask(request, sample) for request in requests]
        finally:
            await transport.close()

    return asyncio.run(main())


def chat(text: str, **options: Any) -> Chat:
    return Chat("m", (user(text),), **{"max_tokens": 4, **options})


@pytest.mark.slow
def test_the_same_seed_is_the_same_reply_to_the_last_bit_and_another_seed_another() -> None:
    first, again, other = ask(*[chat("Say hi", seed=seed, temperature=1.5, logprobs=1) for seed in (5, 5, 6)])
    assert isinstance(first, Reply)
    assert first == again != other
    assert len(first.logprobs) == first.usage.output_tokens == 4
    assert first.usage.input_tokens > 4
    assert (first.finish, first.model) == ("length", "SmolLM2-135M-Instruct.Q4_1")


@pytest.mark.slow
def test_a_long_prompt_that_was_read_before_gets_the_same_reply_to_the_last_bit() -> None:
    """From 256 tokens on, llama.cpp has other ways to add up."""
    extra = {"repeat_penalty": 1.1, "repeat_last_n": 256}
    request = chat("stone " * 270, temperature=0.0, max_tokens=3, logprobs=1, extra=extra)
    first, again = ask(request, request)
    assert isinstance(first, Reply)
    assert first.usage.input_tokens > 256
    assert first == again


@pytest.mark.slow
def test_stop_and_what_is_passed_through() -> None:
    whole, cut, narrow = ask(
        chat("Count: one two three", temperature=0.0, max_tokens=8),
        chat("Count: one two three", temperature=0.0, max_tokens=8, stop=(" ",)),
        chat("Count: one two three", temperature=5.0, max_tokens=8, extra={"top_k": 1}),
    )
    assert isinstance(whole, Reply)
    assert isinstance(cut, Reply)
    assert isinstance(narrow, Reply)
    assert (cut.text, cut.finish) == (whole.text.split(" ")[0], "stop")
    assert narrow.text == whole.text


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (chat("x", extra={"temperature": "hot"}), "type must be number"),
        (chat("x", schema={"type": "wat"}), "unrecognized type"),
        (Embed("m", ("",)), "cannot be empty"),
        (Embed("m", ("x",), dimensions=3), "dimensions"),
    ],
    ids=["a setting", "a schema", "no text", "dimensions"],
)
def test_a_request_that_cannot_be_answered_is_a_bad_request(request_: Chat | Embed, said: str) -> None:
    (fault,) = ask(request_)
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.BAD_REQUEST
    assert said in fault.message


@pytest.mark.slow
def test_embeddings() -> None:
    texts = ("a cat sat on the mat", "a kitten on a rug", "the interest rate rose")
    together, alone, long = ask(Embed("m", texts), Embed("m", texts[:1]), Embed("m", ("stone " * 3000,)))
    assert isinstance(together, Embedding)
    assert isinstance(alone, Embedding)
    assert (together.width, len(together.vectors)) == (576, 3)
    assert alone.vectors == together.vectors[:1]
    cat, kitten, rate = together.vectors
    assert all(math.isclose(math.hypot(*vector), 1.0, rel_tol=1e-5) for vector in together.vectors)
    assert sum(a * b for a, b in zip(cat, kitten, strict=True)) > sum(a * b for a, b in zip(cat, rate, strict=True))
    assert together.usage.input_tokens > alone.usage.input_tokens > 0
    assert isinstance(long, Fault)
    assert long.kind is FaultKind.CONTEXT


@pytest.mark.slow
def test_two_engines_share_one_model(tmp_path: Path) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "a.db") as one, groundswell.open(tmp_path / "b.db") as two:
            runs = [engine.run() for engine in (one, two)]
            outcomes = await asyncio.gather(*[run.submit(talk, "tea") for run in runs])
            assert [outcome.fault for outcome in outcomes] == [None, None]
            assert len(POOL) == 1
        assert len(POOL) == 1, "the test itself holds it"

    asyncio.run(main())


def test_an_ask_that_is_cancelled_stops_the_model() -> None:
    async def main() -> None:
        assert WEIGHTS is not None
        transport = Local()
        transport.models["m"] = WEIGHTS
        endless = chat("Tell a very long story.", max_tokens=4000, extra={"ignore_eos": True})
        task = asyncio.create_task(transport._ask(endless, 1))
        await asyncio.sleep(0)
        while not in_process._running:
            await asyncio.sleep(0.001)
        (thread,) = in_process._running
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(thread.join, 30)
        assert not thread.is_alive()
        await transport.close()

    asyncio.run(main())


@pytest.mark.slow
def test_ctrl_c_still_belongs_to_python() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))

    def load() -> None:
        assert WEIGHTS is not None
        server = llama._serve(WEIGHTS, llama._for_mean)
        server.handle_embeddings(b'{"input": ["a"]}')

    try:
        thread = threading.Thread(target=load)
        thread.start()
        thread.join()
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_nobody_is_told_of_a_server_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert WEIGHTS is not None
    server = llama._serve(WEIGHTS, llama._for_mean)
    server.handle_embeddings(b'{"input": ["a"]}')
    address = server.listening_address
    assert address.startswith("unix://")
    assert not Path(address.removeprefix("unix://")).exists()
    del server
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_damaged_stops_the_run(tmp_path: Path) -> None:
    assert WEIGHTS is not None
    damaged = tmp_path / "damaged.gguf"
    with WEIGHTS.open("rb") as file:
        damaged.write_bytes(file.read(1 << 21))

    async def main() -> Reply | Embedding | Fault:
        transport = Local()
        transport.models["m"] = damaged
        try:
            return await transport._ask(chat("hi"), 1)
        finally:
            await transport.close()

    fault = asyncio.run(main())
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.UNREACHABLE
    assert str(damaged) in fault.message


SCRIPT = """
import asyncio, sys
import groundswell
from groundswell import Trial, program
from groundswell.transports import in_process, llama, local

@program("tests/local/endless")
async def endless(trial: Trial, spec: int) -> str:
    asked = trial.ask("local/smollm2", "Tell a very long story.", max_tokens=4000, extra={"ignore_eos": True})
    return (await asked).text

async def main() -> None:
    async with groundswell.open(sys.argv[1]) as engine:
        run = engine.run()
        ends = asyncio.ensure_future(run.submit(endless, 1))
        while not in_process._running and not ends.done():
            await asyncio.sleep(0.01)
        print("ended" if ends.done() else "asked", flush=True)
        await ends

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_process_that_is_interrupted_ends(tmp_path: Path) -> None:
    source = str(Path(groundswell.__file__).parents[1])
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "runs.db")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source}
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "asked\n"
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in said
    assert process.returncode in (1, 130, -signal.SIGINT)
