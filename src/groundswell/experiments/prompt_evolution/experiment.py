"""Prompt evolution as an experiment: options, the settings made of them, and the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta
from rich.console import RenderableType

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Command, Context, Experiment, Plan, Results, Written
from groundswell.experiments.needed import REPORT, check_installed
from groundswell.experiments.options import Flag, Place
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.answers import number_in
from groundswell.experiments.prompt_evolution.config import PRESETS, AsyncEvolutionConfig, Fitness, accounts_of
from groundswell.experiments.prompt_evolution.evaluations import Evaluations
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.families import EASIEST, FAMILIES, HARDEST
from groundswell.experiments.prompt_evolution.metrics import find_metric, try_metric
from groundswell.experiments.prompt_evolution.population import SELECTIONS
from groundswell.experiments.prompt_evolution.problems import Problem, Problems, Sizes, generated, picked, shared_out
from groundswell.experiments.prompt_evolution.report.told import told_of
from groundswell.experiments.prompt_evolution.report.writing import write_report
from groundswell.experiments.prompt_evolution.settings import BASELINES, EMULATED
from groundswell.experiments.prompt_evolution.summary import summary
from groundswell.store.journal import Store

WHAT, SEARCH, STOPS, SPEED = "What is evolved", "How it is searched", "When it stops", "How fast"
SETS = ("train", "validation", "test")
AS_CALLED = (
    *("population_size", "max_generations", "selection", "tournament_size", "elite_size", "fitness", "racing"),
    *("finalists", "target_fitness", "min_diversity", "max_asks", "max_usd", "temperature", "metric"),
)
"""Options that the configuration has by the same name."""
ALL, FAMILY, NONE = "all", "-family", "none"
FEWEST = 4
"""Fewer problems cannot be shared out."""
EVALUATIONS = "evaluations.jsonl"
NOBODY_NAMED = (
    f"no model is named: {EMULATED} solves the problems, in this process and for nothing; a real one: "
    "openai/gpt-4o-mini"
)
FILES = (".jsonl", ".json", ".ndjson")


class Lines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Problems as a file has them: an object of JSON to a line. `source` is what they are called."""

    lines: str
    source: str = ""


def _read_task(text: str, place: Place) -> Any:
    """Names of families, or a file with the text in it."""
    named = text.strip()
    if named.lower().endswith(FILES) or place.file(named).is_file():
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

    def config(self, **said: Any) -> AsyncEvolutionConfig:
        """The configuration of this speed, with what else was said."""
        said |= {name: value for name in FIGURES if (value := getattr(self, name)) is not None}
        return AsyncEvolutionConfig(**said) if self.preset is None else AsyncEvolutionConfig.preset(self.preset, **said)


