"""An adapter for GEPA: its evaluations and reflections run on the engine.

    with groundswell.open_sync("runs.db") as engine:
        adapter = EngineAdapter(engine.run("gepa"), "openai/gpt-4o-mini")
        result = gepa.optimize(
            seed_candidate={"prompt": "Solve the problem."},
            trainset=problems.train,
            valset=problems.validation,
            adapter=adapter,
            reflection_lm=adapter.reflection_lm("openai/gpt-4o"),
            max_metric_calls=500,
        )

GEPA's choices follow from its seed and from what it is told. So running the same script again repeats them with the
replies in the journal, and goes on where the last run ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import msgspec

from groundswell.bridges.asking import Trials
from groundswell.errors import SettingsError
from groundswell.experiments.named import trust_named
from groundswell.experiments.needed import explained
from groundswell.experiments.outage import Outage
from groundswell.experiments.prompt_evolution.metrics import Replied, find_metric
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.programs import Task
from groundswell.experiments.small_models import extras_of
from groundswell.portal import SyncRun
from groundswell.program.request import Chat, ChatOptions, FaultKind, Message, fingerprint, system, user
from groundswell.program.trial import Program, Trial, find_program, program

try:
    from gepa.core.adapter import EvaluationBatch
except ModuleNotFoundError as missing:
    raise explained(missing) from missing

__all__ = ["EngineAdapter", "ReflectionLM", "Task"]
log = logging.getLogger("groundswell.bridges")
MISTAKES = (FaultKind.PROGRAM, FaultKind.CALL)
"""Faults of the user's own code. They are raised, and not scored."""


class Evaluation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of a trial: a candidate on a problem."""

    problem: Problem
    metric: str
    model: str = ""
    prompt: str = ""
    temperature: float | None = 0.0
    max_tokens: int | None = None
    program: str = ""
    """Program that replies instead of the model, with these texts."""
    texts: dict[str, str] = {}


class Evaluated(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a trial."""

    reply: str
    score: float
    feedback: str = ""


@program("bridges/gepa", version=1)
async def evaluate(trial: Trial, spec: Evaluation) -> Evaluated:
    """Get the reply of the model, or of the program, and score it."""
    if spec.program:
        own = find_program(spec.program)
        if own is None:
            raise SettingsError(f"program {spec.program!r} is not registered: import the module that defines it")
        reply = await own(trial, Task(spec.texts, spec.problem))
    else:
        asked = await trial.ask(
            spec.model,
            [system(spec.prompt), user(spec.problem.question)],
            temperature=spec.temperature,
            max_tokens=spec.max_tokens,
            extra=extras_of(spec.model),
        )
        reply = asked.text
    found = await find_metric(spec.metric)(trial, Replied(reply, spec.problem))
    return Evaluated(reply, found.score, found.feedback)


class Trace(msgspec.Struct, frozen=True):
    """What `make_reflective_dataset` needs of an evaluation."""

    problem: Problem
    reply: str
    score: float
    feedback: str


