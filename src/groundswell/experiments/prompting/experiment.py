"""The experiment behind `ask` and `map`: options, settings and results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec
from rich.console import RenderableType

from groundswell.engine.driver import driver_name
from groundswell.engine.events import Event, TrialEnded, WaveSent
from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Command, Context, Experiment, Found, Plan, Results
from groundswell.experiments.needed import check_installed
from groundswell.experiments.prompting import asking, mapping
from groundswell.experiments.prompting.asking import Replied, ask_models
from groundswell.experiments.prompting.blocks import ShownReply, ask_blocks, map_blocks, printed
from groundswell.experiments.prompting.mapping import (
    Mapped,
    check_writable,
    map_rows,
    may_replace,
    noted,
    read_work,
)
from groundswell.experiments.prompting.options import (
    Ask,
    Map,
    Prompting,
    _standard_input,
)
from groundswell.experiments.prompting.shapes import schema_flaw
from groundswell.experiments.prompting.tables import Source, fingerprint_of, survey
from groundswell.experiments.prompting.templates import check_columns
from groundswell.experiments.results import Blocks
from groundswell.program.request import Image, Message, Text, system, user
from groundswell.providers.accounts.config import load_here
from groundswell.providers.prices import ModelPrices
from groundswell.reporting.blocks import Block, Report
from groundswell.reporting.words import cost, duration
from groundswell.store.journal import Store
from groundswell.store.tables import FORMATS, Format, format_of

INCOMPLETE = 3
"""Exit status if only some models replied."""


def prepare_ask(options: Ask, context: Context) -> Plan:
    """The settings of `ask`: the prompt with the contents of files and of standard input."""
    models, files = context.models(options.models), options.file
    if context.origin == "command" and sys.stdin is not None and not sys.stdin.isatty():
        files = (*files, *(Text(piped) for piped in [_standard_input()] if piped.strip()))
    settings = asking.Settings(
        models,
        _messages(options, files),
        options.samples,
        _checked_schema(options),
        options.reply_tokens,
        options.temperature,
    )
    return Plan(settings, resolved=options.resolved(models) | ({"file": files} if files else {}))


def _messages(options: Ask, files: Sequence[Text | Image]) -> tuple[Message, ...]:
    """The messages: the prompt, followed by texts and images."""
    texts = [options.prompt or "", *(each.text for each in files if isinstance(each, Text))]
    text = "\n\n".join(piece for piece in texts if piece.strip())
    images = [each for each in files if isinstance(each, Image)]
    if not text and not images:
        raise SettingsError(
            'the prompt is empty; give one, for example: groundswell ask "Why is the sky blue?"', field="prompt"
        )
    before = [system(options.system)] if options.system else []
    return (*before, user((*((Text(text),) if text else ()), *images) if images else text))


def _checked_schema(options: Prompting) -> dict[str, Any] | None:
    if options.schema is not None and (problem := schema_flaw(options.schema)) is not None:
        raise SettingsError(f"schema: not a supported JSON Schema: {problem}", field="schema")
    return options.schema


def prepare_map(options: Map, context: Context) -> Plan:
    """The settings of `map`. Errors in the settings and the data are found here, before anything is sent."""
    models, data = context.models(options.models), options.data
    if data.name in ("", "-"):
        raise SettingsError(f"data {data}: the table is read more than once, so it must be a file", field="data")
    for name, template in (("prompt", options.prompt), ("system", options.system)):
        if template is not None and not template.strip():
            raise SettingsError(f"{name}: must not be empty", field=name)
    form, out = options.format or _format(data, "data"), options.output
    given = mapping.Settings(
        Source(str(data), form, "", 0),
        (),
        options.prompt,
        models,
        str(out),
        form,
        options.system,
        _checked_schema(options),
        options.reply_tokens,
        options.temperature,
        options.check,
        options.judge,
        options.embedder,
        options.limit,
    )
    work = read_work(given)
    if options.embedder is None and any(check.graded and not check.judged for check in work.checks):
        raise SettingsError(
            "embedder: `similar` checks need an embedding model, for example openai/text-embedding-3-small",
            field="embedder",
        )
    needed = {"prompt": work.prompt.columns, "system": [] if work.system is None else work.system.columns}
    needed |= {f"check {text}": check.columns for text, check in zip(options.check, work.checks, strict=True)}
    found = survey(data, form, [name for names in needed.values() for name in names])
    for what, names in needed.items():
        check_columns(names, found.columns, what)
    form = form if options.out is None else _form_of(options.out)
    if form in ("csv", "tsv") and found.nested is not None:
        raise SettingsError(
            f"out {options.out}: column {found.nested!r} contains lists or objects, which {form.upper()} cannot "
            f"represent: use --out {out.with_suffix('.jsonl')}",
            field="out",
        )
    settings = msgspec.structs.replace(given, data=found.source, columns=tuple(found.columns), form=form)
    notes = [
        f"note: the data already has a column {wanted!r}, so the new one is named {name!r}"
        for wanted, name in read_work(settings).columns.renamed()
    ]
    resolved = options.resolved(models) | {"data": found.source.path, "out": out, "format": found.source.format}
    return Plan(settings, name=data.stem, notes=tuple(notes), resolved=resolved)


def _form_of(out: Path) -> Format:
    if out.name == "-":
        raise SettingsError(
            "out -: the table cannot go to standard output, since a resumed run rewrites its file; name a file",
            field="out",
        )
    return _format(out, "out")


def _format(path: Path, field: str) -> Format:
    """The format of a file by its name."""
    found = format_of(path)
    if found is None:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise SettingsError(
            f"{field} {path}: unknown file ending; use one of {endings}, or set --format for the data", field=field
        )
    return found


class Stopwatch:
    """Measures how long trials take."""

    def __init__(self) -> None:
        self._sent: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self.ways: dict[str, str] = {}
        """The transport of each trial."""

    def __call__(self, event: Event) -> None:
        """Record an event."""
        if isinstance(event, WaveSent):
            for trial in event.trials:
                self._sent.setdefault(trial, event.at)
                self.ways[trial] = event.transport
        elif isinstance(event, TrialEnded):
            self._ended[event.trial] = event.at

    def took(self, trial: str) -> float | None:
        """Seconds that a reply took; 0 if it was not sent; None if unknown."""
        if trial not in self._ended:
            return None
        return self._ended[trial] - self._sent[trial] if trial in self._sent else 0.0


class AskResults(Results):
    """The replies of `ask`. There are no files."""

    keeps_folder = False
    tells_outcome = False

    kind = "One prompt"

    def __init__(self, folder: Path, options: Any = None, make_blocks: Blocks | None = None) -> None:
        super().__init__(folder, options, make_blocks)
        self._watch = Stopwatch()
        self.listeners = [self._watch]
        self._prices = ModelPrices(lambda: load_here(self.choices.account))

    def exit_code(self, summary: Summary) -> int:
        """One account may fail, for example with a wrong key, while others have replied."""
        replied = any(each.usage is not None for each in _replies(summary))
        return INCOMPLETE if summary.exit_code == 1 and replied else summary.exit_code

    def blocks(self, found: Found) -> Iterator[Block]:
        """The replies and the run details."""
        replies = _replies(found.summary)
        several = any(each.sample > 1 for each in replies)
        shown = [
            ShownReply(
                f"{each.model}, sample {each.sample}" if several else each.model,
                self._usage(each),
                _body(each, found.summary),
                each.text is not None,
            )
            for each in replies
        ]
        return ask_blocks(shown, found)

    def findings(self, report: Report) -> Iterator[RenderableType]:
        """Panels on a terminal, otherwise exact text."""
        return printed(report, self.width)

    def _usage(self, replied: Replied) -> str:
        """Tokens, cost and time of a reply in one line."""
        if replied.usage is None:
            return "missing" if replied.fault else "no reply yet"
        used = f"{replied.usage.input_tokens:,} tokens in, {replied.usage.output_tokens:,} out"
        finish = "" if replied.finish == "stop" else f", finish: {replied.finish}"
        if (took := self._watch.took(replied.trial)) is None:
            return f"{used}{finish}"
        if (way := self._watch.ways.get(replied.trial)) is None:
            return f"{used}, cache hit{finish}"
        return f"{used}, cost {cost(self._price(replied, way), 0)}, {duration(took)}{finish}"

    def _price(self, replied: Replied, way: str) -> float | None:
        """The cost of a reply; None if its account is no longer configured."""
        try:
            return None if replied.usage is None else self._prices(replied.model, replied.usage, way)
        except SettingsError:
            return None


def _replies(summary: Summary) -> list[Replied]:
    return [] if summary.analysis is None else msgspec.convert(summary.analysis, list[Replied])


def _body(replied: Replied, summary: Summary) -> str:
    if replied.text is not None:
        return replied.text
    return f"no reply: {replied.fault or summary.error or 'the run was stopped before the reply arrived'}"


class MapResults(Results):
    """Figures per model. The run itself writes the output table."""

    kind = "One prompt for every row"
    keeps_folder = False

    def check(self) -> None:
        """Check that the output file can be created."""
        if self.options is None:
            return
        shown, out = self.options.out or self.options.output, self.options.output
        try:
            if out.exists() and out.samefile(self.options.data):
                raise SettingsError(f"out {shown}: this is the input file; give another file", field="out")
            if not out.parent.is_dir():
                raise SettingsError(f"out {shown}: the folder {shown.parent} does not exist", field="out")
            with NamedTemporaryFile(prefix=f"{out.name}.", dir=out.parent):
                """It can."""
        except OSError as error:
            raise SettingsError(
                f"out {shown}: cannot create the file: {error.strerror or error}", field="out"
            ) from error
        if format_of(out) == "parquet":
            check_installed(f"out {shown}: Parquet needs", ("polars",), field="out")

    def check_resumed(self, record: RunRecord) -> None:
        """The output file must be beside the data, or in the current folder or below it."""
        settings = msgspec.json.decode(record.settings or "", type=mapping.Settings)
        out = Path(os.path.realpath(settings.out))
        near = (Path(os.path.realpath(settings.data.path)).parent, Path(os.path.realpath(Path.cwd())))
        if out.parent != near[0] and not out.is_relative_to(near[1]):
            raise SettingsError(
                f"run {record.title!r} writes to {out}, which is outside the current folder: to allow this, change to "
                f"{out.parent} and resume the run there"
            )

    @contextmanager
    def around(self, held: Store, before: RunRecord | None, name: str) -> Iterator[None]:
        """Replace an existing output file only if a run wrote it, or with --overwrite."""
        out = str(self.options.output)
        writer = _writer(held, out)
        if writer not in (None, name):
            self.say(f"note: {out} will be replaced; it was written by run {writer}, which still has its replies")
        with may_replace(out) if self.options.overwrite or writer else nullcontext():
            if before is None or before.analysis is not None:  # a killed run checks this itself
                check_writable(out, None if before is None else noted(before.analysis))
            yield

    def blocks(self, found: Found) -> Iterator[Block]:
        """The models, the checks and the run details."""
        return map_blocks(msgspec.convert(found.analysis, Mapped), found)


def _writer(held: Store, out: str) -> str | None:
    """The run that wrote the current file, if any. Replacing such a file loses nothing."""
    if (there := fingerprint_of(Path(out))) is None:
        return None
    ours = [run for run in held.runs.list() if run.driver == driver_name(map_rows)]
    return next((run.title for run in ours if there == noted(run.analysis)), None)


experiment = Experiment(
    "prompting",
    [
        Command("ask", Ask, [ask_models], prepare_ask, AskResults, named=False, function="ask"),
        Command("map", Map, [map_rows], prepare_map, MapResults, over_http=False, function="map"),
    ],
    about="Send one prompt to several models, or one prompt for every row of a table.",
)
