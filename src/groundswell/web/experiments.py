"""/api/experiments: list experiments with their options, and start or estimate runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from secrets import token_hex
from typing import Any, cast

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from groundswell.engine.records import RunRecord
from groundswell.errors import Conflict, SettingsError
from groundswell.estimate.bill import Bill
from groundswell.experiments.copies import copies, toml
from groundswell.experiments.experiment import Command, Context, Experiment, Ready, experiment_named
from groundswell.experiments.options import Given, RunChoices, all_fields, collect, fields_of
from groundswell.experiments.pilot import estimate_run
from groundswell.experiments.results import remember_config
from groundswell.experiments.simulations.batch import Batch, Single
from groundswell.web.access import scheme_of
from groundswell.web.envelope import FieldError, success
from groundswell.web.requests import check_turns
from groundswell.web.schema import REF, answers, component, errors
from groundswell.web.services import Here, Services
from groundswell.web.settings import ServerSettings

PREFIX = "/api/experiments"
LONGEST_NAME = 200
SERVERS_OWN = ("max_concurrent", "account", "workers", "cluster")
"""Options that are set for the whole server."""


class CommandShown(msgspec.Struct, frozen=True):
    """A command: the path that starts its runs, and the JSON Schema of the body."""

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
    """A started run. Follow it under /api/runs."""

    run_id: str
    name: str
    message: str
    notes: list[str]


class RunChecked(msgspec.Struct, frozen=True):
    """A run that could be started, and texts that start it elsewhere. `trials` is None if the settings do not say it.

    `missing` says what must be set on the server before the run can start, such as the key of a model.
    """

    name: str | None
    trials: int | None
    notes: list[str]
    missing: list[FieldError]
    command_line: str
    python: str
    curl: str
    config: str


def router_for(names: list[str]) -> APIRouter:
    """The routes of experiments: three for each command that is available over HTTP."""
    router = APIRouter(tags=["experiments"])
    found = [experiment_named(name) for name in names]

    @router.get(
        PREFIX,
        summary="List experiments",
        responses={**answers(list[ExperimentShown], "The experiments and their commands."), **errors()},
    )
    async def list_all(here: Here) -> Response:
        """List the experiments. Each command comes with the JSON Schema of the body that starts it."""
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
        config = await here.heavy(lambda: toml(command, ready.config))
        record = await _planned(here, ready)
        await here.heavy(lambda: remember_config(here.store, record.id, config))
        return success(RunStarted(record.id, record.title, "Run started", list(ready.notes)), 201)

    async def check(here: Here, request: Request) -> Response:
        body = await _body(request)
        ready = await _ready(here, command, body, estimating=True)
        await _check_models(here, ready, keys=False)
        texts = copies(
            experiment,
            command,
            _options_of(ready, body),
            body=body,
            url=str(request.base_url.replace(scheme=scheme_of(request))),
            token=here.settings.token is not None,
        )
        missing = await _missing_keys(here, ready)
        trials = getattr(ready.settings, "trials", None)
        return success(RunChecked(ready.name, trials, list(ready.notes), missing, *msgspec.structs.astuple(texts)))

    async def estimate(here: Here, request: Request) -> Response:
        ready = await _ready(here, command, await _body(request), estimating=True)
        await _check_models(here, ready, keys=False)
        server = here.settings
        return success(await here.heavy(lambda: estimate_run(ready, here.store, server.account, server.max_concurrent)))

    routes: list[tuple[str, Callable[..., Any], str, int, Any, str]] = [
        (path, start, "Start", 201, RunStarted, "The run was started."),
        (f"{path}/check", check, "Check", 200, RunChecked, "The run could be started. Nothing was sent."),
        (f"{path}/estimate", estimate, "Estimate", 200, Bill, "The estimate. Nothing was sent."),
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
    """The options in a body. It may be empty."""
    text = await request.body()
    found = msgspec.json.decode(text) if text else {}
    if not isinstance(found, dict):
        raise SettingsError("the body must be an object with options", field="body")
    return cast("dict[str, Any]", found)


async def _ready(here: Services, command: Command, said: Mapping[str, Any], *, estimating: bool = False) -> Ready:
    """A run that is ready to start, from the options of a request. Reads no file and imports no module."""
    given = collect(command.fields, said, what=command.name, text=False)
    for name, one in given.items():
        if name in SERVERS_OWN or not command.fields[name].flag.over_http:
            why = "cannot be set in a request; set it when you start the server"
            raise SettingsError(f"{one.place.spelled}: {why}", field=one.place.spelled)
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
        raise SettingsError("account settings cannot be set in a request; set them when you start the server")
    return ready


async def _check_models(here: Services, ready: Ready, *, keys: bool) -> None:
    """Refuse models that are not available, and model files of this machine, before a run is created."""
    for name, one in ready.command.fields.items():
        if one.flag.completes != "models" or name in fields_of(RunChoices):
            continue
        value = ready.value(name)
        for model in (value,) if isinstance(value, str) else tuple(value or ()):
            here.check_name(model, name)
            if "{" in model:  # a template that is filled in for each trial
                continue
            await here.check_models(model, keys=keys, field=name)
    if isinstance(ready.settings, Batch):
        for model, field in ready.settings.models_besides.items():
            here.check_name(model, field)
            await here.check_models(model, keys=keys, field=field)
    for text in texts(msgspec.to_builtins(ready.settings, enc_hook=str)):
        if text.startswith("local/"):
            here.check_name(text, "model")


async def _missing_keys(here: Services, ready: Ready) -> list[FieldError]:
    """What the models of a run lack: their keys."""
    try:
        await _check_models(here, ready, keys=True)
    except SettingsError as error:
        return [FieldError(error.field or "model", str(error))]
    return []


def _options_of(ready: Ready, body: Mapping[str, Any]) -> dict[str, Any]:
    """The options in a body by their own names, with the models that the server chose."""
    given = collect(ready.command.fields, body, what=ready.command.name, text=False)
    said = {name: one.value for name, one in given.items() if one.value is not None}
    return {**ready.models, **said}


def check_limits(settings: Any, server: ServerSettings) -> None:
    """Refuse settings above the limits of the server, as the endpoints for simulations do."""
    trials = getattr(settings, "interactions", 0)
    if trials > server.max_trials:
        raise SettingsError(f"interactions {trials}: must be at most {server.max_trials:,}", field="interactions")
    messages = getattr(getattr(settings, "table", None), "messages", 0)
    if messages > server.max_turns:
        raise SettingsError(f"messages {messages}: must be at most {server.max_turns:,}", field="messages")
    if isinstance(settings, Batch):
        if settings.num_simulations > server.max_simulations:
            most = f"must be at most {server.max_simulations:,}"
            raise SettingsError(f"num_simulations {settings.num_simulations}: {most}", field="num_simulations")
        if len(settings.entities) > server.max_entities:
            raise SettingsError(f"entities: there must be at most {server.max_entities:,}", field="entities")
        for rules in [each.rules for each in settings.conditions] or [settings.rules]:
            check_turns(rules.n_turns, rules.simulation_rounds, server)
    elif isinstance(settings, Single):
        check_turns(settings.simulation.rules.n_turns, settings.simulation.rules.simulation_rounds, server)


def texts(value: Any) -> Iterator[str]:
    """All strings in nested data, since entities may name their own models."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts(each)


