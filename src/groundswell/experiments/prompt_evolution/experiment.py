"""Prompt evolution as an experiment: turns options into settings, and writes the results."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import msgspec

from groundswell.engine.driver import driver_name
from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Command, Context, DataTable, Experiment, Plan, Results
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.answers import number_in
from groundswell.experiments.prompt_evolution.best import PROMPT, BestPrompt, write_prompt
from groundswell.experiments.prompt_evolution.blocks import blocks, unfinished_blocks
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig
from groundswell.experiments.prompt_evolution.data import data_tables
from groundswell.experiments.prompt_evolution.evaluations import Evaluations
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.families import FAMILIES
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.limits import accounts_of
from groundswell.experiments.prompt_evolution.metrics import find_metric, try_metric
from groundswell.experiments.prompt_evolution.options import Evolve, Lines, Speed
from groundswell.experiments.prompt_evolution.problems import (
    SETS,
    Problem,
    Problems,
    Sizes,
    fitting,
    generated,
    picked,
    pools_of,
    shared_out,
)
from groundswell.experiments.prompt_evolution.programs import find_task_program
from groundswell.experiments.prompt_evolution.reading import Evolved, Unfinished, read_evolution
from groundswell.experiments.prompt_evolution.settings import BASELINES, EMULATED, SEED_PROMPT
from groundswell.experiments.results import Blocks
from groundswell.reporting.blocks import Block
from groundswell.store.atomic import replacing
from groundswell.store.journal import Store
from groundswell.store.tables import Located, json_rows

AS_CALLED = (
    *(
        "auto",
        "about",
        "population_size",
        "max_generations",
        "selection",
        "tournament_size",
        "elite_size",
        "fitness",
        "racing",
    ),
    *("writer_temperature", "writer_tokens", "writer_template", "failures_shown", "polish", "ablation"),
    *("finalists", "target_fitness", "min_diversity", "max_asks", "max_usd", "max_seconds", "temperature", "metric"),
    "program",
)
"""Options with the same name in the configuration."""
ALL, FAMILY, NONE = "all", "-family", "none"
FEWEST = 4
"""Fewer problems cannot be split into three sets."""
SETTINGS, EVALUATIONS = "settings.json", "evaluations.jsonl"
NOBODY_NAMED = (
    f"No model given: using {EMULATED}, an emulated model that runs in this process at no cost. To use a real model, "
    "name it, for example openai/gpt-4o-mini."
)


FIGURES = tuple(name for name in Speed.__struct_fields__ if name != "preset")


def config_of(speed: Speed, **said: Any) -> AsyncEvolutionConfig:
    """The configuration with these concurrency options and fields."""
    said |= {name: value for name in FIGURES if (value := getattr(speed, name)) is not None}
    return AsyncEvolutionConfig(**said) if speed.preset is None else AsyncEvolutionConfig.preset(speed.preset, **said)


def prepare(options: Evolve, context: Context) -> Plan:
    """The settings and the engine options of an evolution. Explicit account settings take precedence."""
    chosen = context.choices
    for name in ("max_concurrent_requests", "max_concurrent_genomes"):
        if chosen.max_concurrent is not None and getattr(options, name) is not None:
            raise SettingsError(
                f"{name}: max_concurrent also limits the requests in flight; give only one of the two", field=name
            )
    context.allow_own_modules([options.metric, options.program])
    find_metric(options.metric)
    if options.program:
        find_task_program(options.program)
    problems, notes = _problems(options, chosen.seed)
    try_metric(options.metric, problems.train[0])
    models = context.models(options.model or [EMULATED])
    config = _config(options, models, problems, chosen.seed, _seeds(options, context))
    account = (*accounts_of(config, chosen.account), *chosen.account)
    return Plan(
        config.settings,
        notes=(*([] if options.model else [NOBODY_NAMED]), *notes, _announced(config)),
        choices={"max_concurrent": chosen.max_concurrent or config.most_in_flight, "account": account},
        resolved={"model": models},
    )


def _seeds(options: Evolve, context: Context) -> dict[str, Any]:
    """The seed prompts, or the seed texts of a program; each once, with those of an earlier run."""
    earlier, own = _earlier(options.from_run, context), bool(options.program)
    if own and options.seed_prompt:
        raise SettingsError("seed_prompt: a program has several texts; give seed_texts instead", field="seed_prompt")
    if not own and options.seed_texts is not None:
        raise SettingsError("seed_texts: these are texts of a program, but no program is given", field="seed_texts")
    if any(bool(each.texts) != own for each in earlier):
        has = "texts of a program" if earlier[0].texts else "a prompt"
        raise SettingsError(f"from_run: {options.from_run!r} evolved {has}, and this run does not", field="from_run")
    if not own:
        prompts = (*(options.seed_prompt or (SEED_PROMPT,)), *(each.text for each in earlier))
        return {"seed_prompts": tuple(dict.fromkeys(prompts))}
    given = [Genome.named(options.seed_texts)] if options.seed_texts else []
    if not given and not earlier:
        raise SettingsError("seed_texts: give the texts of the program to start from", field="seed_texts")
    return {"seed_texts": tuple(each.texts for each in dict.fromkeys((*given, *earlier)))}


def _earlier(name: str | None, context: Context) -> tuple[Genome, ...]:
    """The best prompts of a finished evolution in the store, the shipped one first."""
    if name is None:
        return ()
    with context.opened() as store:
        record = None if store is None else store.runs.find(name)
        if store is None or record is None:
            raise SettingsError(f"from_run: there is no run {name!r} in {context.store}", field="from_run")
        if record.driver != driver_name(evolve) or record.analysis is None:
            raise SettingsError(f"from_run: {name!r} is not a finished evolution", field="from_run")
        found = msgspec.json.decode(record.analysis, type=Analysis)
    best = [each.genome for search in found.searches for each in search.finalists[:1]]
    return (found.deployed.genome, *best)


def _config(
    options: Evolve, models: tuple[str, ...], problems: Problems, seed: int, seeds: dict[str, Any]
) -> AsyncEvolutionConfig:
    said = {name: value for name in AS_CALLED if (value := getattr(options, name)) is not None}
    said |= {"model": models, "writer": options.writer or "", "problems": problems, "seed": seed}
    said |= {"max_tokens": options.reply_tokens, "plateau_generations": options.plateau or None}
    said |= {"baselines": _baselines(options.baselines), **seeds}
    if options.operators is not None:
        said["operators"] = options.operators
    return config_of(options, **said)


def _announced(config: AsyncEvolutionConfig) -> str:
    """The note on what is about to run."""
    settings, problems = config.settings, config.settings.problems
    solvers = ", ".join(settings.models)
    writer = "" if settings.by == solvers else f" {settings.by} writes new prompts."
    baselines = f" Baselines: {', '.join(settings.baselines)}." if settings.baselines else ""
    shape, stops = settings.shape, settings.stops
    limits = [f"{shape.births:,} candidates"] if shape.births is not None else []
    limits += [f"{shape.asks:,} requests"] if shape.asks is not None else []
    limits += [f"${stops.usd:g} for the whole run"] if stops.usd is not None else []
    limits += [f"{stops.seconds:g} s"] if stops.seconds is not None else []
    texts = ", ".join(settings.seeds[0].texts)
    what = f"the texts of {config.program} ({texts})" if texts else "a prompt"
    return (
        f"Evolving {what} for {solvers}, with at most {' and '.join(limits)}.{writer} Problems: "
        f"{len(problems.train):,} training, {len(problems.validation):,} validation, {len(problems.test):,} held-out "
        f"test ({problems.source or 'given'}).{baselines}"
    )


def _baselines(named: Sequence[str]) -> tuple[str, ...]:
    """Check the names of the baseline searches."""
    for name in named if [*named] != [NONE] else ():
        if name not in BASELINES:
            raise SettingsError(
                f"baselines: unknown baseline {name!r}; choose from {', '.join(BASELINES)}, or {NONE}",
                field="baselines",
            )
    return tuple(name for name in dict.fromkeys(named) if name != NONE)


def _problems(options: Evolve, seed: int) -> tuple[Problems, Sequence[str]]:
    """Generated problems, or the user's own; and notes on how they were split."""
    task = options.task
    named = [] if isinstance(task, Lines) else [each for each in task if isinstance(each, str)]
    if isinstance(task, Lines) or (task and not named):
        return _own(options, *_rows(task), seed)
    if len(named) < len(task):
        raise SettingsError(
            "task: contains both names of problem families and problems of your own; use one or the other", field="task"
        )
    for name in ("question_field", "question_template", "answer_field", "test_file"):
        if getattr(options, name) is not None:
            raise SettingsError(
                f"{name}: only applies to your own problems, but task is {', '.join(named)}; omit it", field=name
            )
    return generated(_families(named), options.difficulty or 3, _sizes(options), seed), ()


