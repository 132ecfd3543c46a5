"""DSPy on the engine: requests, replies and errors are translated, and nothing is asked twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dspy")

import dspy
from dspy import lm15
from dspy.utils.exceptions import ContextWindowExceededError, LMInvalidRequestError, LMServerError, LMUnexpectedError

import groundswell
from groundswell import Limits, RunOptions
from groundswell.bridges.dspy import EngineLM, Evolve, chat_of, response_of
from groundswell.errors import RunError
from groundswell.experiments.prompt_evolution.settings import Stops
from groundswell.program.request import (
    Chat,
    Fault,
    FaultKind,
    Image,
    Message,
    Reply,
    Text,
    Tool,
    ToolCall,
    Usage,
    assistant,
    system,
    user,
)
from groundswell.transports.scripted import Scripted, scripted_model

pytestmark = pytest.mark.slow  # importing DSPy takes seconds


class Asked(list[Chat]):
    """A script for DSPy's chat format that keeps the requests. It answers with the length of the last message."""

    def __call__(self, request: Chat, sample: int) -> Reply:
        self.append(request)
        length = len(str(request.messages[-1].content))
        return Reply(f"[[ ## answer ## ]]\n{length}.{sample}\n\n[[ ## completed ## ]]", Usage(10, 3))


def ask_twice(folder: Path, asked: Callable[..., Any]) -> list[str]:
    with groundswell.open_sync(folder / "runs.db", script=asked) as engine:
        lm = EngineLM(engine.run("qa"), "scripted/x", temperature=1.0)
        with dspy.context(lm=lm):
            answer = dspy.Predict("question -> answer")
            return [answer(question=each).answer for each in ("one", "three", "one")]


def test_a_program_is_answered_and_asks_nothing_again(tmp_path: Path) -> None:
    asked = Asked()
    first = ask_twice(tmp_path, asked)
    assert first[0] == first[2] != first[1]
    assert len(asked) == 2
    assert asked[0].model == "scripted/x"
    assert asked[0].temperature == 1.0
    assert [each.role for each in asked[0].messages] == ["system", "user"]
    assert ask_twice(tmp_path, asked) == first
    assert len(asked) == 2


def test_rollouts_and_candidates_are_samples_of_their_own(tmp_path: Path) -> None:
    def replies() -> list[str]:
        with groundswell.open_sync(tmp_path / "runs.db", script=asked) as engine:
            lm = EngineLM(engine.run("samples"), "scripted/x", temperature=1.0)
            several = lm("a question", n=3)
            return [*several, *lm("a question"), *lm("a question", rollout_id=1), *lm.copy(rollout_id=2)("a question")]

    asked = Asked()
    found = replies()
    assert found[0] == found[3]
    assert len(set(found)) == len(asked) == 5
    assert replies() == found
    assert len(asked) == 5


def test_async_calls_are_answered(tmp_path: Path) -> None:
    async def both(lm: EngineLM) -> list[Any]:
        return list(await asyncio.gather(lm.acall("a", n=2), lm.acall("bb", rollout_id=3)))

    asked = Asked()
    with groundswell.open_sync(tmp_path / "runs.db", script=asked) as engine:
        lm = EngineLM(engine.run(), "scripted/x", temperature=1.0)
        one, other = asyncio.run(both(lm))
        assert len({*one, *other}) == len(asked) == 3
        assert lm("a", n=2) == one


def test_the_requests_of_threads_share_a_wave(tmp_path: Path) -> None:
    def answers(gather: float) -> tuple[set[str], int]:
        transport = Scripted(Asked(), barrier=True)
        with groundswell.open_sync(tmp_path / f"{gather}.db", transport=transport) as engine:
            run = engine.run("threads")
            lm = EngineLM(run, "scripted/x", gather=gather)
            with ThreadPoolExecutor(6) as threads:
                found = {reply for (reply,) in threads.map(lambda n: lm("x" * n), range(1, 7))}
            return found, run.run.counters.waves

    assert answers(0.2) == (answers(0.0)[0], 1)


