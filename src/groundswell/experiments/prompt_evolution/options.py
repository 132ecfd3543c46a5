"""The options of `groundswell evolve`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from groundswell.experiments.options import Flag, Place
from groundswell.experiments.prompt_evolution.config import PRESETS, Fitness
from groundswell.experiments.prompt_evolution.families import EASIEST, HARDEST
from groundswell.experiments.prompt_evolution.population import SELECTIONS
from groundswell.experiments.prompt_evolution.settings import BASELINES
from groundswell.store.tables import format_of, read_table, write_table

WHAT, SEARCH, STOPS, SPEED = "What is evolved", "How it is searched", "When it stops", "How fast"


class Lines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Problems as a file has them: JSON lines or a JSON array. `source` is what they are called."""

    lines: str
    source: str = ""


def _read_task(text: str, place: Place) -> Any:
    """Names of families, or the problems in a file as JSON."""
    named = text.strip()
    format = format_of(named)
    if format in ("csv", "tsv", "parquet") and place.file(named).is_file():
        rows, held = read_table(place.file(named), format), io.BytesIO()
        write_table(held, "json", (row for _, row in rows))
        return {"lines": held.getvalue().decode(), "source": named}
    if format is not None or place.file(named).is_file():
        return {"lines": place.text_of(named), "source": named}
    return named.split(",")


def _read_prompt(text: str, place: Place) -> str:
    return place.text_of(text[1:]).rstrip("\n") if text.startswith("@") else text


def _read_names(text: str, _: Place) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _one_of(names: Sequence[str]) -> Meta:
    """For the schema of requests: the configuration itself tells of a name that is not known."""
    return Meta(extra_json_schema={"enum": list(names)})


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """How much is asked at a time. None means the default, or what the preset says."""

    preset: Annotated[
        Annotated[str, _one_of(PRESETS)] | None,
        Meta(
            description="How hard providers are asked: balanced, conservative (2,000 requests a minute) or aggressive; "
            "the options below change single figures. (As balanced, at the limits that the accounts have.)"
        ),
        Flag(metavar="NAME", group=SPEED, usual=True),
    ] = None
    async_batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Problems of the first block of a race: a prompt that is plainly behind meets no more. (20)"),
        Flag(metavar="N", group=SPEED, also=["block"]),
    ] = None
    max_concurrent_requests: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Asks in flight for each prompt. (10)"),
        Flag(metavar="N", group=SPEED),
    ] = None
    genome_batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Prompts on their way at a time: a birth knows those that were born so many before it. (10)"),
        Flag(metavar="N", group=SPEED),
    ] = None
    max_concurrent_genomes: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="So many times --max-concurrent-requests are in flight in all. (5)"),
        Flag(metavar="N", group=SPEED),
    ] = None
    rate_limit_per_minute: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Requests a minute, for each account that is asked. (What it is known to allow.)"),
        Flag(metavar="N", group=SPEED),
    ] = None
    async_timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="For one attempt. (As the accounts have it: 600.)"),
        Flag(metavar="SECONDS", group=SPEED),
    ] = None


