"""`groundswell ask`: one prompt, several models side by side."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import click

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
from groundswell.shown.words import visible

if TYPE_CHECKING:
    from groundswell.cli.running import Report
    from groundswell.engine.engine import Engine
    from groundswell.engine.events import Event
    from groundswell.engine.summary import Summary
    from groundswell.experiments.prompting.asking import Replied
    from groundswell.program.request import Image, Message

IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif"}
NARROWEST = 40
BORDER = 7
"""What a panel has on the left and right of its title, and the space to the next one."""


def ask(
    flags: RunFlags,
    prompt: Annotated[str | None, Meta(description="What to ask."), Flag(argument=True, metavar="PROMPT")] = None,
    *,
    model: Models = None,
    system: Annotated[
        str | None, Meta(description="What the models are told beforehand."), Flag(metavar="TEXT")
    ] = None,
    file: Annotated[
        list[Path] | None,
        Meta(
            description="Text that goes after the prompt, or an image; - is standard input, which is read anyway if "
            "something is piped in. May be repeated."
        ),
        Flag("-f", metavar="FILE"),
    ] = None,
    samples: Annotated[int, Meta(ge=1, description="How many replies of each model."), Flag(metavar="N")] = 1,
    schema: SchemaFile = None,
    reply_tokens: ReplyTokens = None,
    temperature: Temperature = None,
    seed: Seed = 0,
) -> None:
    """Ask one or more models the same thing, and see their replies side by side."""
    from groundswell.cli.running import run_and_report
    from groundswell.engine.options import RunOptions
    from groundswell.estimate.declared import estimate_of
    from groundswell.experiments.prompting.asking import Settings, ask_models

    settings = Settings(
        models_of(model, flags.account),
        _messages(prompt, system, file or []),
        samples,
        read_schema(schema),
        reply_tokens,
        temperature,
    )
    options = flags.run_options(RunOptions())
    watch, costs = Stopwatch(), dict[str, float | None]()

    async def work(engine: Engine) -> Summary:
        summary = await engine.drive(ask_models, settings, seed=seed, options=options)
        for replied in _replies(summary):
            if replied.usage is not None:
                costs[replied.trial] = engine.cost(replied.model, replied.usage, watch.way(replied.trial))
        return summary

    report = _report(watch, costs)
    try:
        run_and_report(
            work, flags, report=report, listeners=[watch], estimate=lambda: estimate_of(ask_models, settings)
        )
    except click.exceptions.Exit as ended:
        if ended.exit_code == 1 and costs:  # one account ended it, with a wrong key, say; others have replied
            raise click.exceptions.Exit(3) from None
        raise


def _messages(prompt: str | None, system: str | None, files: Sequence[Path]) -> tuple[Message, ...]:
    """What is asked: the prompt, the texts after it, and the images."""
    from groundswell.program.request import Text, user
    from groundswell.program.request import system as told

    if sys.stdin is not None and not sys.stdin.isatty() and Path("-") not in files:
        files = [*files, Path("-")]
    texts = [
        as_unicode(prompt or "", "PROMPT"),
        *(_file_text(path) for path in files if path.suffix.lower() not in IMAGES),
    ]
    text = "\n\n".join(piece for piece in texts if piece.strip())
    images = [_image(path) for path in files if path.suffix.lower() in IMAGES]
    if not text and not images:
        raise SettingsError('there is nothing to ask: give a prompt, as in `groundswell ask "Why is the sky blue?"`')
    before: list[Message] = [told(as_unicode(system, "--system"))] if system else []
    if not images:
        return (*before, user(text))
    return (*before, user((*((Text(text),) if text else ()), *images)))


def _file_text(path: Path) -> str:
    if path != Path("-"):
        return read_text(path, "--file")
    try:
        return click.get_text_stream("stdin", encoding="utf-8", errors="strict").read()
    except UnicodeDecodeError as error:
        raise SettingsError(f"standard input: byte {error.start} is not UTF-8 text") from error


def _image(path: Path) -> Image:
    from base64 import b64encode

    from groundswell.program.request import Image

    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"--file {path}: {error.strerror or error}") from error
    return Image(data=b64encode(data).decode(), media_type=IMAGES[path.suffix.lower()])


class Stopwatch:
    """Listens when trials are sent and ended."""

    def __init__(self) -> None:
        self._sent: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._ways: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        from groundswell.engine.events import TrialEnded, WaveSent

        if isinstance(event, WaveSent):
            for trial in event.trials:
                self._sent.setdefault(trial, event.at)
                self._ways[trial] = event.transport
        elif isinstance(event, TrialEnded):
            self._ended[event.trial] = event.at

    def way(self, trial: str) -> str:
        """How a trial was last sent."""
        return self._ways.get(trial, "live")

    def took(self, trial: str) -> str:
        """How long a reply took; one that was never sent was there already."""
        if trial not in self._sent:
            return "cached"
        return output.duration(self._ended.get(trial, self._sent[trial]) - self._sent[trial])


def _replies(summary: Summary) -> list[Replied]:
    import msgspec

    from groundswell.experiments.prompting.asking import Replied

    return [] if summary.analysis is None else msgspec.convert(summary.analysis, list[Replied])


class Shown(NamedTuple):
    """A reply as people see it; one that did not come has its reason as text."""

    title: str
    told: str
    text: str
    there: bool


def _report(watch: Stopwatch, costs: dict[str, float | None]) -> Report:
    def report(summary: Summary, _: object) -> None:
        replies = _replies(summary)
        titles = [_title(replied, replies) for replied in replies]
        shown = [
            Shown(title, _told(replied, watch, costs), _body(replied, summary), replied.text is not None)
            for title, replied in zip(titles, replies, strict=True)
        ]
        if output.out.is_terminal:
            _print_panels(shown)
        else:
            _print_plain(shown)
        output.say(f"run {summary.run_id}: {summary.status}")

    return report


def _told(replied: Replied, watch: Stopwatch, costs: dict[str, float | None]) -> str:
    """What there is to say about a reply in one line."""
    if replied.usage is None:
        return "missing" if replied.fault else "not answered"
    used = f"{replied.usage.input_tokens:,} tokens in, {replied.usage.output_tokens:,} out"
    took = watch.took(replied.trial)
    cost = "free" if took == "cached" else f"cost {output.cost(costs.get(replied.trial), 0)}"
    finish = "" if replied.finish == "stop" else f", ended by {replied.finish}"
    return f"{used}, {cost}, {took}{finish}"


def _title(replied: Replied, replies: Sequence[Replied]) -> str:
    several = any(other.sample > 1 for other in replies)
    return f"{replied.model}, sample {replied.sample}" if several else replied.model


def _body(replied: Replied, summary: Summary) -> str:
    if replied.text is not None:
        return visible(replied.text)
    return f"no reply: {visible(replied.fault or summary.error or 'the run was stopped before it came')}"


def _print_plain(replies: Sequence[Shown]) -> None:
    """Replies below each other; of a single one, nothing but its text goes to standard output."""
    if len(replies) == 1 and replies[0].there:
        output.echo(replies[0].text)
        output.say(f"{replies[0].title}: {replies[0].told}")
        return
    for number, shown in enumerate(replies):
        output.echo("\n" * bool(number) + f"== {shown.title} ({shown.told})\n{shown.text}")


def _print_panels(replies: Sequence[Shown]) -> None:
    """Panels side by side where each gets enough room, else below each other."""
    from rich.cells import cell_len
    from rich.columns import Columns
    from rich.panel import Panel
    from rich.text import Text

    panels = [
        Panel(
            Text(shown.text, style="" if shown.there else "red"),
            title=Text(shown.title, style="bold"),
            subtitle=Text(shown.told, style="dim"),
            title_align="left",
            subtitle_align="right",
        )
        for shown in replies
    ]
    room = output.out.width // len(panels) if panels else 0
    longest = max((cell_len(words) for shown in replies for words in (shown.title, shown.told)), default=0)
    if len(panels) > 1 and room >= max(NARROWEST, longest + BORDER):
        output.out.print(Columns(panels, width=room - 1, expand=True, equal=True))
    else:
        for panel in panels:
            output.out.print(panel)
