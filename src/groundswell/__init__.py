"""Groundswell runs thousands of LLM conversations as one experiment.

Package layout, from the inside out. Imports point upwards in this list; tests/test_architecture.py has the exact rules:

    program/      what users write: requests, `ask`, `call` and `together`, trials, programs (pure)
    reporting/    results as blocks, rendered as HTML, terminal output, notebooks, Markdown and JSON
    engine/       runs programs; the main path is engine/run.py, which you can read from top to bottom
    trust.py      hosts and files that the user has trusted
    store/        the journal, the cache and results, on SQLite
    providers/    wire formats, faults and limits: one file and one row in registry.py for each provider (pure);
                  accounts/ (addresses and keys) and prices.py
    transports/   how requests are sent: live, batch, local, scripted
    emulator/     the providers on your own machine, for rehearsals and tests
    estimate/     requests, tokens, cost and time of a run, before anything is sent
    compose.py    builds an engine from settings; contains `groundswell.open`
    loop.py       the event loop
    stats/        statistics that every experiment uses (pure)
    portal.py     `groundswell.open_sync`, for scripts and notebooks that are not async
    batch_lookup.py  the state of provider batches, for the command line and the server
    known_models.py  which models can be used now, and what is missing for the others
    experiments/  experiment.py describes what an experiment is; prompting/ is `groundswell ask` and `map`,
                  secret_game/ is `play`, simulations/ is `simulate`, query_mutation/ is `mutate`, prompt_evolution/
                  is `evolve`
    bridges/      GEPA and DSPy on the engine, and logs of runs in MLflow and Weights & Biases
    testing/      fakes, crash harness, and conformance suites for your own extensions
    web/          the REST API, with an engine that works in the background
    cli/          the command line

`__all__` is the public API. A test pins it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from groundswell.program.trial import program  # eager: `groundswell.program` is also the name of the package
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
    from groundswell.experiments.python import (
        as_function,
        ask,
        compare,
        evolve,
        map,
        mutate,
        play,
        score,
        simulate,
        study,
    )
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
    "score",
    "scripted_model",
    "simulate",
    "study",
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
    "groundswell.experiments.python": (
        "as_function",
        "ask",
        "compare",
        "evolve",
        "map",
        "mutate",
        "play",
        "score",
        "simulate",
        "study",
    ),
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
    """Import a name on first use. The command line needs few of them and must start quickly."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'groundswell' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
