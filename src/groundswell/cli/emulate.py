"""`groundswell emulate`: the providers on your own machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from groundswell.experiments.options import Flag

if TYPE_CHECKING:
    from groundswell.emulator.settings import Settings

PORT = 8787
LIMITS, FAULTS, BATCHES = "Limits", "What goes wrong", "Batches and the clock"


class EmulatorFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How the emulator behaves, as far as the command line goes."""

    port: Annotated[
        int, Meta(ge=0, le=65535, description="Where to listen; 0 chooses a free port."), Flag(usual=True)
    ] = PORT
    host: Annotated[str, Meta(description="The address to listen on."), Flag(usual=True)] = "127.0.0.1"
    seed: Annotated[int, Meta(description="The seed of replies, latencies and faults.")] = 0
    model: Annotated[
        list[str] | None,
        Meta(description="Serve these names too (`*` serves any). May be repeated."),
        Flag(metavar="PATTERN", usual=True),
    ] = None
    key: Annotated[
        list[str] | None,
        Meta(description="Accept only these made-up keys; else any key will do. May be repeated."),
        Flag(metavar="NAME=KEY"),
    ] = None
    price: Annotated[
        list[str] | None,
        Meta(description="Dollars per million tokens. May be repeated."),
        Flag(metavar="MODEL=IN/OUT", usual=True),
    ] = None
    latency: Annotated[
        str,
        Meta(description="How long replies take; `+SECONDS/char` adds to it by length."),
        Flag(metavar="SECONDS|lognormal:MEDIAN,SIGMA[,SHARExFACTOR]", usual=True),
    ] = "0"
    context: Annotated[int, Meta(ge=1, description="Tokens that fit into a prompt.")] = 128_000
    rpm: Annotated[
        Annotated[float, Meta(ge=0.001)] | None,
        Meta(description="Requests per minute."),
        Flag(group=LIMITS, usual=True),
    ] = None
    tpm: Annotated[
        Annotated[float, Meta(ge=0.001)] | None,
        Meta(description="Tokens per minute (Anthropic: of input)."),
        Flag(group=LIMITS),
    ] = None
    output_tpm: Annotated[
        Annotated[float, Meta(ge=0.001)] | None,
        Meta(description="Output tokens per minute (Anthropic)."),
        Flag(group=LIMITS),
    ] = None
    burst: Annotated[
        float,
        Meta(ge=0.001, description="Seconds whose share may be used at once."),
        Flag(group=LIMITS),
    ] = 60.0
    enqueued_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Tokens in an account's OpenAI batches of one model."),
        Flag(group=LIMITS),
    ] = None
    queued_requests: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Requests in an account's Anthropic batches."),
        Flag(group=LIMITS),
    ] = None
    ollama_parallel: Annotated[
        int, Meta(ge=1, description="Requests that Ollama works on at once."), Flag(group=LIMITS)
    ] = 1
    ollama_queue: Annotated[
        int,
        Meta(ge=0, description="Requests that wait for it; more are turned away."),
        Flag(group=LIMITS),
    ] = 512
    fault: Annotated[
        list[str] | None,
        Meta(description="A fault: always (hang), by rate (429=0.05) or by script (ok,500,429). May be repeated."),
        Flag(metavar="NAME[=RATE][@[METHOD ]PATH] | NAME,NAME,...[@[METHOD ]PATH]", group=FAULTS, usual=True),
    ] = None
    faults: Annotated[
        bool, Meta(description="List the faults there are, and exit."), Flag(group=FAULTS, usual=True)
    ] = False
    speed: Annotated[
        float,
        Meta(ge=0, le=1e9, description="Seconds that pass for batches in one real second."),
        Flag(group=BATCHES, usual=True),
    ] = 1.0
    batch_seconds: Annotated[
        float,
        Meta(ge=0, description="How long a batch is worked on, by that clock."),
        Flag(group=BATCHES, usual=True),
    ] = 600.0
    webhook: Annotated[
        str | None,
        Meta(description="Tell this address when OpenAI batches end."),
        Flag(metavar="URL", group=BATCHES),
    ] = None
    webhook_secret: Annotated[
        str | None,
        Meta(description="Sign what is told."),
        Flag(metavar="whsec_...", group=BATCHES),
    ] = None
    seconds: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="End after so many seconds."),
        Flag(long="--for"),
    ] = None
    json: Annotated[
        bool, Meta(description="Print where it listens, and at the end the books, as JSON lines."), Flag(usual=True)
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
