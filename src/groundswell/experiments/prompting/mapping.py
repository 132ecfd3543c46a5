"""The driver of `groundswell map`: one prompt per row of a table, and an output table with the replies.

specs_of    every row with every model, lazily
map_rows    sends all requests, then writes the table, also if the run was stopped
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from groundswell.engine.run import Run
from groundswell.errors import SettingsError
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.estimate.sample import SAMPLE, rehearse
from groundswell.experiments.prompting.checks import Check, parse_check
from groundswell.experiments.prompting.columns import Columns, plan_columns
from groundswell.experiments.prompting.figures import Figures, Tally
from groundswell.experiments.prompting.program import Answer, Prompt, reply
from groundswell.experiments.prompting.tables import Source, check_unchanged, fingerprint_of, rows, sheet
from groundswell.experiments.prompting.templates import Template, parse_template
from groundswell.experiments.prompting.verdicts import Graders, Verdict, grades_of, verdicts
from groundswell.experiments.settled import carry_out, settled
from groundswell.program.request import Chat, Embed, Fault, Message, system, user
from groundswell.store.tables import Format, Row

_replaceable: set[str] = set()
"""Files that the user allowed to be replaced. This is not part of the settings, since it does not change the run."""


@contextmanager
def may_replace(out: str) -> Iterator[None]:
    """Allow a file to be replaced during the block, whoever wrote it."""
    _replaceable.add(out)
    try:
        yield
    finally:
        _replaceable.discard(out)


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of `map`."""

    data: Source
    columns: tuple[str, ...]
    prompt: str
    models: tuple[str, ...]
    out: str
    form: Format
    system: str | None = None
    schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    checks: tuple[str, ...] = ()
    judge: str | None = None
    embedder: str | None = None
    limit: int | None = None


class Written(msgspec.Struct):
    """The output file."""

    path: str
    rows: int
    digest: str


class Mapped(msgspec.Struct):
    """The analysis of `map`: figures per model, and the output file."""

    file: Written
    figures: Figures


class Work(NamedTuple):
    """Settings with parsed templates and checks."""

    settings: Settings
    prompt: Template
    system: Template | None
    checks: list[Check]

    @property
    def columns(self) -> Columns:
        """The names of the new columns."""
        judged = [check.name for check in self.checks if check.judged]
        names = [check.name for check in self.checks]
        return plan_columns(self.settings.columns, self.settings.schema, names, judged)

    def spec(self, row: Row, model: str) -> Prompt:
        """The prompt for a row and a model."""
        settings = self.settings
        said: list[Message] = [] if self.system is None else [system(self.system.fill(row))]
        graders = Graders(settings.judge or settings.models[0], settings.embedder or "")
        return Prompt(
            model,
            (*said, user(self.prompt.fill(row))),
            settings.schema,
            settings.max_tokens,
            settings.temperature,
            grades_of(self.checks, row, graders),
        )


class Place(NamedTuple):
    """A row and a model."""

    number: int
    row: Row
    model: str


