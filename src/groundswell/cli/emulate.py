"""`groundswell emulate`: the providers on your own machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from groundswell.cli.options import takes

if TYPE_CHECKING:
    from groundswell.emulator.settings import Settings

PORT = 8787
LIMITS, FAULTS, BATCHES = "Limits", "What goes wrong", "Batches and the clock"


@dataclass(frozen=True, kw_only=True)
class EmulatorFlags:
    """How the emulator behaves, as far as the command line goes."""

    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 chooses a free port.")] = PORT
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1"
    seed: Annotated[int, typer.Option(help="The seed of replies, latencies and faults.")] = 0
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Serve these names too (`*` serves any). May be repeated."),
    ] = None
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KEY",
            help="Accept only these made-up keys; else any key will do. May be repeated.",
        ),
    ] = None
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL=IN/OUT", help="Dollars per million tokens. May be repeated."),
    ] = None
    latency: Annotated[
        str,
        typer.Option(
            metavar="SECONDS|lognormal:MEDIAN,SIGMA[,SHARExFACTOR]",
            help="How long replies take; `+SECONDS/char` adds to it by length.",
        ),
    ] = "0"
    context: Annotated[int, typer.Option(min=1, help="Tokens that fit into a prompt.")] = 128_000
    rpm: Annotated[float | None, typer.Option(min=0.001, help="Requests per minute.", rich_help_panel=LIMITS)] = None
    tpm: Annotated[
        float | None, typer.Option(min=0.001, help="Tokens per minute (Anthropic: of input).", rich_help_panel=LIMITS)
    ] = None
    output_tpm: Annotated[
        float | None, typer.Option(min=0.001, help="Output tokens per minute (Anthropic).", rich_help_panel=LIMITS)
    ] = None
    burst: Annotated[
        float, typer.Option(min=0.001, help="Seconds whose share may be used at once.", rich_help_panel=LIMITS)
    ] = 60.0
    enqueued_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens in an account's OpenAI batches of one model.", rich_help_panel=LIMITS),
    ] = None
    queued_requests: Annotated[
        int | None, typer.Option(min=1, help="Requests in an account's Anthropic batches.", rich_help_panel=LIMITS)
    ] = None
    ollama_parallel: Annotated[
        int, typer.Option(min=1, help="Requests that Ollama works on at once.", rich_help_panel=LIMITS)
    ] = 1
    ollama_queue: Annotated[
        int, typer.Option(min=0, help="Requests that wait for it; more are turned away.", rich_help_panel=LIMITS)
    ] = 512
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=RATE][@[METHOD ]PATH] | NAME,NAME,...[@[METHOD ]PATH]",
            help="A fault: always (hang), by rate (429=0.05) or by script (ok,500,429). May be repeated.",
            rich_help_panel=FAULTS,
        ),
    ] = None
    faults: Annotated[
        bool, typer.Option("--faults", help="List the faults there are, and exit.", rich_help_panel=FAULTS)
    ] = False
    speed: Annotated[
        float,
        typer.Option(min=0, max=1e9, help="Seconds that pass for batches in one real second.", rich_help_panel=BATCHES),
    ] = 1.0
    batch_seconds: Annotated[
        float, typer.Option(min=0, help="How long a batch is worked on, by that clock.", rich_help_panel=BATCHES)
    ] = 600.0
    webhook: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Tell this address when OpenAI batches end.", rich_help_panel=BATCHES),
    ] = None
    webhook_secret: Annotated[
        str | None, typer.Option(metavar="whsec_...", help="Sign what is told.", rich_help_panel=BATCHES)
    ] = None
    seconds: Annotated[
        float | None, typer.Option("--for", min=0, help="End after so many seconds.", show_default=False)
    ] = None
    json: Annotated[
        bool, typer.Option("--json", help="Print where it listens, and at the end the books, as JSON lines.")
    ] = False

    def settings(self) -> Settings:
        """The settings of the emulator; raises `SettingsError` for a flag that cannot be read."""
        from groundswell.emulator.faults import parse_fault
        from groundswell.emulator.latency import parse_latency
        from groundswell.emulator.limits import RateLimits
        from groundswell.emulator.prices import parse_price
        from groundswell.emulator.settings import BatchTimes, Settings

        limits = RateLimits(
            requests_per_minute=self.rpm,
            tokens_per_minute=self.tpm,
            output_tokens_per_minute=self.output_tpm,
            burst=self.burst,
            enqueued_tokens=self.enqueued_tokens,
            queued_requests=self.queued_requests,
            ollama_parallel=self.ollama_parallel,
            ollama_queue=self.ollama_queue,
        )
        return Settings(
            seed=self.seed,
            speed=self.speed,
            latency=parse_latency(self.latency),
            limits=limits,
            faults=tuple(map(parse_fault, self.fault or ())),
            prices=dict(map(parse_price, self.price or ())),
            keys=dict(map(_named_key, self.key or ())),
            models=tuple(self.model or ()),
            context=self.context,
            batch=BatchTimes(working=self.batch_seconds),
            webhook=self.webhook,
            webhook_secret=self.webhook_secret,
        )


@takes(EmulatorFlags)
def emulate(flags: EmulatorFlags) -> None:
    """Stand in for OpenAI, Anthropic and Ollama on this machine, with books, limits, faults and a clock.

    Point any client at it; nothing leaves the machine and nothing is paid. Ctrl-C ends it and prints the books.
    """
    from groundswell.cli.emulating import list_faults, serve

    if flags.faults:
        list_faults(json=flags.json)
    else:
        serve(flags.settings(), host=flags.host, port=flags.port, seconds=flags.seconds, json=flags.json)


def _named_key(text: str) -> tuple[str, str]:
    from groundswell.errors import SettingsError

    name, equals, key = text.partition("=")
    if not (name and equals and key):
        raise SettingsError("--key: write it as NAME=KEY, for instance alice=sk-test-1")
    return name, key