FIGURES = tuple(name for name in Speed.__struct_fields__ if name != "preset")


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
            "prices, quantity, rates, sharing; names with commas, or all), or a JSONL file of yours in the form of "
            "GSM8K."
        ),
        Flag(metavar="NAMES|FILE", group=WHAT, usual=True, read=_read_task, also=["families"], completes="files"),
    ] = (ALL,)
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
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Problems that prompts are compared on. (200; a quarter of a file that is too small for that.)"
        ),
        Flag(metavar="N", group=WHAT),
    ] = None
    validation: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Problems that the winner is chosen by. (200; a quarter.)"),
        Flag(metavar="N", group=WHAT),
    ] = None
    test: Annotated[
        Annotated[int, Meta(ge=1)] | None,
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
        int, Meta(ge=1, description="Prompts that live at a time."), Flag(metavar="N", group=SEARCH, usual=True)
    ] = 50
    max_generations: Annotated[
        int, Meta(ge=1, description="So many times that are born."), Flag(metavar="N", group=SEARCH, usual=True)
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


def prepare(options: Evolve, context: Context) -> Plan:
    """The evolution, and how fast it may ask. What is said of an account itself comes last, and wins."""
    chosen = context.choices
    for name in ("max_concurrent_requests", "max_concurrent_genomes"):
        if chosen.max_concurrent is not None and getattr(options, name) is not None:
            raise SettingsError(
                f"{name}: max_concurrent says how much is in flight too; give one of the two", field=name
            )
    context.allow_own_modules([options.metric])
    find_metric(options.metric)
    problems, notes = _problems(options, chosen.seed)
    try_metric(options.metric, problems.train[0])
    models = context.models(options.model or [EMULATED])
    config = _config(options, models, problems, chosen.seed)
    account = (*accounts_of(config, chosen.account), *chosen.account)
    return Plan(
        config.settings,
        notes=(*([] if options.model else [NOBODY_NAMED]), *notes, _announced(config)),
        choices={"max_concurrent": chosen.max_concurrent or config.most_in_flight, "account": account},
        resolved={"model": models},
    )


def _config(options: Evolve, models: tuple[str, ...], problems: Problems, seed: int) -> AsyncEvolutionConfig:
    said = {name: value for name in AS_CALLED if (value := getattr(options, name)) is not None}
    said |= {"model": models, "writer": options.writer or "", "problems": problems, "seed": seed}
    said |= {"max_tokens": options.reply_tokens, "plateau_generations": options.plateau or None}
    said |= {"baselines": _baselines(options.baselines)}
    if options.seed_prompt:
        said["seed_prompts"] = options.seed_prompt
    if options.operators is not None:
        said["operators"] = options.operators
    return options.config(**said)


def _announced(config: AsyncEvolutionConfig) -> str:
    """What is about to be run."""
    settings, problems = config.settings, config.settings.problems
    births = f"{settings.population_size:,} prompts x {settings.max_generations:,} generations, by {settings.by}"
    of = f"{len(problems.train):,} problems ({problems.source or 'given'})"
    others = " and ".join(settings.baselines)
    then = f"then {others} at the same budget, " if others else "then "
    judged = f"{len(problems.validation):,} problems to choose by, and {len(problems.test):,} of a sealed test"
    return f"{births}; on {of}, solved by {', '.join(settings.models)}; {then}{judged}"


def _baselines(named: Sequence[str]) -> tuple[str, ...]:
    """Other searches, by name."""
    for name in named if [*named] != [NONE] else ():
        if name not in BASELINES:
            raise SettingsError(
                f"baselines: there is no {name!r}; there are {', '.join(BASELINES)}, or {NONE}", field="baselines"
            )
    return tuple(name for name in dict.fromkeys(named) if name != NONE)


def _problems(options: Evolve, seed: int) -> tuple[Problems, Sequence[str]]:
    """The problems of families, or the user's own; and what is to be said of how they were shared out."""
    task = options.task
    if isinstance(task, Lines):
        return _own(options, task.lines.split("\n"), task.source, seed)
    named = [each for each in task if isinstance(each, str)]
    if not named and task:
        return _own(options, task, "", seed)
    if len(named) < len(task):
        raise SettingsError("task: give names of families, or problems, and not both", field="task")
    for name in ("question_field", "answer_field"):
        if getattr(options, name) is not None:
            raise SettingsError(f"{name}: is for problems of your own, and task is {', '.join(named)}", field=name)
    return generated(_families(named), options.difficulty or 3, _sizes(options), seed), ()


def _families(names: Sequence[str]) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(name.strip().lower().removesuffix(FAMILY) for name in names))
    for name in named:
        if name not in (*FAMILIES, ALL):
            there = ", ".join(FAMILIES)
            raise SettingsError(
                f"task: there is no {name!r}; there are {there}, {ALL}, or give a file, as mine.jsonl", field="task"
            )
    return FAMILIES if ALL in named else named


def _sizes(options: Evolve) -> Sizes:
    return Sizes(**{name: value for name in SETS if (value := getattr(options, name)) is not None})


