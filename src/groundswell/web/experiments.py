"""/api/experiments: what there is to run, with the schema of its options, and how a run is started and estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from secrets import token_hex
from typing import Any, cast

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from groundswell.engine.records import RunRecord
from groundswell.errors import Conflict, SettingsError
from groundswell.estimate.bill import Bill
from groundswell.experiments.experiment import Command, Context, Experiment, Ready, experiment_named
from groundswell.experiments.options import Given, RunChoices, collect, fields_of
from groundswell.experiments.simulations.batch import Batch, Single
from groundswell.web.envelope import success
from groundswell.web.estimating import billed
from groundswell.web.requests import check_turns
from groundswell.web.schema import REF, answers, component, errors
from groundswell.web.services import Here, Services
from groundswell.web.settings import ServerSettings

PREFIX = "/api/experiments"
LONGEST_NAME = 200
SERVERS_OWN = ("max_concurrent", "account")
"""Choices that a server makes for all its runs."""


class CommandShown(msgspec.Struct, frozen=True):
    """A command: where its runs are started, and a JSON Schema of the body that it takes."""

    name: str
    about: str
    path: str
    options: Any


class ExperimentShown(msgspec.Struct, frozen=True):
    """An experiment with its commands."""

    name: str
    about: str
    commands: list[CommandShown]


class RunStarted(msgspec.Struct, frozen=True):
    """A run that was started; it can be followed under /api/runs."""

    run_id: str
    name: str
    message: str
    notes: list[str]


def router_for(names: list[str]) -> APIRouter:
    """The routes of experiments: two of their own for each command that a request can start."""
    router = APIRouter(tags=["experiments"])
    found = [experiment_named(name) for name in names]

    @router.get(
        PREFIX,
        summary="Get all experiments",
        responses={**answers(list[ExperimentShown], "with the schemas of their options"), **errors()},
    )
    async def list_all(here: Here) -> Response:
        """Each command has a JSON Schema of the body that starts it."""
        return success([_shown(each) for each in found])

    for experiment in found:
        for command in experiment.commands:
            if command.over_http:
                _add(router, experiment, command)
    return router


def _add(router: APIRouter, experiment: Experiment, command: Command) -> None:
    path = f"{PREFIX}/{experiment.name}/{command.name}"
    title = f"{experiment.name}-{command.name}".title().replace("-", "")
    schema = component(title, *options_schema(command, REF.format(name=f"{title}.{{name}}")))
    body = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
    about = command.help.partition("\n")[0]

    async def start(here: Here, request: Request) -> Response:
        ready = await _ready(here, command, await _body(request))
        await _check_models(here, ready, keys=True)
        record = await _planned(here, ready)
        return success(RunStarted(record.id, record.title, "Run started", list(ready.notes)), 201)

    async def estimate(here: Here, request: Request) -> Response:
        ready = await _ready(here, command, await _body(request), estimating=True)
        await _check_models(here, ready, keys=False)
        return success(await here.heavy(lambda: billed(ready.driver, ready.settings, here.settings)))

    routes: list[tuple[str, Callable[..., Any], str, int, Any, str]] = [
        (path, start, "Start", 201, RunStarted, "it was started"),
        (f"{path}/estimate", estimate, "Estimate", 200, Bill, "nothing was sent"),
    ]
    for place, work, verb, status, kind, said in routes:
        router.add_api_route(
            place,
            work,
            methods=["POST"],
            status_code=status,
            name=f"{verb.lower()}_{experiment.name}_{command.name}".replace("-", "_"),
            summary=f"{verb} {experiment.name}: {command.name}",
            description=about,
            responses={**answers(kind, said, status=status), **errors(404, 409, 429, body=True)},
            openapi_extra=body,
        )


async def _body(request: Request) -> dict[str, Any]:
    """The options in a body, which may be empty."""
    text = await request.body()
    found = msgspec.json.decode(text) if text else {}
    if not isinstance(found, dict):
        raise SettingsError("the body must be an object with options", field="body")
    return cast("dict[str, Any]", found)


async def _ready(here: Services, command: Command, said: Mapping[str, Any], *, estimating: bool = False) -> Ready:
    """A run that could begin, from the options of a request. No file is read because of it, and no module imported."""
    given = collect(command.fields, said, what=command.name, text=False)
    for name, one in given.items():
        if name in SERVERS_OWN or not command.fields[name].flag.over_http:
            raise SettingsError(f"{one.place.spelled}: is for the server alone to say", field=one.place.spelled)
    context = Context(
        store=here.settings.store,
        origin="request",
        estimating=estimating,
        default=here.model,
        account=here.settings.account,
    )
    return await here.heavy(lambda: _checked(here, command, given, context))


def _checked(here: Services, command: Command, given: Mapping[str, Given], context: Context) -> Ready:
    ready = command.ready(given, context)
    check_limits(ready.settings, here.settings)
    name = ready.name or ""
    if ready.named and (len(name) > LONGEST_NAME or not name.strip() or not name.isprintable()):
        raise SettingsError(f"name: give at most {LONGEST_NAME} printable characters", field="name")
    if ready.choices.account:
        raise SettingsError("the limits of accounts are for the server to say: leave options about them out")
    return ready


async def _check_models(here: Services, ready: Ready, *, keys: bool) -> None:
    """Refuse models that cannot be reached, before there is a run that cannot succeed, and files of this machine."""
    for name, one in ready.command.fields.items():
        if one.flag.completes != "models" or name in fields_of(RunChoices):
            continue
        value = ready.value(name)
        for model in (value,) if isinstance(value, str) else tuple(value or ()):
            here.check_name(model, name)
            if "{" in model:  # a part of it is filled in for each trial
                continue
            await here.check_models(model, keys=keys, field=name)
    for text in _texts(msgspec.to_builtins(ready.settings, enc_hook=str)):
        if text.startswith("local/"):
            here.check_name(text, "model")


def check_limits(settings: Any, server: ServerSettings) -> None:
    """Refuse what is more than the server takes on: as its own addresses for simulations do."""
    trials = getattr(settings, "interactions", 0)
    if trials > server.max_trials:
        raise SettingsError(f"interactions {trials}: {server.max_trials:,} at the most", field="interactions")
    messages = getattr(getattr(settings, "table", None), "messages", 0)
    if messages > server.max_turns:
        raise SettingsError(f"messages {messages}: {server.max_turns:,} at the most", field="messages")
    if isinstance(settings, Batch):
        if settings.num_simulations > server.max_simulations:
            most = f"{server.max_simulations:,} at the most"
            raise SettingsError(f"num_simulations {settings.num_simulations}: {most}", field="num_simulations")
        if len(settings.entities) > server.max_entities:
            raise SettingsError(f"entities: {server.max_entities:,} at the most", field="entities")
        check_turns(settings.rules.n_turns, settings.rules.simulation_rounds, server)
    elif isinstance(settings, Single):
        check_turns(settings.simulation.rules.n_turns, settings.simulation.rules.simulation_rounds, server)


def _texts(value: Any) -> Iterator[str]:
    """All texts in plain data, wherever they are: entities may have models of their own."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


