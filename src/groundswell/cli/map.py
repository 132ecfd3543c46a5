"""`groundswell map`: one prompt over the rows of a table, with the replies beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated

from groundswell.cli import output
from groundswell.cli.options import RunFlags
from groundswell.cli.prompts import (
    Models,
    ReplyTokens,
    SchemaFile,
    Seed,
    Temperature,
    as_unicode,
    models_of,
    read_schema,
    read_text,
)
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from groundswell.engine.engine import Engine
    from groundswell.engine.summary import Paid, Summary
    from groundswell.experiments.prompting.figures import CheckFigures, Difference, ModelFigures
    from groundswell.experiments.prompting.mapping import Mapped, Settings
    from groundswell.experiments.prompting.tables import Format, Survey
    from groundswell.store.results import FaultCount

CHECKS = "Checks"


class Form(StrEnum):
    """What a table can look like."""

    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    JSON = "json"
    PARQUET = "parquet"


def map_table(
    flags: RunFlags,
    data: Annotated[
        Path,
        Meta(description="A table: CSV, TSV, JSON lines, JSON or Parquet."),
        Flag(argument=True, metavar="DATA"),
    ],
    *,
    prompt: Annotated[
        str,
        Meta(description="What is asked about every row, with {column} where a cell goes; @FILE reads it from a file."),
        Flag("-p", metavar="TEMPLATE"),
    ],
    model: Models = None,
    system: Annotated[
        str | None,
        Meta(description="What the models are told beforehand; a template too."),
        Flag(metavar="TEMPLATE"),
    ] = None,
    out: Annotated[
        Path | None,
        Meta(description="Where the rows go. (x.replies.csv for x.csv.)"),
        Flag("-o", metavar="FILE"),
    ] = None,
    overwrite: Annotated[bool, Meta(description="Replace the file, whoever wrote it.")] = False,
    form: Annotated[
        Form | None,
        Meta(description="The form of DATA, where its name does not say it."),
        Flag(long="--format"),
    ] = None,
    limit: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The first N rows only."),
        Flag(metavar="N"),
    ] = None,
    name: Annotated[
        str | None,
        Meta(description="A name for the run. (Made of DATA's name and all that is asked.)"),
    ] = None,
    schema: SchemaFile = None,
    reply_tokens: ReplyTokens = None,
    temperature: Temperature = None,
    seed: Seed = 0,
    check: Annotated[
        list[str] | None,
        Meta(
            description="What should be true of a reply, as: contains {answer} | regex /yes/i | json.score >= 7 | "
            'judge "is it polite?". May be repeated.'
        ),
        Flag(metavar="CHECK", group=CHECKS),
    ] = None,
    judge: Annotated[
        str | None,
        Meta(description="Who answers `judge`. (The first model.)"),
        Flag(metavar="MODEL", group=CHECKS),
    ] = None,
    embedder: Annotated[
        str | None,
        Meta(description="Who embeds texts for `similar`."),
        Flag(metavar="MODEL", group=CHECKS),
    ] = None,
) -> None:
    """Ask the same about every row of a table. Given again, it goes on where it was left and pays nothing twice."""
    from groundswell.cli.running import run_and_report
    from groundswell.engine.options import RunOptions
    from groundswell.engine.summary import summarise
    from groundswell.estimate.declared import estimate_of
    from groundswell.experiments.prompting.mapping import Settings, check_writable, map_rows, may_replace, noted
    from groundswell.experiments.prompting.tables import Source

    given = Settings(
        Source(as_unicode(str(data), "DATA"), _form_of(data, form), "", 0),
        (),
        _template(prompt, "--prompt"),
        models_of(model, flags.account),
        as_unicode(str(out or data.with_name(f"{data.stem}.replies{data.suffix}")), "--out"),
        _form_of(data, form),
        None if system is None else _template(system, "--system"),
        read_schema(schema),
        reply_tokens,
        temperature,
        tuple(as_unicode(each, "--check") for each in check or ()),
        judge,
        embedder,
        limit,
    )
    settings = _surveyed(given, out)
    title = name or _name(settings, seed)
    options = flags.run_options(RunOptions())

    async def work(engine: Engine) -> Summary:
        before = engine.store.runs.find(title)
        writer = _writer(flags.store, settings.out)
        if writer not in (None, title):
            output.say(f"note: {settings.out} is replaced; run {writer} wrote it, and has all that is in it")
        with may_replace(settings.out) if overwrite or writer else nullcontext():
            if before is None or before.analysis is not None:  # one that was killed must look what it has
                check_writable(settings, None if before is None else noted(before.analysis))
            summary = await engine.drive(map_rows, settings, name=title, seed=seed, options=options)
        if before is not None and summarise(before).asks == summary.asks:
            output.say(f"nothing was asked: {title} is a run that you have; its file was written anew")
        return summary

    run_and_report(work, flags, report=_report, estimate=lambda: estimate_of(map_rows, settings))


def _writer(store: str, out: str) -> str | None:
    """The run that wrote the file as it is now, if one did: then nothing is lost with it."""
    from groundswell.cli.stored import opened
    from groundswell.engine.driver import driver_name
    from groundswell.experiments.prompting.mapping import map_rows, noted
    from groundswell.experiments.prompting.sheets import fingerprint_of

    there = fingerprint_of(Path(out))
    if there is None:
        return None
    with opened(store) as held:
        ours = [run for run in held.runs.list() if run.driver == driver_name(map_rows)]
    return next((run.title for run in ours if there == noted(run.analysis)), None)


def _form_of(path: Path, form: Form | None) -> Format:
    from groundswell.experiments.prompting.tables import format_of

    if path.name in ("", "-"):
        raise SettingsError(f"DATA {path}: rows are read more than once, so they must be in a file")
    return form.value if form is not None else format_of(path, f"DATA {path}")


def _template(text: str, flag: str) -> str:
    found = read_text(Path(text[1:]), f"{flag} @") if text.startswith("@") else as_unicode(text, flag)
    if not found.strip():
        raise SettingsError(f"{flag}: there is nothing in it")
    return found


def _surveyed(given: Settings, out: Path | None) -> Settings:
    """The settings with what is in the data; whatever is wrong with either is told here, before anything is sent."""
    import msgspec

    from groundswell.experiments.prompting.mapping import read_work
    from groundswell.experiments.prompting.tables import format_of, survey
    from groundswell.experiments.prompting.templates import check_columns

    work = read_work(given)
    if given.embedder is None and any(check.graded and not check.judged for check in work.checks):
        raise SettingsError("--embedder: `similar` needs a model for embeddings, as openai/text-embedding-3-small")
    needed = {"--prompt": work.prompt.columns, "--system": [] if work.system is None else work.system.columns}
    needed |= {f"--check {text}": check.columns for text, check in zip(given.checks, work.checks, strict=True)}
    path = Path(given.data.path)
    found = survey(path, given.data.format, [name for names in needed.values() for name in names])
    for flag, names in needed.items():
        check_columns(names, found.columns, flag)
    if out == Path("-"):
        raise SettingsError("--out -: a run that goes on writes its file anew, so it must have one: give --out FILE")
    form = given.form if out is None else format_of(out, f"--out {out}")
    _check_out(path, Path(given.out), form, found)
    settings = msgspec.structs.replace(
        given, data=found.source, columns=tuple(found.columns), out=str(Path(given.out).absolute()), form=form
    )
    for wanted, name in read_work(settings).columns.renamed():
        output.say(f"note: the data has a column {wanted!r} already, so that of the replies is {name!r}")
    return settings


def _check_out(data: Path, out: Path, form: Format, found: Survey) -> None:
    from groundswell.experiments.prompting.tables import polars_for

    parent = out.absolute().parent
    try:
        if out.absolute() == data.absolute() or (out.exists() and out.samefile(data)):
            raise SettingsError(f"--out {out}: this is the data itself; the rows go to a file of their own")
        if not parent.is_dir():
            raise SettingsError(f"--out {out}: the folder {out.parent} does not exist")
        with NamedTemporaryFile(prefix=f"{out.name}.", dir=parent):
            """Found out before anything is paid for: a file can be made there."""
    except OSError as error:
        raise SettingsError(f"--out {out}: no file can be made there: {error.strerror or error}") from error
    if form == "parquet":
        polars_for(f"--out {out}")
    if form in ("csv", "tsv") and found.nested is not None:
        raise SettingsError(
            f"--out {out}: column {found.nested!r} holds lists or objects, which {form.upper()} cannot: "
            f"give --out {out.with_suffix('.jsonl')}"
        )


def _name(settings: Settings, seed: int) -> str:
    """A name that is the same for the same command, and another one for any other."""
    from hashlib import blake2b

    from groundswell.program.request import canonical

    digest = blake2b(canonical([settings, seed]), digest_size=4).hexdigest()
    return f"{Path(settings.data.path).stem}-{digest}"


def _report(summary: Summary, faults: Sequence[FaultCount]) -> None:
    import msgspec

    from groundswell.experiments.prompting.mapping import Mapped

    output.print_outcome(msgspec.structs.replace(summary, analysis=None), faults)
    if summary.analysis is not None:
        _print_mapped(msgspec.convert(summary.analysis, Mapped), summary.models)


def _print_mapped(mapped: Mapped, paid: Mapping[str, Paid]) -> None:
    figures = mapped.figures
    output.line()
    _print_models(figures.models, paid)
    if any(model.checks for model in figures.models):
        output.line()
        _print_checks(figures.models)
    for difference in figures.differences:
        output.line(_compared(difference))
    output.line()
    rows = "1 row" if mapped.file.rows == 1 else f"{mapped.file.rows:,} rows"
    output.line(f"{rows} written to {mapped.file.path}")


def _print_models(models: Sequence[ModelFigures], paid: Mapping[str, Paid]) -> None:
    """A line for each model that was asked, and for each that judged or compared; what was there already is free."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("model")
    pending = ["pending"] if any(model.pending for model in models) else []
    for column in ("rows", "usable", "missing", *pending, "tokens in", "out", "cost"):
        table.add_column(column, justify="right")
    for model in models:
        counts = [model.rows, model.usable, model.missing, *([model.pending] if pending else [])]
        cells = [f"{count:,}" for count in (*counts, model.input_tokens, model.output_tokens)]
        table.add_row(escape(model.model), *cells, _paid(paid.get(model.model)))
    asked = {model.model for model in models}
    for name, other in paid.items():
        if name not in asked:
            tokens = [f"{count:,}" for count in (other.input_tokens, other.output_tokens)]
            table.add_row(f"{escape(name)}, for checks", *[""] * (3 + len(pending)), *tokens, _paid(other))
    output.print_table(table)


