"""`groundswell serve`: serve the dashboard and the REST API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.options import COMMON, DEFAULT_STORE, LIMITS
from groundswell.cli.targets import find_experiment
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag
from groundswell.store.names import hide

if TYPE_CHECKING:
    from groundswell.web.settings import ServerSettings

PORT = 8000


class ServeFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `groundswell serve`."""

    host: Annotated[
        str,
        Meta(description="Address to listen on. Addresses other than localhost require --token."),
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on. 0 chooses a free one.")] = PORT
    model: Annotated[
        str | None,
        Meta(
            description="Model for requests that do not specify one. Defaults to the alias `default` if it is "
            "set, otherwise to local/smollm2."
        ),
        Flag("-m", metavar="MODEL", completes="models"),
    ] = None
    token: Annotated[
        str | None,
        Meta(
            description="Token that clients must send as `Authorization: Bearer TOKEN`. Prefer the environment "
            "variable GROUNDSWELL_TOKEN, which does not show up in the process list."
        ),
        Flag(metavar="TOKEN", variable="GROUNDSWELL_TOKEN"),
    ] = None
    cors_origin: Annotated[
        list[str] | None,
        Meta(
            description="Allow pages of this origin to call the server from a browser. May be repeated. By default "
            "no origin is allowed."
        ),
        Flag(metavar="URL"),
    ] = None
    max_running: Annotated[
        int,
        Meta(ge=1, description="Maximum number of runs in progress at the same time. Others wait."),
        Flag(metavar="N", group=LIMITS),
    ] = 4
    max_concurrent: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Maximum number of live requests in flight per account, over all runs. Defaults to the "
            "value in groundswell.toml. If it is not set there, the limit is 256, or 4 for the "
            "embedded model."
        ),
        Flag(metavar="N", group=LIMITS),
    ] = None
    account: Annotated[
        list[str] | None,
        Meta(
            description="Override one setting of an account, for example openai.rate_limit_per_minute=3500. May be "
            "repeated."
        ),
        Flag(metavar="NAME.SETTING=VALUE", group=COMMON),
    ] = None
    experiment: Annotated[
        list[str] | None,
        Meta(description="Also serve your own experiment from a Python file. May be repeated."),
        Flag(metavar="FILE.py", completes="files"),
    ] = None
    store: Annotated[
        str,
        Meta(description="SQLite file with runs, replies and entities, or postgresql://USER@HOST/DATABASE."),
        Flag(metavar="PATH|URL", variable="GROUNDSWELL_STORE", group=COMMON),
    ] = DEFAULT_STORE
    verbose: Annotated[
        bool,
        Meta(description="Log every HTTP request, and show tracebacks of errors."),
        Flag("-v", group=COMMON),
    ] = False

    def settings(self) -> ServerSettings:
        """The settings of the server."""
        from groundswell.web.settings import ServerSettings

        if self.token == "":
            raise SettingsError("--token: must not be empty; leave it out, or give at least 16 random characters")
        return ServerSettings(
            store=hide(self.store),
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
    """Serve the dashboard and the REST API. Unfinished runs are resumed when the server starts."""
    from groundswell.web import serving
    from groundswell.web.settings import is_loopback

    settings = flags.settings()
    for target in flags.experiment or ():
        if find_experiment(target) is None:
            raise SettingsError(
                f"--experiment {target}: the file defines no Experiment; define one at the top level of the file",
                field="experiment",
            )
    left = _unfinished(flags.store)  # counted first: a short run may have ended by the time the server listens

    def ready(url: str) -> None:
        output.say(f"Groundswell listens on {url} (store: {hide(flags.store)})")
        output.say(f"open {url} in a browser for the dashboard; the REST API is described at {url}/docs")
        if left:
            output.say(f"resuming {left} unfinished {'run' if left == 1 else 'runs'}")
        if not is_loopback(flags.host):
            output.say("warning: other machines can reach this address, and HTTP does not encrypt the token; use TLS")
        output.say("press Ctrl-C to stop; unfinished runs are resumed at the next start")

    serving.serve(settings, ready=ready)
    output.say("stopped")


def _unfinished(store: str) -> int:
    """The number of runs that the server resumes when it starts."""
    from groundswell.cli.catalogued import is_there
    from groundswell.cli.stored import opened

    if not is_there(store):
        return 0
    with opened(store) as held:
        runs = [each for each in held.runs.list() if each.options.get("unattended") and not each.deleting]
        return sum(held.runs.state(record) in ("pending", "running", "interrupted") for record in runs)
