"""`groundswell serve`: the REST API, until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.options import COMMON, DEFAULT_STORE, LIMITS
from groundswell.cli.targets import find_experiment
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag

if TYPE_CHECKING:
    from groundswell.web.settings import ServerSettings

PORT = 8000


class ServeFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How the server is set up."""

    host: Annotated[
        str,
        Meta(description="The address to listen on. Any but this machine's own needs a token."),
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Where to listen; 0 chooses a free port.")] = PORT
    model: Annotated[
        str | None,
        Meta(description="Who speaks where a request names nobody. (The alias `default`, or local/smollm2.)"),
        Flag("-m", metavar="MODEL"),
    ] = None
    token: Annotated[
        str | None,
        Meta(
            description="What clients must send, as `Authorization: Bearer TOKEN`. The variable keeps it out of `ps`."
        ),
        Flag(metavar="TOKEN", variable="GROUNDSWELL_TOKEN"),
    ] = None
    cors_origin: Annotated[
        list[str] | None,
        Meta(description="Let pages of this site call the server from a browser. May be repeated. (None may.)"),
        Flag(metavar="URL"),
    ] = None
    max_running: Annotated[
        int,
        Meta(ge=1, description="Batches that run side by side."),
        Flag(metavar="N", group=LIMITS),
    ] = 4
    max_concurrent: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="The most live asks in flight at once on each account, all batches together. (256, or what "
            "groundswell.toml says; locally 4.)"
        ),
        Flag(metavar="N", group=LIMITS),
    ] = None
    account: Annotated[
        list[str] | None,
        Meta(description="One setting of an account, as openai.rate_limit_per_minute=3500. May be repeated."),
        Flag(metavar="NAME.SETTING=VALUE", group=COMMON),
    ] = None
    experiment: Annotated[
        list[str] | None,
        Meta(description="Serve an experiment of yours too: a file, as mine.py. May be repeated."),
        Flag(metavar="FILE.py", completes="files"),
    ] = None
    store: Annotated[
        str,
        Meta(description="The file that holds the runs."),
        Flag(metavar="PATH", variable="GROUNDSWELL_STORE", group=COMMON),
    ] = DEFAULT_STORE
    verbose: Annotated[
        bool,
        Meta(description="Say which requests come in, and tracebacks of errors."),
        Flag("-v", group=COMMON),
    ] = False

    def settings(self) -> ServerSettings:
        """The settings of the server."""
        from groundswell.web.settings import ServerSettings

        if self.token == "":
            raise SettingsError("--token: is empty; leave it out, or give at least 16 random characters")
        return ServerSettings(
            store=self.store,
            host=self.host,
            port=self.port,
            model=self.model,
            token=self.token,
            max_running=self.max_running,
            max_concurrent=self.max_concurrent,
            account=tuple(self.account or ()),
            cors_origins=tuple(self.cors_origin or ()),
            verbose=self.verbose,
        )


def serve(flags: ServeFlags) -> None:
    """Serve the REST API: experiments, runs, entities. What has not ended goes on when the server starts again."""
    from groundswell.web import serving
    from groundswell.web.settings import is_loopback

    settings = flags.settings()
    for target in flags.experiment or ():
        if find_experiment(target) is None:
            raise SettingsError(f"--experiment {target}: there is no Experiment in it", field="experiment")
    left = _unfinished(flags.store)  # counted first: what is short may have ended by the time that it listens

    def ready(url: str) -> None:
        output.say(f"Groundswell listens on {url}; what it does is in {flags.store}")
        output.say(f"try: curl {url}/api/health    all there is: {url}/docs and {url}/openapi.json")
        if left:
            output.say(f"goes on with {left} {'run' if left == 1 else 'runs'} that had not ended")
        if not is_loopback(flags.host):
            output.say("others can reach this address, and the token travels in plain text: put TLS in front of it")
        output.say("Ctrl-C stops it; batches that have not ended go on when it is started again")

    serving.serve(settings, ready=ready)
    output.say("stopped")


def _unfinished(store: str) -> int:
    """How many runs the server takes up when it starts."""
    from groundswell.cli.catalogued import is_there
    from groundswell.cli.stored import opened

    if not is_there(store):
        return 0
    with opened(store) as held:
        runs = [each for each in held.runs.list() if each.options.get("unattended") and not each.deleting]
        return sum(held.runs.state(record) in ("pending", "running", "interrupted") for record in runs)
