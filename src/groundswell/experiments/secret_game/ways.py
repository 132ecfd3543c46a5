"""What the name of a batch service stands for: how the conversations are grouped, and how their requests travel. Pure.

| name                   | conversations                         | requests                              |
|------------------------|---------------------------------------|---------------------------------------|
| default                | so many groups at once                | live                                  |
| openai, anthropic      | so many groups at once                | the provider's batch API              |
| openai-conversation    | all of them, turn by turn in waves    | its batch API, single ones live       |
| anthropic-conversation | all of them, turn by turn in waves    | live, or its batch API on request     |
| conversation           | all of them, turn by turn in waves    | live, or batch APIs on request        |
| auto                   | as the models' providers suggest      | as the models' providers suggest      |

None of this changes what is said: only the route, the grouping and the price differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, get_args

from groundswell.engine.options import RunOptions
from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.modes import ServiceName

SERVICES: tuple[ServiceName, ...] = get_args(ServiceName)
ANY: tuple[ServiceName, ...] = ("default", "conversation")
"""Those that do not care whose models they are."""
BATCH_SIZE, MAX_CONCURRENT = 10, 5
"""Conversations of a group, and groups at once, where nothing is said."""


class Speaker(NamedTuple):
    """An agent with the model that speaks for it, and the provider that the model leads to."""

    agent: str
    model: str
    provider: str


class Way(NamedTuple):
    """How a run is carried out: for `engine.drive`, for `groundswell.open`, and for people."""

    service: ServiceName
    """Never `auto`: what that came to."""
    options: RunOptions
    max_concurrent: int | None
    """Live requests at once; None: as many as the accounts allow."""
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
    """How a batch service carries out a run with these models; raises `SettingsError` for one that cannot.

    `models` are those of the agents, by their ids or in the order of agents 1, 2, ... `batch_size` and `max_concurrent`
    are conversations of a group and groups at once; for the services over waves, the most requests of a provider's
    batch and the live requests at once. `whose` says which provider a model leads to.
    """
    check_number("batch_size", batch_size)
    check_number("max_concurrent", max_concurrent)
    if service not in SERVICES:
        raise SettingsError(f"batch service {service!r}: there are {', '.join(SERVICES)}")
    speakers = _speakers(models, whose) if service not in ANY else []
    chosen, why = choose(speakers) if service == "auto" else (service, "")
    _check_providers(chosen, speakers)
    if chosen in ("default", "openai", "anthropic"):
        way = _in_groups(chosen, batch_size or BATCH_SIZE, max_concurrent or MAX_CONCURRENT)
    else:
        way = _in_waves(chosen, batch_size, max_concurrent, use_batch_api)
    return way._replace(note=f"auto: {chosen}, since {why}; {way.note}") if why else way


def _speakers(models: Mapping[str, str] | Sequence[str], whose: Callable[[str], str]) -> list[Speaker]:
    by_agent = models if isinstance(models, Mapping) else {str(n): model for n, model in enumerate(models, 1)}
    providers = {model: whose(model) for model in dict.fromkeys(by_agent.values())}
    return [Speaker(agent, model, providers[model]) for agent, model in by_agent.items()]


def choose(speakers: Sequence[Speaker]) -> tuple[ServiceName, str]:
    """The service that suits the providers, and why."""
    providers = sorted({speaker.provider for speaker in speakers})
    match providers:
        case ["openai"]:
            return "openai-conversation", "all models are OpenAI's"
        case ["anthropic"]:
            return "anthropic-conversation", "all models are Anthropic's"
        case [one]:
            return "conversation", f"the models are at {one}"
    return "conversation", f"the models are at {' and '.join(providers)}"


def _in_groups(service: ServiceName, size: int, groups: int) -> Way:
    opened = f"up to {groups} {'group' if groups == 1 else 'groups'} of {size} conversations at once"
    if service == "default":
        return Way(service, RunOptions(window=size * groups), None, f"{opened}, live")
    options = RunOptions(window=size * groups, via="batch", batch_size=size)
    return Way(service, options, None, f"{opened}, over the batch API of {service}")


def _in_waves(service: ServiceName, size: int | None, most: int | None, use_batch_api: bool) -> Way:
    live = "live requests" if most is None else f"up to {most} live requests at once"
    if service != "openai-conversation" and not use_batch_api:
        return Way(service, RunOptions(schedule="waves"), most, f"waves over all conversations, {live}")
    options = RunOptions(schedule="waves", via="batch", batch_size=size)
    held = "as many requests to a batch as the provider takes" if size is None else f"up to {size} requests to a batch"
    return Way(service, options, most, f"waves over all conversations, {held}, {live} where batches do not serve")


def check_number(name: str, value: int | None) -> None:
    """Refuse a number of things below one."""
    if value is not None and value < 1:
        raise SettingsError(f"{name} {value}: must be at least 1")


def _check_providers(service: ServiceName, speakers: Collection[Speaker]) -> None:
    wanted = service.partition("-")[0]
    if wanted not in ("openai", "anthropic"):
        return
    for speaker in speakers:
        if speaker.provider != wanted:
            raise SettingsError(
                f"batch service {service!r}: agent {speaker.agent!r} speaks with {speaker.model!r}, a model at "
                f"{speaker.provider}, not {wanted}: use 'auto' or 'conversation', which take models of any provider"
            )