async def _planned(here: Services, ready: Ready) -> RunRecord:
    """Create the run under a unique name."""
    options = msgspec.structs.replace(ready.run_options, unattended=True)
    name = ready.name or here.free_name(f"{ready.command.name}-{token_hex(4)}")
    if here.store.runs.find(name) is not None:
        if ready.named:
            raise Conflict(f"run {name!r} already exists: use another name, or resume that run")
        name = here.free_name(name)
    return await here.background.plan(ready.driver, ready.settings, name=name, seed=ready.seed, options=options)


def options_schema(command: Command, template: str = "#/$defs/{name}") -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON Schema of all options of a request, and the schemas that it refers to. Do not change them."""
    options: Any = command.options
    try:
        return _schema_of(options, template)
    except TypeError as error:
        raise SettingsError(f"cannot create a JSON Schema for the options of {command.name}: {error}") from error


@cache
def _schema_of(options: Any, template: str) -> tuple[dict[str, Any], dict[str, Any]]:
    kinds: list[Any] = [options, RunChoices]
    refs, components = msgspec.json.schema_components(kinds, ref_template=template)
    parts = [components.pop(each["$ref"].removeprefix(template.partition("{")[0])) for each in refs]
    properties = parts[1]["properties"] | parts[0]["properties"]
    hidden = {*SERVERS_OWN, *(name for name, one in all_fields(options).items() if not one.flag.over_http)}
    schema: dict[str, Any] = {
        "type": "object",
        "title": options.__name__,
        "description": inspect.getdoc(options) or "",
        "properties": {name: each for name, each in properties.items() if name not in hidden},
        "required": parts[0].get("required", []),
        "additionalProperties": False,
    }
    return schema, components


def _whole(command: Command) -> dict[str, Any]:
    """The schema, including all schemas that it refers to."""
    schema, inner = options_schema(command)
    return schema | ({"$defs": inner} if inner else {})


def _shown(experiment: Experiment) -> ExperimentShown:
    commands = [
        CommandShown(each.name, each.help, f"{PREFIX}/{experiment.name}/{each.name}", _whole(each))
        for each in experiment.commands
        if each.over_http
    ]
    return ExperimentShown(experiment.name, experiment.about, commands)
