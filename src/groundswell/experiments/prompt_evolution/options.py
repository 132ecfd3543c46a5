"""The options of `groundswell evolve`."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag, Place
from groundswell.experiments.prompt_evolution.config import PRESETS, Fitness
from groundswell.experiments.prompt_evolution.families import EASIEST, FAMILIES, HARDEST
from groundswell.experiments.prompt_evolution.population import SELECTIONS
from groundswell.experiments.prompt_evolution.problems import is_pattern, rows_in
from groundswell.experiments.prompt_evolution.settings import AUTO, BASELINES
from groundswell.store.tables import Located, format_of, read_table, write_table

TASK, SEARCH, STOPS, SPEED = "Task", "Search", "Stopping", "Concurrency"


class Lines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of a file of problems: JSON lines or a JSON array. `source` names the file in messages."""

    lines: str
    source: str = ""


def _read_task(text: str, place: Place) -> Any:
    """Names of problem families, or the problems of a file, a folder or a pattern as JSON."""
    named = text.strip()
    path = place.file(named)
    if named not in (*FAMILIES, "all") and (path.is_dir() or is_pattern(path)):
        return _as_lines(rows_in(path), named, place)
    return _read_file(named, place) if format_of(named) is not None or path.is_file() else named.split(",")


def _read_file(text: str, place: Place) -> Any:
    """The problems of a file as JSON. JSON stays as it is, so that errors name its lines."""
    path, format = place.file(text), format_of(text)
    if format in ("csv", "tsv", "parquet") and path.is_file():
        return _as_lines(read_table(path, format), text, place)
    return {"lines": place.text_of(text), "source": text}


def _as_lines(rows: Iterable[Located], named: str, place: Place) -> dict[str, str]:
    held, found = io.BytesIO(), list[dict[str, Any]]()
    try:
        for where, row in rows:
            if isinstance(row, ValueError):
                raise SettingsError(f"{named}: {where}: {row}")
            found.append(row)
    except SettingsError as error:
        raise SettingsError(f"{place.spelled} {error}") from error
    write_table(held, "json", found)
    return {"lines": held.getvalue().decode(), "source": named}