class Specs:
    """The specs of a table. Each iteration reads the file again."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __len__(self) -> int:
        settings = self._work.settings
        many = settings.data.rows if settings.limit is None else min(settings.limit, settings.data.rows)
        return many * len(settings.models)

    def __iter__(self) -> Iterator[Prompt]:
        return (spec for _, spec in self.placed())

    def placed(self) -> Iterator[tuple[Place, Prompt]]:
        """The specs with their row and model: all models for one row, then the next row."""
        work = self._work
        for number, row in enumerate(rows(work.settings.data, work.settings.limit)):
            for model in work.settings.models:
                yield Place(number, row, model), work.spec(row, model)


def read_work(settings: Settings) -> Work:
    """Parse the templates and checks of settings."""
    instructed = None if settings.system is None else parse_template(settings.system, "system")
    checks = [parse_check(check) for check in settings.checks]
    names = [check.name for check in checks]
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise SettingsError(
            f"check: two checks are named {twice!r}; put a name before one of them, for example `other: ...`",
            field="check",
        )
    return Work(settings, parse_template(settings.prompt, "prompt"), instructed, checks)


def specs_of(settings: Settings) -> Specs:
    """All prompts, lazily. Sends nothing."""
    return Specs(read_work(settings))


async def map_rows(run: Run, settings: Settings) -> Mapped:
    """Send a request for every row, and write the table. If the run is stopped, write the replies so far."""
    work = read_work(settings)
    specs = Specs(work)
    check_unchanged(settings.data)
    mine = noted(run.record.analysis) or await _unnoted(run, work, specs)
    check_writable(settings.out, mine)
    check_models(run, settings)
    await carry_out(run, reply, specs)
    check_unchanged(settings.data)
    check_writable(settings.out, mine)
    figures, count = await _write(run, work, specs, Path(settings.out))
    return Mapped(Written(settings.out, count, fingerprint_of(Path(settings.out)) or ""), figures)


@estimates(map_rows)
def expected(settings: Settings) -> Estimate:
    """The estimate, from a rehearsal of every row or of a sample of rows with each model."""
    if len(specs := specs_of(settings)) <= SAMPLE:
        return rehearse(reply, specs)  # together, since identical requests to a judge are sent once
    judge = settings.judge or settings.models[0]
    each = [replace(settings, models=(model,), judge=judge) for model in settings.models]
    return reduce(Estimate.beside, [rehearse(reply, specs_of(one)) for one in each])


def check_models(run: Run, settings: Settings) -> None:
    """Report unknown models before anything is sent."""
    for model in [*settings.models, settings.judge]:
        if model is not None:
            run.lane_of(Chat(model, ()))
    if settings.embedder is not None:
        run.lane_of(Embed(settings.embedder, ()))


def noted(analysis: str | None) -> str | None:
    """The fingerprint of the output file, as recorded at the end of a run."""
    return None if analysis is None else msgspec.json.decode(analysis, type=Mapped).file.digest


async def _unnoted(run: Run, work: Work, specs: Specs) -> str | None:
    """The fingerprint that the output of this run would have, in case it was killed before recording one."""
    if not Path(work.settings.out).exists() or not run.counters.planned:
        return None
    with TemporaryDirectory() as folder:
        again = Path(folder) / Path(work.settings.out).name
        await _write(run, work, specs, again)
        return fingerprint_of(again)


def check_writable(out: str, mine: str | None) -> None:
    """Refuse to replace a file that this run did not write, or that has changed since."""
    there = fingerprint_of(Path(out))
    if there is not None and there != mine and out not in _replaceable:
        raise SettingsError(
            f"out {out}: this file exists, and it was not written by this run or has changed since: give another "
            "--out, or --overwrite",
            field="out",
        )


async def _write(run: Run, work: Work, specs: Specs, path: Path) -> tuple[Figures, int]:
    """Write the table from the journal. Returns the figures and the number of rows."""
    settings, columns = work.settings, work.columns
    tally = Tally(settings.models, [check.name for check in work.checks])
    count, of_row = 0, dict[str, list[Verdict]]()
    with sheet(path, settings.form, settings.data, settings.columns, columns.all) as add:
        async for (number, row, model), _, found in settled(run, reply, specs.placed()):
            if model == settings.models[0] and number:
                tally.judge(of_row)
                of_row = {}
            tally.add(model, found)
            if isinstance(found, Answer):
                of_row[model] = verdicts(work.checks, row, found)
            add(number, row, _cells(work, columns, model, found, of_row.get(model)))
            count += 1
    tally.judge(of_row)
    return tally.figures(), count


def _cells(
    work: Work, columns: Columns, model: str, found: Answer | Fault | None, judged: list[Verdict] | None
) -> dict[str, Any]:
    """The new cells of a row. Without a reply they are empty."""
    cells: dict[str, Any] = dict.fromkeys(columns.all)
    cells[columns.model] = model
    cells[columns.status] = "pending" if found is None else "usable" if isinstance(found, Answer) else "missing"
    if isinstance(found, Answer):
        if columns.reply is not None:
            cells[columns.reply] = found.text if work.settings.schema is None else found.value
        for name, column in columns.fields.items():
            cells[column] = found.value.get(name) if isinstance(found.value, dict) else None
        for check, verdict in zip(work.checks, judged or (), strict=True):
            cells[columns.checks[check.name]] = verdict.passed
            if check.name in columns.reasons:
                cells[columns.reasons[check.name]] = verdict.reason
    elif found is not None:
        cells[columns.fault] = f"{found.kind}: {found.message}"
    return cells