def _paid(paid: Paid | None) -> str:
    return output.cost(0.0, 0) if paid is None else output.cost(paid.cost.usd, paid.cost.unknown_asks)


def _print_checks(models: Sequence[ModelFigures]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("check", "model"):
        table.add_column(column)
    unknown = ("not known",) if any(check.unknown for model in models for check in model.checks) else ()
    for column in ("passed", "rate", "95% interval", *unknown):
        table.add_column(column, justify="right")
    for number, check in enumerate(models[0].checks):
        for model in models:
            cells = _rate(model.checks[number])
            table.add_row(escape(check.check), escape(model.model), *cells[: 3 + len(unknown)])
    output.print_table(table)


def _rate(check: CheckFigures) -> tuple[str, str, str, str]:
    rate = "" if check.rate is None else f"{check.rate:.1%}"
    interval = "" if check.rate is None else f"{check.low:.1%} to {check.high:.1%}"
    return f"{check.passed:,}/{check.n:,}", rate, interval, f"{check.unknown:,}" if check.unknown else ""


def _compared(found: Difference) -> str:
    """Which of two models passes more often, as far as the rows that both have can tell."""
    if found.difference is None:
        return f"{found.check}: there is no row that both models have"
    one, other, points, low, high = found.first, found.second, found.difference, found.low, found.high
    if points < 0:
        one, other, points, low, high = other, one, -points, -high, -low
    measured = f"{_points(points)} points (95%: {_points(low)} to {_points(high)}; {found.rows:,} rows that both have)"
    if low > 0:
        return f"{found.check}: {one} passes more often than {other}, by {measured}"
    return f"{found.check}: no difference can be told; {one} less {other} is {measured}"


def _points(share: float) -> str:
    return f"{share * 100:.1f}"