def _read_template(text: str, _: Place) -> str:
    """On a command line, a line break is easier to write as an escape sequence."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _read_prompt(text: str, place: Place) -> str:
    return place.text_of(text[1:]).rstrip("\n") if text.startswith("@") else text


def _read_texts(text: str, place: Place) -> Any:
    """The texts in a TOML or JSON file."""
    body = place.text_of(text)
    try:
        found = tomllib.loads(body) if text.endswith(".toml") else msgspec.json.decode(body)
    except (tomllib.TOMLDecodeError, msgspec.DecodeError) as error:
        kind = "TOML" if text.endswith(".toml") else "JSON"
        raise SettingsError(f"{place.spelled} {text}: is not valid {kind}: {error}") from error
    for name, value in found.items() if isinstance(found, dict) else ():
        if not isinstance(value, str):
            raise SettingsError(f"{place.spelled} {text}: {name!r} must be a text, not {value!r:.40}")
    return found


def _read_names(text: str, _: Place) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _one_of(names: Sequence[str]) -> Meta:
    """The allowed values, for the JSON schema. The configuration itself reports an unknown value."""
    return Meta(extra_json_schema={"enum": list(names)})


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """Concurrency and rate limits. None means the value of the preset, or the default without one."""

    preset: Annotated[
        Annotated[str, _one_of(PRESETS)] | None,
        Meta(
            description="Concurrency preset: balanced, conservative (2,000 requests per minute) or aggressive. The "
            "options below override single values. (The values of balanced, with the rate limits of the accounts.)"
        ),
        Flag(metavar="NAME", group=SPEED),
    ] = None
    async_batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Number of problems that a candidate is evaluated on at a time, with --racing. (2 to 10, by "
            "the budget; 20 if --max-generations is given.)"
        ),
        Flag(metavar="N", group=SPEED, also=["block"]),
    ] = None
    max_concurrent_requests: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Multiplied by --max-concurrent-genomes, this is the maximum number of requests in flight. (10)"
        ),
        Flag(metavar="N", group=SPEED),
    ] = None
    genome_batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Number of candidates evaluated at the same time. A new candidate can only have parents that "
            "were created at least this many candidates earlier. (1 to 4, by the budget.)"
        ),
        Flag(metavar="N", group=SPEED),
    ] = None
    max_concurrent_genomes: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Multiplied by --max-concurrent-requests, this is the maximum number of requests in flight. (5)"
        ),
        Flag(metavar="N", group=SPEED),
    ] = None
    rate_limit_per_minute: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Maximum number of requests per minute for each account used. (The known limit of the account.)"
        ),
        Flag(metavar="N", group=SPEED),
    ] = None
    async_timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Timeout of one attempt, in seconds. (The timeout of the account: 600.)"),
        Flag(metavar="SECONDS", group=SPEED),
    ] = None


class Evolve(Speed, frozen=True, kw_only=True):
    """Evolve a prompt on problems with known answers, and measure the result on a held-out test."""

    model: Annotated[
        tuple[str, ...],
        Meta(
            description="Model that solves the problems: provider/model, or an alias. If repeated, every model solves "
            "every problem, and the mean score counts. (emulated/gpt-4o-mini.)"
        ),
        Flag("-m", metavar="MODEL", group=TASK, commas=True, usual=True, also=["models"], completes="models"),
    ] = ()
    writer: Annotated[
        str | None,
        Meta(description="Model that writes new prompts. (The first --model.)"),
        Flag(metavar="MODEL", group=TASK, completes="models"),
    ] = None
    task: Annotated[
        tuple[str | dict[str, Any], ...] | Lines,
        Meta(
            description="Problems to solve: a file, or families of generated word problems. Families are arithmetic, "
            "comparison, groups, prices, quantity, rates and sharing, separated by commas, or all. A file has the "
            "columns question and answer, as in GSM8K (JSON lines, a JSON array, CSV, TSV or Parquet). In a folder, or "
            "with a pattern such as data/*.parquet, names of files such as train and test say which set their problems "
            "belong to; so does a column split."
        ),
        Flag(
            metavar="NAMES|FILE|FOLDER", group=TASK, usual=True, read=_read_task, also=["families"], completes="files"
        ),
    ] = ("all",)
    question_field: Annotated[
        str | None,
        Meta(description="Name of the question column in the file. (question)"),
        Flag(metavar="NAME", group=TASK),
    ] = None
    question_template: Annotated[
        str | None,
        Meta(
            description="Template that makes the question of several columns, such as "
            "'{context}\\n\\nQ: {question}', instead of --question-field."
        ),
        Flag(metavar="TEXT", group=TASK, read=_read_template),
    ] = None
    answer_field: Annotated[
        str | None,
        Meta(
            description="Name of the answer column in the file. If the text contains ####, only the part after it is "
            "the answer. (answer)"
        ),
        Flag(metavar="NAME", group=TASK),
    ] = None
    test_file: Annotated[
        tuple[dict[str, Any], ...] | Lines | None,
        Meta(
            description="File with the problems of the held-out test, in the same form. All of them are used, unless "
            "--test says fewer. None of them may be among the other problems."
        ),
        Flag(metavar="FILE", group=TASK, read=_read_file, completes="files"),
    ] = None
    metric: Annotated[
        str,
        Meta(
            description="Metric that scores a reply from 0 to 1: number (the final number is correct), text (the final "
            "text is correct), contains (the answer occurs in the reply), or module:name for your own."
        ),
        Flag(metavar="NAME", group=TASK, usual=True),
    ] = "number"
    difficulty: Annotated[
        Annotated[int, Meta(ge=EASIEST, le=HARDEST)] | None,
        Meta(description="Difficulty of generated problems: the number of steps and the size of the numbers. (3)"),
        Flag(metavar=f"{EASIEST}..{HARDEST}", group=TASK),
    ] = None
    train: Annotated[
        Annotated[int, Meta(ge=1, le=20_000)] | None,
        Meta(
            description="Number of training problems, which candidates are compared on. (200, or a quarter of a file "
            "with fewer than 800 problems.)"
        ),
        Flag(metavar="N", group=TASK),
    ] = None
    validation: Annotated[
        Annotated[int, Meta(ge=1, le=20_000)] | None,
        Meta(
            description="Number of validation problems, which the winner is chosen on. (200, or a quarter of a file "
            "with fewer than 800 problems.)"
        ),
        Flag(metavar="N", group=TASK),
    ] = None
    test: Annotated[
        Annotated[int, Meta(ge=1, le=20_000)] | None,
        Meta(
            description="Number of held-out test problems, used once, at the end. (400, or half of a file with fewer "
            "than 800 problems.)"
        ),
        Flag(metavar="N", group=TASK),
    ] = None
    seed_prompt: Annotated[
        tuple[str, ...],
        Meta(
            description="Prompt to start from. May be repeated. The result is compared with the first one. (A short "
            "general prompt.)"
        ),
        Flag(metavar="TEXT|@FILE...", group=TASK, usual=True, read=_read_prompt, also=["seeds", "seed_prompts"]),
    ] = ()
    program: Annotated[
        str,
        Meta(
            description="Program of your own that solves the problems with several texts, as module:name. Its texts "
            "are evolved instead of a prompt. It sets the options of its requests itself."
        ),
        Flag(metavar="MODULE:NAME", group=TASK, over_http=False),
    ] = ""
    seed_texts: Annotated[
        dict[str, str] | None,
        Meta(
            description="Texts of the --program to start from: a TOML or JSON file with a text for each name, such as "
            "the best_prompt.json of another run."
        ),
        Flag(metavar="FILE", group=TASK, read=_read_texts, completes="files", over_http=False),
    ] = None
    temperature: Annotated[
        float,
        Meta(ge=0, description="Sampling temperature for the model that solves the problems."),
        Flag(metavar="NUMBER", group=TASK),
    ] = 0.0
    reply_tokens: Annotated[
        int,
        Meta(ge=1, description="Maximum number of tokens in a reply to a problem."),
        Flag(metavar="N", group=TASK),
    ] = 300
    about: Annotated[
        str,
        Meta(description="What the prompts are for, in a sentence or two. The model that writes prompts sees this."),
        Flag(metavar="TEXT|@FILE", group=TASK, read=_read_prompt),
    ] = ""
    auto: Annotated[
        str,
        _one_of(tuple(AUTO)),
        Meta(
            description="Budget of each search: light (1,500 requests), medium (5,000) or heavy (20,000). All sizes of "
            "the search follow from its budget. --max-asks, --max-usd and --max-seconds set a budget of your own."
        ),
        Flag(metavar="light|medium|heavy", group=SEARCH, usual=True),
    ] = "medium"
    population_size: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="Number of candidates kept as possible parents. (5 to 8, by the budget.)"),
        Flag(metavar="N", group=SEARCH),
    ] = None
    max_generations: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(
            description="Number of generations. Each one creates --population-size new candidates. (No limit: until "
            "the budget is used.)"
        ),
        Flag(metavar="N", group=SEARCH),
    ] = None
    from_run: Annotated[
        str | None,
        Meta(description="Start from the best prompts of this finished run, in addition to --seed-prompt."),
        Flag(metavar="RUN", group=SEARCH, completes="runs"),
    ] = None
    selection: Annotated[
        str,
        _one_of(SELECTIONS),
        Meta(
            description="How parents are selected. thompson: by estimated accuracy, with some noise where the estimate "
            "is uncertain."
        ),
        Flag(metavar="thompson|tournament|roulette|rank", group=SEARCH),
    ] = "thompson"
    tournament_size: Annotated[
        int,
        Meta(ge=1, description="For tournament selection: the best of this many random candidates becomes a parent."),
        Flag(metavar="N", group=SEARCH, also=["tournament"]),
    ] = 5
    elite_size: Annotated[
        int,
        Meta(ge=0, description="Number of best candidates that are never removed from the population."),
        Flag(metavar="N", group=SEARCH, also=["elite"]),
    ] = 2
    operators: Annotated[
        dict[str, Annotated[float, Meta(ge=0)]] | None,
        Meta(
            description="Relative frequency of each operator at the start. With a model: reflect (shows failed "
            "problems), combine, paraphrase. Without: examples (worked examples from the training problems), shorten. "
            "Random edits: insert, delete, swap, duplicate, neighbour. Crossovers: single_point, two_point, uniform. "
            "(reflect=10, combine=0.3, examples=0.3, shorten=0.2; then by what has worked.)"
        ),
        Flag(metavar="NAME=WEIGHT,...", group=SEARCH),
    ] = None
    writer_temperature: Annotated[
        float,
        Meta(ge=0, description="Sampling temperature for the model that writes prompts."),
        Flag(metavar="NUMBER", group=SEARCH),
    ] = 1.0
    writer_tokens: Annotated[
        int,
        Meta(ge=1, description="Maximum number of tokens in a reply of the model that writes prompts."),
        Flag(metavar="N", group=SEARCH),
    ] = 2_000
    writer_template: Annotated[
        str,
        Meta(
            description="Message to the model that writes prompts, instead of the built-in one. {prompt}, {failures}, "
            "{successes} and {task} are replaced; the first two are required."
        ),
        Flag(metavar="TEXT|@FILE", group=SEARCH, read=_read_prompt),
    ] = ""
    failures_shown: Annotated[
        int,
        Meta(
            ge=1, le=100, description="Maximum number of failed problems that the model sees when it writes a prompt."
        ),
        Flag(metavar="N", group=SEARCH),
    ] = 6
    fitness: Annotated[
        str,
        _one_of(get_args(Fitness)),
        Meta(
            description="What selection maximises: accuracy; composite, a weighted sum of accuracy, consistency, "
            "efficiency, diversity and length; or pareto, both accuracy and few tokens."
        ),
        Flag(metavar="accuracy|composite|pareto", group=SEARCH),
    ] = "accuracy"
    racing: Annotated[
        bool,
        Meta(description="Evaluate candidates on few problems first, and on more when they become parents."),
        Flag(group=SEARCH),
    ] = True
    finalists: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Number of best candidates per search that are evaluated on validation problems. (2 to 10, by "
            "the budget.)"
        ),
        Flag(metavar="N", group=SEARCH),
    ] = None
    polish: Annotated[
        bool,
        Meta(
            description="Let the model shorten and correct the chosen prompt. The result is kept if its validation "
            "score is not lower."
        ),
        Flag(group=SEARCH),
    ] = True
    ablation: Annotated[
        bool,
        Meta(description="Measure what each sentence of the chosen prompt contributes, on validation problems."),
        Flag(group=SEARCH),
    ] = True
    baselines: Annotated[
        tuple[str, ...],
        Meta(
            description="Baseline searches to compare with, each with as many requests as the evolution: random, "
            "best_of_n; or none."
        ),
        Flag(metavar="NAMES", group=SEARCH, read=_read_names),
    ] = BASELINES
    target_fitness: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Stop when the best candidate has this fitness."),
        Flag(metavar="SHARE", group=STOPS),
    ] = None
    plateau: Annotated[
        int,
        Meta(ge=0, description="Stop after this many generations without a new best candidate; 0 for never."),
        Flag(metavar="N", group=STOPS, also=["plateau_generations"]),
    ] = 0
    min_diversity: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="Stop when the mean word distance between two candidates of the population is this or less: "
            "from 0, the same words, to 1, no words in common."
        ),
        Flag(metavar="SHARE", group=STOPS),
    ] = None
    max_asks: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Maximum number of requests of the evolution, including those for choosing its winner. Each "
            "baseline search may use as many again. The held-out test is extra."
        ),
        Flag(metavar="N", group=STOPS, usual=True),
    ] = None
    max_usd: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="Maximum cost of the whole run in dollars. The cost of the held-out test is reserved at the "
            "start; evolution and baselines share the rest."
        ),
        Flag(metavar="USD", group=STOPS, usual=True, also=["usd"]),
    ] = None
    max_seconds: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Maximum time of all searches together, in seconds. The held-out test is extra."),
        Flag(metavar="SECONDS", group=STOPS),
    ] = None
    detailed_performance_logging: Annotated[
        bool,
        Meta(description="Write one record per evaluated candidate to evaluations.jsonl, next to the report."),
        Flag(group=SPEED),
    ] = False
