"""What `groundswell evolve` reads before it runs: problems, prompts, operators, and the configuration made of them."""

from __future__ import annotations

import re
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groundswell.cli import flagged
from groundswell.cli.flagged import see_own_modules
from groundswell.cli.prompts import as_unicode, models_of, read_text
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from groundswell.cli.evolve_options import BenchFlags, EvolveFlags, SpeedFlags
    from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig
    from groundswell.experiments.prompt_evolution.problems import Problem, Problems, Sizes

SPEED = (
    *("async_batch_size", "max_concurrent_requests", "genome_batch_size", "max_concurrent_genomes"),
    *("rate_limit_per_minute", "async_timeout"),
)
AS_CALLED = (
    *("population_size", "max_generations", "selection", "tournament_size", "elite_size", "fitness", "racing"),
    *("finalists", "target_fitness", "min_diversity", "max_asks", "max_usd", "temperature", "metric", "seed"),
)
FLAGS = {
    **{"models": "--model", "seeds": "--seed-prompt", "seed_prompts": "--seed-prompt", "max_tokens": "--reply-tokens"},
    **{"tournament": "--tournament-size", "elite": "--elite-size", "plateau_generations": "--plateau"},
    **{"usd": "--max-usd", "block": "--async-batch-size", "num_problems": "--problems", "families": "--task"},
}
"""The flags of fields that are called otherwise."""
SIZES = ("train", "validation", "test")
ALL, FAMILY, NONE = "all", "-family", "none"
FEWEST = 4
"""A file of fewer problems cannot be shared out."""
_A_FILE = re.compile(r".*\.(jsonl|json|ndjson)", re.IGNORECASE | re.DOTALL)


class Read(NamedTuple):
    """The problems, and what is to be said of how they were shared out."""

    problems: Problems
    note: str = ""


class Configured(NamedTuple):
    """The configuration of an evolution, and what is to be said of how it came to be."""

    config: AsyncEvolutionConfig
    notes: tuple[str, ...] = ()


def by_flag(error: SettingsError) -> SettingsError:
    """An error that begins with the name of a field, as the command line knows it."""
    return flagged.by_flag(error, FLAGS)


def config_of(flags: EvolveFlags) -> Configured:
    """The configuration that flags say."""
    from groundswell.experiments.prompt_evolution.metrics import find_metric

    see_own_modules([flags.metric])
    try:
        find_metric(as_unicode(flags.metric, "--metric"))
        read = read_problems(flags)
        said = {name: value for name in AS_CALLED if (value := getattr(flags, name)) is not None}
        said |= {"problems": read.problems, "max_tokens": flags.reply_tokens}
        said |= {"plateau_generations": flags.plateau or None, "baselines": read_baselines(flags.baselines)}
        said |= _models(flags)
        if flags.seed_prompt:
            said["seed_prompts"] = tuple(map(read_prompt, flags.seed_prompt))
        if flags.operators is not None:
            said["operators"] = read_operators(flags.operators)
        if flags.detailed_performance_logging:
            said["detailed_performance_logging"] = True
        return Configured(_made(flags, said), (read.note,) if read.note else ())
    except SettingsError as error:
        raise by_flag(error) from error


def bench_of(flags: BenchFlags) -> dict[str, Any]:
    """What a benchmark is told."""
    try:
        speed = _made(flags, {})
    except SettingsError as error:
        raise by_flag(error) from error
    found: dict[str, Any] = {name: value for name in SPEED if (value := getattr(speed, name)) is not None}
    found |= {"population_size": flags.population_size, "num_problems": flags.problems}
    return found if flags.model is None else {**found, "model": as_unicode(flags.model, "--model")}


def _made(flags: SpeedFlags, said: dict[str, Any]) -> AsyncEvolutionConfig:
    from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig

    speed = {name: value for name in SPEED if (value := getattr(flags, name)) is not None}
    if flags.preset is None:
        return AsyncEvolutionConfig(**said, **speed)
    return AsyncEvolutionConfig.preset(flags.preset, **said, **speed)


def _models(flags: EvolveFlags) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if flags.model:
        found["model"] = models_of(flags.model, flags.account)
    if flags.writer is not None:
        found["writer"] = as_unicode(flags.writer, "--writer")
    return found


def read_problems(flags: EvolveFlags) -> Read:
    """The problems of families, or of a file."""
    task = as_unicode(flags.task, "--task").strip()
    path = Path(task).expanduser()
    if path.is_file() or _A_FILE.fullmatch(task):
        return _of_a_file(flags, path)
    for name in ("question_field", "answer_field"):
        if getattr(flags, name) is not None:
            raise SettingsError(f"{flagged.flag_of(name, FLAGS)}: is for --task FILE.jsonl, and --task is {task}")
    from groundswell.experiments.prompt_evolution.problems import generated

    difficulty = {} if flags.difficulty is None else {"difficulty": flags.difficulty}
    return Read(generated(_families(task), sizes=_sizes(flags), seed=flags.seed, **difficulty))


