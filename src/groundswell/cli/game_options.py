"""The options of `groundswell play` and `compare`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from groundswell.cli.options import RunFlags
from groundswell.cli.prompts import ReplyTokens, Seed, Temperature

GAME = "The game"
LEAKS = "What counts as a leak"
TRAVEL = "How it travels"


class Service(StrEnum):
    """The batch services, by their names."""

    DEFAULT = "default"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    CONVERSATION = "conversation"
    OPENAI_CONVERSATION = "openai-conversation"
    ANTHROPIC_CONVERSATION = "anthropic-conversation"
    AUTO = "auto"


class Kind(StrEnum):
    """Agents by type: short names of models."""

    CLAUDE_OPUS = "claude_opus"
    CLAUDE_SONNET = "claude_sonnet"
    GPT35 = "gpt35"
    GPT4O_MINI = "gpt4o_mini"


class Mode(StrEnum):
    """What an interaction is worth."""

    STANDARD = "standard"
    RETAINED = "retained"
    DIVERSITY = "diversity"
    TARGETED = "targeted"


class CountedTier(StrEnum):
    """By which tier a rate is told."""

    EXACT = "exact"
    NORMALISED = "normalised"
    ENCODED = "encoded"
    JUDGED = "judged"


class Memory(StrEnum):
    """What agents of a tournament remember."""

    LONG = "long"
    SHORT = "short"


class Seats(StrEnum):
    """Who speaks first."""

    BALANCED = "balanced"
    GIVEN = "given"


@dataclass(frozen=True, kw_only=True)
class GameFlags(RunFlags):
    """What every command that plays takes."""

    interactions: Annotated[
        int,
        typer.Option(
            "--interactions",
            "--num-interactions",
            "-n",
            min=1,
            metavar="N",
            help="How many interactions: of every two models, where there are several.",
            rich_help_panel=GAME,
        ),
    ] = 100
    messages: Annotated[
        int,
        typer.Option(
            "--messages",
            "--messages-per-interaction",
            min=2,
            metavar="N",
            help="How many messages an interaction has in all; agents take turns.",
            rich_help_panel=GAME,
        ),
    ] = 5
    prompt: Annotated[
        str,
        typer.Option(
            metavar="VARIANT[,VARIANT]",
            help="What agents are told: plain, aggressive, cautious, or a file of yours (mine.toml); one for all, or "
            "one for each model.",
            rich_help_panel=GAME,
        ),
    ] = "plain"
    seats: Annotated[
        Seats,
        typer.Option(help="Who speaks first: everybody equally often, or as models are given.", rich_help_panel=GAME),
    ] = Seats.BALANCED
    secrets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Code words to draw from, one set of like ones to a line. (Some 120 come with the game.)",
            show_default=False,
            rich_help_panel=GAME,
        ),
    ] = None
    thoughts: Annotated[
        bool,
        typer.Option("--thoughts", help="Have agents write a private thought before they speak.", rich_help_panel=GAME),
    ] = False
    reply_tokens: ReplyTokens = None
    temperature: Temperature = None
    seed: Seed = 0
    tier: Annotated[
        CountedTier,
        typer.Option(
            help="What counts in the headline: the word itself (exact), whatever its case and punctuation "
            "(normalised), spelled, reversed or encoded (encoded), or what a judge says (judged).",
            rich_help_panel=LEAKS,
        ),
    ] = CountedTier.NORMALISED
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A model that reads every conversation and says whether a secret was given away.",
            show_default=False,
            rich_help_panel=LEAKS,
        ),
    ] = None
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Ask the other side afterwards, off the record, what the secret is; and somebody who heard nothing.",
            rich_help_panel=LEAKS,
        ),
    ] = False
    guesses: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=50,
            metavar="N",
            help="How many guesses --probe asks for. (5)",
            show_default=False,
            rich_help_panel=LEAKS,
        ),
    ] = None
    stop_at_width: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=0.999,
            metavar="WIDTH",
            help="Stop when every model's leak rate is known to within so much from end to end, as 0.05. The interval "
            "holds although one looks after every interaction.",
            show_default=False,
            rich_help_panel=LEAKS,
        ),
    ] = None
    batch_service: Annotated[
        Service | None,
        typer.Option(
            help="A batch service by its name: grouping and route in one. (Without it, --via and --schedule say that.)",
            show_default=False,
            rich_help_panel=TRAVEL,
        ),
    ] = None
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Services default, openai and anthropic: conversations in a group. Otherwise: the most asks in one "
            "batch of the provider.",
            show_default=False,
            rich_help_panel=TRAVEL,
        ),
    ] = None
    max_concurrent: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Services default, openai and anthropic: groups at once. Otherwise: the most live asks in flight.",
            show_default=False,
            rich_help_panel=TRAVEL,
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where the report goes, with its tables. (results/NAME.)",
            show_default=False,
        ),
    ] = None
    name: Annotated[
        str | None, typer.Option(help="A name for the run. (Made of all that is asked.)", show_default=False)
    ] = None


Models = Annotated[
    list[str] | None,
    typer.Option(
        "--models",
        "--model",
        "-m",
        metavar="MODEL[,MODEL]",
        help="Who plays: provider/model, or a short name. (The alias `default`, or local/smollm2.)",
        show_default=False,
    ),
]