def _own(options: Evolve, rows: Sequence[Any], source: str, seed: int) -> tuple[Problems, Sequence[str]]:
    """The user's own problems; all of them, where there are fewer than are wanted as a rule."""
    if options.difficulty is not None:
        raise SettingsError(
            f"difficulty {options.difficulty}: is for fresh problems, and these are those of {source or 'task'}",
            field="difficulty",
        )
    where = f"task {source}".strip()
    fields = {"question": options.question_field or "question", "answer": options.answer_field or "answer"}
    found = picked(rows, where, **fields)
    _check_numbers(options, found)
    sizes, notes = _sizes(options), []
    if sizes.whole > len(found) and all(getattr(options, name) is None for name in SETS):
        if len(found) < FEWEST:
            raise SettingsError(f"{where}: has {len(found)} problems, and at least {FEWEST} are needed", field="task")
        quarter = len(found) // 4
        sizes = Sizes(quarter, quarter, len(found) - 2 * quarter)
        notes = [
            f"{source or 'task'} has {len(found):,} problems: {quarter:,} to train on, {quarter:,} to validate, and "
            f"{sizes.test:,} for the sealed test (train, validation and test say otherwise)"
        ]
    try:
        return shared_out(found, sizes, seed, source=source), notes
    except SettingsError as error:
        said = str(error).removeprefix(source or "problems")
        raise SettingsError(f"{where}{said} (train, validation, test)", field="task") from error


def _check_numbers(options: Evolve, problems: Sequence[Problem]) -> None:
    """Find out about answers that are no numbers where numbers are compared: no reply could be right."""
    strange = [each.answer for each in problems if number_in(each.answer) is None]
    if options.metric == "number" and strange:
        raise SettingsError(
            f"metric number: {len(strange):,} of {len(problems):,} answers are no numbers, as {strange[0][:40]!r}: "
            "give text, contains, or one of yours",
            field="metric",
        )


class EvolutionResults(Results):
    """The report of an evolution: the page with its tables, the best prompt, and the evaluations if they are wanted."""

    def __init__(self, folder: Path, options: Evolve | None = None) -> None:
        super().__init__(folder, options)
        if options is None:
            logs = (folder / EVALUATIONS).exists()
        else:
            logs = options.detailed_performance_logging or options.config().logs_evaluations
        self.listeners = [Evaluations(folder, EVALUATIONS)] if logs else []

    def check(self) -> None:
        """Also whether the packages for drawings are there."""
        check_installed("reports need", REPORT)
        super().check()

    def write(self, held: Store, records: Sequence[RunRecord]) -> Written:
        """The page, the figures, the best prompt, and births, curve and tests as tables."""
        if len(records) > 1:
            raise SettingsError("evolutions are not pooled: give one run")
        told = told_of(records[0], held.results(records[0]), about=_about(records[0]))
        written = write_report(self.folder, told)
        evaluations = [path for path in [self.folder / EVALUATIONS] if path.exists()]
        beside = (*(file for file in written.files if file != written.page), *evaluations)
        return Written(written.page, beside, told.analysis)

    def findings(self, held: Store, records: Sequence[RunRecord], summary_: Summary) -> Iterator[RenderableType]:
        """The verdict, the sealed test, and the evolved prompt."""
        return summary(msgspec.convert(summary_.analysis, Analysis))


def _about(record: RunRecord) -> list[tuple[str, str]]:
    """What else there is to say of a run, for those who want to do it again."""
    full = {name.removeprefix("model "): model for name, model in record.sources.items() if name.startswith("model ")}
    rows = [
        ("begun", f"{datetime.fromtimestamp(record.created_at, UTC):%Y-%m-%d %H:%M} UTC"),
        ("version", f"groundswell {version('groundswell')}"),
        ("in full", ", ".join(f"{name} is {model}" for name, model in full.items())),
    ]
    return [(name, value) for name, value in rows if value]


experiment = Experiment(
    "prompt-evolution",
    [Command("evolve", Evolve, [evolve], prepare, EvolutionResults, prefix="evolution")],
    about="Evolve a prompt, and test it on problems it never met.",
)