def test_the_default_gathers_for_batches_alone(tmp_path: Path) -> None:
    with groundswell.open_sync(tmp_path / "runs.db", script=Asked()) as engine:
        by_batch = engine.run(options=RunOptions(via="batch"))
        assert EngineLM(engine.run(), "scripted/x").engine.trials._gather == 0
        assert EngineLM(by_batch, "scripted/x").engine.trials._gather > 0


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (FaultKind.CONTEXT, ContextWindowExceededError),
        (FaultKind.FILTERED, LMInvalidRequestError),
        (FaultKind.SERVER, LMServerError),
    ],
    ids=str,
)
def test_failures_are_errors_of_dspy(tmp_path: Path, kind: FaultKind, error: type[Exception]) -> None:
    with groundswell.open_sync(tmp_path / "runs.db", script=lambda _: Fault(kind, "not now")) as engine:
        lm = EngineLM(engine.run(), "scripted/x")
        with pytest.raises(error, match="not now"):
            lm("a question")


def test_a_budget_holds(tmp_path: Path) -> None:
    asked = Asked()
    with groundswell.open_sync(tmp_path / "runs.db", script=asked) as engine:
        lm = EngineLM(engine.run(options=RunOptions(limits=Limits(calls=2))), "scripted/x")
        lm("a")
        lm("b")
        with pytest.raises(LMUnexpectedError, match="2 calls"):
            lm("c")
    assert len(asked) == 2


def test_a_schema_is_sent(tmp_path: Path) -> None:
    asked = list[Chat]()

    def script(request: Chat) -> str:
        asked.append(request)
        return json.dumps({"total": 7})

    with (
        groundswell.open_sync(tmp_path / "runs.db", script=script) as engine,
        dspy.context(lm=EngineLM(engine.run(), "scripted/x"), adapter=dspy.JSONAdapter()),
    ):
        assert dspy.Predict("question -> total: int")(question="3 + 4?").total == 7
    assert asked[0].schema is not None
    assert list(asked[0].schema["properties"]) == ["total"]


TOOL = lm15.FunctionTool("look", "Look it up.", {"type": "object", "properties": {}})


@pytest.mark.parametrize(
    ("request_", "chat"),
    [
        (
            lm15.Request("m", (lm15.Message.user("hi"),), system="Be kind."),
            Chat("m", (system("Be kind."), user("hi"))),
        ),
        (
            lm15.Request("m", (lm15.Message.developer("Now."), lm15.Message.assistant(["a", "b"]))),
            Chat("m", (system("Now."), assistant("a\nb"))),
        ),
        (
            lm15.Request("m", (lm15.Message.user(["see", lm15.ImagePart(url="http://x/y.png")]),)),
            Chat("m", (user((Text("see"), Image("http://x/y.png"))),)),
        ),
        (
            lm15.Request(
                "m",
                (
                    lm15.Message.assistant([lm15.ThinkingPart("hm"), lm15.ToolCallPart("1", "look", {"at": 2})]),
                    lm15.Message.tool("1", "found"),
                ),
                tools=(TOOL,),
                config=lm15.Config(tool_choice=lm15.ToolChoice("required", ("look",))),
            ),
            Chat(
                "m",
                (
                    Message("assistant", "", tool_calls=(ToolCall("1", "look", '{"at": 2}'),)),
                    Message("tool", "found", tool_call_id="1"),
                ),
                tools=(Tool("look", "Look it up.", {"type": "object", "properties": {}}),),
                tool_choice="look",
            ),
        ),
        (
            lm15.Request(
                "m",
                (lm15.Message.user("hi"),),
                config=lm15.Config(
                    max_tokens=5,
                    temperature=0.5,
                    top_p=0.9,
                    seed=3,
                    stop=("END",),
                    top_k=4,
                    reasoning=lm15.Reasoning("low"),
                    logprobs=2,
                    extensions={"mine": 1},
                ),
            ),
            Chat(
                "m",
                (user("hi"),),
                max_tokens=5,
                temperature=0.5,
                top_p=0.9,
                seed=3,
                stop=("END",),
                reasoning="low",
                logprobs=2,
                extra={"top_k": 4, "mine": 1},
            ),
        ),
    ],
    ids=["system", "developer and several parts", "image", "tools", "options"],
)
def test_requests_are_translated(request_: Any, chat: Chat) -> None:
    assert chat_of(request_) == chat


