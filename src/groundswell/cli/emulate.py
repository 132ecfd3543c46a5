"""`groundswell emulate`: an emulator of the providers on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from groundswell.experiments.options import Flag

if TYPE_CHECKING:
    from groundswell.emulator.settings import Settings

PORT = 8787
LIMITS, FAULTS, BATCHES = "Limits", "Faults", "Batches"


class EmulatorFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `groundswell emulate`."""

    port: Annotated[
        int, Meta(ge=0, le=65535, description="Port to listen on. 0 chooses a free one."), Flag(usual=True)
    ] = PORT
    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    seed: Annotated[int, Meta(description="Seed of replies, latencies and faults.")] = 0
    model: Annotated[
        list[str] | None,
        Meta(description="Serve additional model names. `*` serves any name. May be repeated."),
        Flag(metavar="PATTERN"),
    ] = None
    key: Annotated[
        list[str] | None,
        Meta(description="Accept only this made-up API key. By default any key is accepted. May be repeated."),
        Flag(metavar="NAME=KEY"),
    ] = None
    price: Annotated[
        list[str] | None,
        Meta(description="Price of a model in dollars per million input and output tokens. May be repeated."),
        Flag(metavar="MODEL=IN/OUT"),
    ] = None
    latency: Annotated[
        str,
        Meta(description="Delay of each reply in seconds. `+SECONDS/char` adds a delay per character of the reply."),
        Flag(metavar="SECONDS|lognormal:MEDIAN,SIGMA[,SHARExFACTOR]", usual=True),
    ] = "0"
    context: Annotated[int, Meta(ge=1, description="Context window of the models, in tokens.")] = 128_000
    rpm: Annotated[
        Annotated[float, Meta(ge=0.001)] | None,
        Meta(description="Rate limit in requests per minute. The default is no limit."),
        Flag(group=LIMITS, usual=True),
    ] = None
    tpm: Annotated[
        Annotated[float, Meta(ge=0.001)] | None,
        Meta(description="Rate limit in tokens per minute (for Anthropic, input tokens). The default is no limit."),
        Flag(group=LIMITS),
    ] = None
    output_tpm: Annotated[
        Annotated[float, Meta(ge=0.001)] | None,
        Meta(description="Rate limit in output tokens per minute, for Anthropic. The default is no limit."),
        Flag(group=LIMITS),
    ] = None
    burst: Annotated[
        float,
        Meta(
            ge=0.001,
            description="Burst that the rate limit allows, as the number of seconds of quota that can be saved up.",
        ),
        Flag(group=LIMITS),
    ] = 60.0
    enqueued_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum number of enqueued tokens per model in an account's OpenAI batches."),
        Flag(group=LIMITS),
    ] = None
    queued_requests: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum number of queued requests in an account's Anthropic batches."),
        Flag(group=LIMITS),
    ] = None
    ollama_parallel: Annotated[
        int, Meta(ge=1, description="Number of requests that Ollama processes in parallel."), Flag(group=LIMITS)
    ] = 1
    ollama_queue: Annotated[
        int,
        Meta(ge=0, description="Maximum number of requests in Ollama's queue. Further requests are refused."),
        Flag(group=LIMITS),
    ] = 512
    fault: Annotated[
        list[str] | None,
        Meta(
            description="Inject a fault: always (hang), at a rate (429=0.05) or as a sequence (ok,500,429). May be "
            "repeated."
        ),
        Flag(metavar="NAME[=RATE][@[METHOD ]PATH] | NAME,NAME,...[@[METHOD ]PATH]", group=FAULTS, usual=True),
    ] = None
    faults: Annotated[bool, Meta(description="List the available faults, and exit."), Flag(group=FAULTS)] = False
    speed: Annotated[
        float,
        Meta(ge=0, le=1e9, description="Speed of the batch clock: emulated seconds per real second."),
        Flag(group=BATCHES, usual=True),
    ] = 1.0
    batch_seconds: Annotated[
        float,
        Meta(ge=0, description="Duration of a batch, in emulated seconds."),
        Flag(group=BATCHES, usual=True),
    ] = 600.0
    webhook: Annotated[
        str | None,
        Meta(description="Call this URL when an OpenAI batch ends."),
        Flag(metavar="URL", group=BATCHES),
    ] = None
    webhook_secret: Annotated[
        str | None,
        Meta(description="Secret that signs the webhook calls."),
        Flag(metavar="whsec_...", group=BATCHES),
    ] = None
    seconds: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Stop after this many seconds. By default the emulator runs until Ctrl-C."),
        Flag(long="--for"),
    ] = None
    json: Annotated[
        bool, Meta(description="Print JSON lines: the address at the start, and the usage ledger at the end.")
    ] = False

    def settings(self) -> Settings:
        """The settings of the emulator. Raises `SettingsError` for an invalid flag."""
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
    """Emulate OpenAI, Anthropic and Ollama on this machine, with rate limits, faults and batches.

    Point any client at the printed addresses. Nothing leaves the machine and nothing costs money. Ctrl-C stops the
    emulator and prints the usage ledger.
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
        raise SettingsError("--key: write it as NAME=KEY, for example alice=sk-test-1")
    return name, key