def _families(names: Sequence[str]) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(name.strip().lower().removesuffix(FAMILY) for name in names))
    for name in named:
        if name not in (*FAMILIES, ALL):
            there = ", ".join(FAMILIES)
            raise SettingsError(
                f"task: unknown problem family {name!r}; choose from {there}, {ALL}, or give a file such as mine.jsonl",
                field="task",
            )
    return FAMILIES if ALL in named else named


def _sizes(options: Evolve) -> Sizes:
    return Sizes(**{name: value for name in SETS if (value := getattr(options, name)) is not None})


def _own(options: Evolve, rows: Iterable[Located], source: str, seed: int) -> tuple[Problems, Sequence[str]]:
    """The user's own problems, and notes on how they were split."""
    if options.difficulty is not None:
        raise SettingsError(
            f"difficulty {options.difficulty}: only applies to generated problems, but these come "
            f"from {source or 'task'}; omit difficulty",
            field="difficulty",
        )
    where = f"task {source}".strip()
    found, test, test_source = _picked(options, rows, where), list[Problem](), ""
    if options.test_file is not None:
        rows, test_source = _rows(options.test_file)
        test = _picked(options, rows, f"test_file {test_source}".strip(), field="test_file")
    _check_numbers(options, [*found, *test])
    try:
        pools = pools_of(found, test)
    except SettingsError as error:
        about_test = test and error.field == "test"
        said = f"test_file {test_source}".strip() if about_test else where
        raise SettingsError(f"{said}: {error}", field="test_file" if about_test else "task") from error
    asked = {name: value for name in SETS if (value := getattr(options, name)) is not None}
    if test:
        asked.setdefault("test", len(test))
    if len(pools) == 1 and not asked and len(found) < FEWEST:
        raise SettingsError(
            f"{where}: has {len(found)} problems, but at least {FEWEST} are needed; add more problems", field="task"
        )
    sizes = fitting(pools, asked)
    drawn = "; test: ".join((source, *([test_source or "given"] if test else [])))
    try:
        problems = shared_out(found, sizes, seed, source=drawn, test=test)
    except SettingsError as error:
        said = str(error).removeprefix(drawn or "problems")
        raise SettingsError(f"{where}{said} (train, validation, test)", field="task") from error
    splits = {each.split for each in found}
    return problems, [] if asked and len(pools) == 1 else _split_notes(pools, splits, sizes, drawn or "task")


