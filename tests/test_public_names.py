"""The public API: the names that `import groundswell` offers, and no others."""

from __future__ import annotations

import typing

import pytest

import groundswell

NAMES = [
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


def test_the_public_names_are_these() -> None:
    assert sorted(groundswell.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    thing = getattr(groundswell, name)
    if typing.get_origin(thing) is not None or not callable(thing):
        pytest.skip("a union of types has no docstring of its own")
    assert thing.__doc__
    assert len(thing.__doc__.strip()) > 10
