"""The main program: one model solves one problem with one prompt. One trial."""

from __future__ import annotations

import msgspec

from groundswell.experiments.prompt_evolution.answers import extracted
from groundswell.experiments.prompt_evolution.metrics import Replied, find_metric
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.small_models import extras_of
from groundswell.program.request import system, user
from groundswell.program.tally import Tally
from groundswell.program.trial import Trial, program

SHOWN = 400
"""Characters of a reply that are kept."""


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
    )