def _rows(given: Sequence[Any] | Lines) -> tuple[Iterable[Located], str]:
    """The rows of problems that were given, each with its place, and the name of their file."""
    if isinstance(given, Lines):
        return json_rows(io.StringIO(given.lines, newline="\n")), given.source
    return ((f"problem {number}", row) for number, row in enumerate(given, 1)), ""


def _picked(options: Evolve, rows: Iterable[Located], where: str, field: str = "task") -> list[Problem]:
    if options.question_template is not None and options.question_field is not None:
        raise SettingsError(
            "question_template: already says which columns make the question; omit question_field",
            field="question_template",
        )
    fields = {"question": options.question_field or "question", "answer": options.answer_field or "answer"}
    return picked(rows, where, **fields, template=options.question_template, field=field)


def _split_notes(pools: Mapping[str, Sequence[Problem]], splits: Set[str], sizes: Sizes, source: str) -> list[str]:
    """How problems were split, if it is not the default split."""
    used = f"{sizes.train:,} for training, {sizes.validation:,} for validation and {sizes.test:,} for the held-out test"
    if len(pools) == 1:
        whole = f"{source} has {len(pools['train']):,} problems: {used}."
        return [] if sizes == Sizes() else [f"{whole} Set train, validation and test for another split."]
    notes = [
        f"{source}: {', '.join(f'{len(pool):,} {name}' for name, pool in pools.items())} problems; used are {used}."
    ]
    if "validation" not in pools:
        notes.append("There are no validation problems of their own: they are drawn from train.")
    if len(splits) > 1 and "test" not in splits and "validation" not in pools:
        notes.append("There is no test split: the validation split is the held-out test.")
    return notes


