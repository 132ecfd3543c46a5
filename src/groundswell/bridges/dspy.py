"""DSPy on the engine: a language model whose requests the engine sends, and an optimiser that evolves instructions.

    with groundswell.open_sync("runs.db") as engine:
        dspy.configure(lm=EngineLM(engine.run("qa"), "openai/gpt-4o-mini"))
        program = dspy.ChainOfThought("question -> answer")
        answer = program(question="What is 6 x 7?").answer

        better = Evolve(engine, metric, "openai/gpt-4o", name="qa-evolved").compile(program, trainset=examples)

Running the same script again sends no request that the run has a reply to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec

from groundswell.bridges.asking import Trials
from groundswell.errors import RunError, RunStopped, TrialMissing
from groundswell.experiments.needed import explained
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.problems import Problem, Problems
from groundswell.experiments.prompt_evolution.programs import Task
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.experiments.small_models import extras_of
from groundswell.portal import SyncEngine, SyncRun
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
    canonical,
    system,
    user,
)
from groundswell.program.trial import Trial, program
from groundswell.transports.scripted import scripted_model

try:
    import dspy
    from dspy import lm15
    from dspy.teleprompt import Teleprompter
    from dspy.utils.exceptions import AdapterParseError
except ModuleNotFoundError as missing:
    raise explained(missing) from missing

BATCH_GATHER = 1.0
"""Seconds without a new request before a batch is sent, if nothing else is said."""
FINISHED: dict[str, Any] = {"length": "length", "tool_calls": "tool_call", "content_filter": "content_filter"}
ERRORS: dict[FaultKind, type[lm15.LM15Error]] = {
    FaultKind.RATE_LIMITED: lm15.RateLimitError,
    FaultKind.OVERLOADED: lm15.ServerError,
    FaultKind.SERVER: lm15.ServerError,
    FaultKind.TIMEOUT: lm15.TimeoutError,
    FaultKind.CONNECTION: lm15.TransportError,
    FaultKind.CONTEXT: lm15.ContextLengthError,
    FaultKind.NOT_FOUND: lm15.UnsupportedModelError,
    FaultKind.BAD_REQUEST: lm15.InvalidRequestError,
    FaultKind.FILTERED: lm15.InvalidRequestError,
}


class EngineLM(dspy.LM):  # type: ignore[misc]
    """A DSPy language model whose requests are sent by a run: journalled, cached, within a budget, live or in batches.

    Equal requests have one reply, unless their `rollout_id` differs and the temperature is not 0. With `n`, DSPy gets
    `n` replies. Retries, rate limits and the cache are those of the engine, so those of DSPy are off.

    Args:
        run: The run that sends the requests. Give it a name, to continue it when the script is run again.
        model: Model as `provider/model`, or an alias, as in the rest of Groundswell.
        gather: Seconds without a new request before requests are sent. The default is 1 for a run that uses batches, so
            that the requests of all threads are sent in one batch, and 0 for others.
        kwargs: Options of `dspy.LM`, such as `temperature` and `max_tokens`.
    """

    def __init__(self, run: SyncRun, model: str, *, gather: float | None = None, **kwargs: Any) -> None:
        if gather is None:
            gather = 0.0 if run.run.options.via == "live" else BATCH_GATHER
        engine = _Engine(Trials(run, gather))
        super().__init__(
            model, engine=engine, async_engine=_AsyncEngine(engine), **{"cache": False, "num_retries": 0, **kwargs}
        )

    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Ask for replies."""
        with _counting(kwargs.get("rollout_id", self.kwargs.get("rollout_id"))):
            return super().__call__(prompt, messages=messages, **kwargs)

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Ask for replies, in async code."""
        with _counting(kwargs.get("rollout_id", self.kwargs.get("rollout_id"))):
            return await super().acall(prompt, messages=messages, **kwargs)


_samples: ContextVar[Iterator[str]] = ContextVar("samples")
"""The sample numbers of the current call. DSPy does not tell its engines the `rollout_id`, nor which of `n` it is."""


@contextmanager
def _counting(rollout: int | None) -> Iterator[None]:
    token = _samples.set(_numbered("" if rollout is None else str(rollout)))
    try:
        yield
    finally:
        _samples.reset(token)


def _numbered(rollout: str) -> Iterator[str]:
    yield rollout
    number = 1
    while True:
        number += 1
        yield f"{rollout}/{number}"


class _Engine:
    """What DSPy calls an engine: it answers one request."""

    supports_function_calling = True
    supports_response_schema = True
    supported_params = ("response_format", "tools", "tool_choice", "temperature", "max_tokens", "top_p", "stop", "seed")

    def __init__(self, trials: Trials) -> None:
        self.trials = trials

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Wait for the reply, in the thread that asks."""
        chat, sample = chat_of(request), next(_samples.get())
        with _translated():
            return response_of(self.trials.run.wait(self.trials.reply(chat, sample)), request.model)

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The whole reply as a stream."""
        return iter(lm15.response_to_events(self.complete(request)))

    def close(self) -> None:
        """The run is closed by its engine."""


class _AsyncEngine:
    """The same for async code, which runs on another event loop than the run."""

    def __init__(self, engine: _Engine) -> None:
        self._trials = engine.trials

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """Wait for the reply."""
        chat, sample = chat_of(request), next(_samples.get())
        asked = asyncio.run_coroutine_threadsafe(self._trials.reply(chat, sample), self._trials.run.run.loop)
        with _translated():
            return response_of(await asyncio.wrap_future(asked), request.model)

    async def stream(self, request: lm15.Request) -> Any:
        """The whole reply as a stream."""
        for event in lm15.response_to_events(await self.complete(request)):
            yield event

    async def aclose(self) -> None:
        """The run is closed by its engine."""


@contextmanager
def _translated() -> Iterator[None]:
    """Raise failed requests as the errors that DSPy knows."""
    try:
        yield
    except TrialMissing as error:
        raise error_of(error.fault) from error


def error_of(fault: Fault) -> lm15.LM15Error:
    """A fault as an error of DSPy."""
    return ERRORS.get(fault.kind, lm15.ProviderError)(f"{fault.kind}: {fault.message}")


def chat_of(request: lm15.Request) -> Chat:
    """A request of DSPy as a chat request. Raises `UnsupportedFeatureError` for content that is not text or images."""
    config = request.config
    messages = [] if request.system is None else [Message("system", _content(_parts(request.system)))]
    for each in request.messages:
        messages += _messages(each)
    format_, choice = config.response_format or {}, config.tool_choice
    more = {name: getattr(config, name) for name in ("top_k", "frequency_penalty", "presence_penalty")}
    extra = {**(extras_of(request.model) or {}), **{name: each for name, each in more.items() if each is not None}}
    return Chat(
        request.model,
        tuple(messages),
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        top_p=config.top_p,
        seed=config.seed,
        stop=config.stop,
        schema=format_.get("schema"),  # `json_object` has none: the prompt asks for JSON as well
        tools=tuple(_tool(each) for each in request.tools),
        tool_choice=None if choice is None else choice.allowed[0] if len(choice.allowed) == 1 else choice.mode,
        reasoning=None if config.reasoning is None else config.reasoning.effort,
        logprobs=config.logprobs,
        extra={**extra, **(config.extensions or {})} or None,
    )


def _parts(given: str | Iterable[Any]) -> Iterable[Any]:
    return (lm15.TextPart(given),) if isinstance(given, str) else given


def _messages(given: lm15.Message) -> list[Message]:
    """A message of DSPy. Each result of a tool is a message of its own."""
    if given.role == "tool":
        return [Message("tool", _content(each.content), tool_call_id=each.id) for each in given.parts]
    calls = [each for each in given.parts if isinstance(each, lm15.ToolCallPart)]
    said = [each for each in given.parts if not isinstance(each, lm15.ToolCallPart | lm15.ThinkingPart)]
    role: Any = "system" if given.role == "developer" else given.role
    made = tuple(ToolCall(each.id, each.name, json.dumps(each.input)) for each in calls)
    return [Message(role, _content(said), tool_calls=made)]


def _content(parts: Iterable[Any]) -> str | tuple[Text | Image, ...]:
    made = tuple(_part(each) for each in parts)
    if all(isinstance(each, Text) for each in made):
        return "\n".join(each.text for each in made if isinstance(each, Text))
    return made


def _part(part: Any) -> Text | Image:
    if isinstance(part, lm15.TextPart):
        return Text(part.text)
    if isinstance(part, lm15.ImagePart) and (part.url or part.data):
        return Image(part.url, part.data, part.media_type)
    raise lm15.UnsupportedFeatureError(f"{part.type}: only text and images can be sent")


def _tool(given: Any) -> Tool:
    if not isinstance(given, lm15.FunctionTool):
        raise lm15.UnsupportedFeatureError(f"tool {given.name}: tools of a provider are not supported")
    return Tool(given.name, given.description or "", given.parameters)


def response_of(reply: Reply, model: str) -> lm15.Response:
    """A reply as DSPy takes it."""
    parts: list[Any] = [] if reply.reasoning is None else [lm15.ThinkingPart(reply.reasoning)]
    if reply.text or not reply.tool_calls:
        parts.append(lm15.TextPart(reply.text))
    parts += [lm15.ToolCallPart(each.id, each.name, json.loads(each.arguments or "{}")) for each in reply.tool_calls]
    used = reply.usage
    return lm15.Response(
        id=None,
        model=reply.model or model,
        message=lm15.Message("assistant", tuple(parts)),
        finish_reason=FINISHED.get(reply.finish, "stop"),
        usage=lm15.Usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cache_read_tokens=used.cached_tokens,
            cache_write_tokens=used.cache_write_tokens,
            reasoning_tokens=used.reasoning_tokens,
        ),
    )


THREADS = 32
PROGRAM = f"{__name__}:predict"


class Evolve(Teleprompter):  # type: ignore[misc]
    """A DSPy optimiser that evolves the instructions of a program's predictors with the search of `groundswell evolve`.

    A candidate has one text for each predictor. It is evaluated by running the program on examples, with the language
    model that DSPy is configured with. Use an `EngineLM`, so that a search that was interrupted repeats no request.
    `analysis` is the result of the search, with its gain on the held-out test.

    Args:
        engine: The engine of the search.
        metric: Metric of DSPy, called with an example and a prediction. It returns a score from 0 to 1, or a
            `dspy.Prediction` with `score` and `feedback`.
        writer: Model that writes instructions.
        name: Name of the run. The same name continues the same search.
        seed: Seed of the search.
        threads: Number of programs that run at the same time.
        settings: Further settings of the search, such as `auto` and `stops`: see `Evolution`.
    """

    def __init__(
        self,
        engine: SyncEngine,
        metric: Callable[..., Any],
        writer: str,
        *,
        name: str | None = None,
        seed: int = 0,
        threads: int = THREADS,
        **settings: Any,
    ) -> None:
        super().__init__()
        self._engine = engine
        self._metric = metric
        self._writer = writer
        self._name = name
        self._seed = seed
        self._threads = threads
        self._settings = settings
        self.analysis: Analysis | None = None

    def compile(
        self,
        student: dspy.Module,
        *,
        trainset: Sequence[dspy.Example],
        teacher: dspy.Module | None = None,
        valset: Sequence[dspy.Example] | None = None,
        **kwargs: Any,
    ) -> dspy.Module:
        """Return a copy of the program with better instructions.

        Candidates are compared on `trainset`. One half of `valset` chooses the best, and the other half is the held-out
        test. Without a `valset`, it is the second half of `trainset`.
        """
        if valset is None:
            half = len(trainset) // 2
            trainset, valset = trainset[:half], trainset[half:]
        examples = {_shown(each.inputs()): each for each in (*trainset, *valset)}
        sets = [[_problem(each) for each in part] for part in (trainset, valset[::2], valset[1::2])]
        texts = {name: each.signature.instructions for name, each in student.named_predictors()}
        model = f"dspy-{blake2b(canonical([texts, sorted(examples)]), digest_size=4).hexdigest()}"
        with ThreadPoolExecutor(self._threads, "groundswell-dspy") as threads:
            work = _Work(student, examples, self._metric)
            scripted_model(model)(partial(_answer, threads, copy_context(), work))
            settings = Evolution(
                models=(f"scripted/{model}",),
                writer=self._writer,
                problems=Problems(train=tuple(sets[0]), validation=tuple(sets[1]), test=tuple(sets[2])),
                seeds=(Genome.named(texts),),
                program=PROGRAM,
                **{"baselines": (), **self._settings},
            )
            ended = self._engine.drive(evolve, settings, name=self._name, seed=self._seed)
        if ended.analysis is None:
            raise RunError(f"the search is not complete: {ended.error or ended.status}. Run it again to continue it")
        self.analysis = msgspec.convert(ended.analysis, Analysis)
        return instructed(student, self.analysis.deployed.genome.texts)


@program("bridges/dspy", version=1)
async def predict(trial: Trial, task: Task) -> tuple[float, str, str]:
    """Score, feedback and prediction of the DSPy program with these instructions, for an example."""
    asked = [system(json.dumps(task.texts)), user(task.problem.question)]
    found = json.loads((await trial.ask(task.model, asked, label="the program")).text)
    return found["score"], found["feedback"], found["prediction"]


class _Work:
    """Runs a program with the instructions of a candidate, as a model that answers `predict`."""

    def __init__(self, student: dspy.Module, examples: Mapping[str, dspy.Example], metric: Callable[..., Any]) -> None:
        self._student = student
        self._examples = examples
        self._metric = metric

    def __call__(self, request: Chat) -> str | Fault:
        """Score, feedback and prediction of the program for an example, as JSON."""
        texts, question = (str(each.content) for each in request.messages)
        example = self._examples[question]
        try:
            predicted = instructed(self._student, json.loads(texts))(**example.inputs())
        except AdapterParseError as error:
            return _scored(0.0, str(error), "")
        except Exception as error:  # noqa: BLE001  code of the program: the example is missing, and is not scored
            kind = FaultKind.QUOTA if _stopped(error) else FaultKind.BAD_REQUEST
            return Fault(kind, f"{type(error).__name__}: {error}")
        found = self._metric(example, predicted)
        return _scored(float(getattr(found, "score", found)), getattr(found, "feedback", None) or "", _shown(predicted))


def _stopped(error: BaseException | None) -> bool:
    """Whether the run of the language model has stopped. The search then has to stop too, and can be resumed."""
    while error is not None and not isinstance(error, RunStopped):
        error = error.__cause__ or error.__context__
    return error is not None


async def _answer(threads: ThreadPoolExecutor, context: Any, work: _Work, request: Chat) -> str | Fault:
    """Run a program in a thread, with the settings of DSPy where the search was started."""
    return await asyncio.get_running_loop().run_in_executor(threads, context.copy().run, work, request)


def _scored(score: float, feedback: str, predicted: str) -> str:
    return json.dumps({"score": score, "feedback": feedback, "prediction": predicted})


def _problem(example: dspy.Example) -> Problem:
    """An example as a problem. Its labels are shown to the model that writes instructions."""
    return Problem(_shown(example.inputs()), _shown(example.labels()))


def _shown(fields: Any) -> str:
    return "\n".join(f"{name}: {value}" for name, value in fields.items())


def instructed(program: dspy.Module, texts: Mapping[str, str]) -> dspy.Module:
    """A copy of a program whose predictors have these instructions."""
    made = program.deepcopy()
    for name, predictor in made.named_predictors():
        predictor.signature = predictor.signature.with_instructions(texts[name])
    return made