class EngineAdapter:
    """Evaluates the candidates of GEPA with the engine.

    The examples of `trainset` and `valset` are `Problem`s. The texts of a candidate, joined by empty lines, are the
    system prompt. A candidate is evaluated on a problem once in a run, also if GEPA asks for it again.

    Args:
        run: The run that sends the requests. Give it a name, to continue it when the script is run again.
        model: Model that solves the problems, or a program of your own: a `@program` that takes a `Task` and returns
            the reply as text.
        metric: Metric that scores a reply, as in a prompt evolution.
        temperature: Sampling temperature of the model.
        max_tokens: Maximum number of tokens in a reply.
        failure_score: Score of a problem without a reply. GEPA has no missing scores.
    """

    propose_new_texts: Any = None
    """GEPA writes new texts itself, with the `reflection_lm`."""

    def __init__(
        self,
        run: SyncRun,
        model: str | Program[Task, str],
        *,
        metric: str = "number",
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        failure_score: float = 0.0,
    ) -> None:
        trust_named([metric])
        parts: list[Program[Any, Any]] = [find_metric(metric)]
        self._program = model.id if isinstance(model, Program) else ""
        self._ask: dict[str, Any] = {"model": model, "temperature": temperature, "max_tokens": max_tokens}
        if isinstance(model, Program):
            parts.append(model)
        self._metric = metric
        self._failure_score = failure_score
        self._trials = Trials(run)
        self._outage = Outage(run.run, called="problem")
        self.missing = 0
        """Number of evaluations without a reply so far."""
        run.run.relies_on(evaluate, parts)

    def evaluate(
        self, batch: Sequence[Problem], candidate: Mapping[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Trace, str]:
        """Evaluate a candidate on problems, all at the same time."""
        (found,) = self.batch_evaluate([(candidate, batch)])
        if not capture_traces:
            found.trajectories = None
        return found

    def batch_evaluate(
        self, items: Sequence[tuple[Mapping[str, str], Sequence[Problem]]]
    ) -> list[EvaluationBatch[Trace, str]]:
        """Evaluate several candidates at the same time."""
        return self._trials.run.wait(self._all(items))

    async def _all(
        self, items: Sequence[tuple[Mapping[str, str], Sequence[Problem]]]
    ) -> list[EvaluationBatch[Trace, str]]:
        work = (asyncio.gather(*(self._one(candidate, each) for each in batch)) for candidate, batch in items)
        traces = [list(found) for found in await asyncio.gather(*work)]
        return [
            EvaluationBatch(
                outputs=[each.reply for each in found], scores=[each.score for each in found], trajectories=found
            )
            for found in traces
        ]

    async def _one(self, candidate: Mapping[str, str], problem: Problem) -> Trace:
        if self._program:
            spec = Evaluation(problem, self._metric, program=self._program, texts=dict(candidate))
        else:
            spec = Evaluation(problem, self._metric, prompt="\n\n".join(candidate.values()), **self._ask)
        outcome = await self._trials.outcome(evaluate, spec)
        fault = outcome.fault
        mistake = fault is not None and fault.kind in MISTAKES
        await self._outage.passed(None if fault is None else fault.message, lasting=mistake)
        if fault is None or mistake:
            found = outcome.unwrap()
            return Trace(problem, found.reply, found.score, found.feedback or _verdict(found.score, problem))
        if not self.missing:
            log.warning("a problem has no reply and gets the score %g: %s", self._failure_score, fault.message)
        self.missing += 1
        return Trace(problem, "", self._failure_score, f"There was no reply: {fault.message}")

    def make_reflective_dataset(
        self,
        candidate: Mapping[str, str],
        eval_batch: EvaluationBatch[Trace, str],
        components_to_update: Sequence[str],
    ) -> dict[str, list[dict[str, Any]]]:
        """The problems, replies and feedback of an evaluation, for each text that GEPA wants to improve."""
        records = [
            {"Inputs": each.problem.question, "Generated Outputs": each.reply, "Feedback": each.feedback}
            for each in eval_batch.trajectories or ()
        ]
        return dict.fromkeys(components_to_update, records)

    def reflection_lm(self, model: str, **options: Unpack[ChatOptions]) -> ReflectionLM:
        """A `reflection_lm` for GEPA: a model that is asked in the same run, with options as `trial.ask` takes them."""
        return ReflectionLM(self._trials, model, options)


class ReflectionLM:
    """A model that GEPA asks for new texts. A prompt that comes again is asked again, unless the temperature is 0."""

    def __init__(self, trials: Trials, model: str, options: ChatOptions) -> None:
        self._trials = trials
        self._model = model
        self._options = options
        self._times: Counter[bytes] = Counter()
        self.total_cost = 0.0
        """Dollars for all replies so far, for GEPA's `max_reflection_cost`. Replies in the journal are included."""

    def __call__(self, prompt: str | Sequence[Mapping[str, Any]]) -> str:
        """Ask for one reply."""
        return self.batch_complete([prompt])[0]

    def batch_complete(self, prompts: Sequence[str | Sequence[Mapping[str, Any]]]) -> list[str]:
        """Ask for several replies at the same time."""
        return self._trials.run.wait(
            self._replies([Chat(self._model, _said(each), **self._options) for each in prompts])
        )

    async def _replies(self, requests: Sequence[Chat]) -> list[str]:
        return list(await asyncio.gather(*map(self._reply, requests)))

    async def _reply(self, request: Chat) -> str:
        print_ = fingerprint(request)
        self._times[print_] += 1
        reply = await self._trials.reply(request, str(self._times[print_]))
        self.total_cost += self._trials.run.run.price(request, reply.usage) or 0.0
        return reply.text


def _said(prompt: str | Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """A prompt of GEPA as messages."""
    if isinstance(prompt, str):
        return (user(prompt),)
    if not all(isinstance(each["content"], str) for each in prompt):
        raise SettingsError("reflection_lm: only text is supported, but a prompt contains images")
    return tuple(Message(each["role"], each["content"]) for each in prompt)


def _verdict(score: float, problem: Problem) -> str:
    """What to say about a reply if the metric says nothing."""
    if score == 1:
        return "This is correct."
    worked = f"\n\nA correct solution: {problem.working}" if problem.working else ""
    return f"The score is {score:g} of 1. The correct answer is: {problem.answer}{worked}"