def _check_numbers(options: Evolve, problems: Sequence[Problem]) -> None:
    """Refuse answers that are not numbers if the metric compares numbers: no reply could be correct."""
    strange = [each.answer for each in problems if number_in(each.answer) is None]
    if options.metric == "number" and strange:
        raise SettingsError(
            f"metric number: {len(strange):,} of {len(problems):,} answers are not numbers, for example "
            f"{strange[0][:40]!r}; use the metric `text` or `contains`, or a metric of your own",
            field="metric",
        )


class EvolutionResults(Results):
    """The files of an evolution: report, best prompt, settings and, if switched on, evaluations.

    The best prompt so far is written during the run.
    """

    kind = "Prompt evolution"
    needs_drawing = True
    reports_unfinished = True
    table_names = ("births", "curve", "tests")

    def __init__(self, folder: Path, options: Any = None, make_blocks: Blocks | None = None) -> None:
        super().__init__(folder, options, make_blocks)
        if options is None:
            logs = (folder / EVALUATIONS).exists()
        else:
            logs = options.detailed_performance_logging or config_of(options).logs_evaluations
        self.listeners = [BestPrompt(folder, PROMPT), *([Evaluations(folder, EVALUATIONS)] if logs else [])]

    def read(self, held: Store, records: Sequence[RunRecord]) -> Evolved | Unfinished:
        """Read the data of the report."""
        return read_evolution(held, records[0])

    def blocks(self, found: Evolved | Unfinished) -> Iterator[Block]:
        """The blocks of the report."""
        return unfinished_blocks(found) if isinstance(found, Unfinished) else blocks(found)

    def tables(self, found: Evolved | Unfinished) -> Iterator[DataTable]:
        """Candidates, progress of the searches, and the held-out test."""
        return data_tables(found)

    def write_more(self, held: Store, records: Sequence[RunRecord], found: Evolved | Unfinished) -> list[Path]:
        """Write the prompt to deploy and the settings with all problems. Evaluations were written during the run."""
        best = found.best if isinstance(found, Unfinished) else found.deployed
        settings = self.folder / SETTINGS
        paths = [*write_prompt(self.folder / PROMPT, best.genome), settings]
        with replacing(settings) as out:
            out.write(msgspec.json.format(msgspec.json.encode(found.settings), indent=2) + b"\n")
        return [*paths, *(path for path in [self.folder / EVALUATIONS] if path.exists())]


experiment = Experiment(
    "prompt-evolution",
    [Command("evolve", Evolve, [evolve], prepare, EvolutionResults, prefix="evolution", function="evolve")],
    about="Evolve a prompt, and measure it on a held-out test.",
)
