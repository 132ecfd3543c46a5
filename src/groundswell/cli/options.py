"""The options that are the same on every command, defined once. `@takes(RunFlags)` adds them to a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import typer

from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from groundswell.engine.options import RunOptions

P = ParamSpec("P")
F = TypeVar("F", bound="DataclassInstance")

VERBOSE = "groundswell.verbose"
DEFAULT_STORE = "groundswell.db"
RunName = Annotated[str, typer.Argument(metavar="RUN", help="The id or the name of a run.", show_default=False)]
COMMON = "Common options"
LIMITS = "Limits"


class Via(StrEnum):
    """How models are reached."""

    LIVE = "live"
    BATCH = "batch"
    AUTO = "auto"


class Schedule(StrEnum):
    """When asks leave."""

    STREAM = "stream"
    WAVES = "waves"


def _remember_verbose(context: typer.Context, verbose: bool) -> bool:
    context.meta[VERBOSE] = verbose
    return verbose


@dataclass(frozen=True, kw_only=True)
class StoreFlags:
    """What every command takes."""

    store: Annotated[
        str,
        typer.Option(
            envvar="GROUNDSWELL_STORE", metavar="PATH", help="The file that holds the runs.", rich_help_panel=COMMON
        ),
    ] = DEFAULT_STORE
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output.", rich_help_panel=COMMON)
    ] = False
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Say more: what is sent and retried, and tracebacks of errors.",
            callback=_remember_verbose,
            rich_help_panel=COMMON,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class RunFlags(StoreFlags):
    """What every command that runs something takes. None means: as the run was started, or the default."""

    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache",
            help="Use and keep no replies of other runs. (Those of scripted and emulated models never are.)",
            rich_help_panel=COMMON,
        ),
    ] = False
    via: Annotated[
        Via | None,
        typer.Option(
            help="How models are reached: at once (live, the default), at half price by the provider's batch API "
            "(batch), or whichever is better given --deadline and prices (auto).",
            show_default=False,
            rich_help_panel=COMMON,
        ),
    ] = None
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="The most asks in one batch. (What the provider takes: 50,000 or 100,000.)",
            show_default=False,
            rich_help_panel=COMMON,
        ),
    ] = None
    max_reorder_usd: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="USD",
            help="The most that batches which the provider does not show any more may cost to be ordered again without "
            "a question, since they may be paid for twice. Above it the run stops and says what to do. (1; inf: no "
            "limit.)",
            show_default=False,
            rich_help_panel=LIMITS,
        ),
    ] = None
    schedule: Annotated[
        Schedule | None,
        typer.Option(
            help="Send asks as they come up (stream, the default), or all trials turn by turn (waves).",
            show_default=False,
            rich_help_panel=COMMON,
        ),
    ] = None
    max_concurrent: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="The most live asks in flight at once on each account. (256, or what groundswell.toml says; "
            "locally 4.)",
            show_default=False,
            rich_help_panel=COMMON,
        ),
    ] = None
    account: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME.SETTING=VALUE",
            help="One setting of an account, as openai.rate_limit_per_minute=3500. May be repeated.",
            show_default=False,
            rich_help_panel=COMMON,
        ),
    ] = None
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate",
            help="Say what it would use, cost and take, as ranges. Sends nothing, and needs no key.",
            rich_help_panel=LIMITS,
        ),
    ] = False
    budget: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="USD",
            help="The most to spend. A model whose price is not known is not asked then.",
            show_default=False,
            rich_help_panel=LIMITS,
        ),
    ] = None
    max_calls: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="The most asks to send.", show_default=False, rich_help_panel=LIMITS),
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="The most tokens to use, in and out.",
            show_default=False,
            rich_help_panel=LIMITS,
        ),
    ] = None
    deadline: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Stop after this time; it counts anew when a run is resumed. Batches that would miss it are cancelled "
            "before, and the rest goes live.",
            show_default=False,
            rich_help_panel=LIMITS,
        ),
    ] = None

    def run_options(self, base: RunOptions) -> RunOptions:
        """How the run is carried out: as `base` says, except for what was given on the command line."""
        import msgspec

        limits = {"usd": self.budget, "calls": self.max_calls, "tokens": self.max_tokens, "seconds": self.deadline}
        given = {name: value for name, value in limits.items() if value is not None}
        changed = msgspec.structs.replace(base, limits=msgspec.structs.replace(base.limits, **given))
        ways = {"schedule": self.schedule, "via": self.via}
        said: dict[str, Any] = {name: way.value for name, way in ways.items() if way is not None}
        if self.batch_size is not None:
            said["batch_size"] = self.batch_size
        if self.max_reorder_usd is not None:
            said["max_reorder_usd"] = None if self.max_reorder_usd == inf else self.max_reorder_usd
        changed = msgspec.structs.replace(changed, **said)
        if self.batch_size is not None and changed.via == "live":
            raise SettingsError(
                f"--batch-size {self.batch_size}: nothing travels in batches: add --via batch or --via auto"
            )
        return msgspec.structs.replace(changed, cache=False) if self.no_cache else changed


def takes(flags: type[F]) -> Callable[[Callable[Concatenate[F, P], None]], Callable[..., None]]:
    """Give a command the options that a class of flags lists; its first parameter gets them as one object."""

    def widen(command: Callable[Concatenate[F, P], None]) -> Callable[..., None]:
        names = [field.name for field in fields(flags)]

        def flat(**given: Any) -> None:
            shared = {name: given.pop(name) for name in names}
            command(flags(**shared), **given)  # type: ignore[call-arg]  # the signature below says what is given

        parameters = [*_own_parameters(command), *_shared_parameters(flags)]
        flat.__name__, flat.__doc__, flat.__module__ = command.__name__, command.__doc__, command.__module__
        flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return flat

    return widen


def _own_parameters(command: Callable[..., None]) -> list[inspect.Parameter]:
    """The parameters of a command after its flags."""
    hints = get_type_hints(command, include_extras=True)
    own = list(inspect.signature(command).parameters.values())[1:]
    return [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own
    ]


def _shared_parameters(flags: type[Any]) -> list[inspect.Parameter]:
    """The options of a class of flags; those that it adds itself come first, as they do in the help."""
    hints, added = get_type_hints(flags, include_extras=True), inspect.get_annotations(flags)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in sorted(fields(flags), key=lambda field: field.name not in added)
    ]