async def _planned(here: Services, ready: Ready) -> RunRecord:
    """Write the run down, under a name that no other run has."""
    options = msgspec.structs.replace(ready.run_options, unattended=True)
    name = ready.name or here.free_name(f"{ready.command.name}-{token_hex(4)}")
    if here.store.runs.find(name) is not None:
        if ready.named:
            raise Conflict(f"there is a run {name!r} already: give another name, or resume that one")
        name = here.free_name(name)
    return await here.background.plan(ready.driver, ready.settings, name=name, seed=ready.seed, options=options)


def options_schema(command: Command, template: str = "#/$defs/{name}") -> tuple[dict[str, Any], dict[str, Any]]:
    """A JSON Schema of all options that a request may have, and the schemas that it refers to."""
    kinds: list[Any] = [command.options, RunChoices]
    try:
        refs, components = msgspec.json.schema_components(kinds, ref_template=template)
    except TypeError as error:
        raise SettingsError(f"the options of {command.name} cannot be described as a JSON Schema: {error}") from error
    parts = [components.pop(each["$ref"].removeprefix(template.partition("{")[0])) for each in refs]
    properties = parts[1]["properties"] | parts[0]["properties"]
    hidden = {*SERVERS_OWN, *(name for name, one in command.fields.items() if not one.flag.over_http)}
    schema: dict[str, Any] = {
        "type": "object",
        "title": command.options.__name__,
        "description": command.help,
        "properties": {name: each for name, each in properties.items() if name not in hidden},
        "required": parts[0].get("required", []),
        "additionalProperties": False,
    }
    return schema, components


def _whole(command: Command) -> dict[str, Any]:
    """The schema with all that it refers to in it."""
    schema, inner = options_schema(command)
    return schema | ({"$defs": inner} if inner else {})


def _shown(experiment: Experiment) -> ExperimentShown:
    commands = [
        CommandShown(each.name, each.help, f"{PREFIX}/{experiment.name}/{each.name}", _whole(each))
        for each in experiment.commands
        if each.over_http
    ]
    return ExperimentShown(experiment.name, experiment.about, commands)
