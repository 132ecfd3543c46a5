"""Programs with texts that a user might write, and a model for them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from groundswell import Chat, Fault, FaultKind, Reply, Trial, Usage, function, program, together
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.programs import Task
from groundswell.program.request import Message, Tool, ToolCall, system, user

HERE = __name__
RULE = "Use the calculator."
TEXTS = {"plan": "Say what to compute.", "solve": "Give the number."}
ADD = Tool("add", "Add numbers.", {"type": "object", "properties": {"terms": {"type": "array"}}})


@function("tests/add")
def add(terms: list[int]) -> int:
    return sum(terms)


async def two_steps(trial: Trial, texts: Mapping[str, str], problem: Problem) -> str:
    """A plan, and a reply that may use a tool."""
    plan = await trial.ask("solver", [system(texts["plan"]), user(problem.question)], label="planner")
    talk = [system(texts["solve"]), user(f"{problem.question}\n{plan.text}")]
    while (reply := await trial.ask("solver", talk, label="solver", tools=(ADD,))).tool_calls:
        talk.append(Message("assistant", reply.text, tool_calls=reply.tool_calls))
        for call in reply.tool_calls:
            total = await trial.call(add, json.loads(call.arguments)["terms"])
            talk.append(Message("tool", str(total), tool_call_id=call.id))
    return reply.text


@program("tests/own_programs/whole", version=1)
async def whole(trial: Trial, task: Task) -> str:
    return await two_steps(trial, task.texts, task.problem)


async def with_model(trial: Trial, texts: Mapping[str, str], problem: Problem, model: str) -> str:
    return (await trial.ask(model, [system(texts["plan"]), user(problem.question)])).text


async def scored(trial: Trial, texts: Mapping[str, str], problem: Problem) -> tuple[float, str]:
    """Its own score, with feedback; the side-by-side replies come in any order."""
    first, second = await together(*(trial.ask("solver", [system(texts[name]), user(name)]) for name in texts))
    return float(RULE in texts["solve"]), f"{first.text} {second.text}"


async def halves(trial: Trial, texts: Mapping[str, str], problem: Problem) -> float:
    """Each text solves one half of the problems."""
    name = "plan" if int(problem.answer) % 4 == 1 else "solve"
    await trial.ask("solver", [system(texts[name]), user(problem.question)])
    return float(RULE in texts[name])


async def ten_steps(trial: Trial, texts: Mapping[str, str], problem: Problem) -> float:
    """Ten requests, and a better score the longer its texts are."""
    for at in range(10):
        await trial.ask("solver", [system(texts["plan"]), user(f"{problem.question} {at}")])
    return min(1.0, sum(map(len, texts.values())) / 400)


async def without_requests(trial: Trial, texts: Mapping[str, str], problem: Problem) -> float:
    return float(RULE in texts["solve"])


async def raises(trial: Trial, texts: Mapping[str, str], problem: Problem) -> str:
    """Fails on every seventh problem."""
    reply = await two_steps(trial, texts, problem)
    if int(problem.answer) % 7 == 0:
        raise ValueError("a number that it does not like")
    return reply


async def endless(trial: Trial, texts: Mapping[str, str], problem: Problem) -> str:
    at = 0
    while True:
        at += 1
        await trial.ask("solver", [system(texts["plan"]), user(f"{problem.question} {at}")])


async def wrong_type(trial: Trial, texts: Mapping[str, str], problem: Problem) -> object:
    return await trial.ask("solver", [system(texts["plan"]), user(problem.question)])


async def of_two(trial: Trial, texts: Mapping[str, str]) -> str:
    return ""


def plain(trial: Trial, texts: Mapping[str, str], problem: Problem) -> str:
    return ""


class Solver:
    """Adds only if the text `solve` tells it how; and a writer that appends this rule to the text it is given."""

    def __init__(self) -> None:
        self.asked: list[Chat] = []

    def __call__(self, request: Chat) -> Reply | Fault:
        self.asked.append(request)
        last = request.messages[-1]
        text = str(last.content)
        if request.model == "writer":
            prompt = text.rpartition("<prompt>\n")[2].partition("\n</prompt>")[0]
            return Reply(f"<prompt>{prompt} {RULE}</prompt>", Usage(100, 20))
        if request.model != "solver":
            return Fault(FaultKind.NOT_FOUND, f"nobody is called {request.model}")
        if last.role == "tool":
            return Reply(f"#### {text}", Usage(30, 5))
        if request.tools and RULE in str(request.messages[0].content):
            terms = [int(word) for word in text.replace("?", "").split() if word.isdigit()]
            call = ToolCall("1", "add", json.dumps({"terms": terms}))
            return Reply("", Usage(20, 5), "tool_calls", tool_calls=(call,))
        return Reply("#### 0", Usage(20, 5))
