"""The options that are the same on every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from groundswell.cli.output import DEFAULT_STORE
from groundswell.experiments.options import COMMON, LIMITS, Flag
from groundswell.store.names import hide

RunName = Annotated[
    str,
    Meta(description="Id or name of a run."),
    Flag(argument=True, metavar="RUN", completes="runs"),
]
Json = Annotated[bool, Meta(description="Print one JSON object on standard output."), Flag(group=COMMON)]
Yes = Annotated[bool, Meta(description="Do not ask for confirmation."), Flag("-y")]
Estimate = Annotated[
    bool,
    Meta(description="Predict requests, tokens, cost and time, and exit. Sends nothing and needs no key."),
    Flag(group=LIMITS, usual=True),
]

Pilot = Annotated[
    bool,
    Meta(
        description="Send the first few requests of the run, predict the rest from what they use, and exit. The run "
        "continues from there when you repeat the command without this option, and does not pay for them again."
    ),
    Flag(group=LIMITS),
]

__all__ = [
    "COMMON",
    "DEFAULT_STORE",
    "LIMITS",
    "Estimate",
    "Json",
    "Pilot",
    "RunFlags",
    "RunName",
    "StoreFlags",
    "Terminal",
    "Yes",
]


class StoreFlags(msgspec.Struct, frozen=True, kw_only=True):
    """What every command takes."""

    store: Annotated[
        str,
        Meta(description="SQLite file with runs, replies and entities, or postgresql://USER@HOST/DATABASE."),
        Flag(variable="GROUNDSWELL_STORE", metavar="PATH|URL", group=COMMON, completes="files"),
    ] = DEFAULT_STORE
    json: Json = False
    verbose: Annotated[
        bool,
        Meta(description="Log requests and retries, and show a traceback with each error."),
        Flag("-v", group=COMMON),
    ] = False

    def __post_init__(self) -> None:
        """Keep the password of a database out of everything that is printed or stored."""
        msgspec.structs.force_setattr(self, "store", hide(self.store))


class RunFlags(StoreFlags, frozen=True, kw_only=True):
    """What commands that run an experiment or a driver take."""

    log: Annotated[
        tuple[Literal["mlflow", "wandb"], ...],
        Meta(
            description="Log figures, settings and results to an experiment tracker: mlflow, or wandb (Weights & "
            "Biases). May be repeated."
        ),
        Flag(group=COMMON),
    ] = ()


class Terminal(RunFlags, frozen=True, kw_only=True):
    """What commands of experiments take on the command line alone."""

    estimate: Estimate = False
    pilot: Pilot = False
    out: Annotated[
        Path | None,
        Meta(description="Folder for the report and the data files. The default is results/NAME."),
        Flag("-o", metavar="FOLDER", usual=True, completes="files"),
    ] = None
    config: Annotated[
        Path | None,
        Meta(description="Read options from a TOML file. Flags override the file."),
        Flag(metavar="FILE.toml", group=COMMON, completes="files"),
    ] = None
    print_config: Annotated[
        bool,
        Meta(description="Print the resolved options as TOML, and exit without starting a run."),
        Flag(group=COMMON),
    ] = False
