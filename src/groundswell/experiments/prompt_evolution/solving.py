"""The main programs: a model solves a problem with a prompt, or a user's program does with its texts. One trial."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from groundswell.experiments.prompt_evolution.answers import extracted
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.metrics import NoScore, Replied, Scored, find_metric, score_of
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.programs import Task, find_task_program
from groundswell.experiments.small_models import extras_of
from groundswell.program.request import Chat, Invoke, Message, Reply, Returned, Text, system, user
from groundswell.program.tally import Tally, Turn, followed, tally_of
from groundswell.program.trial import Trial, program

SHOWN = 400
"""Characters of a reply that are kept."""
SHOWN_TURN, SHOWN_TURNS = 300, 1_500
"""Characters of one turn, and of all turns, that are kept of a program."""
MOST_TURNS = 100
"""Maximum number of requests and calls of a program for one problem."""


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of a trial: a prompt on a problem."""

    model: str
    prompt: str
    problem: Problem
    metric: str = "number"
    temperature: float | None = 0.0
    max_tokens: int = 300


class Solved(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a trial."""

    score: float
    answer: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    said: str = ""
    """The end of the reply, which is shown to the model that writes a better prompt."""
    judged: Tally = {}
    """Requests that the metric made."""
    feedback: str = ""
    """What the metric says about the reply."""
    cut: bool = False
    """Whether the reply was cut off at the maximum number of tokens."""
    asked: Tally = {}
    """Requests of a program."""
    turns: str = ""
    """What a program did, in short, which is shown to the model that writes better texts."""


@program("prompt_evolution/solve", version=1)
async def solve(trial: Trial, spec: Attempt) -> Solved:
    """Ask the model, find the answer in its reply, and score it."""
    reply = await trial.ask(
        spec.model,
        [system(spec.prompt), user(spec.problem.question)],
        temperature=spec.temperature,
        max_tokens=spec.max_tokens,
        extra=extras_of(spec.model),
    )
    found = await find_metric(spec.metric)(trial, Replied(reply.text, spec.problem))
    used = reply.usage
    trial.row(model=spec.model, prompt=spec.prompt, question=spec.problem.question, score=found.score)
    return Solved(
        found.score,
        extracted(reply.text),
        used.input_tokens,
        used.output_tokens,
        reply.text[-SHOWN:],
        found.judged,
        found.feedback,
        reply.finish == "length",
    )


class Execution(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of a trial: a program with its texts on a problem."""

    program: str
    texts: dict[str, str]
    problem: Problem
    model: str
    metric: str = "number"


@program("prompt_evolution/execute", version=1)
async def execute(trial: Trial, spec: Execution) -> Solved:
    """Run a program, and score the reply that it returns, unless it returns a score."""
    own = find_task_program(spec.program)
    returned, turns = await followed(own(trial, Task(spec.texts, spec.problem, spec.model)), MOST_TURNS)
    replies = [each.result for each in turns if isinstance(each.result, Reply)]
    if isinstance(returned, str):
        reply = returned
        found = await find_metric(spec.metric)(trial, Replied(reply, spec.problem))
    else:
        reply = replies[-1].text if replies else ""
        if isinstance(returned, tuple) and len(returned) == 3:
            reply, returned = returned[2], returned[:2]
        if not isinstance(returned, int | float | tuple):
            raise NoScore(
                f"the program {spec.program} returned a {type(returned).__name__}; it must return the reply as text, a "
                "score, or a score and feedback"
            )
        score, feedback = score_of(f"the program {spec.program}", returned)
        found = Scored(score, feedback=feedback)
    asked = tally_of(turns)
    trial.row(model=spec.model, prompt=Genome.named(spec.texts).text, question=spec.problem.question, score=found.score)
    return Solved(
        found.score,
        extracted(reply),
        sum(each.input_tokens for each in asked.values()),
        sum(each.output_tokens for each in asked.values()),
        reply[-SHOWN:],
        found.judged,
        found.feedback,
        any(each.finish == "length" for each in replies),
        asked,
        turns_shown(turns) if len(turns) > 1 else "",
    )


def turns_shown(turns: Sequence[Turn]) -> str:
    """What a program asked and called, and what came back, one line each; long ones are shortened."""
    lines = list[str]()
    for request, label, result in turns:
        if isinstance(request, Invoke):
            named = (f"{name}={value}" for name, value in (request.options or {}).items())
            arguments = ", ".join([*map(str, request.arguments), *named])
            lines.append(_line("call", f"{request.function}({arguments}) = {_result(result)}"))
        else:
            asked = _message(request.messages[-1]) if isinstance(request, Chat) and request.messages else "embedding"
            lines += [_line(f"to {label or 'the model'}", asked), _line(label or "the model", _result(result))]
    text = "\n".join(lines)
    return text if len(text) <= SHOWN_TURNS else f"{text[: SHOWN_TURNS // 3]}\n…\n{text[-2 * SHOWN_TURNS // 3 :]}"


def _line(who: str, said: str) -> str:
    said = " ".join(said.split())
    return f"{who}: {said if len(said) <= SHOWN_TURN else said[:SHOWN_TURN] + ' …'}"


def _message(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return " ".join(part.text if isinstance(part, Text) else "(image)" for part in message.content)


def _result(result: object) -> str:
    if isinstance(result, Reply):
        calls = (f"calls {each.name}({each.arguments})" for each in result.tool_calls)
        return " ".join(filter(None, (result.text, *calls)))
    if isinstance(result, Returned):
        return str(result.value)
    return f"failed: {result}" if isinstance(result, Exception) else "an embedding"
