"""The options that are the same on every command."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from groundswell.cli.output import DEFAULT_STORE
from groundswell.experiments.options import COMMON, LIMITS, Flag

RunName = Annotated[
    str,
    Meta(description="The id or the name of a run."),
    Flag(argument=True, metavar="RUN", completes="runs"),
]
Json = Annotated[bool, Meta(description="Print one JSON object on standard output."), Flag(group=COMMON, usual=True)]
Yes = Annotated[bool, Meta(description="Do not ask."), Flag("-y")]
Estimate = Annotated[
    bool,
    Meta(description="Say what it would use, cost and take. Sends nothing, and needs no key."),
    Flag(group=LIMITS, usual=True),
]

__all__ = ["COMMON", "DEFAULT_STORE", "LIMITS", "Estimate", "Json", "RunName", "StoreFlags", "Yes"]


class StoreFlags(msgspec.Struct, frozen=True, kw_only=True):
    """What every command takes."""

    store: Annotated[
        str,
        Meta(description="The file that holds the runs."),
        Flag(variable="GROUNDSWELL_STORE", metavar="PATH", group=COMMON, usual=True, completes="files"),
    ] = DEFAULT_STORE
    json: Json = False
    verbose: Annotated[
        bool,
        Meta(description="Say more: what is sent and retried, and tracebacks of errors."),
        Flag("-v", group=COMMON, usual=True),
    ] = False
