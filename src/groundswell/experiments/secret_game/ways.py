"""The batch services by name: how conversations are grouped, and how their requests are sent. Pure.

| name                   | conversations                     | requests                                       |
|------------------------|-----------------------------------|------------------------------------------------|
| default                | several groups at once            | live                                           |
| openai, anthropic      | several groups at once            | the provider's batch API                       |
| openai-conversation    | all at once, in waves by turn     | the batch API; a single request is sent live   |
| anthropic-conversation | all at once, in waves by turn     | live; the batch API with `use_batch_api`       |
| conversation           | all at once, in waves by turn     | live; the batch API with `use_batch_api`       |
| auto                   | chosen by the models' providers   | chosen by the models' providers                |

The service does not affect the conversations: only grouping, transport and price differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, get_args

from groundswell.engine.options import RunOptions
from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.modes import ServiceName

SERVICES: tuple[ServiceName, ...] = get_args(ServiceName)
ANY: tuple[ServiceName, ...] = ("default", "conversation")
"""Services that accept models of any provider."""
BATCH_SIZE, MAX_CONCURRENT = 10, 5
"""Default number of conversations per group, and of groups at once."""


class Speaker(NamedTuple):
    """An agent with its model and the provider of the model."""

    agent: str
    model: str
    provider: str


class Way(NamedTuple):
    """How the requests of a run are sent: arguments of `engine.drive` and `groundswell.open`, and a note for users."""

    service: ServiceName
    """The service that was chosen; never `auto`."""
    options: RunOptions
    max_concurrent: int | None
    """Maximum number of live requests in flight; None: as many as the accounts allow."""
    note: str


def way_of(
    service: ServiceName,
    models: Mapping[str, str] | Sequence[str],
    batch_size: int | None = None,
    max_concurrent: int | None = None,
    *,
    use_batch_api: bool = False,
    whose: Callable[[str], str],
) -> Way:
    """How a batch service sends the requests of a run. Raises `SettingsError` if the models do not fit the service.

    `models` are the models of the agents, by agent id or in order. `batch_size` and `max_concurrent` are conversations
    per group and groups at once; for services with waves, requests per provider batch and live requests in flight.
    `whose` returns the provider of a model.
    """
    check_number("batch_size", batch_size)
    check_number("max_concurrent", max_concurrent)
    if service not in SERVICES:
        raise SettingsError(f"batch service {service!r}: unknown; use one of {', '.join(SERVICES)}")
    speakers = _speakers(models, whose) if service not in ANY else []
    chosen, why = choose(speakers) if service == "auto" else (service, "")
    _check_providers(chosen, speakers)
    if chosen in ("default", "openai", "anthropic"):
        way = _in_groups(chosen, batch_size or BATCH_SIZE, max_concurrent or MAX_CONCURRENT)
    else:
        way = _in_waves(chosen, batch_size, max_concurrent, use_batch_api)
    return way._replace(note=f"auto chose {chosen}, because {why}: {way.note}") if why else way


def _speakers(models: Mapping[str, str] | Sequence[str], whose: Callable[[str], str]) -> list[Speaker]:
    by_agent = models if isinstance(models, Mapping) else {str(n): model for n, model in enumerate(models, 1)}
    providers = {model: whose(model) for model in dict.fromkeys(by_agent.values())}
    return [Speaker(agent, model, providers[model]) for agent, model in by_agent.items()]


def choose(speakers: Sequence[Speaker]) -> tuple[ServiceName, str]:
    """The service for these providers, and the reason."""
    providers = sorted({speaker.provider for speaker in speakers})
    match providers:
        case ["openai"]:
            return "openai-conversation", "all models are from OpenAI"
        case ["anthropic"]:
            return "anthropic-conversation", "all models are from Anthropic"
        case [one]:
            return "conversation", f"the models are from {one}"
    return "conversation", f"the models are from {' and '.join(providers)}"


def _in_groups(service: ServiceName, size: int, groups: int) -> Way:
    opened = f"up to {groups} {'group' if groups == 1 else 'groups'} of {size} conversations at once"
    if service == "default":
        return Way(service, RunOptions(window=size * groups), None, f"{opened}, live")
    options = RunOptions(window=size * groups, via="batch", batch_size=size)
    return Way(service, options, None, f"{opened}, by the batch API of {service}")


def _in_waves(service: ServiceName, size: int | None, most: int | None, use_batch_api: bool) -> Way:
    live = "live requests" if most is None else f"up to {most} live requests in flight"
    if service != "openai-conversation" and not use_batch_api:
        return Way(service, RunOptions(schedule="waves"), most, f"waves over all conversations, {live}")
    options = RunOptions(schedule="waves", via="batch", batch_size=size)
    held = "provider batches of the maximum size" if size is None else f"provider batches of up to {size} requests"
    return Way(
        service, options, most, f"waves over all conversations, {held}; {live} for single requests and failed batches"
    )


def check_number(name: str, value: int | None) -> None:
    """Raise `SettingsError` for a number below 1."""
    if value is not None and value < 1:
        raise SettingsError(f"{name} {value}: must be at least 1")


def _check_providers(service: ServiceName, speakers: Collection[Speaker]) -> None:
    wanted = service.partition("-")[0]
    if wanted not in ("openai", "anthropic"):
        return
    for speaker in speakers:
        if speaker.provider != wanted:
            raise SettingsError(
                f"batch service {service!r}: agent {speaker.agent!r} uses {speaker.model!r}, a model from "
                f"{speaker.provider}, not {wanted}; use 'auto' or 'conversation', which accept any provider"
            )
