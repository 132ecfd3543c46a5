"""The options that are the same on every command."""

from __future__ import annotations

from pathlib import Path
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
Json = Annotated[bool, Meta(description="Print one JSON object on standard output."), Flag(group=COMMON)]
Yes = Annotated[bool, Meta(description="Do not ask."), Flag("-y")]
Estimate = Annotated[
    bool,
    Meta(description="Say what it would use, cost and take. Sends nothing, and needs no key."),
    Flag(group=LIMITS, usual=True),
]

__all__ = ["COMMON", "DEFAULT_STORE", "LIMITS", "Estimate", "Json", "RunName", "StoreFlags", "Terminal", "Yes"]


class StoreFlags(msgspec.Struct, frozen=True, kw_only=True):
    """What every command takes."""

    store: Annotated[
        str,
        Meta(description="The file that holds the runs."),
        Flag(variable="GROUNDSWELL_STORE", metavar="PATH", group=COMMON, completes="files"),
    ] = DEFAULT_STORE
    json: Json = False
    verbose: Annotated[
        bool,
        Meta(description="Say more: what is sent and retried, and tracebacks of errors."),
        Flag("-v", group=COMMON),
    ] = False


class Terminal(StoreFlags, frozen=True, kw_only=True):
    """What commands of experiments take on the command line alone."""

    estimate: Estimate = False
    out: Annotated[
        Path | None,
        Meta(description="Where the results go. (results/NAME.)"),
        Flag("-o", metavar="FOLDER", usual=True, completes="files"),
    ] = None
    config: Annotated[
        Path | None,
        Meta(description="Options from a TOML file; flags go before it."),
        Flag(metavar="FILE.toml", group=COMMON, completes="files"),
    ] = None
    print_config: Annotated[
        bool,
        Meta(description="Print the options as a TOML file, with what they stand for; start nothing."),
        Flag(group=COMMON),
    ] = False
