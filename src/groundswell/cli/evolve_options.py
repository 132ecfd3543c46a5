"""The options of `groundswell evolve` and `evolve bench`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from groundswell.cli.options import COMMON, RunFlags

WHAT = "What is evolved"
SEARCH = "How it is searched"
STOPS = "When it stops"
SPEED = "How fast"

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Where the files go: report, tables, the best prompt. (results/NAME.)",
        show_default=False,
    ),
]
Model = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Who solves the problems: provider/model, or an alias. May be repeated: all are asked then, and their "
        "mean counts. (emulated/gpt-4o-mini.)",
        show_default=False,
        rich_help_panel=WHAT,
    ),
]


@dataclass(frozen=True, kw_only=True)
class SpeedFlags:
    """How much is asked at a time. None means the default, or what the preset says."""

    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How hard providers are asked: balanced, conservative (2,000 requests a minute) or aggressive; the "
            "options below change single figures. (As balanced, at the limits that the accounts have.)",
            show_default=False,
            rich_help_panel=SPEED,
        ),
    ] = None
    async_batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Problems of the first block of a race: a prompt that is plainly behind meets no more. (20)",
            show_default=False,
            rich_help_panel=SPEED,
        ),
    ] = None
    max_concurrent_requests: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Asks in flight for each prompt. (10)", show_default=False, rich_help_panel=SPEED
        ),
    ] = None
    genome_batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Prompts on their way at a time: a birth knows those that were born so many before it. (10)",
            show_default=False,
            rich_help_panel=SPEED,
        ),
    ] = None
    max_concurrent_genomes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="So many times --max-concurrent-requests are in flight in all. (5)",
            show_default=False,
            rich_help_panel=SPEED,
        ),
    ] = None
    rate_limit_per_minute: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Requests a minute, for each account that is asked. (What it is known to allow.)",
            show_default=False,
            rich_help_panel=SPEED,
        ),
    ] = None
    async_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="For one attempt. (As the accounts have it: 600.)",
            show_default=False,
            rich_help_panel=SPEED,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class EvolveFlags(RunFlags, SpeedFlags):
    """What `evolve` takes. None means the default."""

    model: Model = None
    writer: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Who writes prompts. (The model that solves the problems; of several, the first.)",
            show_default=False,
            rich_help_panel=WHAT,
        ),
    ] = None
    task: Annotated[
        str,
        typer.Option(
            metavar="NAMES|FILE",
            help="The problems: fresh ones of families with exact answers (arithmetic, comparison, groups, prices, "
            "quantity, rates, sharing; names with commas, or all), or a JSONL file of yours in the form of GSM8K.",
            rich_help_panel=WHAT,
        ),
    ] = "all"
    question_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="What the file calls questions. (question)", show_default=False, rich_help_panel=WHAT
        ),
    ] = None
    answer_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What it calls answers; what stands after #### in them counts, where that is there. (answer)",
            show_default=False,
            rich_help_panel=WHAT,
        ),
    ] = None
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What a reply is worth: the right number (number), the right text (text), the answer somewhere in it "
            "(contains); module:name for one of yours.",
            rich_help_panel=WHAT,
        ),
    ] = "number"
    difficulty: Annotated[
        int | None,
        typer.Option(
            metavar="1..5",
            help="Of fresh problems: how many steps they take. (3)",
            show_default=False,
            rich_help_panel=WHAT,
        ),
    ] = None
    train: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Problems that prompts are compared on. (200; a quarter of a file that is too small for that.)",
            show_default=False,
            rich_help_panel=WHAT,
        ),
    ] = None
    validation: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Problems that the winner is chosen by. (200; a quarter.)",
            show_default=False,
            rich_help_panel=WHAT,
        ),
    ] = None
    test: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Problems of the sealed test, which is opened once, in the end. (400; half.)",
            show_default=False,
            rich_help_panel=WHAT,
        ),
    ] = None
    seed_prompt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT|@FILE",
            help="A prompt to begin with; what is found is compared with the first. May be repeated. (A plain one.)",
            show_default=False,
            rich_help_panel=WHAT,
        ),
    ] = None
    temperature: Annotated[
        float,
        typer.Option(min=0, help="Of those who solve problems.", rich_help_panel=WHAT),
    ] = 0.0
    reply_tokens: Annotated[
        int, typer.Option(metavar="N", help="The most tokens of one solution.", rich_help_panel=WHAT)
    ] = 300
    population_size: Annotated[
        int, typer.Option(metavar="N", help="Prompts that live at a time.", rich_help_panel=SEARCH)
    ] = 50
    max_generations: Annotated[
        int, typer.Option(metavar="N", help="So many times that are born.", rich_help_panel=SEARCH)
    ] = 100
    selection: Annotated[
        str,
        typer.Option(metavar="tournament|roulette|rank", help="How parents are chosen.", rich_help_panel=SEARCH),
    ] = "tournament"
    tournament_size: Annotated[
        int, typer.Option(metavar="N", help="The best of so many becomes a parent.", rich_help_panel=SEARCH)
    ] = 3
    elite_size: Annotated[
        int, typer.Option(metavar="N", help="So many of the fittest never have to go.", rich_help_panel=SEARCH)
    ] = 2
    operators: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=WEIGHT,...",
            help="How often each operator is drawn. A model writes: reflect (on what failed), combine, paraphrase. "
            "Chance does: insert, delete, swap, duplicate, neighbour, single_point, two_point, uniform. (All, models "
            "in half of the births.)",
            show_default=False,
            rich_help_panel=SEARCH,
        ),
    ] = None
    fitness: Annotated[
        str,
        typer.Option(
            metavar="accuracy|composite",
            help="Who is fit: by accuracy alone, or by consistency, efficiency, diversity and length too.",
            rich_help_panel=SEARCH,
        ),
    ] = "accuracy"
    racing: Annotated[
        bool,
        typer.Option(
            "--racing/--no-racing",
            help="Whether a prompt that is plainly behind is left out of the rest of the problems.",
            rich_help_panel=SEARCH,
        ),
    ] = True
    finalists: Annotated[
        int, typer.Option(metavar="N", help="So many of the fittest are validated.", rich_help_panel=SEARCH)
    ] = 10
    baselines: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Other searches at the same budget, to compare with: random, best_of_n; or none.",
            rich_help_panel=SEARCH,
        ),
    ] = "random,best_of_n"
    target_fitness: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, metavar="SHARE", help="The best has this fitness.", show_default=False, rich_help_panel=STOPS
        ),
    ] = None
    plateau: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Generations without a better one; 0 for never.", rich_help_panel=STOPS),
    ] = 10
    min_diversity: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Prompts that live differ by no more on average: from 0, the same words, to 1, none in common.",
            show_default=False,
            rich_help_panel=STOPS,
        ),
    ] = None
    max_asks: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="The evolution has made so many asks; the searches that it is compared with may make as many each.",
            show_default=False,
            rich_help_panel=STOPS,
        ),
    ] = None
    max_usd: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="USD",
            help="The evolution has cost so much: it ends well, and is compared and tested. --budget is a limit for "
            "all of that together, at which the run is broken off.",
            show_default=False,
            rich_help_panel=STOPS,
        ),
    ] = None
    detailed_performance_logging: Annotated[
        bool,
        typer.Option(
            "--detailed-performance-logging",
            help="Write a record of each evaluation of a prompt to evaluations.jsonl, beside the report.",
            rich_help_panel=SPEED,
        ),
    ] = False
    out: Out = None
    name: Annotated[
        str | None,
        typer.Option(
            help="A name for the run. (Made from the settings: the same command goes on with its run.)",
            show_default=False,
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="What all chance comes from. The same seed gives the same evolution.")] = 0


@dataclass(frozen=True, kw_only=True)
class BenchFlags(SpeedFlags):
    """What `evolve bench` takes."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="Who is asked, for what that costs. (An emulator on this machine, with replies after 50 ms.)",
            show_default=False,
        ),
    ] = None
    population_size: Annotated[int, typer.Option(metavar="N", help="Prompts that are evaluated.")] = 30
    problems: Annotated[int, typer.Option(metavar="N", help="Problems that each of them meets.")] = 50
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output.", rich_help_panel=COMMON)
    ] = False
