"""Groundswell runs thousands of LLM conversations as one experiment.

General layout, from the inside out; imports point only this way:

    program/      what a user writes: requests, the three traps, trials, programs (pure)
    reporting/    results as blocks, and how they look: pages, terminal, notebooks, Markdown, JSON
    engine/       runs programs: the main path is engine/run.py, read it from top to bottom
    trust.py      hosts and files that the user has trusted
    store/        the journal, on SQLite: what a resumed run reads
    providers/    everything that knows a provider: one file and one row in registry.py for each (pure);
                  accounts/ (whose models are asked, where, with which key) and prices.py
    transports/   how requests travel: live, batch, local, scripted
    emulator/     the providers on your own machine, for rehearsals and tests
    estimate/     what a run would use and cost, before anything is sent
    compose.py    builds an engine from settings; `groundswell.open` is here
    loop.py       the event loop that everything runs on
    stats/        statistics that every experiment uses (pure)
    portal.py     the same for scripts and notebooks that are not async
    known_models.py  which models can be asked now, and what the others lack
    experiments/  experiment.py, how an experiment is described; programs with their drivers: prompting/ is what
                  `groundswell ask` and `map` run, secret_game/ `play`, simulations/ `simulate`, query_mutation/
                  `mutate`, prompt_evolution/ `evolve`
    testing/      fakes, crash harness, and conformance suites for your own parts
    web/          the REST API: routes, and the engine that carries out their runs in the background
    cli/          the command line

What is named here is the public surface, and a test pins it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from groundswell.program.trial import program  # at once: `groundswell.program` is also the package that it is in
from groundswell.version import __version__

if TYPE_CHECKING:
    from groundswell.compose import open
    from groundswell.engine.driver import driver
    from groundswell.engine.engine import Engine
    from groundswell.engine.options import Limits, RunOptions
    from groundswell.engine.outcome import Outcome
    from groundswell.engine.retry import RetryPolicy
    from groundswell.engine.run import Run
    from groundswell.engine.summary import Summary
    from groundswell.errors import (
        AskFailed,
        CallFailed,
        ForeignAwait,
        GroundswellError,
        MalformedReply,
        ReplayMismatch,
        RunBusy,
        RunError,
        RunNotFound,
        RunStopped,
        SettingsError,
        SourceChanged,
        StoreError,
        TrialMissing,
    )
    from groundswell.estimate.declared import estimates
    from groundswell.estimate.figures import Estimate
    from groundswell.estimate.sample import rehearse
    from groundswell.experiments.experiment import Command, Context, Experiment, Plan
    from groundswell.experiments.options import Flag, Place
    from groundswell.experiments.python import as_function, ask, compare, evolve, map, mutate, play, simulate
    from groundswell.experiments.report import DataTable, Found
    from groundswell.experiments.results import Results, Written
    from groundswell.portal import open_sync
    from groundswell.program.request import (
        Chat,
        Embed,
        Embedding,
        Fault,
        FaultKind,
        Image,
        Message,
        Reply,
        Request,
        Text,
        Tool,
        ToolCall,
        Usage,
        assistant,
        fingerprint,
        system,
        user,
    )
    from groundswell.program.traps import together
    from groundswell.program.trial import Program, Trial, function
    from groundswell.transports.scripted import scripted_model

__all__ = [
    "AskFailed",
    "CallFailed",
    "Chat",
    "Command",
    "Context",
    "DataTable",
    "Embed",
    "Embedding",
    "Engine",
    "Estimate",
    "Experiment",
    "Fault",
    "FaultKind",
    "Flag",
    "ForeignAwait",
    "Found",
    "GroundswellError",
    "Image",
    "Limits",
    "MalformedReply",
    "Message",
    "Outcome",
    "Place",
    "Plan",
    "Program",
    "ReplayMismatch",
    "Reply",
    "Request",
    "Results",
    "RetryPolicy",
    "Run",
    "RunBusy",
    "RunError",
    "RunNotFound",
    "RunOptions",
    "RunStopped",
    "SettingsError",
    "SourceChanged",
    "StoreError",
    "Summary",
    "Text",
    "Tool",
    "ToolCall",
    "Trial",
    "TrialMissing",
    "Usage",
    "Written",
    "__version__",
    "as_function",
    "ask",
    "assistant",
    "compare",
    "driver",
    "estimates",
    "evolve",
    "fingerprint",
    "function",
    "map",
    "mutate",
    "open",
    "open_sync",
    "play",
    "program",
    "rehearse",
    "scripted_model",
    "simulate",
    "system",
    "together",
    "user",
]

_PLACES = {
    "groundswell.compose": ("open",),
    "groundswell.engine.driver": ("driver",),
    "groundswell.engine.engine": ("Engine",),
    "groundswell.engine.options": (
        "Limits",
        "RunOptions",
    ),
    "groundswell.engine.outcome": ("Outcome",),
    "groundswell.engine.retry": ("RetryPolicy",),
    "groundswell.engine.run": ("Run",),
    "groundswell.engine.summary": ("Summary",),
    "groundswell.errors": (
        "AskFailed",
        "CallFailed",
        "ForeignAwait",
        "GroundswellError",
        "MalformedReply",
        "ReplayMismatch",
        "RunBusy",
        "RunError",
        "RunNotFound",
        "RunStopped",
        "SettingsError",
        "SourceChanged",
        "StoreError",
        "TrialMissing",
    ),
    "groundswell.estimate.declared": ("estimates",),
    "groundswell.estimate.figures": ("Estimate",),
    "groundswell.estimate.sample": ("rehearse",),
    "groundswell.experiments.experiment": ("Command", "Context", "Experiment", "Plan"),
    "groundswell.experiments.options": ("Flag", "Place"),
    "groundswell.experiments.python": ("as_function", "ask", "compare", "evolve", "map", "mutate", "play", "simulate"),
    "groundswell.experiments.report": ("DataTable", "Found"),
    "groundswell.experiments.results": ("Results", "Written"),
    "groundswell.portal": ("open_sync",),
    "groundswell.program.request": (
        "Chat",
        "Embed",
        "Embedding",
        "Fault",
        "FaultKind",
        "Image",
        "Message",
        "Reply",
        "Request",
        "Text",
        "Tool",
        "ToolCall",
        "Usage",
        "assistant",
        "fingerprint",
        "system",
        "user",
    ),
    "groundswell.program.traps": ("together",),
    "groundswell.program.trial": ("Program", "Trial", "function"),
    "groundswell.transports.scripted": ("scripted_model",),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: the command line needs few of them, and must start quickly."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'groundswell' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