def _families(task: str) -> tuple[str, ...]:
    from groundswell.experiments.prompt_evolution.families import FAMILIES

    named = tuple(dict.fromkeys(name.strip().lower().removesuffix(FAMILY) for name in task.split(",")))
    for name in named:
        if name not in (*FAMILIES, ALL):
            there = ", ".join(FAMILIES)
            raise SettingsError(
                f"--task: there is no {name!r}; there are {there}, {ALL}, or give a file, as mine.jsonl"
            )
    return FAMILIES if ALL in named else named


def _sizes(flags: EvolveFlags) -> Sizes:
    from groundswell.experiments.prompt_evolution.problems import Sizes

    return Sizes(**{name: value for name in SIZES if (value := getattr(flags, name)) is not None})


def _of_a_file(flags: EvolveFlags, path: Path) -> Read:
    """The problems of a file; all of them, where there are fewer than are wanted as a rule."""
    from groundswell.experiments.prompt_evolution.problems import Sizes, read_jsonl, shared_out

    if flags.difficulty is not None:
        raise SettingsError(f"--difficulty {flags.difficulty}: is for fresh problems, and these are those of {path}")
    try:
        found = read_jsonl(path, question=flags.question_field or "question", answer=flags.answer_field or "answer")
    except SettingsError as error:
        raise SettingsError(f"--task {error}", field="task") from error
    _check_numbers(flags, found)
    sizes, note = _sizes(flags), ""
    if sizes.whole > len(found) and all(getattr(flags, name) is None for name in SIZES):
        if len(found) < FEWEST:
            raise SettingsError(f"--task {path}: has {len(found)} problems, and at least {FEWEST} are needed")
        quarter = len(found) // 4
        sizes = Sizes(quarter, quarter, len(found) - 2 * quarter)
        note = f"{path} has {len(found):,} problems: {quarter:,} to train on, {quarter:,} to validate, and "
        note += f"{sizes.test:,} for the sealed test (--train, --validation, --test)"
    try:
        return Read(shared_out(found, sizes, flags.seed, source=str(path)), note)
    except SettingsError as error:
        raise SettingsError(f"--task {error} (--train, --validation, --test)", field="task") from error


def _check_numbers(flags: EvolveFlags, problems: list[Problem]) -> None:
    """Find out about answers that are no numbers where numbers are compared: no reply could be right."""
    from groundswell.experiments.prompt_evolution.answers import number_in

    if flags.metric != "number":
        return
    if strange := [each.answer for each in problems if number_in(each.answer) is None]:
        raise SettingsError(
            f"--metric number: {len(strange):,} of {len(problems):,} answers are no numbers, as {strange[0][:40]!r}: "
            "give --metric text, --metric contains, or one of yours"
        )


def read_prompt(given: str) -> str:
    """A prompt as it was given, or the one in a file."""
    text = as_unicode(given, "--seed-prompt")
    if text.startswith("@"):
        text = read_text(Path(text[1:]).expanduser(), "--seed-prompt").rstrip("\n")
    if not text.strip():
        raise SettingsError(f"--seed-prompt {given}: there is nothing in it; write a prompt, or @FILE")
    return text


def read_operators(given: str) -> dict[str, float]:
    """Operators with their weights; 1, unless said otherwise."""
    found: dict[str, float] = {}
    for part in as_unicode(given, "--operators").split(","):
        name, _, weight = (word.strip() for word in part.partition("="))
        try:
            found[name] = float(weight or 1)
        except ValueError:
            raise SettingsError(f"--operators {part.strip()}: write it as NAME=WEIGHT, as reflect=3") from None
        if not isfinite(found[name]) or found[name] < 0:
            raise SettingsError(f"--operators {part.strip()}: a weight is 0 or more")
    return found


def read_baselines(given: str) -> tuple[str, ...]:
    """Other searches, by name."""
    from groundswell.experiments.prompt_evolution.settings import BASELINES

    named = tuple(dict.fromkeys(name.strip() for name in as_unicode(given, "--baselines").split(",") if name.strip()))
    if named in ((), (NONE,)):
        return ()
    for name in named:
        if name not in BASELINES:
            raise SettingsError(f"--baselines: there is no {name!r}; there are {', '.join(BASELINES)}, or {NONE}")
    return named
