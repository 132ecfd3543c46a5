"""The options of `groundswell simulate`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from groundswell.cli.options import RunFlags
from groundswell.cli.prompts import ReplyTokens, Temperature

WHO = "Who talks, and about what"
HOW = "How they talk"
ASKED = "What they are asked"


class Method(StrEnum):
    """Who writes what is said."""

    SPEAKER = "speaker"
    NARRATOR = "narrator"


class Style(StrEnum):
    """What kind of talk it is."""

    DISCUSSION = "discussion"
    DEBATE = "debate"
    NEGOTIATION = "negotiation"


class Order(StrEnum):
    """Who speaks first."""

    RANDOM = "random"
    GIVEN = "given"


@dataclass(frozen=True, kw_only=True)
class SimulateFlags(RunFlags):
    """What `simulate` takes. None means: the default, or with --continue, as it was."""

    entities: Annotated[
        str | None,
        typer.Option(
            metavar="IDS|FILE",
            help="Who may take part: ids with commas between them, where that of an entity type stands for all its "
            "entities; a JSON file with a list of ids; or a JSON or CSV file of whole entities.",
            show_default=False,
            rich_help_panel=WHO,
        ),
    ] = None
    context: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT|FILE",
            help="What the talk is about: text, or a file that has it.",
            show_default=False,
            rich_help_panel=WHO,
        ),
    ] = None
    interaction_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="K",
            help="Entities in one simulation: 1 is solo, 2 dyadic, 3 and more a group.",
            show_default=False,
            rich_help_panel=WHO,
        ),
    ] = None
    num_simulations: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many simulations.", show_default=False, rich_help_panel=WHO),
    ] = None
    replicates: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="How often each combination of entities is run; --num-simulations counts them all. (1)",
            show_default=False,
            rich_help_panel=WHO,
        ),
    ] = None
    order: Annotated[
        Order | None,
        typer.Option(
            help="Who speaks first: drawn, in replicates in turn (random, the default), or as entities are given.",
            show_default=False,
            rich_help_panel=WHO,
        ),
    ] = None
    continues: Annotated[
        str | None,
        typer.Option(
            "--continue",
            metavar="SIM_ID",
            help="Have this simulation, which has ended, go on: its entities, and its rules unless others are given.",
            show_default=False,
            rich_help_panel=WHO,
        ),
    ] = None
    n_turns: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Turns of a round; in a turn, every entity speaks once. (1)",
            show_default=False,
            rich_help_panel=HOW,
        ),
    ] = None
    simulation_rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Rounds; each goes on where the last one ended. (1)",
            show_default=False,
            rich_help_panel=HOW,
        ),
    ] = None
    method: Annotated[
        Method | None,
        typer.Option(
            help="Ask for every utterance from the side of its entity (speaker, the default), or have one model write "
            "a whole round (narrator).",
            show_default=False,
            rich_help_panel=HOW,
        ),
    ] = None
    style: Annotated[
        Style | None,
        typer.Option(help="What kind of talk it is. (discussion)", show_default=False, rich_help_panel=HOW),
    ] = None
    language: Annotated[
        str | None,
        typer.Option(
            help="What they speak, as German. (What the context has.)", show_default=False, rich_help_panel=HOW
        ),
    ] = None
    no_thoughts: Annotated[
        bool,
        typer.Option("--no-thoughts", help="Ask for no private thought before a speech.", rich_help_panel=HOW),
    ] = False
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="A questionnaire that is put to every entity at the end: a list of questions, or an object with "
            "`questions`, `before` and `shuffle`.",
            show_default=False,
            rich_help_panel=ASKED,
        ),
    ] = None
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTRIBUTE",
            help="An attribute that the study is about: answers by it are always told, and tested apart from all that "
            "is looked at because it is there. May be repeated, or have commas.",
            show_default=False,
            rich_help_panel=ASKED,
        ),
    ] = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="Who speaks for entities without a model of their own. (The alias `default`, or local/smollm2.)",
            show_default=False,
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(help="A name for the batch. (Made up from the context and the date.)", show_default=False),
    ] = None
    description: Annotated[str | None, typer.Option(help="What the batch is for.", show_default=False)] = None
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where the files go: tables, figures, transcripts. (A folder of results/ called after the batch.)",
            show_default=False,
        ),
    ] = None
    reply_tokens: ReplyTokens = None
    temperature: Temperature = None
    seed: Annotated[
        int,
        typer.Option(
            help="What combinations, order and replies are drawn by. The same seed gives the same batch.",
        ),
    ] = 0
