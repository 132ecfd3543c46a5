"""Programs whose texts are evolved: functions of your own that make any number of requests for a problem.

    async def two_steps(trial, texts, problem):
        plan = await trial.ask("openai/gpt-4o-mini", f"{texts['plan']}\\n\\n{problem.question}")
        reply = await trial.ask("openai/gpt-4o-mini", f"{texts['answer']}\\n\\n{plan.text}")
        return reply.text

A program returns the reply, which the metric scores; or a score from 0 to 1; or a score and feedback for the model that
writes texts; or a score, feedback and the reply. It is named as `module:name`. If it has a fourth parameter, it gets
the model of the settings. It may also be a `@program` that takes a `Task`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.named import import_named
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.program.source import identity
from groundswell.program.trial import Program, Trial

FIELD = "program"
"""The setting that names a program."""
_WRAPPED: dict[Callable[..., Any], Program[Any, Any]] = {}


class Task(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of a program of your own: the texts of a candidate by name, a problem, and the model to use."""

    texts: dict[str, str]
    problem: Problem
    model: str = ""


def find_task_program(given: str) -> Program[Task, Any]:
    """Find a program by `module:name`."""
    module, _, name = given.rpartition(":")
    if not module:
        raise SettingsError(f"{FIELD} {given!r}: must be module:name, such as mine:two_steps", field=FIELD)
    import_named(module, FIELD)
    found = getattr(sys.modules[module], name, None)
    if isinstance(found, Program):
        if found.spec_type is not Task:
            raise SettingsError(f"{FIELD} {given}: must take a Task, with texts and a problem", field=FIELD)
        return found
    if not inspect.iscoroutinefunction(found):
        raise SettingsError(f"{FIELD} {given}: there is no such `async def` or @program", field=FIELD)
    if found not in _WRAPPED:
        _WRAPPED[found] = _wrapped(given, found)
    return _WRAPPED[found]


def _wrapped(given: str, function: Callable[..., Any]) -> Program[Task, Any]:
    """A function as a program."""
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) not in (3, 4):
        said = f"must take (trial, texts, problem) or (trial, texts, problem, model), not ({', '.join(parameters)})"
        raise SettingsError(f"{FIELD} {given}: {said}", field=FIELD)

    async def run(trial: Trial, spec: Task) -> Any:
        more = [spec.model] if len(parameters) > 3 else []
        return await function(trial, dict(spec.texts), spec.problem, *more)

    run.__qualname__ = f"{function.__module__}.{function.__qualname__}"
    made = Program[Task, Any](f"prompt_evolution/programs/{given}", 1, run)
    made.source = identity(function)
    return made