def test_other_content_is_refused() -> None:
    with pytest.raises(lm15.UnsupportedFeatureError, match="audio"):
        chat_of(lm15.Request("m", (lm15.Message.user([lm15.AudioPart(url="http://x/y.wav")]),)))


def test_replies_are_translated() -> None:
    said = response_of(
        Reply("", Usage(9, 8, 7, 6), "tool_calls", "m-1", (ToolCall("1", "look", '{"at": 2}'),), "hm"), "m"
    )
    assert said.message.parts == (lm15.ThinkingPart("hm"), lm15.ToolCallPart("1", "look", {"at": 2}))
    assert (said.model, said.finish_reason) == ("m-1", "tool_call")
    assert said.usage == lm15.Usage(9, 8, cache_read_tokens=7, reasoning_tokens=6, cache_write_tokens=0)
    assert response_of(Reply("", finish="length"), "m").finish_reason == "length"


RULE = "Add one."
EXAMPLES = [dspy.Example(question=f"{n} + {n}", answer=str(2 * n + 1)).with_inputs("question") for n in range(40)]


class Models:
    """A model that adds one only if the instructions say so, and a writer that finds that out. Counts requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        scripted_model("adder")(self.add)
        scripted_model("writer")(self.write)

    def add(self, request: Chat) -> str:
        prompt, text = (str(each.content) for each in request.messages)
        self.asked.append(prompt + text)
        number = int(text.partition("[[ ## question ## ]]\n")[2].split()[0])
        return f"[[ ## answer ## ]]\n{2 * number + (RULE in prompt)}\n\n[[ ## completed ## ]]"

    def write(self, request: Chat) -> str:
        text = str(request.messages[-1].content)
        prompt = text.partition("<prompt>\n")[2].partition("\n</prompt>")[0]
        return f"<prompt>{prompt} {RULE}</prompt>"


class TwoSteps(dspy.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first = dspy.Predict("question -> answer")
        self.second = dspy.Predict("question, draft -> answer")

    def forward(self, question: str) -> Any:
        return self.second(question=question, draft=self.first(question=question).answer)


def right(example: Any, predicted: Any, trace: Any = None) -> Any:
    score = float(example.answer == predicted.answer)
    return dspy.Prediction(score=score, feedback="" if score else "It is one more.")


def evolved(folder: Path, program: Any, calls: int | None = None) -> tuple[Any, Evolve]:
    with groundswell.open_sync(folder / "runs.db") as engine:
        limits = RunOptions(limits=Limits(calls=calls))
        lm = EngineLM(engine.run("requests", options=limits), "scripted/adder")
        search = Evolve(engine, right, "scripted/writer", name="search", stops=Stops(asks=300), ablation=False)
        with dspy.context(lm=lm):
            return search.compile(program, trainset=EXAMPLES), search


def instructions(program: Any) -> list[str]:
    return [each.signature.instructions for each in program.predictors()]


@pytest.mark.parametrize("make", [lambda: dspy.Predict("question -> answer"), TwoSteps], ids=["one step", "two steps"])
def test_instructions_are_evolved_and_nothing_is_asked_again(tmp_path: Path, make: Callable[[], Any]) -> None:
    models = Models()
    better, search = evolved(tmp_path, make())
    changed = [RULE in each for each in instructions(better)]
    assert changed[-1], "the last step gives the answer"
    assert search.analysis is not None
    assert search.analysis.tested[-1].accuracy == 1
    asked = len(models.asked)
    again, _ = evolved(tmp_path, make())
    assert instructions(again) == instructions(better)
    assert len(models.asked) == asked == len({*models.asked})


def test_a_search_stops_with_its_model_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "stopped").mkdir()
    (tmp_path / "whole").mkdir()
    models, program = Models(), dspy.Predict("question -> answer")
    with pytest.raises(RunError, match=r"not complete.*budget of 40 calls"):
        evolved(tmp_path / "stopped", program, calls=40)
    assert len(models.asked) == 40
    found, search = evolved(tmp_path / "stopped", program)
    assert len(models.asked) == len({*models.asked})
    assert search.analysis is not None
    assert not any(each.why for each in search.analysis.evolution.members)
    assert instructions(found) == instructions(evolved(tmp_path / "whole", program)[0])