class Evolve(Speed, frozen=True, kw_only=True):
    """Evolve a prompt: who solves more problems has offspring. A sealed test says whether it was worth it."""

    model: Annotated[
        tuple[str, ...],
        Meta(
            description="Who solves the problems: provider/model, or an alias. May be repeated: all are asked then, "
            "and their mean counts. (emulated/gpt-4o-mini.)"
        ),
        Flag("-m", metavar="MODEL", group=WHAT, commas=True, usual=True, also=["models"], completes="models"),
    ] = ()
    writer: Annotated[
        str | None,
        Meta(description="Who writes prompts. (The model that solves the problems; of several, the first.)"),
        Flag(metavar="MODEL", group=WHAT, completes="models"),
    ] = None
    task: Annotated[
        tuple[str | dict[str, Any], ...] | Lines,
        Meta(
            description="The problems: fresh ones of families with exact answers (arithmetic, comparison, groups, "
            "prices, quantity, rates, sharing; names with commas, or all), or a file of yours in the form of "
            "GSM8K (JSON lines, a JSON array, CSV, TSV or Parquet)."
        ),
        Flag(metavar="NAMES|FILE", group=WHAT, usual=True, read=_read_task, also=["families"], completes="files"),
    ] = ("all",)
    question_field: Annotated[
        str | None,
        Meta(description="What the file calls questions. (question)"),
        Flag(metavar="NAME", group=WHAT),
    ] = None
    answer_field: Annotated[
        str | None,
        Meta(description="What it calls answers; what stands after #### in them counts, where that is there. (answer)"),
        Flag(metavar="NAME", group=WHAT),
    ] = None
    metric: Annotated[
        str,
        Meta(
            description="What a reply is worth: the right number (number), the right text (text), the answer somewhere "
            "in it (contains); module:name for one of yours."
        ),
        Flag(metavar="NAME", group=WHAT, usual=True),
    ] = "number"
    difficulty: Annotated[
        Annotated[int, Meta(ge=EASIEST, le=HARDEST)] | None,
        Meta(description="Of fresh problems: how many steps they take. (3)"),
        Flag(metavar=f"{EASIEST}..{HARDEST}", group=WHAT),
    ] = None
    train: Annotated[
        Annotated[int, Meta(ge=1, le=20_000)] | None,
        Meta(
            description="Problems that prompts are compared on. (200; a quarter of a file that is too small for that.)"
        ),
        Flag(metavar="N", group=WHAT),
    ] = None
    validation: Annotated[
        Annotated[int, Meta(ge=1, le=20_000)] | None,
        Meta(description="Problems that the winner is chosen by. (200; a quarter.)"),
        Flag(metavar="N", group=WHAT),
    ] = None
    test: Annotated[
        Annotated[int, Meta(ge=1, le=20_000)] | None,
        Meta(description="Problems of the sealed test, which is opened once, in the end. (400; half.)"),
        Flag(metavar="N", group=WHAT),
    ] = None
    seed_prompt: Annotated[
        tuple[str, ...],
        Meta(
            description="A prompt to begin with. What is found is compared with the first. May be repeated. (A plain "
            "one.)"
        ),
        Flag(metavar="TEXT|@FILE...", group=WHAT, usual=True, read=_read_prompt, also=["seeds", "seed_prompts"]),
    ] = ()
    temperature: Annotated[float, Meta(ge=0, description="Of those who solve problems."), Flag(group=WHAT)] = 0.0
    reply_tokens: Annotated[
        int, Meta(ge=1, description="The most tokens of one solution."), Flag(metavar="N", group=WHAT)
    ] = 300
    population_size: Annotated[
        int,
        Meta(ge=1, le=100_000, description="Prompts that live at a time."),
        Flag(metavar="N", group=SEARCH, usual=True),
    ] = 50
    max_generations: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="So many times that are born."),
        Flag(metavar="N", group=SEARCH, usual=True),
    ] = 100
    selection: Annotated[
        str,
        _one_of(SELECTIONS),
        Meta(description="How parents are chosen."),
        Flag(metavar="tournament|roulette|rank", group=SEARCH),
    ] = "tournament"
    tournament_size: Annotated[
        int,
        Meta(ge=1, description="The best of so many becomes a parent."),
        Flag(metavar="N", group=SEARCH, also=["tournament"]),
    ] = 3
    elite_size: Annotated[
        int,
        Meta(ge=0, description="So many of the fittest never have to go."),
        Flag(metavar="N", group=SEARCH, also=["elite"]),
    ] = 2
    operators: Annotated[
        dict[str, Annotated[float, Meta(ge=0)]] | None,
        Meta(
            description="How often each operator is drawn. A model writes: reflect (on what failed), combine, "
            "paraphrase. Chance does: insert, delete, swap, duplicate, neighbour, single_point, two_point, uniform. "
            "(All, models in half of the births.)"
        ),
        Flag(metavar="NAME=WEIGHT,...", group=SEARCH),
    ] = None
    fitness: Annotated[
        str,
        _one_of(get_args(Fitness)),
        Meta(description="Who is fit: by accuracy alone, or by consistency, efficiency, diversity and length too."),
        Flag(metavar="accuracy|composite", group=SEARCH),
    ] = "accuracy"
    racing: Annotated[
        bool,
        Meta(description="Whether a prompt that is plainly behind is left out of the rest of the problems."),
        Flag(group=SEARCH),
    ] = True
    finalists: Annotated[
        int, Meta(ge=1, description="So many of the fittest are validated."), Flag(metavar="N", group=SEARCH)
    ] = 10
    baselines: Annotated[
        tuple[str, ...],
        Meta(description="Other searches at the same budget, to compare with: random, best_of_n; or none."),
        Flag(metavar="NAMES", group=SEARCH, read=_read_names),
    ] = BASELINES
    target_fitness: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="The best has this fitness."),
        Flag(metavar="SHARE", group=STOPS),
    ] = None
    plateau: Annotated[
        int,
        Meta(ge=0, description="Generations without a better one; 0 for never."),
        Flag(metavar="N", group=STOPS, also=["plateau_generations"]),
    ] = 10
    min_diversity: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="Prompts that live differ by no more on average: from 0, the same words, to 1, none in common."
        ),
        Flag(metavar="SHARE", group=STOPS),
    ] = None
    max_asks: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="The evolution has made so many asks; the searches that it is compared with may make as many "
            "each."
        ),
        Flag(metavar="N", group=STOPS),
    ] = None
    max_usd: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="The evolution has cost so much: it ends well, and is compared and tested. --budget is a limit "
            "for all of that together, at which the run is broken off."
        ),
        Flag(metavar="USD", group=STOPS, usual=True, also=["usd"]),
    ] = None
    detailed_performance_logging: Annotated[
        bool,
        Meta(description="Write a record of each evaluation of a prompt to evaluations.jsonl, beside the report."),
        Flag(group=SPEED),
    ] = False
